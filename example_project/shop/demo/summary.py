"""What the demo says when it is over."""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from django.utils.timesince import timeuntil

from example_project.shop.models import Order, OrderStatus
from example_project.shop.workflows import FulfilOrder
from workflow_engine.models import WorkflowInstance

from .stage import LOGIN, PASSWORD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .books import Finding


def outcomes() -> Iterator[str]:
    """Orders per outcome."""
    counts = Counter(Order.objects.values_list("status", flat=True))
    for status in OrderStatus:
        if counts[status]:
            yield f"{counts[status]:>8}  {status.label}"
    yield f"{counts.total():>8}  orders"


def waiting() -> Iterator[str]:
    """What the live instances wait for, and until when."""
    groups: dict[tuple[str, str], list[datetime | None]] = defaultdict(list)
    for instance in WorkflowInstance.objects.live().filter(workflow_name=FulfilOrder.name):
        what = " or ".join(instance.awaiting_signals) or "time to pass"
        groups[instance.current_step, what].append(instance.due_at)
    yield f"{'orders':>8}  {'step':<18} {'for':<38} until"
    for (step, what), due in sorted(groups.items(), key=lambda group: -len(group[1])):
        yield f"{len(due):>8}  {step:<18} {what:<38} {until(due)}"


def until(moments: list[datetime | None]) -> str:
    """The next of them, in words."""
    known = [moment for moment in moments if moment is not None]
    return f"in {timeuntil(min(known))}".replace("\xa0", " ") if known else "it comes"


def books(findings: list[Finding]) -> Iterator[str]:
    for finding in findings:
        mark = "  ok " if not finding.errors else "WRONG"
        yield f"{mark}  {finding.heading:<9} {finding.text}"
        yield from (f"       {error}" for error in finding.errors)


def commands(workers: str) -> Iterator[str]:
    """Three to type next; `workers` is what to run to have work done."""
    python, order, module = _python(), _one_to_look_at(), os.environ["DJANGO_SETTINGS_MODULE"]
    if module != "example_project.settings":
        yield f"  export DJANGO_SETTINGS_MODULE={module}"
    yield f"  {python} manage.py workflow_instances --status awaiting"
    yield f"  {python} manage.py workflow_show shop.order:{order.pk if order else 1}"
    yield f"  {python} manage.py runserver"
    yield f"      then http://127.0.0.1:8000/ and http://127.0.0.1:8000/admin/ as {LOGIN}, password {PASSWORD}"
    yield f"      (for orders of your own: {workers})"


def _python() -> str:
    """The interpreter that runs this, as one types it from here: no environment need be activated."""
    executable = Path(sys.executable)
    return str(executable.relative_to(Path.cwd())) if executable.is_relative_to(Path.cwd()) else "python"


def _one_to_look_at() -> Order | None:
    """The last that still waits for its payment, else any that is not over."""
    return (
        Order.objects.filter(status=OrderStatus.AWAITING_PAYMENT).first()
        or Order.objects.exclude(status__in=Order.ENDED).first()
    )
