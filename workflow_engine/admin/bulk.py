"""Many instances are moved: the list's actions. A page says what will happen to how many; then they are asked.

They are only asked, not driven: what follows is the workers' work, except for "advance now". A request for thousands
ends after a while and says how many are left.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.db import router
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from workflow_engine import engine
from workflow_engine.admin.acting import why_it_would_not
from workflow_engine.admin.pieces import rendered, status_of, subject_of
from workflow_engine.admin.verbs import VERBS, Verb
from workflow_engine.exceptions import WorkflowEngineError
from workflow_engine.inspection.capped import count_of
from workflow_engine.inspection.wording import one_line
from workflow_engine.models import WorkflowInstance

if TYPE_CHECKING:
    from workflow_engine.admin.instances import InstanceAdmin

_TEMPLATE = "admin/workflow_engine/workflowinstance/act_many.html"
_MOST = 1000
"""So many instances at a time."""
_SECONDS = 20
"""A proxy in front of the web server would not wait much longer."""
_SHOWN = 20
_BATCH = 50
_REASONS = 5

Action = Callable[["InstanceAdmin", HttpRequest, QuerySet[WorkflowInstance]], HttpResponse | None]


def action_of(verb: Verb) -> Action:
    """The verb as an action of the admin's list."""

    def action(
        model_admin: InstanceAdmin, request: HttpRequest, queryset: QuerySet[WorkflowInstance]
    ) -> HttpResponse | None:
        return act_on(model_admin, request, queryset, verb)

    action.__name__ = verb.name
    vars(action).update(short_description=verb.many, allowed_permissions=[verb.name])
    return action


ACTIONS = [action_of(verb) for verb in VERBS.values()]


def act_on(
    model_admin: InstanceAdmin, request: HttpRequest, queryset: QuerySet[WorkflowInstance], verb: Verb
) -> HttpResponse | None:
    """The confirmation first; confirmed, the deed: None then, and the list is shown again."""
    if not model_admin.has_act_permission(request, verb):
        raise PermissionDenied
    rows = queryset.filter(verb.accepting).order_by("pk")
    count, asked_for = count_of(rows, _MOST), request.POST.get("asked_for", "")
    confirmed = "confirmed" in request.POST
    form = verb.filled(rows[:_MOST], request.POST if confirmed else None)
    has_grown = confirmed and asked_for.isdecimal() and count > int(asked_for)
    if confirmed and not has_grown and form.is_valid():
        ids = list(rows.values_list("pk", flat=True)[:_MOST])
        _tell(request, verb, _ask_each(model_admin, request, verb, _in_batches(ids), form.arguments()))
        return None
    context = {
        **model_admin.admin_site.each_context(request),
        "opts": model_admin.opts,
        "media": model_admin.media,
        "title": verb.label,
        "verb": verb,
        "form": form,
        "count": count,
        "chosen": count_of(queryset, _MOST),
        "most": _MOST,
        "has_grown": has_grown,
        "shown": [(row, status_of(row), subject_of(row, model_admin.admin_site)) for row in rows[:_SHOWN]],
        "checkbox_name": ACTION_CHECKBOX_NAME,
        "selected": request.POST.getlist(ACTION_CHECKBOX_NAME),
        "select_across": request.POST.get("select_across", "0"),
        "back": request.get_full_path(),
    }
    return rendered(model_admin.admin_site, request, _TEMPLATE, context)


@dataclass(slots=True)
class _Asked:
    done: int = 0
    left: int = 0
    refused: Counter[str] = field(default_factory=Counter)


def _ask_each(
    model_admin: InstanceAdmin,
    request: HttpRequest,
    verb: Verb,
    rows: Iterable[WorkflowInstance],
    arguments: dict[str, Any],
) -> _Asked:
    """Each on its own: what can't be asked of one is no reason to leave out the next."""
    asked, until = _Asked(), time.monotonic() + _SECONDS
    for row in rows:
        if time.monotonic() > until:
            asked.left += 1
        elif not model_admin.has_act_permission(request, verb, row):
            asked.refused[_("You may not do that to it.")] += 1
        elif refusal := _refused(verb, row, arguments, request.user):
            asked.refused[refusal] += 1
        else:
            asked.done += 1
    return asked


def _in_batches(ids: Sequence[UUID]) -> Iterator[WorkflowInstance]:
    """Whole rows, as they are when their turn comes; never all of them in memory."""
    known = WorkflowInstance.objects.using(router.db_for_write(WorkflowInstance))
    for start in range(0, len(ids), _BATCH):
        yield from known.filter(pk__in=ids[start : start + _BATCH]).order_by("pk")


def _refused(verb: Verb, row: WorkflowInstance, arguments: dict[str, Any], actor: Any) -> str:
    """Ask it of one instance: "", or why that was refused."""
    if refusal := why_it_would_not(verb, row):
        return refusal
    try:
        verb.ask(row.pk, arguments, actor)
        if verb.send is None:
            engine.advance(row.pk, using=router.db_for_write(WorkflowInstance))
    except WorkflowEngineError as error:
        return one_line(str(error).replace(str(row.pk), "\N{HORIZONTAL ELLIPSIS}"))
    return ""


def _tell(request: HttpRequest, verb: Verb, asked: _Asked) -> None:
    told = {"verb": verb.label, "count": asked.done, "left": asked.left}
    done = ngettext("%(verb)s: asked of %(count)d instance.", "%(verb)s: asked of %(count)d instances.", asked.done)
    (messages.success if asked.done else messages.warning)(request, done % told)
    for reason, count in asked.refused.most_common(_REASONS):
        skipped = ngettext("Skipped %(count)d instance: %(reason)s", "Skipped %(count)d instances: %(reason)s", count)
        messages.warning(request, skipped % {"count": count, "reason": reason})
    if asked.left:
        messages.warning(request, _("%(left)d are left: it took too long. Do it again for them.") % told)
