"""The admin: everything can be looked at, nothing can be edited. What moves an instance goes through the engine."""

from __future__ import annotations

from workflow_engine.admin.instances import InstanceAdmin
from workflow_engine.admin.records import EventAdmin, SignalAdmin, WorkerAdmin

__all__ = ["EventAdmin", "InstanceAdmin", "SignalAdmin", "WorkerAdmin"]
