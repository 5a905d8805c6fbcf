"""Which seeds a campaign runs."""

from __future__ import annotations

import os

VARIABLE = "WORKFLOW_ENGINE_CHAOS_SEEDS"
"""How many seeds, or "17:20" for 17, 18 and 19."""

THOROUGH = VARIABLE in os.environ
"""Somebody asks for a campaign, and has time."""


def seeds(usually: int) -> range:
    """The seeds to run; `usually` so many."""
    first, _, end = os.environ.get(VARIABLE, "").rpartition(":")
    return range(int(first or 0), int(end or usually))
