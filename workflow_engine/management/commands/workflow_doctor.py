from __future__ import annotations

from typing import Any

from django.core.management import CommandError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from workflow_engine.inspection import doctor
from workflow_engine.inspection.capped import AtLeast
from workflow_engine.management.base import WorkflowCommand
from workflow_engine.management.tables import table

STRANDED = 2


class Command(WorkflowCommand):
    summary = gettext_lazy(
        "Can this code run every live instance? Exit code 2 if not. For a new release, before its workers start."
    )

    def run(self, options: dict[str, Any]) -> None:
        found = doctor.stranded(self.using)
        if self.as_json:
            self.print_json([_as_json(each) for each in found])
        elif found:
            headings = (_("workflow"), _("version"), _("live"), _("for example"))
            for line in table(headings, [_cells(each) for each in found]):
                self.stdout.write(line)
        else:
            self.stdout.write(_("This code can run every live instance."))
        if found:
            raise CommandError(_refusal(len(found)), returncode=STRANDED)


def _refusal(versions: int) -> str:
    told = ngettext(
        "This code can't run the live instances of %(count)d version: they wait for workers that can.",
        "This code can't run the live instances of %(count)d versions: they wait for workers that can.",
        versions,
    )
    remedy = _("Keep their classes, with all the steps that are still to come, until the last of them has ended.")
    return f"{told % {'count': versions}} {remedy}"


def _cells(found: doctor.Stranded) -> list[str]:
    return [found.name, str(found.version), str(found.count), found.example]


def _as_json(found: doctor.Stranded) -> dict[str, Any]:
    return {
        "workflow": found.name,
        "version": found.version,
        "live": int(found.count),
        "is_at_least": isinstance(found.count, AtLeast),
        "example": found.example,
    }
