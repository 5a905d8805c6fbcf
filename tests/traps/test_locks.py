"""Who holds a row lets nobody wait who need not: steps may be slow, senders and other workers are not.

If a guard is missing, the step that is waited for waits for the one who waits; the test fails by a timeout of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager

import pytest
from django.db import connection, transaction

from tests.shop.models import Counter
from tests.support import THRICE, kinds, mailbox, settled
from tests.traps import needs
from tests.traps.background import PATIENCE, in_thread, until_somebody_waits_for_a_lock, wait_for
from workflow_engine import Await, Context, Workflow, engine, failpoints, step
from workflow_engine.engine import Answer, claims, store
from workflow_engine.engine.locking import lock
from workflow_engine.models import WorkflowInstance
from workflow_engine.testing import reload
from workflow_engine.worker import Worker

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def running_step() -> Iterator[WorkflowInstance]:
    """Within the block the instance's step is running in another thread; then it awaits "paid"."""
    inside, leave = threading.Event(), threading.Event()

    class Slow(Workflow):
        name = "slow"

        @step
        def wait(self, ctx: Context) -> Await:
            inside.set()
            wait_for(leave)
            return Await("paid")

    instance = engine.start(Slow)
    driven = in_thread(lambda: engine.drive(instance))
    wait_for(inside)
    try:
        yield instance
        assert not driven.done()
    finally:
        leave.set()
        driven.result(PATIENCE)


def within_patience(work: Callable[[], object]) -> object:
    """Its result; an error if it waits for the step that runs meanwhile."""
    return in_thread(work).result(PATIENCE / 4)


@needs.server
@pytest.mark.parametrize("verb", ["signal", "cancel", "pause"])
def test_a_word_to_an_instance_does_not_wait_for_its_running_step(verb: str) -> None:
    arguments = ["paid"] if verb == "signal" else []
    with running_step() as instance:
        within_patience(lambda: getattr(engine, verb)(instance, *arguments))
        assert mailbox(instance) == [("paid" if verb == "signal" else verb, "pending")]
    instance = reload(instance)  # the driver looked once more after its commit
    assert (instance.status, instance.paused) == {
        "signal": ("completed", False),
        "cancel": ("cancelled", False),
        "pause": ("awaiting", True),
    }[verb]


@needs.postgresql
def test_a_row_that_refers_to_an_instance_can_be_inserted_while_its_step_runs() -> None:
    """A foreign key of the user's with its constraint: FOR NO KEY UPDATE lets its check pass, FOR UPDATE does not."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE trap_orders (workflow uuid REFERENCES workflow_instances (id))")
    try:
        with running_step() as instance:
            within_patience(lambda: connection.cursor().execute("INSERT INTO trap_orders VALUES (%s)", [instance.pk]))
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE trap_orders")


@needs.server
def test_who_finds_the_row_locked_says_so_at_once() -> None:
    with running_step() as instance:
        assert within_patience(lambda: engine.advance(instance).answer) == Answer.LOCKED
        assert within_patience(lambda: engine.drive(instance).answer) == Answer.LOCKED
        assert within_patience(lambda: claims.hold(instance.pk, "default")) == Answer.LOCKED


@needs.server
def test_a_worker_steps_over_what_is_locked() -> None:
    class Quick(Workflow):
        name = "quick"

        @step
        def only(self, ctx: Context) -> None: ...

    with running_step() as instance:
        quick = [engine.start(Quick) for _ in range(3)]
        assert within_patience(lambda: Worker().run(burst=True)) == 3
        assert {reload(other).status for other in quick} == {"completed"}
        assert kinds(instance) == ["workflow_started"]


def test_an_update_counts_the_rows_it_matched_even_if_it_changed_none() -> None:
    """MySQL and MariaDB would count changed rows, and the guard on the row's version would see a stale write."""
    with running_step() as instance:
        pass
    with transaction.atomic():
        locked = lock(instance.pk, "default")
        assert locked is not None
        store.update(locked.row, poll_at=locked.row.poll_at)
        rows = WorkflowInstance.objects.filter(pk=instance.pk)
        assert rows.update(status=locked.row.status) == 1


@needs.server
def test_a_deadlock_with_a_transaction_of_the_users_uses_no_attempt() -> None:
    """The step is the victim: on PostgreSQL because it looks first, on MariaDB because the other has written more."""
    Counter.objects.bulk_create([Counter(name="first"), Counter(name="second")])
    step_has_second, user_has_first = threading.Event(), threading.Event()
    calls: list[int] = []

    def user() -> None:
        with transaction.atomic():
            if connection.vendor == "postgresql":
                connection.cursor().execute("SET LOCAL deadlock_timeout = '1h'")
            Counter.objects.bulk_create(Counter(name=f"weight {number}") for number in range(50))
            Counter.objects.filter(name="first").update(value=1)
            user_has_first.set()
            wait_for(step_has_second)
            Counter.objects.filter(name="second").update(value=1)

    class Deadlocking(Workflow):
        name = "deadlocking"

        @step(retry=THRICE)
        def write(self, ctx: Context) -> None:
            calls.append(ctx.attempt)
            Counter.objects.filter(name="second").update(value=2)
            if len(calls) == 1:
                step_has_second.set()
                until_somebody_waits_for_a_lock()
            Counter.objects.filter(name="first").update(value=2)

    transaction_of_the_user = in_thread(user)
    wait_for(user_has_first)
    instance = settled(engine.start(Deadlocking))
    transaction_of_the_user.result(PATIENCE)
    assert calls == [1, 1]
    assert (instance.status, instance.error) == ("completed", None)
    assert kinds(instance) == ["workflow_started", "step_completed", "workflow_completed"]
    assert set(Counter.objects.filter(name__in=["first", "second"]).values_list("value", flat=True)) == {2}


@needs.server
def test_a_worker_whose_row_was_looked_at_goes_on_with_it_instead_of_leaving_it_held() -> None:
    """Another worker that wants the same row locks it for a moment, only to see that it is held."""

    class Short(Workflow):
        name = "short"

        @step
        def work(self, ctx: Context) -> None:
            Counter.objects.create(name="short")

    instance = engine.start(Short)
    looked, seen = threading.Event(), threading.Event()
    passed: list[str] = []

    def look() -> None:
        with transaction.atomic():
            lock(instance.pk, "default")
            looked.set()
            wait_for(seen)

    def reached(name: str) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        passed.append(name)
        if name == "hold.after":
            others.append(in_thread(look))
            wait_for(looked)
        elif passed.count("lock.after") == 2:  # the first turn has found the row locked
            seen.set()

    others: list[Future[None]] = []
    with failpoints.installed(reached):
        Worker().run(burst=True)
    others[0].result(PATIENCE)

    assert (reload(instance).status, Counter.objects.count()) == ("completed", 1)
