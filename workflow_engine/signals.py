"""Django signals, sent after commit, once per committed event of that name.

The sender is the workflow class (None where this process has no code for the instance); arguments: `event`, the
`WorkflowEvent` as stored, and `instance_id`. Receivers that raise are logged and disturb nobody. A crash between the
commit and the sending loses the sending: what must happen belongs in a step.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from django.dispatch import Signal

workflow_started = Signal()
step_completed = Signal()
step_failed = Signal()
signal_received = Signal()
workflow_awaiting = Signal()
step_timed_out = Signal()
workflow_slept = Signal()
workflow_completed = Signal()
workflow_compensating = Signal()
step_compensated = Signal()
compensation_failed = Signal()
workflow_failed = Signal()
workflow_compensated = Signal()
workflow_cancelled = Signal()
workflow_retried = Signal()
workflow_paused = Signal()
workflow_resumed = Signal()

BY_EVENT_KIND: Mapping[str, Signal] = MappingProxyType(
    {name: value for name, value in globals().items() if isinstance(value, Signal)}
)
