from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.core.management import CommandError
from django.core.management.base import CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from workflow_engine.inspection import health
from workflow_engine.inspection.times import length
from workflow_engine.management.arguments import parse_duration
from workflow_engine.management.base import WorkflowCommand
from workflow_engine.management.tables import table
from workflow_engine.models import WorkflowWorker

UNHEALTHY = 2


class Command(WorkflowCommand):
    summary = gettext_lazy("Is work getting done? Exit code 2 if a limit is exceeded, 1 if that can't be found out.")

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--max-due-age", metavar="TIME", help=_("The longest that a due instance may wait. Default: 2m.")
        )
        parser.add_argument(
            "--max-tick-age",
            metavar="TIME",
            help=_(
                "The longest since the last tick. Default: three intervals or 1m, where work is handed to a broker."
            ),
        )
        parser.add_argument(
            "--min-workers",
            type=int,
            metavar="N",
            help=_("So many that reported lately. Default: 1, where workers fetch their work."),
        )
        for name, text in (
            ("pending", _("At most so many signals that nobody has looked at. Default: no limit.")),
            ("failed", _("At most so many instances that failed in the last hour. Default: no limit.")),
            ("suspects", _("At most so many instances that lost their process. Default: no limit.")),
        ):
            parser.add_argument(f"--max-{name}", type=int, metavar="N", help=text)

    def run(self, options: dict[str, Any]) -> None:
        limits = _limits(options)
        found = health.read(self.using)
        problems = health.problems(found, limits)
        if self.as_json:
            self.print_json({"healthy": not problems, "problems": problems, **_as_json(found)})
        else:
            for line in table((_("what"), _("is"), _("limit")), list(_rows(found, limits))):
                self.stdout.write(line)
        if problems:
            raise CommandError(" ".join(problems), returncode=UNHEALTHY)


def _limits(options: dict[str, Any]) -> health.Limits:
    limits = health.default_limits()
    given: dict[str, Any] = {
        "workers": options["min_workers"],
        "pending": options["max_pending"],
        "failed": options["max_failed"],
        "suspects": options["max_suspects"],
    }
    for name in ("due_age", "tick_age"):
        text = options[f"max_{name}"]
        given[name] = None if text is None else parse_duration(text, f"--max-{name.replace('_', '-')}")
    return replace(limits, **{name: value for name, value in given.items() if value is not None})


def _rows(found: health.Health, limits: health.Limits) -> Iterator[tuple[str, str, str]]:
    yield _("oldest due instance"), _age(found.oldest_due), _age(limits.due_age)
    yield (
        _("last tick"),
        _("%(age)s ago") % {"age": _age(found.last_tick)} if found.last_tick else "-",
        _age(limits.tick_age),
    )
    yield _("workers"), _workers(found), _count(limits.workers, _("at least %(count)d"))
    yield _("pending signals"), str(found.pending), _count(limits.pending)
    yield _("failed in the last hour"), str(found.failed), _count(limits.failed)
    yield _("suspects"), str(found.suspects), _count(limits.suspects)


def _age(span: timedelta | None) -> str:
    return "-" if span is None else length(span)


def _count(limit: int | None, text: str = "%(count)d") -> str:
    return "-" if limit is None else text % {"count": limit}


def _workers(found: health.Health) -> str:
    labels = dict(WorkflowWorker.Kind.choices)
    counts = {kind: count for kind, count in sorted(found.workers.items()) if kind != WorkflowWorker.Kind.TICK}
    return ", ".join(f"{count} {labels[kind]}" for kind, count in counts.items()) or "0"


def _as_json(found: health.Health) -> dict[str, Any]:
    return {
        "oldest_due_seconds": _seconds(found.oldest_due),
        "last_tick_seconds": _seconds(found.last_tick),
        "workers": dict(found.workers),
        "pending": found.pending,
        "failed": found.failed,
        "suspects": found.suspects,
    }


def _seconds(span: timedelta | None) -> float | None:
    return None if span is None else round(span.total_seconds(), 3)
