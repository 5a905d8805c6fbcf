"""manage.py outside: the payment provider and the carrier, for trying the shop by hand after the demo."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from example_project.outside.__main__ import main
from example_project.shop.calls import server_url
from example_project.shop.demo.world import ledger_path


class Command(BaseCommand):
    help = "Serves the simulated payment provider and carrier until Ctrl-C, with the books that the demo left them."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write("The payment provider and the carrier are at:")
        main(["--ledger", ledger_path(), "--url", server_url()])
