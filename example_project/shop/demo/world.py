"""The world outside, for the length of a demo: starts the server that plays it, and reads its books at the end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from django.conf import settings
from django.test import override_settings

from example_project.shop import calls

ROOT = Path(__file__).resolve().parents[3]
"""Where manage.py is."""

SEED = 1815
DOWN = ("12", "18")
"""The 12th to the 17th charge asked for find the provider down."""


class WorldError(Exception):
    """There is no world outside."""


class World:
    """A process of its own on a free port; within the block this process calls it. It ends when we do, however we do.

    Args:
        stall: the number of the order whose first charge gets no answer; "" for none.
    """

    def __init__(self, *, stall: str) -> None:
        command = [sys.executable, "-m", "example_project.outside", "--with-parent", "--fresh"]
        command += ["--ledger", ledger_path(), "--seed", str(SEED), "--down", *DOWN, "--stall", stall]
        # Its standard input is our hold on it: it ends when that is closed.
        self._process = subprocess.Popen(  # noqa: S603 - nothing in it comes from outside
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None  # noqa: S101 - for the type checker: it is a pipe
        self.url = self._process.stdout.readline().strip()
        if not self.url:
            self._process.communicate()
            raise WorldError("The server that plays the payment provider and the carrier did not start: see above.")
        self._override = override_settings(SHOP_OUTSIDE_URL=self.url)

    def __enter__(self) -> Self:
        self._override.enable()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._override.disable()
        # Closes the pipes, and waits for the end that follows from it.
        with self._process:
            pass

    @staticmethod
    def ledger() -> dict[str, Any]:
        """What the provider and the carrier say was done."""
        return calls.get("/ledger")


def ledger_path() -> str:
    """The file in which the provider and the carrier keep their books."""
    return str(getattr(settings, "SHOP_OUTSIDE_LEDGER", "outside.sqlite3"))
