"""Commands as a test calls them, and what they say."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from workflow_engine import engine
from workflow_engine.models import WorkflowInstance


@dataclass(frozen=True)
class Said:
    """What a command wrote to its two streams."""

    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def say(*arguments: object) -> Said:
    """Run a command in this process, as the shell's user "anna"."""
    out, err = io.StringIO(), io.StringIO()
    call_command(*map(str, arguments), stdout=out, stderr=err)
    return Said(out.getvalue(), err.getvalue())


def refused(*arguments: object) -> str:
    """The one line with which a command refuses."""
    with pytest.raises(CommandError) as caught:
        say(*arguments)
    assert caught.value.returncode == 1
    assert "\n" not in str(caught.value)
    return str(caught.value)


def started(name: str = "parcel", **options: Any) -> WorkflowInstance:
    """An instance that has gone as far as it can by itself."""
    row = engine.start(name, **options)
    engine.drive(row)
    row.refresh_from_db()
    return row


class Terminal(io.StringIO):
    """Somebody who types what they are asked for."""

    def isatty(self) -> bool:
        return True
