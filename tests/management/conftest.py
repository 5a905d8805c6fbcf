from __future__ import annotations

import pytest

from tests.inspection.flows import flows

__all__ = ["flows"]


@pytest.fixture(autouse=True)
def anna(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is at this shell."""
    monkeypatch.setenv("LOGNAME", "anna")
