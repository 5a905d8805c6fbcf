"""How many instances there are, by workflow, version and status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count

from workflow_engine.domain.registry import registry
from workflow_engine.domain.workflows import Workflow
from workflow_engine.models import WorkflowInstance


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version of a workflow. `definition` is None where only rows know of it; then it has no `steps` here."""

    name: str
    version: int
    definition: type[Workflow[Any]] | None
    live: Mapping[str, int] = field(default_factory=dict)
    """Live instances by status."""

    @property
    def live_total(self) -> int:
        return sum(self.live.values())

    @property
    def steps(self) -> Sequence[str]:
        """The keys of its steps, in order."""
        return () if self.definition is None else self.definition.step_keys()


def versions(using: str) -> list[Version]:
    """Every version that is registered here or that live instances run on, by name and version."""
    live = _live_by_version(using)
    known = {(workflow.name, workflow.version): workflow for workflow in registry}
    return [
        Version(name=name, version=version, definition=known.get((name, version)), live=live.get((name, version), {}))
        for name, version in sorted({*known, *live})
    ]


def _live_by_version(using: str) -> dict[tuple[str, int], Counter[str]]:
    live: dict[tuple[str, int], Counter[str]] = {}
    rows = WorkflowInstance.objects.using(using).live().order_by()
    for name, version, status, count in rows.values_list("workflow_name", "definition_version", "status").annotate(
        count=Count("pk")
    ):
        live.setdefault((name, version), Counter())[status] = count
    return live
