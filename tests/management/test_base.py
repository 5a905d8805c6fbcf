from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.core.management import load_command_class
from django.db import connection

from tests.management.calling import refused, say, started
from workflow_engine import engine
from workflow_engine.management.base import WorkflowCommand, shell_user

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

ROOT = Path(__file__).resolve().parents[2]
Manage = Callable[..., subprocess.CompletedProcess[str]]
COMMANDS = sorted(path.stem for path in (ROOT / "workflow_engine/management/commands").glob("workflow_*.py"))


@pytest.fixture
def manage(transactional_db: None, tmp_path: Path) -> Manage:
    """Runs a command as a shell does, on the test's database or on a SQLite file."""

    def run(*arguments: str, pipe: str = "", database: str | None = None) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings", "PYTHONPATH": str(ROOT)}
        if database is not None:
            environment |= {"WORKFLOW_ENGINE_TEST_ENGINE": "sqlite", "WORKFLOW_ENGINE_TEST_DATABASE": database}
        command = f"{sys.executable} -m django {' '.join(arguments)} {pipe}"
        shell_command = ["/bin/sh", "-c", command]
        return subprocess.run(shell_command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return run


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    command = load_command_class("workflow_engine", name)
    assert isinstance(command, WorkflowCommand)
    text = command.create_parser("manage.py", name).format_help()
    assert " ".join(str(command.summary).split()[:4]) in " ".join(text.split())
    assert "--database ALIAS" in text


def test_the_commands_are_those_that_were_promised() -> None:
    assert {name.removeprefix("workflow_") for name in COMMANDS} >= {
        "start", "signal", "advance", "retry", "cancel", "pause", "resume", "tick", "prune", "list", "instances",
        "show", "worker",
    }  # fmt: skip


def test_a_refusal_is_one_line_and_exit_code_1(manage: Manage) -> None:
    run = manage("workflow_start", "nothing")
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith("CommandError: No workflow 'nothing' is registered. Known: ")
    assert run.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["workflow_instances", "workflow_worker --processes 2"])
def test_missing_tables_say_what_to_run(manage: Manage, tmp_path: Path, command: str) -> None:
    run = manage(command, database=str(tmp_path / "new.sqlite3"))
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == (
        "CommandError: The tables of workflow_engine are missing in the database 'default'."
        " Run: python manage.py migrate\n"
    )


@pytest.mark.parametrize("command", ["workflow_instances", "workflow_worker"])
def test_a_database_that_is_away_says_so(manage: Manage, tmp_path: Path, command: str) -> None:
    run = manage(command, database=str(tmp_path / "nowhere" / "new.sqlite3"))
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == "CommandError: The database 'default' can't be reached: unable to open database file\n"


def test_a_reader_that_has_enough_is_no_error(manage: Manage) -> None:
    for number in range(300):
        engine.start("parcel", subject=("a.subject.with.a.long.name.to.fill.the.pipe" * 2, number))
    run = manage("workflow_instances", "--limit 300", pipe="| head -n 1")
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("id ")


def test_an_unknown_database_is_refused_before_anything_is_checked(manage: Manage) -> None:
    run = manage("workflow_worker --database defalt")
    assert (run.returncode, run.stderr) == (
        1,
        "CommandError: There is no database 'defalt' in DATABASES. Did you mean 'default'?\n",
    )


@pytest.mark.django_db
def test_an_unknown_database_is_refused() -> None:
    assert refused("workflow_list", "--database", "defalt") == (
        "There is no database 'defalt' in DATABASES. Did you mean 'default'?"
    )


@pytest.mark.django_db
def test_an_argument_that_is_no_text_is_refused() -> None:
    assert refused("workflow_instances", "--step", "\udcff") == "The argument 'step' is not text: '\\udcff'."
    assert refused("workflow_show", "a\x00b") == "The argument 'reference' is not text: 'a\\x00b'."


@pytest.mark.django_db
def test_a_wrong_setting_is_one_line(settings: Settings) -> None:
    settings.WORKFLOW_ENGINE = {"DISPATCH": "x"}
    assert refused("workflow_start", "parcel") == (
        "WORKFLOW_ENGINE has no setting 'DISPATCH'. Did you mean 'DISPATCHER'?"
    )


@pytest.mark.django_db(transaction=True)
def test_an_error_of_ours_keeps_its_traceback() -> None:
    row = started()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE workflow_events RENAME TO elsewhere")
    try:
        with pytest.raises(Exception, match="workflow_events"):
            say("workflow_show", row.pk)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE elsewhere RENAME TO workflow_events")


def test_the_actor_is_the_user_of_this_shell() -> None:
    assert shell_user() == "anna (shell)"


def test_a_user_without_a_name_is_known_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    assert shell_user() == f"user {os.getuid()} (shell)"
