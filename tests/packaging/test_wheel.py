"""The wheel, as its first user meets it: an empty environment, a new project, the README's smallest program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from tests.packaging.listings import ROOT, read_listings

pytestmark = pytest.mark.packaging

HEADING = "The smallest useful program"
LIMIT = 25  # lines
PRINTED = re.compile(r"It prints `([^`]+)`")


def run(folder: Path, *command: str, given: str = "") -> str:
    """What the command printed. It must succeed; the variables of this test run are not its."""
    ours = ("COVERAGE", "DJANGO_", "PYTHON", "WORKFLOW_ENGINE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    ran = subprocess.run(
        command, cwd=folder, env=environment, input=given, capture_output=True, text=True, check=False, timeout=300
    )
    assert ran.returncode == 0, f"{' '.join(command)} failed:\n{ran.stdout}{ran.stderr}"
    return ran.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(ROOT, sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder))
    [built] = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_package_whole_and_nothing_else(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    source = ROOT / "workflow_engine"
    assert names == {
        path.relative_to(ROOT).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"workflow_engine/py.typed", "workflow_engine/migrations/0001_initial.py"} <= names


def test_the_wheel_asks_for_python_and_django_alone(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = Parser().parsestr(archive.read(name).decode())
    required = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert (metadata["Name"], metadata["Requires-Python"], required) == (
        "django-workflow-steps",
        ">=3.11",
        ["django>=5.2"],
    )
    assert set(metadata.get_all("Provides-Extra", [])) == {
        "beat",
        "browser",
        "celery",
        "dev",
        "mysql",
        "postgres",
        "redis",
        "services",
    }


@pytest.fixture(scope="module")
def project(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new Django project with the wheel and nothing else in an environment of its own, as the README installs it."""
    folder = tmp_path_factory.mktemp("project")
    run(folder, sys.executable, "-m", "venv", "env")
    try:
        run(folder, "env/bin/python", "-m", "pip", "install", "-qq", str(wheel))
    except AssertionError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"Django could not be fetched into an empty environment: {error}")
    run(folder, "env/bin/django-admin", "startproject", "mysite", ".")
    with (folder / "mysite/settings.py").open("a") as settings:
        settings.write('INSTALLED_APPS += ["workflow_engine"]\n')
    return folder


def test_a_new_project_migrates_checks_and_runs_the_smallest_program(project: Path) -> None:
    manage = ("env/bin/python", "manage.py")
    assert "Applying workflow_engine.0001_initial... OK" in run(project, *manage, "migrate")
    run(project, *manage, "check")
    [program] = [listing.text for listing in read_listings(ROOT / "README.md") if listing.heading == HEADING]
    promised = PRINTED.search((ROOT / "README.md").read_text())
    assert promised
    for _ in ("the first time", "and again"):
        assert run(project, *manage, "shell", given=program).splitlines()[-1] == promised[1]
    assert "completed" in run(project, *manage, "workflow_instances")
    run(project, *manage, "workflow_worker", "--burst")


def test_the_smallest_program_is_short() -> None:
    [program] = [listing.text for listing in read_listings(ROOT / "README.md") if listing.heading == HEADING]
    assert len([line for line in program.splitlines() if line.strip()]) < LIMIT


def test_the_environment_of_a_user_holds_django_and_the_package_alone(project: Path) -> None:
    names = "import importlib.metadata as m; print(*sorted({d.name.lower() for d in m.distributions()}))"
    installed = set(run(project, "env/bin/python", "-c", names).split()) - {"pip", "setuptools", "tzdata"}
    assert installed == {"asgiref", "django", "django-workflow-steps", "sqlparse"}
