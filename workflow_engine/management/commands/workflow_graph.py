from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from workflow_engine.domain.registry import registry
from workflow_engine.inspection.diagram import Diagram, of_definition, of_instance
from workflow_engine.inspection.drawing import svg
from workflow_engine.inspection.finding import find_one
from workflow_engine.inspection.mermaid import mermaid
from workflow_engine.management.base import WorkflowCommand


class Command(WorkflowCommand):
    summary = gettext_lazy("Print the diagram of a workflow, or of one instance, as Mermaid text or as SVG.")
    speaks_json = False

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument(
            "reference",
            metavar="NAME|INSTANCE",
            help=_("A workflow's name; or an instance: its id, the beginning of it, its key, or its subject."),
        )
        parser.add_argument(
            "--workflow-version", type=int, metavar="N", help=_("Of the workflow named. Default: the newest.")
        )
        parser.add_argument(
            "--format", choices=("mermaid", "svg"), default="mermaid", help=_("Default: mermaid, for documents.")
        )

    def run(self, options: dict[str, Any]) -> None:
        diagram = self._diagram(options["reference"], options["workflow_version"])
        self.stdout.write(mermaid(diagram) if options["format"] == "mermaid" else svg(diagram))

    def _diagram(self, reference: str, version: int | None) -> Diagram:
        if reference in registry.names() or version is not None:
            exact = registry.newest(reference) if version is None else registry.exact(reference, version)
            return of_definition(exact)
        return of_instance(find_one(reference, self.using))
