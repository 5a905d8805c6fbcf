"""A progress bar on a terminal; a line now and then where output goes to a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from io import TextIOBase

WIDTH = 32


class Bar:
    """`update()` as often as you like: it draws only what is news."""

    def __init__(self, out: TextIOBase, label: str, total: int) -> None:
        self._out, self._label, self._total = out, label, total
        self._on_terminal = out.isatty()
        self._drawn = -1 if self._on_terminal else 0

    def update(self, done: int) -> None:
        step = 1 if self._on_terminal else max(1, self._total // 4)
        if done == self._drawn or (done < self._total and done < self._drawn + step):
            return
        self._drawn = done
        filled = WIDTH * done // max(1, self._total)
        bar = f"[{'#' * filled}{'.' * (WIDTH - filled)}] " if self._on_terminal else ""
        start, end = ("\r", "") if self._on_terminal else ("", "\n")
        self._out.write(f"{start}{self._label} {bar}{done}/{self._total}{end}")
        self._out.flush()

    def close(self) -> None:
        if self._on_terminal:
            self._out.write("\n")
