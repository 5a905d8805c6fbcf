"""The tables. Columns and questions only; what may happen to a row is decided in `domain` and done in `engine`."""

from __future__ import annotations

from workflow_engine.models.events import WorkflowEvent
from workflow_engine.models.instances import WorkflowInstance
from workflow_engine.models.mailbox import WorkflowSignal
from workflow_engine.models.workers import WorkflowWorker

__all__ = ["WorkflowEvent", "WorkflowInstance", "WorkflowSignal", "WorkflowWorker"]
