"""How often handlers ran and how often they got on, by the tables: what the machine compares with what it did."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from tests.model.mill import UNDONE_INSIDE, WITHOUT_A_SIGNAL_HANDLER
from tests.model.replay import Tables

PASSED = ("body", "signal", "timeout", "undo")
"""Handlers whose writes are committed together with their outcome."""


def wrote(now: Tables) -> Counter[tuple[UUID, str]]:
    """What such handlers have left behind, by instance and kind."""
    return Counter((row["instance_id"], row["note"]) for row in now.effects if row["note"] in PASSED)


def progress(now: Tables) -> Counter[tuple[UUID, str]]:
    """Invariant 1, by history: what steps and handlers wrote is there once for each time that they got on.

    Activities write outside their record, which has the visit and attempt of their claim.
    """
    made: Counter[tuple[UUID, str]] = Counter()
    for instance_id, history in now.events.items():
        outside = None
        for event in history:
            if event["kind"] == "step_started":
                outside = event["visit"], event["attempt"]
            if event["kind"] in {"step_completed", "workflow_awaiting", "workflow_slept"}:
                source = event["trigger"].partition(":")[0] or "body"
                by_default = source == "signal" and event["step"] in WITHOUT_A_SIGNAL_HANDLER
                if source in PASSED and not by_default and (event["visit"], event["attempt"]) != outside:
                    made[instance_id, source] += 1
                outside = None
            if event["kind"] == "step_compensated" and event["step"] == UNDONE_INSIDE:
                made[instance_id, "undo"] += 1
    return made


def claims(now: Tables) -> Counter[tuple[UUID, str, int]]:
    """Invariant 11: what runs under a lease begins once for each claim, at most."""
    kinds = {"step_started": "call", "compensation_started": "undo"}
    return Counter(
        (key, kinds[event["kind"]], event["visit"])
        for key, history in now.events.items()
        for event in history
        if event["kind"] in kinds
    )
