"""Named places at which a test can make the process crash, stop or raise. Free when off: one look at a variable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

NAMES = tuple(
    f"{place}.{when}"
    for place in (
        "hold",  # an embedded worker takes an instance
        "lock",  # the row lock of a turn
        "claim",  # an activity's or undo's attempt is written down
        "suspect",  # a claim on a suspect instance
        "handler",  # a step's body or a handler of a signal or timeout
        "activity",  # an activity's body
        "undo",  # a compensation is called
        "record",  # what came of an activity or undo is recorded
        "save",  # the UPDATE of the instance
        "history",  # the INSERT of the events
        "commit",  # the COMMIT of an engine transaction
        "hook",  # the effects after commit
        "dispatch",  # an instance is handed to the dispatcher
        "heartbeat",  # a lease is renewed
        "mailbox",  # a signal or request is inserted
        "tick",  # tick hands an instance out
    )
    for when in ("before", "after")
)

_reached: Callable[[str], None] | None = None


def failpoint(name: str) -> None:
    """Tell the installed function, if there is one, that this place is reached."""
    if _reached is not None:
        _reached(name)


@contextmanager
def around(place: str) -> Iterator[None]:
    """The two failpoints of a place: before it, and after it if it did not raise."""
    failpoint(f"{place}.before")
    yield
    failpoint(f"{place}.after")


@contextmanager
def installed(reached: Callable[[str], None]) -> Iterator[None]:
    """Within the block `reached` is called with the name of every failpoint passed, in every thread."""
    global _reached  # noqa: PLW0603 - one per process, so that it costs nothing when off
    before, _reached = _reached, reached
    try:
        yield
    finally:
        _reached = before
