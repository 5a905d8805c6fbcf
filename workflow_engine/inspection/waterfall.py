"""Where the time of an instance went: its attempts, waits and pauses, one after the other, as bars on one axis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from workflow_engine.domain.events import EventKind
from workflow_engine.inspection.times import length
from workflow_engine.inspection.wording import either, one_line
from workflow_engine.models import WorkflowEvent, WorkflowInstance

SCALE = 1000
"""Bars are placed on an axis of so many units."""

_NARROWEST = 4
_TRIFLE = timedelta(seconds=1)
_MOST = 200


class Kind(StrEnum):
    """What the time was spent on."""

    RUN = "run"
    FAILED = "failed"
    WAIT = "wait"
    SLEEP = "sleep"
    BACKOFF = "backoff"
    QUEUE = "queue"
    PAUSE = "pause"
    UNDO = "undo"
    UNDO_FAILED = "undo_failed"
    STOPPED = "stopped"


LABELS: Mapping[Kind, str | Promise] = {
    Kind.RUN: _("attempt"),
    Kind.FAILED: _("failed attempt"),
    Kind.WAIT: _("waiting"),
    Kind.SLEEP: _("sleeping"),
    Kind.BACKOFF: _("until the next attempt"),
    Kind.QUEUE: _("until a worker took it"),
    Kind.PAUSE: _("paused"),
    Kind.UNDO: _("undo"),
    Kind.UNDO_FAILED: _("failed undo"),
    Kind.STOPPED: _("failed, until somebody retried it"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A stretch of time. `offset` and `width` are units of SCALE; `length` and `label` are words."""

    step: str
    kind: Kind
    attempt: int
    start: datetime
    end: datetime
    label: str
    length: str
    offset: int
    width: int
    goes_on: bool


def waterfall(row: WorkflowInstance, events: Sequence[WorkflowEvent], now: datetime) -> list[Bar]:
    """The bars of a history, or of its end, in order; the last one reaches until `now` while the instance is live.

    What a worker needed to take it up is left out when it is less than a second. At most the last `_MOST` bars.
    """
    spans = _Spans()
    for event in events:
        spans.add(event)
    spans.finish(row, now)
    shown = spans.found[-_MOST:]
    if not shown:
        return []
    start, end = shown[0].start, max(span.end for span in shown)
    whole = max((end - start) / timedelta(microseconds=1), 1)
    return [_bar(span, start, whole) for span in shown]


@dataclass(slots=True)
class _Span:
    kind: Kind
    step: str
    start: datetime
    end: datetime
    attempt: int = 0
    names: Sequence[str] = ()
    goes_on: bool = False


@dataclass(slots=True)
class _Spans:
    """Reads a history. Between two events the instance is in one state: `now_in`, None where nothing is told of it."""

    found: list[_Span] = field(default_factory=list)
    now_in: _Span | None = None
    before_the_pause: _Span | None = None

    def add(self, event: WorkflowEvent) -> None:
        """One more event of the history."""
        kind = EventKind(event.kind)
        if kind in _BESIDE:
            return
        if kind in _ATTEMPTS:
            self._attempt(event, _ATTEMPTS[kind])
        else:
            self._close(event.created_at)
        self.now_in = self._after(kind, event)

    def finish(self, row: WorkflowInstance, now: datetime) -> None:
        """The history ends here."""
        if self.now_in is not None and not row.is_terminal:
            self.now_in.goes_on = True
            self._close(now)

    def _attempt(self, event: WorkflowEvent, kind: Kind) -> None:
        running = self.now_in if self.now_in and self.now_in.kind in {Kind.RUN, Kind.UNDO} else None
        start = running.start if running else event.created_at - (event.duration or timedelta())
        if self.now_in is not None and running is None:
            start = max(start, self.now_in.start)
            self._close(start)
        # A handler or a step that only says what to wait for takes no time worth a line.
        says_little = event.kind in _PARKS or event.trigger or event.duration is None
        if running or not says_little or event.created_at - start >= _TRIFLE or kind == Kind.FAILED:
            self.found.append(_Span(kind, event.step, start, event.created_at, event.attempt))

    def _close(self, end: datetime) -> None:
        span = self.now_in
        if span is None:
            return
        span.end = max(end, span.start)
        if span.kind != Kind.QUEUE or span.end - span.start >= _TRIFLE:
            self.found.append(span)

    def _after(self, kind: EventKind, event: WorkflowEvent) -> _Span | None:
        """What the instance is in once the event has happened."""
        if kind == EventKind.WORKFLOW_PAUSED:
            self.before_the_pause = self.now_in
            return _span(Kind.PAUSE, event)
        if kind == EventKind.WORKFLOW_RESUMED:
            before = self.before_the_pause
            if before is None:
                return None
            return _Span(before.kind, before.step, event.created_at, event.created_at, names=before.names)
        if kind == EventKind.STEP_FAILED and event.data.get("final"):
            return None
        state = _STATES.get(kind)
        return None if state is None else _span(state, event)


