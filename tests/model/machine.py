"""A state machine that does to the real engine, on a real database, what people, senders, workers and time do."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import F
from django.test import override_settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, precondition, rule

from tests.model import invariants
from tests.model.mill import ACTIONS, LIMITS, UNDO_ACTIONS, Died, Mill, script
from tests.model.replay import Tables
from tests.shop.models import Counter, Effect
from workflow_engine import IdempotencyConflictError, InvalidStateError, clock, engine
from workflow_engine.models import WorkflowEvent, WorkflowInstance, WorkflowSignal, WorkflowWorker
from workflow_engine.testing import drain, reload

SETTINGS = {"MAX_RECOVERIES": 2, "MAX_VISITS_WITHOUT_PARKING": 12, "INFRASTRUCTURE_RETRIES": 1}

KEYS = st.sampled_from([None, None, "a", "b"])
SCRIPTS = st.lists(st.sampled_from(["natural", *ACTIONS]), max_size=4)
UNDO_SCRIPTS = st.lists(st.sampled_from(["natural", *UNDO_ACTIONS]), max_size=2)
TIMES = st.sampled_from([0, 1, 11, 61, 601, 3601])
FAILURES = st.sampled_from(["raise", "exit", "swallow", "retry", "die"])
PASSED = ("body", "signal", "timeout")
MOST_INSTANCES = 3
MOST_ROUNDS = 30


class Machine(RuleBasedStateMachine):
    """What was started and sent, by key, is the model; everything else is asked of the tables after each rule."""

    instances: Bundle[UUID] = Bundle("instances")

    def __init__(self) -> None:
        super().__init__()
        self.settings = override_settings(WORKFLOW_ENGINE=SETTINGS)
        self.settings.enable()
        self.count = 0
        self.started: dict[tuple[str, str], tuple[UUID, int]] = {}
        self.sent: dict[tuple[UUID, str], tuple[int, str, int]] = {}
        self.before: Tables | None = None
        script.set()
        script.deaths.clear()

    # --- what callers do ------------------------------------------------------------------

    @initialize(target=instances, forward=st.sampled_from([[], ["to wait"], ["natural", "await"]]))
    def first(self, forward: Sequence[str]) -> Any:
        """At its start, in a step that waits, or in an activity that does."""
        self.count = 1
        instance = engine.start(Mill)
        if forward:
            script.set(forward)
            engine.drive(instance)
        return instance.pk

    @precondition(lambda self: self.count < MOST_INSTANCES)
    @rule(target=instances, key=KEYS, tenant=st.sampled_from(["", "acme"]), n=st.integers(0, 1))
    def start(self, key: str | None, tenant: str, n: int) -> Any:
        known = self.started.get((tenant, key)) if key else None
        try:
            instance = engine.start(Mill, context={"n": n}, idempotency_key=key, tenant=tenant)
        except IdempotencyConflictError as error:
            instance, n = error.instance, 1 - n  # it knows the other payload
        if known is not None:
            assert (instance.pk, n) == known
            return multiple()
        self.count += 1
        if key:
            self.started[tenant, key] = (instance.pk, n)
        return instance.pk

    @rule(instance=instances, names=st.lists(st.sampled_from(["go", "stop"]), min_size=1, max_size=3))
    def signals(self, instance: UUID, names: Sequence[str]) -> None:
        """Several at once, early or late."""
        for number, name in enumerate(names):
            with suppress(InvalidStateError):
                engine.signal(instance, name, number)

    @rule(instance=instances, name=st.sampled_from(["go", "stop", "other"]), key=KEYS, data=st.integers(0, 1))
    def signal(self, instance: UUID, name: str, key: str | None, data: int) -> None:
        known = self.sent.get((instance, key)) if key else None
        try:
            item = engine.signal(instance, name, data, idempotency_key=key)
        except IdempotencyConflictError:
            assert known is not None
            assert (name, data) != known[1:]
        except InvalidStateError:
            assert known is None
            assert reload(instance).is_terminal
        else:
            assert known in {None, (item.pk, name, data)}
            if key:
                self.sent[instance, key] = (item.pk, name, data)

    @rule(
        instance=instances,
        verb=st.sampled_from(["cancel", "pause", "resume", "retry"]),
        compensate=st.booleans(),
        at_once=st.booleans(),
    )
    def request(self, instance: UUID, verb: str, compensate: bool, at_once: bool) -> None:
        options = {"compensate": compensate} if verb == "cancel" else {}
        with suppress(InvalidStateError):
            getattr(engine, verb)(instance, actor="hypothesis", **options)
        if at_once:  # as commands do
            engine.advance(instance)

    # --- what workers and time do ------------------------------------------------------------------

    @rule(instance=instances, forward=SCRIPTS, undos=UNDO_SCRIPTS, how=st.sampled_from(["advance", "twice", "drive"]))
    def advance(self, instance: UUID, forward: Sequence[str], undos: Sequence[str], how: str) -> None:
        script.set(forward, undos)
        with suppress(Died):
            engine.drive(instance) if how == "drive" else engine.advance(instance)
        if how == "twice":
            with suppress(Died):
                engine.advance(instance)

    @rule(seconds=TIMES, forward=SCRIPTS, undos=UNDO_SCRIPTS)
    def work(self, seconds: int, forward: Sequence[str], undos: Sequence[str]) -> None:
        clock.shift(timedelta(seconds=seconds))
        script.set(forward, undos)
        try:
            drain()
        except Died:
            return
        now = clock.now("default")
        assert not list(WorkflowInstance.objects.due(now))
        # Who died with an instance in hand keeps its mail from being looked at, until the hold runs out.
        held = WorkflowInstance.objects.filter(poll_at__gt=now).exclude(poll_at=F("due_at"))
        assert not list(WorkflowSignal.objects.pending().exclude(instance__in=held))

    @rule(failure=FAILURES, undo_failure=st.sampled_from(UNDO_ACTIONS), rounds=st.integers(2, 4), said=st.booleans())
    def work_on_a_bad_day(self, failure: str, undo_failure: str, rounds: int, said: bool) -> None:
        """The same goes wrong again and again, while time passes; first of all when a signal comes, if `said`."""
        for instance in WorkflowInstance.objects.live() if said else ():
            engine.signal(instance, "go")
        for _ in range(rounds):
            script.set([failure] * MOST_INSTANCES, [undo_failure] * MOST_INSTANCES)
            with suppress(Died):
                drain()
            self.tables_make_sense()
            clock.shift(timedelta(seconds=61))

    # --- what must be true ------------------------------------------------------------------

    @invariant()
    def tables_make_sense(self) -> None:
        now = invariants.read(limits=LIMITS)
        invariants.assert_hold(now, self.before)
        self.before = now
        wrote = Counts(Effect.objects.filter(note__in=PASSED).values_list("instance_id", "note"))
        assert wrote == progress(now)
        for instance_id, history in now.events.items():
            poisoned = [e for e in history if e["kind"] == "step_failed" and e["data"]["error"]["type"] == "Poison"]
            # Invariant 10: nothing but processes that died is ever called poison.
            assert script.deaths.get(instance_id, 0) > len(poisoned) * SETTINGS["MAX_RECOVERIES"] or not poisoned

    def teardown(self) -> None:
        """Given time and nobody who interferes, everything ends, or waits for its mailbox alone."""
        try:
            if self.before is not None:
                self._come_to_rest()
        finally:
            clock.reset_shift()
            self.settings.disable()
            for model in (WorkflowEvent, WorkflowSignal, WorkflowInstance, WorkflowWorker, Effect, Counter):
                model._default_manager.all().delete()

    def _come_to_rest(self) -> None:
        script.set()
        moving = WorkflowInstance.objects.live().exclude(status="awaiting", due_at=None)
        for _ in range(MOST_ROUNDS):
            drain()
            for instance in WorkflowInstance.objects.live().filter(paused=True):
                engine.resume(instance)
            clock.shift(timedelta(days=2))
            if not moving.exists():
                break
        assert not list(moving.values_list("pk", "status", "due_at"))
        self.tables_make_sense()


def progress(now: Tables) -> Counts[tuple[UUID, str]]:
    """Invariant 1, by history: what steps and handlers wrote is there once for each time that they got on.

    Activities write outside their record, which has the visit and attempt of their claim.
    """
    made: Counts[tuple[UUID, str]] = Counts()
    for instance_id, history in now.events.items():
        outside = None
        for event in history:
            if event["kind"] == "step_started":
                outside = event["visit"], event["attempt"]
            if event["kind"] in {"step_completed", "workflow_awaiting", "workflow_slept"}:
                source = event["trigger"].partition(":")[0] or "body"
                if source in PASSED and (event["visit"], event["attempt"]) != outside:
                    made[instance_id, source] += 1
                outside = None
    return made
