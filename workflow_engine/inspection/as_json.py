"""Instances, events and signals as JSON values, for scripts. Keys are the columns' names; moments are ISO 8601, UTC."""

from __future__ import annotations

from typing import Any

from django.core.serializers.json import DjangoJSONEncoder

from workflow_engine.models import WorkflowEvent, WorkflowInstance, WorkflowSignal

Encoder = DjangoJSONEncoder
"""Encodes what the dicts below contain."""

_SUMMARY = (
    "id",
    "workflow_name",
    "definition_version",
    "subject_type",
    "subject_id",
    "tenant",
    "idempotency_key",
    "status",
    "paused",
    "current_step",
    "visit",
    "attempts",
    "awaiting_signals",
    "due_at",
    "deadline_at",
    "error",
    "created_at",
    "status_changed_at",
    "finished_at",
)
_WHOLE = (
    *_SUMMARY,
    "input",
    "context",
    "result",
    "step_sequence",
    "step_index",
    "ends_as",
    "queue",
    "started_at",
    "poll_at",
    "suspect",
    "recoveries",
    "lease_owner",
    "cancel_requested",
    "compensation_stack",
    "version",
)
_EVENT = ("seq", "kind", "step", "visit", "attempt", "actor", "trigger", "data", "created_at", "duration")
_SIGNAL = (
    "id",
    "kind",
    "name",
    "data",
    "actor",
    "idempotency_key",
    "state",
    "reason",
    "received_at",
    "consumed_at",
    "consumed_step",
    "consumed_visit",
)


def summary(row: WorkflowInstance) -> dict[str, Any]:
    """What a list shows of an instance."""
    return {name: getattr(row, name) for name in _SUMMARY}


def instance(row: WorkflowInstance) -> dict[str, Any]:
    """An instance with its context, input and result."""
    return {name: getattr(row, name) for name in _WHOLE}


def event(stored: WorkflowEvent) -> dict[str, Any]:
    """An event, as stored."""
    return {name: getattr(stored, name) for name in _EVENT}


def signal(stored: WorkflowSignal) -> dict[str, Any]:
    """A row of the mailbox, as stored."""
    return {name: getattr(stored, name) for name in _SIGNAL}