def _span(kind: Kind, event: WorkflowEvent) -> _Span:
    changed = _changed(event)
    step = str(changed.get("current_step", event.step)) if kind == Kind.QUEUE else event.step
    names = tuple(changed.get("awaiting_signals", ())) if kind == Kind.WAIT else ()
    return _Span(kind, step, event.created_at, event.created_at, event.attempt, names)


def _changed(event: WorkflowEvent) -> Mapping[str, Any]:
    changed = event.data.get("set")
    return changed if isinstance(changed, Mapping) else {}


_ATTEMPTS = {
    EventKind.STEP_COMPLETED: Kind.RUN,
    EventKind.STEP_FAILED: Kind.FAILED,
    EventKind.WORKFLOW_AWAITING: Kind.RUN,
    EventKind.WORKFLOW_SLEPT: Kind.RUN,
    EventKind.STEP_COMPENSATED: Kind.UNDO,
    EventKind.COMPENSATION_FAILED: Kind.UNDO_FAILED,
    EventKind.COMPENSATION_ATTEMPT_FAILED: Kind.UNDO_FAILED,
}
"""Events that end an attempt."""

_STATES = {
    EventKind.WORKFLOW_STARTED: Kind.QUEUE,
    EventKind.STEP_STARTED: Kind.RUN,
    EventKind.STEP_COMPLETED: Kind.QUEUE,
    EventKind.STEP_FAILED: Kind.BACKOFF,
    EventKind.WORKFLOW_AWAITING: Kind.WAIT,
    EventKind.WORKFLOW_SLEPT: Kind.SLEEP,
    EventKind.WORKFLOW_COMPENSATING: Kind.QUEUE,
    EventKind.COMPENSATION_STARTED: Kind.UNDO,
    EventKind.COMPENSATION_ATTEMPT_FAILED: Kind.BACKOFF,
    EventKind.STEP_COMPENSATED: Kind.QUEUE,
    EventKind.COMPENSATION_FAILED: Kind.QUEUE,
    EventKind.WORKFLOW_FAILED: Kind.STOPPED,
    EventKind.WORKFLOW_RETRIED: Kind.QUEUE,
}
"""What the instance is in after an event; nothing after the others."""

_PARKS = {EventKind.WORKFLOW_AWAITING, EventKind.WORKFLOW_SLEPT}
_BESIDE = {EventKind.VERSION_CHANGED, EventKind.REQUEST_DENIED, EventKind.CANCEL_REQUESTED}


def _bar(span: _Span, start: datetime, whole: float) -> Bar:
    offset = round((span.start - start) / timedelta(microseconds=1) / whole * SCALE)
    width = max(round((span.end - span.start) / timedelta(microseconds=1) / whole * SCALE), _NARROWEST)
    return Bar(
        step=one_line(span.step),
        kind=span.kind,
        attempt=span.attempt,
        start=span.start,
        end=span.end,
        label=_label(span),
        length=length(span.end - span.start),
        offset=min(offset, SCALE - _NARROWEST),
        width=min(width, SCALE - min(offset, SCALE - _NARROWEST)),
        goes_on=span.goes_on,
    )


def _label(span: _Span) -> str:
    text = str(LABELS[span.kind])
    if span.kind == Kind.WAIT and span.names:
        return str(_("waiting for %(names)s")) % {"names": either(span.names)}
    return f"{text} {span.attempt}" if span.attempt and span.kind in _NUMBERED else text


_NUMBERED = {Kind.RUN, Kind.FAILED, Kind.UNDO, Kind.UNDO_FAILED}


def spent(bars: Iterable[Bar]) -> dict[Kind, timedelta]:
    """How much time went into what, the most first."""
    sums: dict[Kind, timedelta] = {}
    for bar in bars:
        sums[bar.kind] = sums.get(bar.kind, timedelta()) + (bar.end - bar.start)
    return dict(sorted(sums.items(), key=lambda item: item[1], reverse=True))
