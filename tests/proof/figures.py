"""Where a campaign leaves its figures, for the report: a file per run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FIGURES_VARIABLE = "WORKFLOW_ENGINE_CHAOS_FIGURES"
"""The folder; without it they are not kept."""


def keep(name: str, figures: Mapping[str, Any]) -> None:
    """Write the figures of the run of that name, if that is asked for."""
    if folder := os.environ.get(FIGURES_VARIABLE):
        Path(folder).mkdir(parents=True, exist_ok=True)
        text = json.dumps(figures, indent=2, sort_keys=True, ensure_ascii=False)
        Path(folder, f"{name}.json").write_text(text + "\n")
