"""Workflows after plans. Each handler notes in the ledger that it runs, and counts."""

from __future__ import annotations

import hashlib
import time
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F

from tests.proof.deeds import about, leased, transactional
from tests.proof.random_programs.plans import Kind, Part, Plan, Undo, key_of, signal_name
from tests.shop.models import Counter
from workflow_engine import Activity, Await, Context, Fail, Goto, Outcome, RetryPolicy, Signal, Sleep, Step, Workflow

LIMIT = 200
RETRY = RetryPolicy(max_attempts=LIMIT, initial_delay=0.05, multiplier=1, jitter=False)
LEASE = timedelta(seconds=2)
A_MOMENT = 0.3
A_PAUSE = 0.03
"""Seconds that an activity takes three times, so that it may be hit in the middle."""

Answer = Outcome | dict[str, Any] | None


def define(plan: Plan) -> type[Workflow[Any]]:
    """The workflow, which registers itself."""
    steps = {key_of(number): _declared(number, part) for number, part in enumerate(plan.parts)}
    return type(plan.name, (Workflow,), {"name": plan.name, "retry": RETRY, **steps})


def _declared(number: int, part: Part) -> Step[Any]:
    if part.kind is Kind.ACTIVITY:
        kind = _Errand if part.undo is Undo.NONE else _UndoableErrand
        errand = kind(lease=LEASE, timeout=60, undo={"retry": RETRY, "lease": LEASE})
        errand.part = part
        return errand
    step = _STEPS[part.undo](undo={"retry": RETRY, "atomic": part.undo is Undo.ATOMIC, "lease": LEASE})
    step.number, step.part = number, part
    return step


class _Counting(Step[Any]):
    """Counts inside the engine's transaction, and then does what its kind does."""

    number: int
    part: Part

    def run(self, ctx: Context) -> Answer:
        with transactional(ctx, "body", LIMIT):
            _fail_at_first(ctx, self.part)
            match self.part.kind:
                case Kind.ANSWER:
                    return Await(signal_name(self.number), timeout=timedelta(hours=2))
                case Kind.SILENCE:
                    return Await(f"not_{signal_name(self.number)}", timeout=A_MOMENT)
                case Kind.HANG:
                    return Await("nothing", timeout=timedelta(days=1))
                case Kind.FAIL:
                    return Fail("for good")
                case Kind.BREAK if not is_repaired(ctx.instance_id):
                    return Fail("until it is repaired")
            self._count(ctx)
            if self.part.kind is Kind.SLEEP:
                return Sleep(timedelta(seconds=A_MOMENT))
            return self._go_back(ctx) if self.part.kind is Kind.LOOP else None

    def _go_back(self, ctx: Context) -> Answer:
        so_far = f"rounds_{self.number}"
        rounds = ctx.get(so_far, 0) + 1
        return Goto(key_of(self.part.back), updates={so_far: rounds}) if rounds < self.part.rounds else None

    def handle_signal(self, ctx: Context, signal: Signal) -> None:
        with transactional(ctx, about(signal), LIMIT):
            self._count(ctx)

    def handle_timeout(self, ctx: Context) -> None:
        with transactional(ctx, "timeout", LIMIT):
            self._count(ctx)

    def _count(self, ctx: Context) -> None:
        """For its undo, too, which is asked for as well if the visit ends while it waits."""
        _mark(ctx.idempotency_key)
        count(self.part.counts, 1)


class _UndoneAtomically(_Counting):
    def compensate(self, ctx: Context, result: Any) -> None:
        with transactional(ctx, "undo", LIMIT):
            if is_marked(str(ctx.forward_idempotency_key)):
                count(self.part.counts, -1)


class _UndoneUnderALease(_Counting):
    def compensate(self, ctx: Context, result: Any) -> None:
        with leased(ctx, "undo", LIMIT), transaction.atomic():
            if is_marked(str(ctx.forward_idempotency_key)) and _mark(ctx.idempotency_key):
                count(self.part.counts, -1)


_STEPS = {Undo.NONE: _Counting, Undo.ATOMIC: _UndoneAtomically, Undo.LEASED: _UndoneUnderALease}


class _Errand(Activity[Any]):
    """Counts like a good service on the other side: once per idempotency key, however often it is called."""

    part: Part

    def run(self, ctx: Context) -> dict[str, Any]:
        with leased(ctx, "activity", LIMIT, undoable=self.part.undo is not Undo.NONE) as run:
            for _ in range(3):
                time.sleep(A_PAUSE)
                run.beat()
            _fail_at_first(ctx, self.part)
            with transaction.atomic():
                if _mark(ctx.idempotency_key):
                    count(self.part.counts, 1)
            return {"nonce": run.nonce}


class _UndoableErrand(_Errand):
    def compensate(self, ctx: Context, result: Any) -> None:
        """What was never done is marked as if it had been, so that a call which is late does nothing any more."""
        with leased(ctx, "undo", LIMIT), transaction.atomic():
            done = not _mark(str(ctx.forward_idempotency_key))
            if _mark(ctx.idempotency_key) and done:
                count(self.part.counts, -1)


def count(names: tuple[str, ...], by: int) -> None:
    """Count in all of them."""
    for name in names:
        Counter.objects.filter(name=name).update(value=F("value") + by)


def repair(instance: UUID) -> None:
    """What the part that breaks of this instance needs."""
    _mark(f"repaired {instance}")


def is_repaired(instance: UUID) -> bool:
    """Whether that has happened."""
    return is_marked(f"repaired {instance}")


def is_marked(key: str) -> bool:
    """Whether the service has heard of this key."""
    return Counter.objects.filter(name=_hashed(key)).exists()


def _mark(key: str) -> bool:
    """Whether the service has not heard of this key; from now on it has."""
    return Counter.objects.get_or_create(name=_hashed(key))[1]


def _hashed(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:40]


def _fail_at_first(ctx: Context, part: Part) -> None:
    if ctx.attempt <= part.failures:
        raise RuntimeError("not yet")
