"""How often a failed attempt is tried again, and when."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from workflow_engine.domain.durations import Duration, as_timedelta, declared_timedelta, shown
from workflow_engine.exceptions import DefinitionError


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`max_attempts` in total (1: no retry); the delay grows from `initial_delay` by `multiplier` up to `max_delay`.

    With `jitter` each delay is drawn from its upper half, so that what failed together does not come back together.
    `backoff(attempt)` gives the delay after that attempt (the first is 1) instead: neither capped nor jittered.
    """

    max_attempts: int = 3
    initial_delay: Duration = 5
    multiplier: float = 2
    max_delay: Duration = 300
    jitter: bool = True
    backoff: Callable[[int], Duration] | None = None

    def __post_init__(self) -> None:
        where = "RetryPolicy"
        if not _is_number(self.max_attempts, int) or self.max_attempts < 1:
            raise DefinitionError(
                where, f"max_attempts is {shown(self.max_attempts)}", "Count all attempts: 1 or more; 1 is no retry."
            )
        if not _is_number(self.multiplier, int, float) or not 1 <= self.multiplier < float("inf"):
            raise DefinitionError(where, f"multiplier is {shown(self.multiplier)}", "Give a number of at least 1.")
        if self.backoff is not None and not callable(self.backoff):
            raise DefinitionError(
                where, f"backoff is {shown(self.backoff)}", "Give a function of the attempt that returns a duration."
            )
        declared_timedelta(self.initial_delay, "initial_delay", where)
        declared_timedelta(self.max_delay, "max_delay", where)

    def allows_another(self, attempts: int) -> bool:
        """Whether after so many attempts one more may start."""
        return attempts < self.max_attempts

    def delay_after(self, attempt: int, jitter: Callable[[], float] = random.random) -> timedelta:
        """How long to wait after that attempt (the first is 1). `jitter` draws from [0, 1)."""
        if self.backoff is not None:
            return as_timedelta(self.backoff(attempt), "What RetryPolicy(backoff=…) returned")
        longest = as_timedelta(self.max_delay, "max_delay")
        try:
            delay = min(as_timedelta(self.initial_delay, "initial_delay") * self.multiplier ** (attempt - 1), longest)
        except OverflowError:
            delay = longest
        return delay * (0.5 + jitter() / 2) if self.jitter else delay


def _is_number(value: object, *kinds: type) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)


DEFAULT_RETRY = RetryPolicy()
