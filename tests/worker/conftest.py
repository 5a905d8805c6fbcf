from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.model import invariants


@pytest.fixture(autouse=True)
def sound(transactional_db: None) -> Iterator[None]:
    """Whatever was done to the processes, the tables make sense afterwards."""
    yield
    invariants.assert_hold(invariants.read())


@pytest.fixture
def gates(tmp_path: Path) -> Gates:
    return Gates(tmp_path)


class Gates:
    """The files at which the workflow "gated" stops."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def context(self) -> dict[str, str]:
        """For the start of the instance."""
        return {"directory": str(self.directory)}

    def is_reached(self, step: str) -> bool:
        return (self.directory / f"{step}-reached").exists()

    def open(self, *steps: str) -> None:
        for step in steps:
            (self.directory / f"{step}-open").touch()
