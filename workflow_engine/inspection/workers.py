"""Which processes work on instances, as far as they have reported themselves."""

from __future__ import annotations

from datetime import datetime

from django.utils.translation import gettext as _

from workflow_engine import conf
from workflow_engine.inspection.times import length
from workflow_engine.models import WorkflowInstance, WorkflowWorker

START_ONE = "python manage.py workflow_worker"


def seen(using: str, now: datetime) -> list[WorkflowWorker]:
    """Processes of any kind that have reported lately, the last one first."""
    lately = now - conf.current().duration("WORKER_SEEN")
    return list(WorkflowWorker.objects.using(using).filter(seen_at__gte=lately).order_by("-seen_at"))


def missing(using: str, now: datetime) -> str:
    """A sentence when nobody is there to do the work; "" when somebody is, or nobody is needed.

    Only asked of the embedded worker: other dispatchers bring their own processes.
    """
    if conf.current().DISPATCHER != "database":
        return ""
    workers = WorkflowWorker.objects.using(using).filter(kind=WorkflowWorker.Kind.WORKER)
    last = workers.order_by("-seen_at").values_list("seen_at", flat=True).first()
    if last is None:
        return _("No worker has been seen. Start one: %(command)s") % {"command": START_ONE}
    if last < now - conf.current().duration("WORKER_SEEN"):
        told = {"length": length(now - last), "command": START_ONE}
        return _("No worker has been seen for %(length)s. Start one: %(command)s") % told
    return ""


def missing_for(row: WorkflowInstance, using: str, now: datetime) -> str:
    """As `missing`, and a sentence when those that are there can't run this instance; "" once it has ended."""
    if row.is_terminal:
        return ""
    if nobody := missing(using, now):
        return nobody
    if conf.current().DISPATCHER != "database":
        return ""
    known = [worker.knows for worker in seen(using, now) if worker.kind == WorkflowWorker.Kind.WORKER]
    name = f"{row.workflow_name}:"
    if any(entry.startswith(name) for knows in known for entry in knows):
        return ""
    told = {"workflow": row.workflow_name}
    return _("None of the workers that have been seen knows the workflow %(workflow)s.") % told
