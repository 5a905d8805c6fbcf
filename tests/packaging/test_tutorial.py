"""The tutorial works: it is followed, line by line, in an empty directory.

* A block after `<!-- listing: file path -->` is written to that file, one after `<!-- listing: add to path -->` is
  appended to it.
* A ```console block after `<!-- listing: run -->`: each `$ ` line is run by a shell, and what it prints must match
  the lines below it; `...` stands for what differs from run to run. No lines: anything goes. `cd` is obeyed.
* A ```pycon block after `<!-- listing: run -->` is a session in the project's shell.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.listings import ROOT, TUTORIAL, Listing, commands_of, matches, read_listings

pytestmark = pytest.mark.packaging

_SETTINGS = "office.settings"
_SESSION = """
import doctest, sys, django
django.setup()
sys.exit(bool(doctest.testfile(sys.argv[1], module_relative=False, optionflags=doctest.ELLIPSIS).failed))
"""


def test_whoever_follows_the_tutorial_sees_what_it_shows(tmp_path: Path) -> None:
    here = tmp_path
    for listing in read_listings(TUTORIAL):
        if listing.verb in {"file", "add to"}:
            with (here / listing.detail).open("w" if listing.verb == "file" else "a", encoding="utf-8") as file:
                file.write(listing.text)
        elif listing.verb == "run" and listing.language == "pycon":
            _session(listing, here)
        elif listing.verb == "run":
            for command, expected in commands_of(listing):
                if command.startswith("cd "):
                    here /= command.removeprefix("cd ")
                else:
                    _shell(listing, command, expected, here)


def _shell(listing: Listing, command: str, expected: str, here: Path) -> None:
    result = _run(["sh", "-c", command], here)
    assert result.returncode == 0, f"{listing}: {command}\n{result.stdout}"
    assert not expected or matches(expected, result.stdout), (
        f"{listing}: {command} should print\n{expected}\nbut prints\n{result.stdout}"
    )


def _session(listing: Listing, here: Path) -> None:
    script = here / "session.txt"
    script.write_text(listing.text, encoding="utf-8")
    result = _run([sys.executable, "-c", _SESSION, str(script)], here, DJANGO_SETTINGS_MODULE=_SETTINGS)
    assert result.returncode == 0, f"{listing}\n{result.stdout}"


def _run(command: list[str], here: Path, **more: str) -> subprocess.CompletedProcess[str]:
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {
        "PATH": programs,
        "PYTHONPATH": f"{here}{os.pathsep}{ROOT}",
        "PYTHONUNBUFFERED": "1",
        "HOME": str(here),
        **more,
    }
    return subprocess.run(
        command,
        cwd=here,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
