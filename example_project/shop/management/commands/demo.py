"""manage.py demo: an afternoon of the shop in a few seconds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.test import override_settings

from example_project.shop.demo import books, stage, summary
from example_project.shop.demo.play import Play
from example_project.shop.demo.progress import Bar
from example_project.shop.demo.staff import Reviewer
from example_project.shop.workflows import FulfilOrder

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Iterable

    from example_project.shop.models import Order


class Command(BaseCommand):
    help = "Empties the example shop, loads about 200 orders and takes each as far as it gets today."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--count", type=int, help="Load this many orders only.")
        parser.add_argument("--quiet", action="store_true", help="Print nothing but what does not add up.")

    def handle(self, *args: Any, count: int | None, quiet: bool, **options: Any) -> None:
        if not settings.SHOP_DEMO:
            raise CommandError(
                "SHOP_DEMO is off: the demo empties the shop and creates a login with a well-known password."
            )
        self._quiet = quiet
        try:
            # With DEBUG on, Django keeps a note of every query, which makes each a little slower.
            with override_settings(DEBUG=False):
                self._run(count)
        except KeyboardInterrupt:
            raise CommandError("Stopped half-way. Run it again whenever you like: it starts afresh.") from None

    def _run(self, count: int | None) -> None:
        started = time.monotonic()
        call_command("migrate", verbosity=0)
        play = Play(self._set_the_stage(count), Reviewer(stage.create_login()))
        self._perform(play)
        self._say("Took", f"{time.monotonic() - started:.1f} seconds")
        self._conclude(play)

    def _set_the_stage(self, count: int | None) -> list[Order]:
        self._say("Database", str(connection.settings_dict["NAME"]))
        if removed := stage.clear():
            self._say("Emptied", f"{removed} orders that were here before are gone: every demo starts afresh")
        products, report = stage.load(count)
        self._say("Loaded", f"{products} products, {len(report.placed)} orders")
        for problem in report.problems:
            self._say("", f"orders.csv, {problem}")
        return report.placed

    def _perform(self, play: Play) -> None:
        play.open()
        count = len(play.orders)
        self._say("Started", f"{count} instances of {FulfilOrder.name}, see example_project/shop/workflows.py")
        bar = Bar(self.stdout, f"{'Working':<10}", count)
        play.run((lambda done: None) if self._quiet else bar.update)
        if not self._quiet:
            bar.close()
        self._say("Webhooks", play.webhooks())

    def _conclude(self, play: Play) -> None:
        findings = books.audit(play.provider.captured)
        self._section("Where the orders are", summary.outcomes())
        self._section("What still waits", summary.waiting())
        self._section("Do the books add up?", summary.books(findings))
        if wrong := [error for finding in findings for error in finding.errors]:
            raise CommandError("The books do not add up:\n  " + "\n  ".join(wrong))
        if unfinished := play.unfinished():
            raise CommandError(f"These orders did not come as far as they should have: {', '.join(unfinished)}")
        self._section("Type next", summary.commands())

    def _say(self, label: str, text: str) -> None:
        if not self._quiet:
            self.stdout.write(f"{label:<10} {text}")

    def _section(self, title: str, lines: Iterable[str]) -> None:
        if not self._quiet:
            self.stdout.write("\n".join(["", self.style.MIGRATE_HEADING(title), *lines, ""]))
