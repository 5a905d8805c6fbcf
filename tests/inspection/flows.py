"""The workflows that the tests of inspection, commands and admin look at."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from workflow_engine import Await, Context, Fail, Finish, Goto, Retry, RetryPolicy, Signal, Sleep, Workflow, clock, step
from workflow_engine.domain.registry import registry

PAID = "paid"
REFUSED = "refused"

# Known only where a test asks for them: other tests look at what is registered, too.
with registry.isolated():

    class Parcel(Workflow):
        """Packs, is paid for, goes its way."""

        name = "parcel"
        version = 2

        @step
        def pack(self, ctx: Context) -> dict[str, Any]:
            return {"packed": True}

        @step(goes_to=("give_up", "ship"))
        def await_payment(self, ctx: Context) -> Await:
            return Await(PAID, REFUSED, timeout=timedelta(days=2, seconds=30))

        @await_payment.on_signal
        def answered(self, ctx: Context, signal: Signal) -> Goto | None:
            return Goto("give_up") if signal.name == REFUSED else None

        @await_payment.on_timeout
        def too_late(self, ctx: Context) -> Goto:
            return Goto("give_up")

        @step(retry=RetryPolicy(max_attempts=2, initial_delay=3600 * 3 + 30, jitter=False, max_delay=timedelta(days=1)))
        def ship(self, ctx: Context) -> None:
            if ctx.get("carrier") == "busy":
                raise RuntimeError("the carrier\nis busy")

        @step
        def travel(self, ctx: Context) -> Sleep:
            return Sleep(timedelta(days=5, seconds=30))

        @step
        def arrive(self, ctx: Context) -> Finish:
            return Finish({"arrived": True})

        @step
        def give_up(self, ctx: Context) -> Fail:
            return Fail("nobody paid")

    class Leave(Workflow):
        """Two people approve it; nobody hurries them."""

        name = "leave"

        @step
        def approve(self, ctx: Context) -> Await:
            return Await("approved")

    class Trip(Workflow):
        """Books one thing after the other, and takes back what it booked."""

        name = "trip"

        @step
        def flight(self, ctx: Context) -> None:
            pass

        @flight.compensation(atomic=True)
        def cancel_flight(self, ctx: Context, result: Any) -> None:
            if ctx.get("airline") == "gone":
                raise LookupError("the airline is gone")

        @step
        def hotel(self, ctx: Context) -> Await | Retry:
            return Retry("the hotel does not answer") if ctx.get("hotel") == "silent" else Await("guest_arrived")


FLOWS = (Leave, Parcel, Trip)


@pytest.fixture(autouse=True)
def flows() -> Iterator[None]:
    """Only these workflows are registered, and time is the database's again afterwards."""
    with registry.isolated():
        registry._classes = {(flow.name, flow.version): flow for flow in FLOWS}
        yield
    clock.reset_shift()
