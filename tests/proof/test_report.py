"""The report adds up what the runs left, and fails for what was found or never met."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.proof import report
from tests.proof.sometimes import SOMETIMES

ALL_SEEN = dict.fromkeys(SOMETIMES, 1)


def run(**changes: Any) -> dict[str, Any]:
    """The figures of a run on PostgreSQL, as a campaign writes them."""
    figures: dict[str, Any] = {
        "database": "PostgreSQL",
        "ran_on": {"PostgreSQL": "15.19"},
        "part": "crash matrix",
        "cases": {"crash matrix": 2},
        "seeds": {"crash matrix": [0, 1]},
        "crashes": {"1": 2},
        "failpoints": {"lock.after": 2},
        "interruptions": {},
        "switches": 3,
        "faults": {"worker: kill": 1},
        "seen": ALL_SEEN,
        "violations": 0,
        "mutants": {"no lock": {"invariants": [1], "runs": 1}},
    }
    return {**figures, **changes}


def test_runs_of_one_database_are_added_up() -> None:
    more = run(cases={"random programs": 5}, seeds={"crash matrix": [1, 2]}, mutants={})
    (figures,) = report.merged([run(), more]).values()
    assert figures["cases"] == {"crash matrix": 2, "random programs": 5}
    assert figures["seeds"] == {"crash matrix": [0, 1, 2]}
    assert (figures["switches"], figures["faults"]) == (6, {"worker: kill": 2})
    text = "\n".join(report.told({"PostgreSQL": figures}, []))
    assert "| Crash matrix: seeds | 0 to 2 |" in text
    assert "| no lock | 1 | 1 |" in text


def test_what_was_found_and_what_was_never_met_are_named() -> None:
    seen = {name: times for name, times in ALL_SEEN.items() if name != "deadlock"}
    campaigns = report.merged(
        [run(violations=2), run(database="SQLite", seen=seen), run(database="MariaDB", seen=seen)]
    )
    cell = {"cell": "PostgreSQL, Redis", "violations": 1}
    assert list(report.shortcomings(campaigns, [cell])) == [
        "PostgreSQL: 2 violations",
        "MariaDB: never seen: deadlock (the database ended one of two transactions that waited for each other)",
        "PostgreSQL, Redis: 1 violations",
    ]


def test_the_figures_stand_between_the_marks_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "postgresql-1.json").write_text(json.dumps(run()))
    page = tmp_path / "page.md"
    page.write_text(f"Before\n{report.BEGIN}\nold figures\n{report.END}\nAfter\n")
    monkeypatch.setattr("sys.argv", ["report", str(tmp_path), "--into", str(page)])
    assert report.main() == 0
    text = page.read_text()
    assert text.startswith(f"Before\n{report.BEGIN}\n")
    assert text.endswith(f"{report.END}\nAfter\n")
    assert "old figures" not in text
    assert "| **Violations** | **0** |" in text


def test_a_folder_without_figures_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["report", str(tmp_path)])
    with pytest.raises(SystemExit):
        report.main()
    assert f"{tmp_path} has no figures" in capsys.readouterr().err
