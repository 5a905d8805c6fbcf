"""What the decisions need to know of the code: plain values, so that a test needs no workflow class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from workflow_engine.domain.retries import RetryPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRules:
    """One step as its workflow declares it, and the limits in force."""

    retry: RetryPolicy = field(default_factory=RetryPolicy)
    goes_to: Sequence[str] | None = None
    known_steps: Sequence[str] = ()
    handles_signals: bool = False
    compensates: bool = False
    max_visits_without_parking: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why an attempt failed. `after` overrides the policy's delay; `traceback` is for the history only.

    `stated`: the handler said so itself, with Fail or Retry, so it knows that nothing is left to undo. An exception
    says nothing of the kind: a call whose answer got lost may well have been carried out.
    """

    type: str
    message: str
    retryable: bool = True
    stated: bool = False
    after: timedelta | None = None
    traceback: str = ""

    def delay(self, policy: RetryPolicy, attempt: int) -> timedelta:
        """How long the next attempt waits. A `backoff` of the user's that raises must not lose the failure: then the
        policy's formula counts.
        """
        if self.after is not None:
            return self.after
        try:
            return policy.delay_after(attempt)
        except Exception:  # noqa: BLE001 - it is the user's code, and there is nobody to tell
            return replace(policy, backoff=None).delay_after(attempt)

    def as_error(self, step: str, visit: int, attempt: int) -> dict[str, Any]:
        """The JSON form that the row's `error` column keeps."""
        return {"type": self.type, "message": self.message, "step": step, "visit": visit, "attempt": attempt}
