"""Calling what users wrote, and making a value of whatever comes back."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from types import TracebackType
from typing import Any

from django.db import connections, transaction

from workflow_engine import serialization
from workflow_engine.domain.decisions.rules import Failure
from workflow_engine.domain.journal import Journal
from workflow_engine.domain.outcomes import Await, Complete, Fail, Finish, Goto, Outcome, Retry, Sleep, classify
from workflow_engine.domain.state import State
from workflow_engine.engine.blocks import no_block_left_open
from workflow_engine.engine.infrastructure import is_infrastructure
from workflow_engine.engine.statements import Statements
from workflow_engine.exceptions import FinalError, PostponedError, TransactionBrokenError, WorkflowEngineError
from workflow_engine.failpoints import around

_TRACEBACK_LIMIT = 10_000


@dataclass(frozen=True, kw_only=True)
class Handler:
    """A piece of user code, and what its success or failure decides."""

    step: str
    call: Callable[[], Any]
    check: Callable[[Outcome], None]
    succeed: Callable[[Journal, Outcome], None]
    fail: Callable[[Journal, Failure], None]


class UnrecordedFailureError(WorkflowEngineError):
    """A handler failed and took the transaction with it: its failure is recorded in the next one."""

    def __init__(
        self, handler: Handler, failure: Failure, journal: Journal, *, version: int, error: BaseException
    ) -> None:
        self.handler, self.failure, self.version, self.error = handler, failure, version, error
        self.attempt, self.actor, self.trigger = journal.attempt, journal.actor, journal.trigger
        super().__init__(failure.message)


def call_in_savepoint(handler: Handler, state: State, using: str, statements: Statements) -> tuple[Outcome, timedelta]:
    """Run the handler inside the engine's transaction, so that all it wrote goes or stays with its outcome.

    Afterwards the connection is checked: Django leaves an atomic block without an exception, and without the writes,
    when the connection was closed in it or a database error was swallowed.

    Raises:
        BaseException: what the handler raised, or what is wrong with its outcome; its writes are rolled back.
    """
    connection = connections[using]
    raw_connection = connection.connection
    connection.errors_occurred = False  # asked for by is_database_trouble()
    started = time.perf_counter()
    with transaction.atomic(using=using):
        with (
            around("handler"),
            connection.execute_wrapper(statements),
            no_block_left_open(handler.step, using),
        ):
            value = handler.call()
        if connection.closed_in_transaction or connection.connection is not raw_connection:
            raise TransactionBrokenError(handler.step, "closed the database connection")
        if not connection.in_atomic_block:
            raise TransactionBrokenError(handler.step, "ended the engine's transaction")
        if connection.get_rollback():
            raise TransactionBrokenError(handler.step, "marked the transaction for rollback")
        if statements.errors:
            raise TransactionBrokenError(handler.step, "swallowed a database error")
        outcome = gated(classify(value), state)
        handler.check(outcome)
        if isinstance(outcome, Fail | Retry):
            # A failure that is returned is one like any other: what the handler wrote goes, up to this savepoint.
            transaction.set_rollback(True, using=using)
    return outcome, timedelta(seconds=time.perf_counter() - started)


def gated(outcome: Outcome, state: State) -> Outcome:
    """The outcome with its values in JSON form, checked, and the context still within its size once merged.

    Raises:
        NotSerializableError: a value can't be stored.
    """
    match outcome:
        case Complete(result=result) | Finish(result=result) if result is not None:
            outcome = replace(outcome, result=serialization.to_json(result, "result"))
        case Fail(reason=reason) | Retry(reason=reason):
            outcome = replace(outcome, reason=serialization.clean_text(reason))
        case Await(names=names):
            serialization.to_json(names, "awaited signals")
    updates = getattr(outcome, "updates", None)
    if not updates:
        return outcome
    encoded = serialization.object_to_json(updates, "updates")
    serialization.check_size({**state.context, **encoded}, "context")
    return _with_updates(outcome, encoded)


def failure_of(error: BaseException) -> Failure:
    """An exception as the reason of a failed attempt. Texts are cleaned, so that a failure can always be stored."""
    text = "".join(traceback.format_exception(type(error), error, user_frames(error.__traceback__)))
    return Failure(
        type=type(error).__name__,
        message=serialization.clean_text(_text_of(error) or type(error).__name__),
        retryable=not isinstance(error, FinalError),
        traceback=serialization.clean_text(text[-_TRACEBACK_LIMIT:], _TRACEBACK_LIMIT),
    )


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - an error that can't even be told must be recorded too
        return ""


def user_frames(frames: TracebackType | None) -> TracebackType | None:
    """The traceback from where the user's code begins: how the engine called it helps nobody."""
    first = frames
    while first is not None and first.tb_frame.f_globals.get("__name__", "").startswith("workflow_engine."):
        first = first.tb_next
    return first or frames


def database_trouble(error: BaseException, statements: Statements, using: str) -> BaseException | None:
    """The error of the engine's own connection under the handler, if that is what this failure comes from, even when
    the handler swallowed it or raised another one; None if not. Another database's trouble is the step's own.
    """
    if statements.trouble is not None:
        return statements.trouble
    return error if is_infrastructure(error) and connections[using].errors_occurred else None


def raised_by_user(error: BaseException) -> bool:
    """Whether the error counts as a failed attempt. SystemExit does: a step must not end the worker."""
    return isinstance(error, Exception | SystemExit) and not isinstance(error, PostponedError)


def transaction_lost(using: str) -> bool:
    """Whether the current transaction can't record anything any more."""
    connection = connections[using]
    return connection.closed_in_transaction or connection.connection is None or connection.needs_rollback


def _with_updates(outcome: Outcome, updates: dict[str, Any]) -> Outcome:
    match outcome:
        case Await(names=names, timeout=timeout):
            # replace() can't rebuild it: its constructor takes the names one by one.
            return Await(*names, timeout=timeout, updates=updates)
        case Complete() | Finish() | Goto() | Sleep():
            return replace(outcome, updates=updates)
        case _:
            return outcome
