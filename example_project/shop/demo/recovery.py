"""What the demo says about what went wrong: what was undone, and what was recovered without a trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from example_project.shop.models import Order, Refund, Shipment, ShipmentStatus
from example_project.shop.workflows import FulfilOrder
from workflow_engine.models import WorkflowEvent, WorkflowInstance

from .books import sums

if TYPE_CHECKING:
    from .accident import Accident


def lines(ledger: Mapping[str, Any], accident: Accident) -> Iterator[str]:
    yield from (f"{number:>8}  {text}" for number, text in _undone())
    if accident.victim is not None:
        yield f"{1:>8}  worker killed (SIGKILL, process {accident.victim}) after the provider had taken the money for"
        yield f"{'':>8}  {accident.order} and before anybody here knew; {_recovery_of(accident.order)}"
    yield from (f"{number:>8}  {text}" for number, text in _recovered(Counter(ledger["counts"])))


def _undone() -> Iterator[tuple[int, str]]:
    ended = Counter(
        WorkflowInstance.objects.filter(workflow_name=FulfilOrder.name).values_list("status", flat=True),
    )
    yield ended["compensated"], "orders undone because a later step failed"
    yield ended["cancelled"], "orders undone because the customer cancelled"
    refunds = Refund.objects.select_related("payment")
    yield len(refunds), f"payments given back: {sums(refund.payment.amount for refund in refunds)}"
    back = Counter(Shipment.objects.values_list("status", flat=True))
    returning = back[ShipmentStatus.RETURNING]
    yield back[ShipmentStatus.RECALLED] + returning, f"parcels called back, {returning} of them from the road"


def _recovery_of(number: str) -> str:
    """What became of the order that the killed worker had, as its history tells."""
    order = Order.objects.get(number=number)
    history = WorkflowEvent.objects.filter(instance__in=WorkflowInstance.objects.for_subject(order), step="charge")
    started = dict(history.filter(kind="step_started").values_list("attempt", "created_at"))
    for lost in history.filter(kind="step_failed", data__error__type="LeaseExpired"):
        if lost.attempt + 1 in started:
            seconds = (started[lost.attempt + 1] - started[lost.attempt]).total_seconds()
            return f"another one asked again after {seconds:.1f} s, and it is {order.get_status_display()}"
    return "nobody took it over"


def _recovered(counts: Counter[str]) -> Iterator[tuple[int, str]]:
    yield counts["lost"] + counts["stalled"], "answers that never arrived: asked again, under the same key"
    yield counts["down"], "requests that found the other side down: asked again later"
    repeated = sum(times for what, times in counts.items() if what.endswith(" repeated"))
    yield repeated, "repetitions that the other side recognised: nothing was charged, refunded or sent twice"
