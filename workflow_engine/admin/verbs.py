"""What may be asked of instances: the words for it, the form, the permission, and the engine's verb behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from workflow_engine import engine
from workflow_engine.admin.forms import ActionForm, CancelForm, ReasonForm, SignalForm
from workflow_engine.domain.statuses import Status
from workflow_engine.inspection.selecting import ACCEPTING
from workflow_engine.inspection.wording import one_line
from workflow_engine.models import WorkflowInstance, WorkflowSignal


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """One of them. `effect` says what happens to an instance; `send` puts the request into its mailbox."""

    name: str
    label: Promise
    many: Promise
    """As an action of the list."""
    effect: Promise
    form: type[ActionForm]
    send: Callable[..., WorkflowSignal] | None
    """None where nothing is put into the mailbox: the instance is only driven."""

    @property
    def is_left_to_workers(self) -> bool:
        """Whether asking is all that is done, when it is done to many."""
        return self.send is not None

    @property
    def permission(self) -> str:
        return f"workflow_engine.{self.name}_workflowinstance"

    @property
    def accepting(self) -> Q:
        """Which instances it makes sense for, as a condition on rows."""
        return ACCEPTING[self.name]

    def ask(self, instance_id: UUID, arguments: dict[str, Any], actor: Any) -> WorkflowSignal | None:
        """Ask the engine. Raises its errors."""
        return self.send(instance_id, **arguments, actor=actor) if self.send else None

    def filled(self, rows: Iterable[WorkflowInstance], data: Any = None) -> ActionForm:
        """The form for these instances."""
        return self.form(data, offered=_offered(rows) if self.form is SignalForm else ())


VERBS: dict[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb(
            name="signal",
            label=gettext_lazy("Send a signal"),
            many=gettext_lazy("Send a signal to the selected instances"),
            effect=gettext_lazy("It gets the signal: at once if it waits for it, else it is kept until it does."),
            form=SignalForm,
            send=engine.signal,
        ),
        Verb(
            name="retry",
            label=gettext_lazy("Retry"),
            many=gettext_lazy("Retry the selected failed instances"),
            effect=gettext_lazy("The step that failed runs again, with fresh attempts; or the undo that failed."),
            form=ReasonForm,
            send=engine.retry,
        ),
        Verb(
            name="resume",
            label=gettext_lazy("Resume"),
            many=gettext_lazy("Resume the selected paused instances"),
            effect=gettext_lazy("It goes on where it stood. What became due meanwhile is due now."),
            form=ReasonForm,
            send=engine.resume,
        ),
        Verb(
            name="advance",
            label=gettext_lazy("Advance now"),
            many=gettext_lazy("Advance the selected instances now"),
            effect=gettext_lazy("What is due runs now, in this web process, without waiting for a worker."),
            form=ActionForm,
            send=None,
        ),
        Verb(
            name="pause",
            label=gettext_lazy("Pause"),
            many=gettext_lazy("Pause the selected instances"),
            effect=gettext_lazy("No step starts until somebody resumes it. Signals are kept; its deadlines pass."),
            form=ReasonForm,
            send=engine.pause,
        ),
        Verb(
            name="cancel",
            label=gettext_lazy("Cancel"),
            many=gettext_lazy("Cancel the selected instances"),
            effect=gettext_lazy("It ends as cancelled. This can't be taken back."),
            form=CancelForm,
            send=engine.cancel,
        ),
    )
}


def particulars(verb: Verb, row: WorkflowInstance) -> Sequence[str]:
    """What the verb means for this very instance."""
    return list(_particulars(verb, row))


def _particulars(verb: Verb, row: WorkflowInstance) -> Iterator[str]:
    if verb.name == "cancel":
        done = [entry["step"] for entry in reversed(row.compensation_stack) if "undo" not in entry]
        if done:
            yield _("It would be undone in this order: %(steps)s.") % {"steps": one_line(", ".join(done))}
        else:
            yield _("Nothing that it did so far can be undone.")
        if row.has_lease:
            yield _("An activity is running: the cancellation takes effect when it has ended.")
    if verb.name == "retry" and row.status == Status.FAILED:
        stuck = [entry["step"] for entry in row.compensation_stack if entry.get("undo") == "failed"]
        if stuck:
            yield _("It would try to undo again: %(steps)s.") % {"steps": one_line(", ".join(stuck))}
        else:
            yield _("It would run %(step)s again.") % {"step": one_line(row.current_step)}


def _offered(rows: Iterable[WorkflowInstance]) -> list[tuple[str, str]]:
    """The awaited names, those that most wait for first; of several instances with how many those are."""
    rows = list(rows)
    awaited = Counter(name for row in rows if not row.handling for name in row.awaiting_signals)
    if len(rows) == 1:
        return [(name, one_line(name)) for name in awaited]
    waiting = [(name, count, {"name": one_line(name), "count": count}) for name, count in awaited.most_common()]
    return [
        (name, ngettext("%(name)s (%(count)d waits for it)", "%(name)s (%(count)d wait for it)", count) % told)
        for name, count, told in waiting
    ]
