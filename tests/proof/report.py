"""The figures of a campaign, from the files that its parts left in a folder.

    python -m tests.proof.report FOLDER [--into FILE]

Prints them as Markdown, or writes them into FILE between its two marks. Exits with 1 if a campaign has found something,
or has not met what it must have met: a test of rare events that never happened has proved nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.machine import processor
from tests.proof.sometimes import SOMETIMES, missing

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
DATABASES = ("SQLite", "PostgreSQL", "MariaDB")

Figures = Mapping[str, Any]


def main() -> int:
    """Run as a program."""
    parser = argparse.ArgumentParser(description="The figures of a campaign.")
    parser.add_argument("folder", type=Path, help="what WORKFLOW_ENGINE_CHAOS_FIGURES was, while it ran")
    parser.add_argument("--into", type=Path, help="a file with the marks between which they are to stand")
    options = parser.parse_args()
    files = [json.loads(file.read_text()) for file in sorted(options.folder.glob("*.json"))]
    campaigns = merged(file for file in files if "database" in file)
    live = [file for file in files if "cell" in file]
    if not campaigns and not live:
        parser.error(f"{options.folder} has no figures")
    text = "\n".join([*told(campaigns, live), *_model(file for file in files if "examples" in file)])
    if options.into is None:
        sys.stdout.write(text + "\n")
    else:
        put(text, options.into)
    wanting = list(shortcomings(campaigns, live))
    sys.stderr.writelines(f"{line}\n" for line in wanting)
    return 1 if wanting else 0


def merged(files: Iterable[Figures]) -> dict[str, dict[str, Any]]:
    """The runs of each database as one, in the order of DATABASES."""
    found: dict[str, dict[str, Any]] = {}
    for file in files:
        one = found.setdefault(file["database"], {})
        for name, value in file.items():
            one[name] = _sum(one.get(name), value)
    return {name: found[name] for name in DATABASES if name in found}


def shortcomings(campaigns: Mapping[str, Figures], live: Sequence[Figures]) -> Iterator[str]:
    """What was found, and what was never met."""
    for name, figures in campaigns.items():
        if figures["violations"]:
            yield f"{name}: {figures['violations']} violations"
        for event in missing(+Counter(figures["seen"]), server=name != "SQLite"):
            yield f"{name}: never seen: {event} ({SOMETIMES[event]})"
    for cell in live:
        if cell["violations"]:
            yield f"{cell['cell']}: {cell['violations']} violations"


def told(campaigns: Mapping[str, Figures], live: Sequence[Figures]) -> Iterator[str]:
    """Markdown."""
    yield f"{datetime.now(UTC):%Y-%m-%d}, on {processor()}, {os.cpu_count()} processors."
    if campaigns:
        yield ""
        yield from _table(["", *campaigns], _rows(campaigns))
        yield ""
        yield "How often it was met:"
        yield ""
        yield from _table(["", *campaigns], _sometimes(campaigns))
        yield ""
        yield from _mutants(campaigns)
    if live:
        yield ""
        yield "With Celery:"
        yield ""
        yield from _table(["", *(str(cell["cell"]) for cell in live)], _live_rows(live))


def put(text: str, file: Path) -> None:
    """Replace what stands between the marks of the file."""
    before, rest = file.read_text().split(BEGIN)
    _, after = rest.split(END)
    file.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


def _rows(campaigns: Mapping[str, Figures]) -> Iterator[list[object]]:
    yield ["Version", *(_versions(figures["ran_on"]) for figures in campaigns.values())]
    for part in _keys(campaigns, "cases"):
        yield [f"{part.capitalize()}: cases", *_each(campaigns, "cases", part)]
    for part in _keys(campaigns, "seeds"):
        yield [
            f"{part.capitalize()}: seeds",
            *(_span(figures["seeds"].get(part, [])) for figures in campaigns.values()),
        ]
    for depth, name in (("1", "first"), ("2", "second, during the recovery"), ("3", "third, during that one's")):
        yield [f"Processes killed at a failpoint, {name}", *_each(campaigns, "crashes", depth)]
    yield ["Failpoints at which one was", *(len(figures["failpoints"]) for figures in campaigns.values())]
    yield ["Turns of others in between", *(sum(figures["interruptions"].values()) for figures in campaigns.values())]
    yield ["Switches of threads between statements", *(figures["switches"] for figures in campaigns.values())]
    for fault in _keys(campaigns, "faults"):
        yield [f"Fault, {fault}", *_each(campaigns, "faults", fault)]
    yield ["Mutants caught", *(len(figures["mutants"]) for figures in campaigns.values())]
    yield ["**Violations**", *(f"**{figures['violations']}**" for figures in campaigns.values())]


def _sometimes(campaigns: Mapping[str, Figures]) -> Iterator[list[object]]:
    for name, meaning in SOMETIMES.items():
        yield [f"{name.capitalize()}: {meaning}", *_each(campaigns, "seen", name)]


def _live_rows(live: Sequence[Figures]) -> Iterator[list[object]]:
    for name in ("seed", "seconds", "instances"):
        yield [name.capitalize(), *(cell[name] for cell in live)]
    for kind in ("faults", "seen"):
        for name in sorted({name for cell in live for name in cell[kind]}):
            yield [f"{kind.capitalize().removesuffix('s')}, {name}", *(cell[kind].get(name, 0) for cell in live)]
    yield ["**Violations**", *(f"**{cell['violations']}**" for cell in live)]


def _model(files: Iterable[Figures]) -> Iterator[str]:
    for file in files:
        yield ""
        yield f"The model: {file['examples']:,} sequences of up to {file['steps']} rules, from seed {file['seed']}."


def _mutants(campaigns: Mapping[str, Figures]) -> Iterator[str]:
    names = _keys(campaigns, "mutants")
    if not names:
        return
    yield "Mutants, the invariants by whose number they are caught, and in how many runs:"
    yield ""
    rows = []
    for name in names:
        caught = next(figures["mutants"][name] for figures in campaigns.values() if name in figures["mutants"])
        runs = (figures["mutants"].get(name, {}).get("runs", "") for figures in campaigns.values())
        rows.append([name, ", ".join(map(str, caught["invariants"])), *runs])
    yield from _table(["Mutant", "Invariants", *campaigns], rows)


def _table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    yield _line(head)
    yield "|---|" + "---:|" * (len(head) - 1)
    yield from map(_line, rows)


def _line(cells: Sequence[object]) -> str:
    return f"| {' | '.join(f'{cell:,}' if isinstance(cell, int) else str(cell) for cell in cells)} |"


def _keys(campaigns: Mapping[str, Figures], name: str) -> list[str]:
    return sorted({key for figures in campaigns.values() for key in figures[name]})


def _each(campaigns: Mapping[str, Figures], name: str, key: str) -> list[int]:
    return [int(figures[name].get(key, 0)) for figures in campaigns.values()]


def _span(seeds: Sequence[int]) -> str:
    """As few numbers as say which."""
    if not seeds:
        return ""
    first, last = min(seeds), max(seeds)
    return f"{first} to {last}" if last - first + 1 == len(seeds) else f"{len(seeds)} from {first} to {last}"


def _sum(one: Any, other: Any) -> Any:
    """Of two figures: numbers are added, by name where they have one; seeds are united; of texts the latter stands."""
    if one is None or other is None:
        return one if other is None else other
    match other:
        case int():
            return one + other
        case list():
            return sorted({*one, *other})
        case dict():
            return {key: _sum(one.get(key), other.get(key)) for key in {**one, **other}}
    return other


def _versions(ran_on: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in ran_on.items())


if __name__ == "__main__":
    sys.exit(main())
