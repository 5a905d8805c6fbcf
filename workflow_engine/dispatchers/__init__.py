"""The ways work reaches a process; loaded by name from `WORKFLOW_ENGINE["DISPATCHER"]`."""
