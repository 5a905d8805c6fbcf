"""The Makefile with Pythons of every kind on PATH: shell scripts that answer as little of Python as it asks for."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.packaging.listings import ROOT

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")

# {base} is what the interpreter says it is, {log} gets its calls. -m venv makes a .venv whose python is such a script.
WORKING = """#!/bin/sh
case "$*" in
  *_base_executable*) echo '{base}' ;;
  *ensurepip*) exit {without_venv:d} ;;
  *version_info*) echo 3.11 ;;
  *python_version*) echo 3.11.7 ;;
  "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  *) echo "$*" >> '{log}' ;;
esac
"""
BROKEN_SHIM = "#!/bin/sh\necho 'pyenv: python: command not found' >&2\nexit 127\n"
LEFT_OUT = "Left out: the admin in a browser (make test-browser), real servers (make test-services).\n"
TOO_OLD = "#!/bin/sh\nexit 1\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder for PATH with what the Makefile needs besides Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("make", "sh", "rm", "touch", "cp", "mkdir"):
        program = shutil.which(name)
        assert program
        (folder / name).symlink_to(program)
    return folder


def add_python(programs: Path, name: str, script: str = WORKING, *, without_venv: bool = False) -> Path:
    path = programs / name
    log = programs.parent / "calls"
    path.write_text(script.format(base=path, log=log, without_venv=without_venv))
    path.chmod(0o755)
    return path


def make(project: Path, programs: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [programs / "make", *arguments],
        cwd=project,
        env={"PATH": str(programs)},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def calls(programs: Path) -> list[str]:
    return (programs.parent / "calls").read_text().splitlines()


def test_a_shim_that_fails_and_a_python_that_is_too_old_are_passed_over(project: Path, programs: Path) -> None:
    add_python(programs, "python3.13", BROKEN_SHIM)
    add_python(programs, "python3.12", TOO_OLD)
    good = add_python(programs, "python3.11")
    ran = make(project, programs, "test")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == (
        f"Creating .venv with Python 3.11.7 ({good}). This happens once and takes about a minute.\n{LEFT_OUT}"
    )
    assert calls(programs) == ["-m pip install -qq -e .[dev]", "-m pytest -q"]


def test_the_second_call_goes_straight_to_work(project: Path, programs: Path) -> None:
    add_python(programs, "python3")
    make(project, programs, "test")
    ran = make(project, programs, "demo")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert calls(programs) == ["-m pip install -qq -e .[dev]", "-m pytest -q", "manage.py demo"]


@pytest.mark.parametrize("change", ["pyproject.toml changed", "its Python vanished", "PYTHON= names another"])
def test_the_environment_is_built_again_when(change: str, project: Path, programs: Path) -> None:
    first, second = add_python(programs, "python3"), add_python(programs, "other")
    make(project, programs, "test")
    arguments = ["test"]
    match change:
        case "pyproject.toml changed":
            later = (project / ".venv/installed").stat().st_mtime + 10
            os.utime(project / "pyproject.toml", (later, later))
        case "its Python vanished":
            (project / ".venv/bin/python").unlink()
        case _:
            arguments.append(f"PYTHON={second}")
    ran = make(project, programs, *arguments)
    used = second if "another" in change else first
    creating = f"Creating .venv with Python 3.11.7 ({used}). This happens once and takes about a minute.\n"
    assert ran.stdout == creating + LEFT_OUT
    assert calls(programs) == ["-m pip install -qq -e .[dev]", "-m pytest -q"] * 2


def test_a_python_without_venv_is_told_what_to_install(project: Path, programs: Path) -> None:
    python = add_python(programs, "python3.11", without_venv=True)
    ran = make(project, programs, "demo")
    assert ran.returncode != 0
    assert ran.stdout == ""
    assert ran.stderr.splitlines()[:-1] == [
        f"Python 3.11 ({python}) cannot create a virtual environment: its venv or ensurepip module is missing.",
        "On Debian and Ubuntu: sudo apt install python3.11-venv",
        "Or name another Python that has both: make PYTHON=/path/to/python3 demo",
    ]


def test_a_python_without_venv_is_passed_over_for_one_with_it(project: Path, programs: Path) -> None:
    add_python(programs, "python3.13", without_venv=True)
    good = add_python(programs, "python3")
    ran = make(project, programs, "test")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert f"({good})" in ran.stdout


def test_without_any_python_the_candidates_are_named(project: Path, programs: Path) -> None:
    ran = make(project, programs, "test")
    assert ran.returncode != 0
    assert ran.stderr.splitlines()[:-1] == [
        "No Python 3.11 or newer runs here. Tried: python3.13 python3.12 python3.11 python3.",
        "Install one (Debian and Ubuntu: sudo apt install python3 python3-venv),",
        "or name it: make PYTHON=/path/to/python3 test",
    ]


def test_a_named_python_that_does_not_run_is_refused_and_the_environment_is_left_alone(
    project: Path, programs: Path
) -> None:
    add_python(programs, "python3")
    make(project, programs, "test")
    ran = make(project, programs, "test", "PYTHON=/nowhere/python3")
    assert ran.returncode != 0
    assert ran.stderr.splitlines()[:-1] == ["PYTHON=/nowhere/python3 does not run, or is older than 3.11."]
    assert (project / ".venv/installed").exists()


def test_plain_make_lists_the_targets(project: Path, programs: Path) -> None:
    ran = make(project, programs)
    assert [line.split()[1] for line in ran.stdout.splitlines() if line.startswith("make ")] == [
        "demo",
        "demo-celery",
        "test",
        "test-browser",
        "test-services",
        "test-cells",
        "chaos",
        "chaos-cell",
        "chaos-servers",
        "chaos-crash",
        "chaos-interleave",
        "chaos-programs",
        "chaos-model",
        "campaign",
        "bench-timers",
        "check",
        "lint",
        "clean",
    ]


def test_the_tests_on_servers_add_the_drivers_once_and_run_on_each(project: Path, programs: Path) -> None:
    add_python(programs, "python3")
    first, second = (make(project, programs, "test-services") for _ in range(2))
    assert (first.returncode, second.returncode) == (0, 0)
    assert second.stdout == "== postgresql\n== mysql\n== celery workers, postgresql and redis\n"
    installs = ["-m pip install -qq -e .[dev]", "-m pip install -qq -e .[dev,services]"]
    runs = ["-m pytest -q", "-m pytest -q", "-m pytest -q -m services"]
    assert calls(programs) == installs + runs * 2


def test_one_server_that_fails_does_not_hide_the_other_and_fails_the_whole(project: Path, programs: Path) -> None:
    failing = WORKING.replace("  *) echo", '  *pytest*) echo "$WORKFLOW_ENGINE_TEST_ENGINE"; exit 3 ;;\n  *) echo')
    add_python(programs, "python3", failing)
    ran = make(project, programs, "test-services")
    assert ran.returncode != 0
    assert [line for line in ran.stdout.splitlines()[2:] if not line.startswith("==")] == [
        "postgresql",
        "mysql",
        "postgresql",
    ]
    assert ran.stderr.splitlines()[:2] == ["Failed on: postgresql mysql.", "Failed on: celery workers."]


def test_every_cell_is_a_database_with_both_brokers(project: Path, programs: Path) -> None:
    add_python(programs, "python3")
    ran = make(project, programs, "test-cells")
    assert ran.stdout.splitlines()[2:] == ["== postgresql", "== mysql"]
    assert calls(programs)[2:] == ["-m pytest -q -m services or every_cell"] * 2


def test_live_chaos_goes_through_all_cells_even_if_one_of_them_fails(project: Path, programs: Path) -> None:
    failing = WORKING.replace("  *) echo", '  *"mariadb --broker redis"*) exit 3 ;;\n  *) echo')
    add_python(programs, "python3", failing)
    ran = make(project, programs, "chaos", "SECONDS=5", "SEED=7")
    assert ran.returncode != 0
    assert ran.stderr.splitlines()[-2] == "Failed, mariadb redis."
    cells = ["postgresql --broker redis", "postgresql --broker rabbitmq", "mariadb --broker rabbitmq"]
    assert calls(programs)[2:] == ["-m pytest -q -m services tests/servers"] + [
        f"-m tests.celery.chaos --database {cell} --seconds 5 --seed 7" for cell in cells
    ]


def test_what_it_takes_to_build_a_driver_is_said_when_that_fails(project: Path, programs: Path) -> None:
    add_python(programs, "python3", WORKING.replace("  *) echo", "  *services*) exit 1 ;;\n  *) echo"))
    ran = make(project, programs, "test-services")
    assert ran.returncode != 0
    assert ran.stderr.splitlines()[:-1] == [
        "If mysqlclient is what failed: it is compiled, with the headers of MariaDB's client.",
        "On Debian and Ubuntu: sudo apt install gcc pkg-config libmariadb-dev python3-dev",
    ]
    assert calls(programs) == ["-m pip install -qq -e .[dev]"]


def test_the_tests_in_a_browser_bring_their_driver(project: Path, programs: Path) -> None:
    add_python(programs, "python3")
    for _call in range(2):
        ran = make(project, programs, "test-browser")
        assert (ran.returncode, ran.stderr) == (0, "")
    install = ["-m pip install -qq -e .[dev]", "-m pip install -qq -e .[dev,browser]"]
    run = "-m pytest -q -m browser --ds=tests.browser.settings tests/browser"
    assert calls(programs) == [*install, run, run]
