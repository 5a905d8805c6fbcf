"""What ends a wait: the signal, or the timeout. Exactly one of them does, under the lock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workflow_engine.domain.decisions.failure import decide_failure, is_final
from workflow_engine.domain.decisions.outcome import NOT_WAITING, decide_outcome
from workflow_engine.domain.decisions.rules import Failure, StepRules
from workflow_engine.domain.events import EventKind
from workflow_engine.domain.journal import Journal
from workflow_engine.domain.outcomes import Complete, Fail, Outcome, Retry
from workflow_engine.domain.received import Signal

TIMEOUT = "timeout"


def handling_of(signal: Signal) -> str:
    """How the row remembers which signal's handler a retry calls again."""
    return f"signal:{signal.id}"


def default_signal_outcome(signal: Signal) -> Complete:
    """What a signal does to a step without a handler: an object is merged, anything else goes under its name."""
    if signal.data is None:
        return Complete()
    return Complete(signal.data if isinstance(signal.data, Mapping) else {signal.name: signal.data})


def decide_signal(journal: Journal, signal: Signal, outcome: Outcome, rules: StepRules) -> bool:
    """The signal's handler returned `outcome`. True when that consumed the signal, False when it is to be retried."""
    match outcome:
        case Retry(reason=reason, after=after):
            return decide_signal_failure(
                journal, signal, Failure(type="Retry", message=reason, stated=True, after=after), rules
            )
        case Fail(reason=reason):
            # The user's decision ends this wait: a retry() runs the step again, and not this handler.
            _received(journal, signal)
            decide_failure(journal, Failure(type="Fail", message=reason, stated=True, retryable=False), rules)
        case _:
            _received(journal, signal)
            decide_outcome(journal, outcome, rules)
    return True


def decide_signal_failure(journal: Journal, signal: Signal, failure: Failure, rules: StepRules) -> bool:
    """The signal's handler failed. True when that was final, which consumes the signal; else it waits for the retry."""
    final = is_final(failure, journal.attempt, rules)
    if final:
        _received(journal, signal)
    decide_failure(journal, failure, rules, handling=handling_of(signal))
    return final


def decide_timeout(journal: Journal, outcome: Outcome, rules: StepRules) -> None:
    """The deadline passed, and the timeout's handler returned `outcome`."""
    match outcome:
        case Retry(reason=reason, after=after):
            decide_timeout_failure(journal, Failure(type="Retry", message=reason, stated=True, after=after), rules)
        case _:
            _timed_out(journal)
            decide_outcome(journal, outcome, rules)


def decide_timeout_failure(journal: Journal, failure: Failure, rules: StepRules) -> None:
    """The deadline passed, and the timeout's handler failed."""
    if is_final(failure, journal.attempt, rules):
        _timed_out(journal)
    decide_failure(journal, failure, rules, handling=TIMEOUT)


def decide_unhandled_timeout(journal: Journal, rules: StepRules) -> None:
    """The deadline passed and the step has no handler for that: it fails, and is not retried."""
    names = ", ".join(journal.state.awaiting_signals)
    _timed_out(journal)
    message = f"{names} did not arrive in time"
    decide_failure(journal, Failure(type="Timeout", message=message, retryable=False), rules)


def _received(journal: Journal, signal: Signal) -> None:
    told: dict[str, Any] = {"signal": signal.name, "signal_id": signal.id}
    journal.add(EventKind.SIGNAL_RECEIVED, data=told, **NOT_WAITING)


def _timed_out(journal: Journal) -> None:
    told = {"awaited": list(journal.state.awaiting_signals)}
    journal.add(EventKind.STEP_TIMED_OUT, data=told, **NOT_WAITING)
