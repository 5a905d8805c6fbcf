"""What README.md and docs/ show works: their listings are run, in order, one test per file.

* A ```python block is executed. The blocks of a file share one namespace and one test database, like a session.
* A ```console block after `<!-- listing: run -->`: each `$ python manage.py …` line is run as that command, and the
  lines below it are what it must print; `...` stands for what differs from run to run. No lines: anything goes.
* A TestCase that a block defines is run too, after the blocks of its file.
* A comment on the lines before a block changes what is done with it:

  `<!-- listing: file shop/workflows.py -->` the block is that module, importable by the blocks after it; a second one
  of the same name takes its place, as saving the file would;

  `<!-- listing: not run: reason -->` the block is only compiled. The reason is for the reader of the source.
* Every other block is not run: shell commands, settings in TOML, output.

An error names the Markdown file and its line. The tutorial is run in a project of its own: test_tutorial.py.
"""

from __future__ import annotations

import io
import shlex
import sys
import unittest
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path, PurePosixPath
from types import ModuleType

import pytest
from django.core.management import call_command

from tests.packaging.listings import DOCUMENTS, Listing, ListingError, commands_of, matches, read_listings
from workflow_engine.domain.registry import registry

_COMMAND = "python manage.py "


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_every_listing_does_what_it_shows(path: Path) -> None:
    with registry.isolated(), _modules() as modules:
        session = _module(modules, f"listings_of_{path.stem.replace('-', '_')}")
        for listing in read_listings(path):
            _run(listing, session, modules)
        for module in modules.values():
            _run_test_cases(module)


def test_a_comment_that_means_nothing_is_refused(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text("<!-- listing: skip -->\n```python\n1\n```\n")
    with pytest.raises(ListingError) as refused:
        read_listings(document)
    assert str(refused.value) == (
        "page.md:1: a listing comment is one of `not run: reason`, `file path/name.py`,"
        " `add to path/name.py`, `run`, not `skip`"
    )


def test_a_listing_that_fails_names_its_line(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text("# Title\n\n```python\nsmall = 1\nsmall / 0\n```\n")
    with _modules() as modules, pytest.raises(ZeroDivisionError) as failed:
        _run(read_listings(document)[0], _module(modules, "page"), modules)
    assert (Path(failed.traceback[-1].path).name, failed.traceback[-1].lineno + 1) == ("page.md", 5)


def _run(listing: Listing, session: ModuleType, modules: dict[str, ModuleType]) -> None:
    if listing.language == "python":
        code = compile("\n" * (listing.line - 1) + listing.text, listing.path, "exec", dont_inherit=True)
        if listing.verb == "file":
            session = _module(modules, ".".join(PurePosixPath(listing.detail).with_suffix("").parts))
        if listing.verb != "not run":
            exec(code, session.__dict__)  # noqa: S102  # Running what our own pages show is the point.
    elif listing.language == "console" and listing.verb == "run":
        for command, expected in commands_of(listing):
            assert command.startswith(_COMMAND), f"{listing}: only `$ {_COMMAND}…` can be run, not: {command}"
            printed = io.StringIO()
            with redirect_stdout(printed):
                call_command(*shlex.split(command.removeprefix(_COMMAND)), stdout=printed)
            assert not expected or matches(expected, printed.getvalue()), (
                f"{listing}: {command} should print\n{expected}\nbut prints\n{printed.getvalue()}"
            )


def _run_test_cases(module: ModuleType) -> None:
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    result = unittest.TextTestRunner(stream=io.StringIO()).run(suite)
    assert result.wasSuccessful(), "\n".join(text for _, text in [*result.failures, *result.errors])


@contextmanager
def _modules() -> Iterator[dict[str, ModuleType]]:
    """Modules that go away afterwards. Classes look their annotations up in sys.modules, so they must be real ones."""
    modules: dict[str, ModuleType] = {}
    try:
        yield modules
    finally:
        for name in modules:
            sys.modules.pop(name, None)


def _module(modules: dict[str, ModuleType], name: str) -> ModuleType:
    parent = name.rpartition(".")[0]
    if parent and parent not in sys.modules:
        _module(modules, parent).__path__ = []
    modules[name] = sys.modules[name] = ModuleType(name)
    if parent:
        setattr(sys.modules[parent], name.rpartition(".")[2], modules[name])
    return modules[name]
