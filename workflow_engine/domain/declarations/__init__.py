"""How a workflow's steps are declared, collected from its classes, and bound to a workflow object."""

from __future__ import annotations

from workflow_engine.domain.declarations.bound import BoundStep, CompensationOptions, Declaration
from workflow_engine.domain.declarations.options import ActivityOptions, StepOptions, UndoOptions
from workflow_engine.domain.declarations.steps import Activity, Step, activity, step

__all__ = [
    "Activity",
    "ActivityOptions",
    "BoundStep",
    "CompensationOptions",
    "Declaration",
    "Step",
    "StepOptions",
    "UndoOptions",
    "activity",
    "step",
]
