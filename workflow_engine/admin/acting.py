"""One instance is moved: a page that says what will happen, then the deed, then the instance as it is now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import router
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from workflow_engine import clock, engine
from workflow_engine.admin.pieces import instance_url, rendered, status_of, subject_of
from workflow_engine.admin.verbs import VERBS, Verb, particulars
from workflow_engine.domain.decisions.requests import why_not
from workflow_engine.engine import Answer, store
from workflow_engine.exceptions import WorkflowEngineError
from workflow_engine.inspection import standing
from workflow_engine.inspection.mail import told
from workflow_engine.inspection.wording import one_line
from workflow_engine.models import WorkflowInstance, WorkflowSignal

if TYPE_CHECKING:
    from workflow_engine.admin.instances import InstanceAdmin

_TEMPLATE = "admin/workflow_engine/workflowinstance/act.html"
_MESSAGE = 500


def act(model_admin: InstanceAdmin, request: HttpRequest, object_id: str, name: str) -> HttpResponse:
    """The confirmation on GET, the deed on POST."""
    verb = VERBS.get(name)
    if verb is None:
        raise Http404
    row = model_admin.get_object(request, object_id)
    if not model_admin.has_view_permission(request, row):
        raise PermissionDenied
    if row is None:
        return model_admin.back_to_the_list(request, object_id)
    if not model_admin.has_act_permission(request, verb, row):
        raise PermissionDenied
    form = verb.filled([row], request.POST if request.method == "POST" else None)
    refusal = why_it_would_not(verb, row)
    if request.method == "POST" and (refusal or form.is_valid()):
        if refusal:
            messages.error(request, refusal)
        else:
            _carry_out(request, verb, row, form.arguments())
        return HttpResponseRedirect(instance_url(row.pk, model_admin.admin_site))
    context = {
        **model_admin.admin_site.each_context(request),
        "opts": model_admin.opts,
        "media": model_admin.media,
        "title": verb.label,
        "row": row,
        "status": status_of(row),
        "subject": subject_of(row, model_admin.admin_site),
        "headline": standing.headline(row),
        "verb": verb,
        "particulars": particulars(verb, row),
        "refusal": refusal,
        "form": form,
        "back": instance_url(row.pk, model_admin.admin_site),
    }
    return rendered(model_admin.admin_site, request, _TEMPLATE, context)


def why_it_would_not(verb: Verb, row: WorkflowInstance) -> str:
    """Why the verb makes no sense for the instance as it is now, with the remedy; "" where it does."""
    if verb.name != "advance":
        return why_not(store.state_of(row), verb.name) or ""
    if row.is_terminal:
        return _("It has ended.")
    if row.paused:
        return _("It is paused. Resume it first.")
    now = clock.now(row._state.db or router.db_for_read(WorkflowInstance))
    return "" if standing.is_due(row, now) or row.signals.pending().exists() else _("Nothing is due.")


def _carry_out(request: HttpRequest, verb: Verb, row: WorkflowInstance, arguments: dict[str, Any]) -> None:
    """Ask, drive at once, and tell what came of it."""
    try:
        item = verb.ask(row.pk, arguments, request.user)
        answer = engine.drive(row.pk, using=router.db_for_write(WorkflowInstance)).answer
    except WorkflowEngineError as error:
        messages.error(request, one_line(error, _MESSAGE))
        return
    alias = router.db_for_write(WorkflowInstance)
    now_is = WorkflowInstance.objects.using(alias).filter(pk=row.pk).first()
    if item is not None:
        item = WorkflowSignal.objects.using(alias).filter(pk=item.pk).first()
    if item is not None and item.state in {WorkflowSignal.State.REJECTED, WorkflowSignal.State.DISCARDED}:
        messages.error(request, told(item))
        return
    if now_is is None:
        messages.warning(request, _("It is gone."))
        return
    said = told(item) if item is not None and verb.name == "signal" else f"{verb.label}."
    messages.success(request, _("%(said)s Now: %(headline)s.") % {"said": said, "headline": standing.headline(now_is)})
    if note := _NOTES.get(answer):
        messages.warning(request, note)


_NOTES = {
    Answer.LOCKED: gettext_lazy("A worker has it in hand and will see to it."),
    Answer.HANDED_OVER: gettext_lazy("A worker of its queue will see to it."),
    Answer.NO_CODE: gettext_lazy("No code here can run it; a worker that has the code will see to it."),
    Answer.DATABASE_TROUBLE: gettext_lazy("The database had trouble; a worker will see to it."),
}
