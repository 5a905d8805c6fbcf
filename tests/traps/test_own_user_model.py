"""A project with a user model of its own, whose key is a UUID. The model can't be swapped in a running Django, so the
tests of tests/traps/own_user run in another process.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.databases import DATABASE_VARIABLE
from tests.traps.background import ROOT


def test_in_a_project_with_another_user_model_everything_works() -> None:
    environment = {key: value for key, value in os.environ.items() if key != DATABASE_VARIABLE}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/traps/own_user/inside.py"]
    run = subprocess.run(
        [*command, "--ds=tests.traps.own_user.settings"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "3 passed" in run.stdout
