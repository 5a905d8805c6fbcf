"""manage.py demo: an afternoon of the shop in a few seconds, with everything that goes wrong in one.

Processes: this one plays customers, staff and the payment page; two workers do the work; one server plays the payment
provider and the carrier. They share nothing but the shop's database and HTTP; on Celery, a broker too.
"""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.test import override_settings

from example_project.shop.demo import agreement, books, recovery, stage, summary
from example_project.shop.demo.accident import Accident
from example_project.shop.demo.play import Play, to_be_interrupted
from example_project.shop.demo.progress import Bar
from example_project.shop.demo.staff import Reviewer
from example_project.shop.demo.workers import EmbeddedWorkers, ServerMissingError, WorkerDiedError
from example_project.shop.demo.world import World, WorldError
from example_project.shop.workflows import FulfilOrder
from workflow_engine import conf

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Iterable, Mapping

    from example_project.shop.demo.workers import Workers
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
        # `kill`, `timeout` and the like are to end the children too, as Ctrl-C does.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            # With DEBUG on, Django keeps a note of every query, which makes each a little slower: here and in workers.
            with override_settings(DEBUG=False):
                self._run(count)
        except KeyboardInterrupt:
            raise CommandError("Stopped half-way. Run it again whenever you like: it starts afresh.") from None
        except (ServerMissingError, WorkerDiedError, WorldError) as error:
            raise CommandError(str(error)) from None

    def _run(self, count: int | None) -> None:
        started, crew = time.monotonic(), _crew()
        self._say("Database", crew.prepare())
        call_command("migrate", verbosity=0)
        orders, reviewer = self._set_the_stage(count), Reviewer(stage.create_login())
        scene = to_be_interrupted(orders)
        with World(stall=scene) as world:
            killing = "; one of them will be killed" if scene else ""
            self._say("Workers", f"{crew.described}{killing}")
            with crew({"SHOP_OUTSIDE_URL": world.url, "SHOP_DEBUG": "0"}) as workers:
                accident, play = Accident(workers), Play(orders, reviewer)
                self._perform(play, workers, accident)
            ledger = world.ledger()
        self._say("Took", f"{time.monotonic() - started:.1f} seconds")
        self._conclude(play, ledger, accident)
        self._section("Type next", summary.commands(crew.by_hand))

    def _set_the_stage(self, count: int | None) -> list[Order]:
        if removed := stage.clear():
            self._say("Emptied", f"{removed} orders that were here before are gone: every demo starts afresh")
        products, report = stage.load(count)
        self._say("Loaded", f"{products} products, {len(report.placed)} orders")
        for problem in report.problems:
            self._say("", f"orders.csv, {problem}")
        return report.placed

    def _perform(self, play: Play, workers: Workers, accident: Accident) -> None:
        accident.start()
        try:
            count = len(play.orders)
            self._say("Starting", f"{count} instances of {FulfilOrder.name}, see example_project/shop/workflows.py")
            bar = Bar(self.stdout, f"{'Working':<10}", count)
            play.run(workers, (lambda done: None) if self._quiet else bar.update)
        finally:
            accident.call_off()
        if not self._quiet:
            bar.close()
        self._say("Webhooks", play.webhooks())

    def _conclude(self, play: Play, ledger: Mapping[str, Any], accident: Accident) -> None:
        findings = [*books.audit(), *agreement.audit(ledger)]
        self._section("Where the orders are", summary.outcomes())
        self._section("What still waits", summary.waiting())
        self._section("Do the books add up?", summary.books(findings))
        self._section("What was undone, and what was recovered", recovery.lines(ledger, accident))
        if wrong := [error for finding in findings for error in finding.errors]:
            raise CommandError("The books do not add up:\n  " + "\n  ".join(wrong))
        if unfinished := play.unfinished():
            raise CommandError(f"These orders did not come as far as they should have: {', '.join(unfinished)}")

    def _say(self, label: str, text: str) -> None:
        if not self._quiet:
            self.stdout.write(f"{label:<10} {text}")

    def _section(self, title: str, lines: Iterable[str]) -> None:
        if not self._quiet:
            self.stdout.write("\n".join(["", self.style.MIGRATE_HEADING(title), *lines, ""]))


def _crew() -> type[Workers]:
    """Who does the work in this project, as its settings say."""
    if conf.current().DISPATCHER != "celery":
        return EmbeddedWorkers
    from example_project.shop.demo.on_celery import CeleryWorkers

    return CeleryWorkers
