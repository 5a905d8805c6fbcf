"""Live instances that no code here can run: they wait for a process that has their workflow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workflow_engine.domain.registry import registry
from workflow_engine.inspection.capped import AtLeast
from workflow_engine.models import WorkflowInstance

_MOST_ROWS = 1000


@dataclass(frozen=True, slots=True)
class Stranded:
    """Live rows of one workflow and version. `count` may be an `AtLeast`; `example` is the oldest one's id."""

    name: str
    version: int
    count: int
    example: str


def stranded(using: str) -> Sequence[Stranded]:
    """What no code here can run, by workflow and version.

    A row whose version is not registered may still run on another one that has all of its remaining steps, so the rows
    themselves are looked at; of each version at most a thousand, the oldest.
    """
    known = {(workflow.name, workflow.version) for workflow in registry}
    rows = WorkflowInstance.objects.using(using).live()
    pairs = rows.order_by().values_list("workflow_name", "definition_version").distinct()
    found = (_of_version(name, version, using) for name, version in sorted(set(pairs) - known))
    return [told for told in found if told is not None]


def _of_version(name: str, version: int, using: str) -> Stranded | None:
    rows = WorkflowInstance.objects.using(using).live().filter(workflow_name=name, definition_version=version)
    looked_at = rows.order_by("pk").values_list("pk", "step_sequence", "step_index")[: _MOST_ROWS + 1]
    lost = [pk for pk, steps, index in looked_at if registry.for_row(name, version, steps[index:]) is None]
    if not lost:
        return None
    count = AtLeast(_MOST_ROWS) if len(lost) > _MOST_ROWS else len(lost)
    return Stranded(name, version, count, str(lost[0]))
