"""A workflow as boxes and arrows: the steps of a definition, and what one instance has done with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from workflow_engine.domain.declarations import Declaration
from workflow_engine.domain.events import EventKind
from workflow_engine.domain.registry import registry
from workflow_engine.domain.statuses import Status
from workflow_engine.domain.workflows import Workflow
from workflow_engine.engine import store
from workflow_engine.models import WorkflowInstance


class Mark(StrEnum):
    """What has become of a step. Of a definition, nothing has."""

    DECLARED = "declared"
    VISITED = "visited"
    CURRENT = "current"
    FAILED = "failed"
    UNDONE = "undone"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One step. `entered` counts its visits."""

    key: str
    is_activity: bool = False
    compensates: bool = False
    mark: Mark = Mark.DECLARED
    entered: int = 0


@dataclass(frozen=True, slots=True)
class Arrow:
    """A jump between two boxes, by their positions. `taken` counts how often; 0 for one that is only declared."""

    source: int
    target: int
    taken: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagram:
    """Boxes in the order of the sequence, each followed by the next, and the jumps across."""

    title: str
    boxes: Sequence[Box]
    jumps: Sequence[Arrow]


def of_definition(workflow: type[Workflow[Any]]) -> Diagram:
    """The diagram of a registered workflow."""
    boxes = [_declared(key, workflow.steps[key]) for key in workflow.step_keys()]
    return Diagram(title=f"{workflow.name} {workflow.version}", boxes=boxes, jumps=_declared_jumps(boxes, workflow))


def of_instance(row: WorkflowInstance) -> Diagram:
    """The diagram of one instance: its own snapshot of steps, drawn even where no code here knows them."""
    state = store.state_of(row)
    workflow = registry.for_row(row.workflow_name, row.definition_version, state.remaining_steps)
    known = workflow.steps if workflow else {}
    boxes = [_declared(key, known[key]) if key in known else Box(key=key) for key in row.step_sequence]
    entered, taken = _history(row)
    undone = {entry["step"] for entry in row.compensation_stack if entry.get("undo") == "done"}
    marked = [replace(box, mark=_mark(row, box.key, entered, undone), entered=entered[box.key]) for box in boxes]
    declared = _declared_jumps(boxes, workflow) if workflow else []
    return Diagram(
        title=f"{row.workflow_name} {row.definition_version}",
        boxes=_with_skipped(marked),
        jumps=_merged(declared, taken, [box.key for box in boxes]),
    )


def _declared(key: str, declaration: Declaration) -> Box:
    return Box(key=key, is_activity=declaration.is_activity, compensates=declaration.compensates)


def _declared_jumps(boxes: Sequence[Box], workflow: type[Workflow[Any]]) -> list[Arrow]:
    positions = {box.key: position for position, box in enumerate(boxes)}
    return [
        Arrow(positions[key], positions[target])
        for key in positions
        if key in workflow.steps
        for target in workflow.steps[key].goes_to or ()
        if target in positions
    ]


def _history(row: WorkflowInstance) -> tuple[Counter[str], Counter[tuple[str, str]]]:
    """How often each step was entered, and each jump taken: the start enters the first step, a completion the next."""
    events = row.events.filter(kind__in=(EventKind.WORKFLOW_STARTED, EventKind.STEP_COMPLETED)).order_by("seq")
    entered: Counter[str] = Counter()
    taken: Counter[tuple[str, str]] = Counter()
    for step, data in events.values_list("step", "data"):
        key = data.get("set", {}).get("current_step")
        jumped = data.get("goto")
        if jumped is not None:
            taken[step, jumped] += 1
        if key is not None or jumped is not None:
            entered[key or jumped] += 1
    return entered, taken


_AFTER_A_FAILURE = {Status.FAILED, Status.COMPENSATING, Status.COMPENSATED}


def _mark(row: WorkflowInstance, key: str, entered: Counter[str], undone: Iterable[str]) -> Mark:
    is_current = key == row.current_step
    if key in undone:
        return Mark.UNDONE
    if is_current and row.error and row.status in _AFTER_A_FAILURE:
        return Mark.FAILED
    if is_current and not row.is_terminal and row.status != Status.COMPENSATING:
        return Mark.CURRENT
    return Mark.VISITED if entered[key] else Mark.DECLARED


def _with_skipped(boxes: Sequence[Box]) -> list[Box]:
    """A step that was never entered although a later one was: jumped over."""
    last = max((position for position, box in enumerate(boxes) if box.entered), default=-1)
    return [
        replace(box, mark=Mark.SKIPPED) if position < last and not box.entered else box
        for position, box in enumerate(boxes)
    ]


def _merged(declared: Iterable[Arrow], taken: Counter[tuple[str, str]], keys: Sequence[str]) -> list[Arrow]:
    """Declared jumps with their counts, and jumps that were taken without being declared."""
    positions = {key: position for position, key in enumerate(keys)}
    counts = {
        (positions[source], positions[target]): count
        for (source, target), count in taken.items()
        if source in positions and target in positions
    }
    pairs = dict.fromkeys([*((arrow.source, arrow.target) for arrow in declared), *counts])
    return [Arrow(source, target, counts.get((source, target), 0)) for source, target in pairs]
