from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from workflow_engine.inspection import counts
from workflow_engine.management.base import WorkflowCommand
from workflow_engine.management.tables import table


class Command(WorkflowCommand):
    summary = gettext_lazy("List the workflows that this code knows, with versions, steps and live instances.")

    def run(self, options: dict[str, Any]) -> None:
        versions = counts.versions(self.using)
        if self.as_json:
            self.print_json([_as_json(version) for version in versions])
            return
        if not versions:
            self.note(_("No workflow is registered. Write one in the 'workflows' module of an installed app."))
            return
        headings = (_("workflow"), _("version"), _("live"), _("steps"))
        for line in table(headings, [_cells(version) for version in versions]):
            self.stdout.write(line)


def _cells(version: counts.Version) -> list[str]:
    steps = ", ".join(version.steps) or _("not in this code")
    return [version.name, str(version.version), str(version.live_total), steps]


def _as_json(version: counts.Version) -> dict[str, Any]:
    definition = version.definition
    return {
        "workflow": version.name,
        "version": version.version,
        "label": None if definition is None else str(definition.label),
        "registered": definition is not None,
        "steps": list(version.steps),
        "live": dict(version.live),
    }
