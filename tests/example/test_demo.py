from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.core.management import CommandError, call_command

from example_project.shop.demo.progress import Bar

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

ROOT = Path(__file__).resolve().parents[2]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def demo(database: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """The real command with the example's own settings, on a database of its own."""
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "example_project.settings", "SHOP_DATABASE": str(database)}
    command = [sys.executable, "manage.py", "demo", *options]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_the_demo_runs_adds_up_and_can_be_run_again(tmp_path: Path) -> None:
    first = demo(tmp_path / "demo.sqlite3", "--count", "12")
    again = demo(tmp_path / "demo.sqlite3", "--count", "12")
    assert (first.returncode, first.stderr) == (0, "")
    assert (again.returncode, again.stderr) == (0, "")
    assert "Emptied    12 orders that were here before" in again.stdout
    assert without_what_varies(first.stdout) == without_what_varies(again.stdout)
    assert re.findall(r"^ +(ok|WRONG) +(\w+)", first.stdout, re.MULTILINE) == [
        ("ok", "stock"),
        ("ok", "totals"),
        ("ok", "money"),
        ("ok", "parcels"),
    ]
    assert re.search(r"python manage\.py workflow_show shop\.order:\d+\n", first.stdout)


def without_what_varies(output: str) -> list[str]:
    lines = [line for line in output.splitlines() if not line.startswith(("Emptied", "Took", "Working"))]
    return [re.sub(r"shop\.order:\d+", "shop.order:…", line) for line in lines]


def test_a_quiet_demo_says_nothing_when_all_is_well(tmp_path: Path) -> None:
    run = demo(tmp_path / "demo.sqlite3", "--count", "5", "--quiet")
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_the_demo_does_not_run_where_real_orders_live(settings: Settings) -> None:
    settings.SHOP_DEMO = False
    with pytest.raises(CommandError) as caught:
        call_command("demo")
    assert str(caught.value) == (
        "SHOP_DEMO is off: the demo empties the shop and creates a login with a well-known password."
    )


def test_the_bar_is_drawn_over_itself_on_a_terminal() -> None:
    out = Terminal()
    bar = Bar(out, "At rest", 4)
    for done in (0, 2, 2, 4):
        bar.update(done)
    bar.close()
    assert out.getvalue() == (
        f"\rAt rest [{'.' * 32}] 0/4\rAt rest [{'#' * 16}{'.' * 16}] 2/4\rAt rest [{'#' * 32}] 4/4\n"
    )


def test_the_bar_is_a_few_lines_in_a_file() -> None:
    out = io.StringIO()
    bar = Bar(out, "At rest", 100)
    for done in range(101):
        bar.update(done)
    bar.close()
    assert out.getvalue().splitlines() == [f"At rest {done}/100" for done in (25, 50, 75, 100)]
