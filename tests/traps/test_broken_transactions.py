"""A step that harms the transaction it runs in: its failure is recorded, its writes vanish, nothing else happens."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from tests.shop.models import Counter
from tests.shop.workflows import OneStep
from tests.support import ONCE, error_of, kinds, later, settled
from tests.traps import needs
from tests.traps.background import PATIENCE, in_thread, wait_for
from workflow_engine import Await, Context, Fail, Signal, Workflow, activity, engine, step
from workflow_engine.models import WorkflowInstance
from workflow_engine.testing import drain, reload

pytestmark = pytest.mark.django_db(transaction=True)

REMEDY = (
    ", so none of its writes can be kept. A @step runs inside the engine's transaction: let database errors propagate"
    " or catch them around an atomic() block of your own, and never close the connection."
)
DUPLICATE = "INSERT INTO test_shop_counter (name, value) VALUES ('taken', 1)"
SHORT_WAIT = {"postgresql": "SET LOCAL lock_timeout = 100", "mysql": "SET SESSION innodb_lock_wait_timeout = 1"}

Harm = Callable[[], object]


def run_step(body: Harm, retry: Any = ONCE) -> WorkflowInstance:
    """An instance whose only step writes a row, calls `body`, and writes another."""

    class Harmed(Workflow):
        name = "harmed"

        @step(retry=retry)
        def write(self, ctx: Context) -> None:
            Counter.objects.create(name=f"before {ctx.attempt}")
            body()

    return settled(engine.start(Harmed))


def names() -> list[str]:
    return sorted(Counter.objects.values_list("name", flat=True))


def swallow(work: Harm) -> Harm:
    def swallowing() -> None:
        try:
            work()
        except DatabaseError:
            return
        pytest.fail("there was no error to swallow")

    return swallowing


def execute(sql: str) -> Harm:
    def executing() -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql)

    return executing


def in_own_block(work: Harm) -> Harm:
    def working() -> None:
        with transaction.atomic():
            work()

    return working


def in_own_savepoint(work: Harm) -> Harm:
    # Its name since Django 6.1; the older one is deprecated there.
    begin = getattr(transaction, "savepoint_create", transaction.savepoint)

    def working() -> None:
        savepoint = begin()
        try:
            work()
        finally:
            transaction.savepoint_rollback(savepoint)

    return working


def close_and_open() -> None:
    connection.close()
    connection.connect()


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (connection.close, "closed the database connection"),
        (close_and_open, "closed the database connection"),
        (lambda: transaction.set_rollback(True), "marked the transaction for rollback"),
        (swallow(lambda: Counter.objects.create(name="taken")), "marked the transaction for rollback"),
        (swallow(execute("SELECT * FROM no_such_table")), "swallowed a database error"),
        (swallow(execute(DUPLICATE)), "swallowed a database error"),
    ],
    ids=[
        "closes the connection",
        "closes it and opens another",
        "marks the transaction",
        "swallows an error of the ORM",
        "swallows an error of a cursor",
        "swallows a violation found by a cursor",
    ],
)
def test_a_step_that_harms_its_transaction_fails_and_leaves_nothing(harm: Harm, told: str) -> None:
    Counter.objects.create(name="taken")
    instance = run_step(harm)
    assert instance.status == "failed"
    assert error_of(instance) == ("TransactionBrokenError", f"Step 'write' {told}{REMEDY}")
    assert kinds(instance) == ["workflow_started", "step_failed", "workflow_failed"]
    assert names() == ["taken"]


@pytest.mark.parametrize(
    "careful",
    [
        swallow(in_own_block(lambda: Counter.objects.create(name="taken"))),
        swallow(in_own_block(execute(DUPLICATE))),
        swallow(in_own_block(execute("SELECT * FROM no_such_table"))),
        swallow(in_own_savepoint(execute("SELECT * FROM no_such_table"))),
        in_own_block(swallow(in_own_block(execute("SELECT * FROM no_such_table")))),
        lambda: Counter.objects.get_or_create(name="taken"),
    ],
    ids=["ORM", "violation", "cursor", "savepoint", "nested", "get_or_create"],
)
def test_an_error_caught_around_a_block_of_its_own_is_the_steps_own_affair(careful: Harm) -> None:
    Counter.objects.create(name="taken")
    instance = run_step(careful)
    assert (instance.status, instance.error) == ("completed", None)
    assert names() == ["before 1", "taken"]


@pytest.mark.parametrize("then", [lambda: None, in_own_block(lambda: None)], ids=["at the end", "block after it"])
def test_a_block_after_the_error_does_not_hide_it(then: Harm) -> None:
    def harm() -> None:
        in_own_block(lambda: None)()
        with transaction.atomic():
            swallow(execute(DUPLICATE))()
        then()

    Counter.objects.create(name="taken")
    assert run_step(harm).status == "failed"
    assert names() == ["taken"]


def test_a_step_that_commits_by_itself_has_failed_and_the_engine_records_that() -> None:
    instance = run_step(execute("COMMIT"))
    assert instance.status == "failed"
    assert kinds(instance) == ["workflow_started", "step_failed", "workflow_failed"]
    assert names() == ["before 1"]


def test_the_handler_of_a_signal_is_watched_too_and_its_signal_waits_for_the_next_attempt() -> None:
    class Paying(Workflow):
        name = "paying"

        @step
        def wait(self, ctx: Context) -> Await:
            return Await("paid")

        @wait.on_signal
        def paid(self, ctx: Context, signal: Signal) -> None:
            Counter.objects.create(name=f"attempt {ctx.attempt}")
            if ctx.attempt == 1:
                connection.close()

    instance = settled(engine.start(Paying))
    engine.signal(instance, "paid")
    instance = settled(instance)
    assert (instance.status, error_of(instance)[0]) == ("awaiting", "TransactionBrokenError")
    instance = later(instance, minutes=10)
    assert instance.status == "completed"
    assert names() == ["attempt 2"]


@needs.server
@pytest.mark.parametrize("raises", [False, True], ids=["goes on", "raises another error"])
def test_trouble_of_the_database_that_a_step_swallows_uses_no_attempt(raises: bool) -> None:
    """MariaDB has rolled back the statement alone: what came before it would be committed."""
    Counter.objects.create(name="contended")
    held, free, tries = threading.Event(), threading.Event(), []

    def hold() -> None:
        with transaction.atomic():
            Counter.objects.select_for_update().get(name="contended")
            held.set()
            wait_for(free)

    def meet() -> None:
        tries.append(1)
        if len(tries) == 1:
            execute(SHORT_WAIT[connection.vendor])()
            swallow(execute("UPDATE test_shop_counter SET value = 1 WHERE name = 'contended'"))()
            free.set()
            holder.result(PATIENCE)
        else:
            execute("UPDATE test_shop_counter SET value = 1 WHERE name = 'contended'")()
        if raises and len(tries) == 1:
            raise ValueError("made of it")

    holder = in_thread(hold)
    wait_for(held)
    instance = run_step(meet)
    connection.close()  # and with it its short patience
    assert (instance.status, instance.error, len(tries)) == ("completed", None, 2)
    assert kinds(instance) == ["workflow_started", "step_completed", "workflow_completed"]
    assert names() == ["before 1", "contended"]


def begin_and_do_not_end() -> None:
    transaction.atomic().__enter__()


def begin_and_fail() -> None:
    begin_and_do_not_end()
    raise ValueError("in between")


@pytest.mark.parametrize("where", ["step", "activity", "undo", "atomic undo"])
@pytest.mark.parametrize(
    ("leave", "error"),
    [
        (begin_and_do_not_end, "TransactionBrokenError"),
        (begin_and_fail, "ValueError"),
        (lambda: connection.set_autocommit(False), "TransactionBrokenError"),
    ],
    ids=["block", "block and exception", "autocommit"],
)
def test_a_transaction_that_is_left_open_fails_its_handler_and_swallows_nothing_of_the_engines(
    leave: Harm, error: str, where: str
) -> None:
    """Else all that follows would be written inside it, and never be committed."""

    def harm(*_: Any) -> None:
        leave()
        Counter.objects.create(name=where)

    def run(self: object, ctx: Context) -> Any:
        return Fail("undo it") if "undo" in where else harm()

    class Leaving(Workflow):
        name = "leaving"

        @step
        def book(self, ctx: Context) -> None: ...

        @book.compensation(retry=ONCE, atomic=where == "atomic undo")
        def cancel(self, ctx: Context, result: Any) -> None:
            if "undo" in where:
                harm()

        work = (activity if where == "activity" else step)(retry=ONCE)(run)

    leaving, other = engine.start(Leaving), engine.start(OneStep)
    drain()
    seen = in_thread(lambda: [reload(leaving), reload(other)]).result(PATIENCE)
    assert [row.status for row in seen] == ["failed" if "undo" in where else "compensated", "completed"]
    assert seen[0].error is not None
    assert seen[0].error["type"] in {error, "TransactionManagementError"}
    assert names() == []
