"""What became of a row of the mailbox, in a sentence."""

from __future__ import annotations

from django.utils.translation import gettext as _

from workflow_engine.inspection.wording import one_line
from workflow_engine.models import WorkflowSignal

State = WorkflowSignal.State


def told(item: WorkflowSignal) -> str:
    """One sentence about a signal or request."""
    about = {
        "name": one_line(item.name),
        "id": item.pk,
        "step": one_line(item.consumed_step),
        "reason": one_line(item.reason),
    }
    match item.state:
        case State.CONSUMED:
            return _("%(name)s (#%(id)s) was taken by %(step)s.") % about
        case State.BUFFERED:
            return _("%(name)s (#%(id)s) is kept until it is awaited.") % about
        case State.DISCARDED:
            return _("%(name)s (#%(id)s) was discarded: %(reason)s.") % about
        case State.REJECTED:
            return _("%(name)s (#%(id)s) was refused: %(reason)s.") % about
    return _("%(name)s (#%(id)s) waits to be looked at.") % about
