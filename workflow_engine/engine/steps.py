"""User code inside the locked transaction: a step's body, and the handlers that end a wait."""

from __future__ import annotations

from functools import partial
from typing import Any

from workflow_engine.domain.context import Context
from workflow_engine.domain.decisions import waiting
from workflow_engine.domain.decisions.failure import decide_failure
from workflow_engine.domain.decisions.outcome import check_outcome, decide_outcome
from workflow_engine.domain.decisions.rules import Failure, StepRules
from workflow_engine.domain.declarations import BoundStep
from workflow_engine.domain.journal import Journal
from workflow_engine.domain.outcomes import Outcome
from workflow_engine.domain.state import State
from workflow_engine.domain.statuses import PARKED
from workflow_engine.engine import mailbox
from workflow_engine.engine.contexts import make_context
from workflow_engine.engine.statements import Statements
from workflow_engine.engine.turns import Advanced, Turn
from workflow_engine.engine.user_code import (
    Handler,
    UnrecordedFailureError,
    call_in_savepoint,
    database_trouble,
    failure_of,
    raised_by_user,
    transaction_lost,
)
from workflow_engine.models import WorkflowSignal


def run_body(turn: Turn) -> Advanced:
    """Run the current step. Its writes commit together with what its outcome decides, or not at all."""
    bound, rules = turn.step(), turn.rules()
    ctx = context_for(turn)
    handler = Handler(
        step=bound.key,
        call=partial(bound.run, ctx),
        check=partial(_check, turn.state, rules),
        succeed=lambda journal, outcome: decide_outcome(journal, outcome, rules),
        fail=lambda journal, failure: decide_failure(journal, failure, rules),
    )
    return run(turn, handler)


def handle_signal(turn: Turn, item: WorkflowSignal) -> Advanced:
    """Give the awaited signal to its handler. It is consumed with the handler's success or final failure."""
    bound, rules, signal = turn.step(), turn.rules(), mailbox.received(item)
    turn.journal.actor, turn.journal.trigger = item.actor, f"signal:{item.pk}"

    def succeed(journal: Journal, outcome: Outcome) -> None:
        if waiting.decide_signal(journal, signal, outcome, rules):
            mailbox.consume(turn, item, turn.state)

    def fail(journal: Journal, failure: Failure) -> None:
        if waiting.decide_signal_failure(journal, signal, failure, rules):
            mailbox.consume(turn, item, turn.state)

    call = partial(_signal_outcome, bound, context_for(turn), signal)
    check = partial(_check, turn.state, rules)
    return run(turn, Handler(step=bound.key, call=call, check=check, succeed=succeed, fail=fail))


def handle_timeout(turn: Turn) -> Advanced:
    """The deadline passed and no awaited signal was visible under the lock: the timeout wins this wait."""
    bound, rules = turn.step(), turn.rules()
    turn.journal.trigger = waiting.TIMEOUT
    if not bound.handles_timeout:
        turn.journal.attempt = turn.state.attempts
        waiting.decide_unhandled_timeout(turn.journal, rules)
        return turn.commit()
    handler = Handler(
        step=bound.key,
        call=partial(bound.handle_timeout, context_for(turn)),
        check=partial(_check, turn.state, rules),
        succeed=lambda journal, outcome: waiting.decide_timeout(journal, outcome, rules),
        fail=lambda journal, failure: waiting.decide_timeout_failure(journal, failure, rules),
    )
    return run(turn, handler)


def run(turn: Turn, handler: Handler, *, attempt: int | None = None) -> Advanced:
    """Call the handler in a savepoint and write down what follows.

    Args:
        turn: of the instance under lock.
        handler: the user code, and what its success or failure decides.
        attempt: its number, where that is not the current visit's next one.

    Raises:
        UnrecordedFailureError: the handler failed and the transaction can't record that.
        DatabaseError: the database had trouble under the handler; the whole turn is to be run again.
    """
    journal = turn.journal
    journal.attempt = turn.state.attempts + 1 if attempt is None else attempt
    statements = Statements()
    try:
        outcome, journal.duration = call_in_savepoint(handler, turn.state, turn.using, statements)
    except BaseException as error:
        if not raised_by_user(error):
            raise
        if trouble := database_trouble(error, statements, turn.using):
            raise trouble  # noqa: B904 - its cause must stay the driver's error, which says what it is
        failure = failure_of(error)
        if transaction_lost(turn.using):
            raise UnrecordedFailureError(handler, failure, journal, version=turn.row.version, error=error) from error
        handler.fail(journal, failure)
        return turn.commit(exc=error)
    handler.succeed(journal, outcome)
    settled = journal.state.is_terminal or journal.state.status in PARKED
    version = turn.row.version

    def refused(error: BaseException) -> UnrecordedFailureError:
        return UnrecordedFailureError(handler, failure_of(error), journal, version=version, error=error)

    advanced = turn.commit(mail=settled and mailbox.look_again(turn))
    advanced.refused = refused
    return advanced


def context_for(turn: Turn) -> Context[Any]:
    """The view of a step's body or handler."""
    state = turn.state
    return make_context(
        turn.row,
        state,
        turn.definition.context_class,
        now=turn.now,
        attempt=state.attempts + 1,
        step=state.current_step,
        visit=state.visit,
        deadline=state.deadline_at,
    )


def _signal_outcome(bound: BoundStep, ctx: Context[Any], signal: Any) -> Any:
    return bound.handle_signal(ctx, signal) if bound.handles_signals else waiting.default_signal_outcome(signal)


def _check(state: State, rules: StepRules, outcome: Outcome) -> None:
    check_outcome(state, outcome, rules)
