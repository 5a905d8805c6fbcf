"""The reference tells of everything there is, and of nothing else; links lead somewhere."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from dataclasses import fields
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from django.core.management import BaseCommand, load_command_class

import workflow_engine
from tests.packaging.listings import DOCUMENTS, ROOT, TUTORIAL
from workflow_engine import conf, engine, exceptions, signals, testing
from workflow_engine.domain.context import Context
from workflow_engine.domain.declarations import ActivityOptions, UndoOptions
from workflow_engine.domain.durations import Duration
from workflow_engine.domain.events import EventKind
from workflow_engine.domain.outcomes import Outcome
from workflow_engine.domain.received import Signal
from workflow_engine.domain.retries import RetryPolicy
from workflow_engine.domain.statuses import Status
from workflow_engine.domain.workflows import Workflow
from workflow_engine.models import WorkflowSignal

REFERENCE = ROOT / "docs" / "reference"
PAGES = [*DOCUMENTS, TUTORIAL]
COMMANDS = sorted(path.stem for path in (ROOT / "workflow_engine" / "management" / "commands").glob("workflow_*.py"))


@cache
def page(name: str) -> str:
    return (REFERENCE / f"{name}.md").read_text(encoding="utf-8")


def rows(name: str) -> dict[str, str]:
    """The table rows of a page by the code in their first cell; several names in one cell are several rows."""
    found: dict[str, str] = {}
    for line in page(name).splitlines():
        if line.startswith("| `"):
            first = line.split(" | ")[0]
            found |= dict.fromkeys(re.findall(r"`([^`]+)`", first), line)
    return found


def assert_tells_of(name: str, wanted: Iterable[str]) -> None:
    told = set(re.findall(r"\w+", " ".join(re.findall(r"`+([^`]+)`+", page(name)))))
    assert not sorted(set(wanted) - told), f"docs/reference/{name}.md does not tell of these"


def test_settings_with_their_defaults() -> None:
    documented = rows("settings")
    hints = get_type_hints(conf.Settings)
    shown = {field.name: as_shown(field.default, hints[field.name]) for field in fields(conf.Settings)}
    assert {key: row.split(" | ")[1] for key, row in documented.items() if key.isupper()} == shown


def as_shown(value: object, kind: object) -> str:
    if kind == Duration:
        assert isinstance(value, int | float | timedelta)
        length = value if isinstance(value, timedelta) else timedelta(seconds=value)
        return f"{length.days} days" if length.days else f"{length.total_seconds():g} s"
    if isinstance(value, str):
        return f'`"{value}"`'
    return f"`{value}`" if isinstance(value, bool) else str(value)


def test_checks() -> None:
    sources = (ROOT / "workflow_engine").glob("checks*.py")
    ids = {found for path in sources for found in re.findall(r"workflow_engine\.[EW]\d{3}", path.read_text("utf-8"))}
    assert {name for name in rows("settings") if name.startswith("workflow_engine.")} == ids


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_with_their_options(name: str) -> None:
    options = set(own_options(name))
    assert f"`{name}`" in page("commands")
    documented = set(re.findall(r"^\| `(--[\w-]+)", page("commands"), re.MULTILINE))
    assert not sorted(options - documented)


def test_no_option_that_no_command_has() -> None:
    documented = set(re.findall(r"^\| `(--[\w-]+)", page("commands"), re.MULTILINE))
    assert not sorted(documented - {option for name in COMMANDS for option in own_options(name)})


def own_options(name: str) -> Iterable[str]:
    parser = load_command_class("workflow_engine", name).create_parser("manage.py", name)
    common = BaseCommand().create_parser("manage.py", name)
    known = {option for action in common._actions for option in action.option_strings}
    return {option for action in parser._actions for option in action.option_strings} - known


def test_outcomes_with_their_arguments() -> None:
    for outcome in get_args(Outcome):
        call = next(name for name in rows("outcomes") if name.startswith(f"{outcome.__name__}("))
        assert re.findall(r"\w+(?==|,|\)|$)", call.partition("(")[2].replace("None", "")) == list(
            inspect.signature(outcome).parameters
        )


def test_statuses() -> None:
    assert_tells_of("outcomes", Status)


def test_django_signals_and_the_kinds_of_events() -> None:
    sent = {name for name in rows("signals") if name in set(EventKind)}
    assert sent == set(signals.BY_EVENT_KIND)
    assert_tells_of("signals", EventKind)


def test_signals_and_what_becomes_of_them() -> None:
    assert_tells_of("signals", WorkflowSignal.State.values)
    assert_tells_of("signals", [field.name for field in fields(Signal)])


def test_verbs() -> None:
    assert_tells_of("engine", [name for name in engine.__all__ if name.islower()])


def test_the_test_kit() -> None:
    assert_tells_of("testing", testing.__all__)


def test_exceptions() -> None:
    known = {
        name
        for name, value in vars(exceptions).items()
        if isinstance(value, type) and issubclass(value, exceptions.WorkflowEngineError)
    }
    assert_tells_of("exceptions", known)


def test_what_a_workflow_class_may_have() -> None:
    own = [name for name in get_type_hints(Workflow) if not name.startswith("_")]
    assert_tells_of("workflows", set(own) - {"steps", "description"})
    assert_tells_of("workflows", [*get_type_hints(ActivityOptions), *get_type_hints(UndoOptions)])
    assert_tells_of("workflows", [field.name for field in fields(RetryPolicy)])


def test_what_ctx_offers() -> None:
    for_the_engine = {"context_class", "load_subject", "lease", "keys", "values", "items", "get"}
    offered = {name for name in [*vars(Context), *get_type_hints(Context)] if not name.startswith("_")}
    told = set(re.findall(r"ctx\.(\w+)", page("workflows")))
    assert not sorted(offered - for_the_engine - told)


def test_public_names_are_told_somewhere() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in PAGES)
    assert [name for name in workflow_engine.__all__ if not re.search(rf"\b{name}\b", text)] == ["__version__"]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        leads_to = (path.parent / file).resolve() if file else path
        assert leads_to.exists(), f"{path.name}: {target}"
        assert not anchor or anchor in anchors(leads_to), f"{path.name}: {target}"


@cache
def anchors(path: Path) -> set[str]:
    """Of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_tests_that_a_page_names_exist() -> None:
    for path in PAGES:
        for file, name in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", path.read_text(encoding="utf-8")):
            assert (ROOT / file).exists(), f"{path.name}: {file}"
            defined = re.findall(r"^ *(?:def|class) (\w+)", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
            assert not name or name in defined, f"{path.name}: {file}::{name}"


def test_files_that_the_architecture_names_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for file in re.findall(r"`([\w/]+\.py)`", text):
        assert list((ROOT / "workflow_engine").rglob(file)), file
