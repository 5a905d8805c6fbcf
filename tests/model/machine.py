"""A state machine that does to the real engine, on a real database, what people, senders, workers and time do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.db.models import F
from django.test import override_settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, precondition, rule

from tests.model import invariants
from tests.model.actions import ACTIONS, UNDO_ACTIONS
from tests.model.counting import claims, progress, wrote
from tests.model.mill import LIMITS, Mill
from tests.model.mishaps import MISHAPS, Mishap
from tests.model.process_clock import process_clock
from tests.model.reading import read
from tests.model.replay import TERMINAL, Row, Tables
from tests.model.script import Died, script
from tests.proof import broker
from tests.shop.models import Counter, Effect
from workflow_engine import IdempotencyConflictError, InvalidStateError, clock, engine
from workflow_engine.models import WorkflowEvent, WorkflowInstance, WorkflowSignal, WorkflowWorker
from workflow_engine.testing import reload
from workflow_engine.tick import tick
from workflow_engine.worker import Worker

SETTINGS = {"MAX_RECOVERIES": 2, "MAX_VISITS_WITHOUT_PARKING": 12, "INFRASTRUCTURE_RETRIES": 1}

KEYS = st.sampled_from([None, None, "a", "b"])
SCRIPTS = st.lists(st.sampled_from(["natural", *ACTIONS]), max_size=4)
UNDO_SCRIPTS = st.lists(st.sampled_from(["natural", *UNDO_ACTIONS]), max_size=2)
TIMES = st.sampled_from([0, 1, 11, 61, 601, 3601, 100_000])
FAILURES = st.sampled_from(["raise", "exit", "swallow", "retry", "die", "dawdle", "freeze"])
ANY_MISHAP = st.one_of(
    st.just(Mishap()), st.builds(Mishap, what=st.sampled_from(sorted(MISHAPS)), at=st.integers(1, 30))
)
MOST_INSTANCES = 3
MOST_ROUNDS = 30
LONGEST_WAIT_FOR_A_LOOK = timedelta(seconds=60)
"""HOLD, GRACE and POSTPONE: whoever has an instance in hand may keep others from looking at it for so long."""


class Machine(RuleBasedStateMachine):
    """What was started and sent, by key, is the model; everything else is asked of the tables after each rule."""

    instances: Bundle[UUID] = Bundle("instances")
    ran = 0
    """How often; hypothesis breaks off some that lead nowhere, and doesn't count them as examples."""

    def __init__(self) -> None:
        super().__init__()
        self.surroundings = ExitStack()
        self.surroundings.enter_context(process_clock.in_use())
        self.surroundings.enter_context(connection_kept())
        self.surroundings.enter_context(override_settings(WORKFLOW_ENGINE=SETTINGS))
        self.worker = Worker("default")
        self.pushed = False
        self.count = 0
        self.started: dict[tuple[str, str], tuple[UUID, int]] = {}
        self.sent: dict[tuple[UUID, str], tuple[int, str, int]] = {}
        self.before: Tables | None = None
        broker.jobs.clear()
        script.clear()
        script.others = self._work

    # --- what callers do ------------------------------------------------------------------

    @initialize(
        target=instances, pushed=st.booleans(), forward=st.sampled_from([[], ["to wait"], ["natural", "await"]])
    )
    def first(self, pushed: bool, forward: Sequence[str]) -> Any:
        """At its start, in a step that waits, or in an activity that does; with a broker or without."""
        self.pushed = pushed
        if pushed:
            self.surroundings.enter_context(override_settings(WORKFLOW_ENGINE=SETTINGS | {"DISPATCHER": broker.PATH}))
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
            script.set()
            engine.advance(instance)

    @rule(
        target=instances,
        instance=instances,
        verb=st.sampled_from(["start", "signal", "cancel", "retry"]),
        at=st.integers(1, 8),
    )
    def say_something_and_die(self, instance: UUID, verb: str, at: int) -> Any:
        """The caller's process dies on the way; whether it was said is for the tables to know."""
        before = set(WorkflowInstance.objects.values_list("pk", flat=True))
        with Mishap("die", at).befalls(), suppress(InvalidStateError):
            if verb == "start":
                engine.start(Mill)
            else:
                getattr(engine, verb)(instance, *["go"] * (verb == "signal"))
        new = set(WorkflowInstance.objects.values_list("pk", flat=True)) - before
        self.count += len(new)
        return multiple(*new)

    # --- what workers and time do ------------------------------------------------------------------

    @rule(
        instance=instances,
        forward=SCRIPTS,
        undos=UNDO_SCRIPTS,
        how=st.sampled_from(["advance", "twice", "drive"]),
        mishap=ANY_MISHAP,
    )
    def advance(self, instance: UUID, forward: Sequence[str], undos: Sequence[str], how: str, mishap: Mishap) -> None:
        script.set(forward, undos)
        with mishap.befalls():
            engine.drive(instance) if how == "drive" else engine.advance(instance)
        if how == "twice":
            with suppress(Died):
                engine.advance(instance)

    @rule(seconds=TIMES, forward=SCRIPTS, undos=UNDO_SCRIPTS, mishap=ANY_MISHAP)
    def work(self, seconds: int, forward: Sequence[str], undos: Sequence[str], mishap: Mishap) -> None:
        clock.shift(timedelta(seconds=seconds))
        script.set(forward, undos)
        done = False
        with mishap.befalls():
            self._work()
            done = True
        if not done or self.pushed:
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
                self._work()
            self.tables_make_sense()
            clock.shift(timedelta(seconds=61))

    @precondition(lambda self: self.pushed)
    @rule(twice=st.booleans())
    def lose_or_double_messages(self, twice: bool) -> None:
        broker.jobs[:] = broker.jobs * 2 if twice else []

    def _work(self) -> None:
        if not self.pushed:
            while self.worker._round():  # as in a burst, but it registers only once
                pass
            return
        tick("default")
        for instance_id in broker.deliveries():
            engine.drive(instance_id)

    # --- what must be true ------------------------------------------------------------------

    @invariant()
    def tables_make_sense(self) -> None:
        now = read(limits=LIMITS, before=self.before)
        if now is self.before:
            return
        invariants.assert_hold(now, self.before)
        self.before = now
        assert wrote(now) == progress(now)
        assert not script.wrong, script.wrong
        assert script.begun <= claims(now)
        for row in now.instances.values():
            self.is_not_forgotten(row)
        for history in now.events.values():
            poisoned = [e for e in history if e["kind"] == "step_failed" and e["data"]["error"]["type"] == "Poison"]
            # Invariant 10: nothing but processes that died is ever called poison.
            assert script.might_be_dead >= len(poisoned) * SETTINGS["MAX_RECOVERIES"]

    def is_not_forgotten(self, row: Row) -> None:
        """Invariant 9: somebody looks at what is due, soon."""
        if row["status"] in TERMINAL or row["paused"] or row["due_at"] is None:
            return
        latest = max(clock.now("default"), row["due_at"]) + LONGEST_WAIT_FOR_A_LOOK
        assert row["poll_at"] is not None, row
        assert row["poll_at"] <= latest, row

    def teardown(self) -> None:
        """Given time and nobody who interferes, everything ends, or waits for its mailbox alone."""
        try:
            if self.before is not None:
                self._come_to_rest()
        finally:
            Machine.ran += 1
            clock.reset_shift()
            self.surroundings.close()
            for model in (WorkflowEvent, WorkflowSignal, WorkflowInstance, WorkflowWorker, Effect, Counter):
                model._default_manager.all().delete()

    def _come_to_rest(self) -> None:
        script.set(["finish"] * MOST_ROUNDS)  # the shortest way to the end
        restless = WorkflowInstance.objects.live().exclude(status="awaiting", due_at=None)
        for _ in range(MOST_ROUNDS):
            for instance in WorkflowInstance.objects.live().filter(paused=True):
                engine.resume(instance)
            if not restless.exists() and not WorkflowSignal.objects.pending().exists():
                break
            clock.shift(timedelta(days=2))
            self._work()
        assert not list(restless.values_list("pk", "status", "due_at"))
        assert not list(WorkflowSignal.objects.pending())
        self.tables_make_sense()


@contextmanager
def connection_kept() -> Iterator[None]:
    """A worker does not open a new connection in each of its rounds, as it would by Django's default."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(connection.settings_dict, "CONN_MAX_AGE", None)
        connection.close()
        yield
