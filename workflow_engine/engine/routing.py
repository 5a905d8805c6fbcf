"""Which queue's workers take an instance's next turn.

Only messages have queues: an embedded worker takes what is due, whatever queue it asks for.
"""

from __future__ import annotations

from workflow_engine.domain.decisions.failure import next_undo
from workflow_engine.domain.registry import registry
from workflow_engine.domain.state import State
from workflow_engine.domain.statuses import Status
from workflow_engine.models import WorkflowInstance


def queue_for(row: WorkflowInstance, state: State) -> str:
    """The queue of the step that acts next (or is undone next), else the instance's own; "" for the default one.

    Where this process has no code for the instance, it is the instance's own: who gets the message there knows better.
    """
    workflow = registry.for_row(row.workflow_name, state.definition_version, state.remaining_steps)
    entry = next_undo(state) if state.status == Status.COMPENSATING else None
    step = state.current_step if entry is None else entry["step"]
    declared = workflow.steps.get(step) if workflow else None
    return (declared.queue if declared else "") or row.queue


def queue_of(row: WorkflowInstance) -> str:
    """`queue_for` as the row itself says where it stands. Reads no wide column unless it is being undone."""
    undoing = row.status == Status.COMPENSATING
    state = State(
        definition_version=row.definition_version,
        step_sequence=row.step_sequence,
        step_index=row.step_index,
        current_step=row.current_step,
        status=Status(row.status),
        compensation_stack=row.compensation_stack if undoing else (),
    )
    return queue_for(row, state)
