"""One turn of one instance: what is known under the lock, and how the turn is written down and answered."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Any
from uuid import UUID

from workflow_engine import conf
from workflow_engine.after_commit import Effects
from workflow_engine.dispatch import dispatcher
from workflow_engine.domain.decisions.rules import StepRules
from workflow_engine.domain.declarations import BoundStep
from workflow_engine.domain.journal import Journal
from workflow_engine.domain.registry import registry
from workflow_engine.domain.state import State
from workflow_engine.domain.workflows import Workflow
from workflow_engine.engine import store
from workflow_engine.engine.locking import Locked
from workflow_engine.engine.reporting import report
from workflow_engine.engine.routing import queue_for
from workflow_engine.engine.scheduling import handed_out, message_delay
from workflow_engine.exceptions import WorkflowEngineError
from workflow_engine.models import WorkflowEvent, WorkflowInstance

NO_QUEUE = "\x00"
"""The queue of a driver that runs nothing: it sorts mail, and what could run is handed over. No queue has that name."""


class Answer(StrEnum):
    """What came of a turn."""

    ADVANCED = "advanced"
    NOT_DUE = "not_due"
    PAUSED = "paused"
    ENDED = "ended"
    LOCKED = "locked"
    GONE = "gone"
    NO_CODE = "no_code"
    HANDED_OVER = "handed_over"
    SUSPECT = "suspect"
    DATABASE_TROUBLE = "database_trouble"


@dataclass(slots=True)
class Advanced:
    """The answer of a turn, and what its caller has to do next.

    `more`: it can act again at once. `mail`: and must look at the mailbox then. `outside`: work that was claimed in
    the turn's transaction and runs now, outside any. `refused`: what to record if COMMIT refuses the turn because of a
    constraint that is checked only then.
    """

    answer: Answer
    instance_id: UUID
    using: str
    effects: Effects | None = None
    event: WorkflowEvent | None = None
    version: int = 0
    queue: str = ""
    more: bool = False
    mail: bool = False
    outside: Callable[[], Advanced] | None = None
    refused: Callable[[BaseException], WorkflowEngineError] | None = None

    def was_committed(self) -> bool:
        """Whether this turn's last event is there: that number at that time can't be anybody else's."""
        if self.event is None:
            return False
        events = WorkflowEvent.objects.using(self.using).filter(instance_id=self.instance_id, seq=self.event.seq)
        return events.filter(kind=self.event.kind, created_at=self.event.created_at).exists()

    def finish(self) -> None:
        """Run the effects, if the commit hook has not."""
        if self.effects is not None:
            self.effects.run()


@dataclass(slots=True, kw_only=True)
class Mode:
    """How a turn is driven. `hold`: a driver goes on with it. `mail`: look at the mailbox first. `claimed`: this
    driver has committed its claim on a suspect instance. `queue`: this driver works for that queue alone, "" being the
    default one; None for any.
    """

    hold: bool = False
    mail: bool = True
    claimed: bool = False
    queue: str | None = None

    def serves(self, queue: str) -> bool:
        """Whether this driver may take a turn that asks for that queue."""
        return self.queue is None or self.queue == queue


