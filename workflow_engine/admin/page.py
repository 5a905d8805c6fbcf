"""What the page of one instance shows, as values for its template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import router
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from workflow_engine import clock
from workflow_engine.admin.acting import why_it_would_not
from workflow_engine.admin.pieces import NOTHING, moment, status_of, subject_of
from workflow_engine.admin.verbs import VERBS, Verb
from workflow_engine.inspection import workers
from workflow_engine.inspection.diagram import of_instance
from workflow_engine.inspection.drawing import svg
from workflow_engine.inspection.mail import told
from workflow_engine.inspection.redaction import Readable, readable, redacted_error, redacted_event
from workflow_engine.inspection.timeline import entry
from workflow_engine.inspection.times import both
from workflow_engine.inspection.waterfall import SCALE, waterfall
from workflow_engine.inspection.why import explain
from workflow_engine.models import WorkflowEvent, WorkflowInstance, WorkflowSignal

if TYPE_CHECKING:
    from workflow_engine.admin.instances import InstanceAdmin

_READ = 500
_SHOWN = 50
_LONGEST_TRACEBACK = 20_000
REFRESH_SECONDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """A line of the history."""

    seq: int
    kind: str
    at: SafeString | str
    text: str
    actor: str
    traceback: str
    data: Readable | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """A line of the mailbox."""

    id: int
    at: SafeString | str
    kind: str
    text: str
    actor: str
    data: Readable | None


@dataclass(frozen=True, slots=True)
class Button:
    """A verb that makes sense now, and where it leads. Without the permission it leads nowhere."""

    verb: Verb
    url: str


def context_of(model_admin: InstanceAdmin, request: HttpRequest, row: WorkflowInstance) -> dict[str, Any]:
    """Everything that the template needs, besides what every admin page has."""
    using = row._state.db or router.db_for_read(WorkflowInstance)
    now = clock.now(using)
    # Told from here on is the masked error alone.
    row.error = redacted_error(row.error)
    events = list(reversed(row.events.order_by("-seq")[:_READ]))
    why = explain(row, now)
    buttons = [button for verb in VERBS.values() if (button := _button(model_admin, request, verb, row))]
    return {
        "row": row,
        "status": status_of(row),
        "subject": subject_of(row, model_admin.admin_site),
        "why": why,
        "since": both(why.since, now),
        "until": both(why.until, now) if why.until else "",
        "no_worker": workers.missing_for(row, using, now),
        "buttons": [button for button in buttons if button.url],
        "forbidden": [button.verb.label for button in buttons if not button.url],
        "drawing": svg(of_instance(row)),
        "bars": waterfall(row, events, now),
        "scale": SCALE,
        "history": [_happened(event, now) for event in reversed(events[-_SHOWN:])],
        "history_is_cut": row.last_seq > _SHOWN,
        "all_events": _all_of(model_admin, row, "workflowevent"),
        "mailbox": [_mail(item, now) for item in row.signals.order_by("-id")[:_SHOWN]],
        "all_signals": _all_of(model_admin, row, "workflowsignal"),
        "data": list(_data(row)),
        "error": readable(row.error) if row.error else None,
        "facts": list(_facts(row, now)),
        "refresh": 0 if row.is_terminal else REFRESH_SECONDS,
        "state": f"{row.version}.{row.last_seq}",
    }


def _button(model_admin: InstanceAdmin, request: HttpRequest, verb: Verb, row: WorkflowInstance) -> Button | None:
    if why_it_would_not(verb, row):
        return None
    if not model_admin.has_act_permission(request, verb, row):
        return Button(verb, "")
    name = "admin:workflow_engine_workflowinstance_act"
    return Button(verb, reverse(name, args=(row.pk, verb.name), current_app=model_admin.admin_site.name))


def _happened(event: WorkflowEvent, now: datetime) -> Happened:
    event.data = redacted_event(event.data)
    line = entry(event)
    tells = {name: event.data[name] for name in ("updates", "result") if event.data.get(name)}
    return Happened(
        seq=line.seq,
        kind=event.kind.replace("_", "-"),
        at=moment(line.at, now),
        text=line.text,
        actor=line.actor,
        traceback=line.traceback[:_LONGEST_TRACEBACK],
        data=readable(tells) if tells else None,
    )


def _mail(item: WorkflowSignal, now: datetime) -> Mail:
    return Mail(
        id=item.pk,
        at=moment(item.received_at, now),
        kind=item.get_kind_display(),
        text=told(item),
        actor=item.actor,
        data=None if item.data is None else readable(item.data),
    )


def _data(row: WorkflowInstance) -> Iterator[tuple[str, str, Readable]]:
    """Name, title and value of what it carries."""
    yield "input", _("Input: what it was started with"), readable(row.input)
    yield "context", _("Context: what its steps have gathered"), readable(row.context)
    if row.result is not None:
        yield "result", _("Result"), readable(row.result)


def _facts(row: WorkflowInstance, now: datetime) -> Iterator[tuple[str | Promise, Any]]:
    """What is rarely asked for, title and value."""
    yield _("Id"), row.pk
    yield _("Idempotency key"), row.idempotency_key or NOTHING
    yield (
        _("Step"),
        _("%(step)s, visit %(visit)d, attempt %(attempts)d")
        % {
            "step": row.current_step,
            "visit": row.visit,
            "attempts": row.attempts,
        },
    )
    yield from _hold(row, now)
    if row.recoveries or row.suspect:
        yield _("Processes that died on it"), row.recoveries
    yield from ((title, value) for title, value in ((_("Tenant"), row.tenant), (_("Queue"), row.queue)) if value)
    for name, title in _MOMENTS.items():
        if (at := getattr(row, name)) is not None:
            yield title, moment(at, now)


def _hold(row: WorkflowInstance, now: datetime) -> Iterator[tuple[str, Any]]:
    """Who has it in hand, and until when others leave it alone."""
    if row.has_lease:
        yield _("Lease"), _("held by %(owner)s") % {"owner": row.lease_owner}
        yield _("The lease ends"), moment(row.due_at, now)
    held = not row.has_lease and row.due_at is not None and row.due_at <= now and row.poll_at is not None
    if held and row.poll_at is not None and row.poll_at > now:
        yield _("Held by a worker, at the longest until"), moment(row.poll_at, now)
    elif row.poll_at is not None:
        yield _("A worker looks at it next"), moment(row.poll_at, now)


_MOMENTS: Mapping[str, Promise] = {
    "created_at": gettext_lazy("Created"),
    "started_at": gettext_lazy("Started"),
    "status_changed_at": gettext_lazy("In this status since"),
    "deadline_at": gettext_lazy("Deadline of the wait"),
    "finished_at": gettext_lazy("Ended"),
}


def _all_of(model_admin: InstanceAdmin, row: WorkflowInstance, model: str) -> str:
    name, query = f"admin:workflow_engine_{model}_changelist", {"instance__id__exact": str(row.pk)}
    return reverse(name, query=query, current_app=model_admin.admin_site.name)