@dataclass(kw_only=True)
class Turn:
    """An instance under this transaction's lock."""

    row: WorkflowInstance
    now: datetime
    using: str
    mode: Mode
    effects: Effects
    state: State
    journal: Journal
    settings: conf.Settings = field(default_factory=conf.current)
    locked_at: float = field(default_factory=time.monotonic)

    @classmethod
    def begin(cls, locked: Locked, using: str, mode: Mode) -> Turn:
        """Take the locked row; its effects are registered now, before any user code can register a hook."""
        effects = Effects(using)
        effects.register()
        state = store.state_of(locked.row)
        journal = Journal(state, locked.now)
        return cls(
            row=locked.row, now=locked.now, using=using, mode=mode, effects=effects, state=state, journal=journal
        )

    @cached_property
    def workflow(self) -> type[Workflow[Any]] | None:
        """The code that can run this instance here; None if another process must."""
        row = self.row
        return registry.for_row(row.workflow_name, row.definition_version, self.state.remaining_steps)

    @property
    def definition(self) -> type[Workflow[Any]]:
        """The code that runs this instance.

        Raises:
            UnknownWorkflowError: there is none here.
        """
        return self.workflow or registry.exact(self.row.workflow_name, self.row.definition_version)

    def step(self, key: str | None = None) -> BoundStep:
        """The current step (or the one named), bound to a workflow object that is made when it is first used.

        Raises:
            KeyError: this code has no such step.
        """
        return self.definition.steps[key or self.state.current_step].bind(_OnFirstUse(self.definition))

    def rules(self) -> StepRules:
        """What the decisions need to know of the current step."""
        declared = self.definition.steps[self.state.current_step]
        return StepRules(
            retry=declared.retry,
            goes_to=declared.goes_to,
            known_steps=self.definition.step_keys(),
            handles_signals=declared.handles_signals,
            compensates=declared.compensates,
            max_visits_without_parking=self.settings.MAX_VISITS_WITHOUT_PARKING,
        )

    def answer(self, answer: Answer) -> Advanced:
        """End the turn without a decision."""
        return Advanced(answer, self.row.pk, self.using)

    def commit(self, *, mail: bool = False, exc: BaseException | None = None) -> Advanced:
        """Write the journal, schedule the instance, and plan what follows after commit.

        Args:
            mail: something in the mailbox can be acted on at once.
            exc: the exception behind a failure, for the log.
        """
        state = self.journal.state
        runnable = not state.is_terminal and not state.paused
        due = runnable and state.due_at is not None and state.due_at <= self.now
        more = due or (mail and not state.paused)
        delay = None if more or not runnable else self._message_delay()
        poll_at = self._poll_at(due=due, more=more, sent=delay is not None)
        events = store.write(self.row, self.journal, poll_at=poll_at, suspect=False, recoveries=0)
        for event in events:
            self.effects.send(self.row.workflow_name, self.row.definition_version, event)
            report(self.effects, self.row, event, exc)
        queue = queue_for(self.row, state)
        if more and not self.mode.hold:
            self.effects.wake(self.row.pk, queue)
        elif delay is not None:
            self.effects.wake(self.row.pk, queue, delay)
        return Advanced(
            Answer.ADVANCED,
            self.row.pk,
            self.using,
            self.effects,
            event=events[-1],
            version=self.row.version,
            queue=queue,
            more=more,
            mail=mail,
        )

    def _poll_at(self, *, due: bool, more: bool, sent: bool) -> datetime | None:
        """When the scheduler looks next: at the end of the driver's hold or of a message's grace, or when it is due."""
        state = self.journal.state
        if state.is_terminal or state.paused:
            return None
        if more and self.mode.hold:
            return self._ended_at + self.settings.duration("HOLD")
        if due and not dispatcher().pushes:
            return state.due_at  # anything else would tell of a holder that disappeared
        if more:
            return handed_out(self.now)
        return handed_out(state.due_at) if sent and state.due_at is not None else state.due_at

    def _message_delay(self) -> timedelta | None:
        """When a message for the next turn is to be sent now; None for none. A lease that ends soon is tick's matter:
        it may be renewed many times.
        """
        state = self.journal.state
        return None if state.lease_owner else message_delay(state.due_at, self._ended_at)

    @property
    def _ended_at(self) -> datetime:
        """The time, the user's code having run; `now` is when the lock was taken."""
        return self.now + timedelta(seconds=time.monotonic() - self.locked_at)


class _OnFirstUse:
    """A workflow object that is made where user code may fail: its constructor is user code too."""

    def __init__(self, definition: type[Workflow[Any]]) -> None:
        self._definition = definition

    @cached_property
    def _workflow(self) -> Workflow[Any]:
        return self._definition()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._workflow, name)
