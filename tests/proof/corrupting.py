"""How a clean database is made, and how it is spoilt: what the engine would never write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from django.db.models import F

from tests.proof import ledger, programs, tables
from tests.proof.clients import request, send, start
from tests.proof.recovery import pass_time, until_quiet
from tests.shop.models import Counter
from workflow_engine.models import WorkflowEvent, WorkflowInstance, WorkflowSignal


@dataclass(frozen=True)
class World:
    """A database in which everything has happened once, by the name of what happened."""

    ids: dict[str, Any]
    reading: tables.Tables

    def row(self, name: str) -> Any:
        """The instance, to be changed."""
        return WorkflowInstance.objects.filter(pk=self.ids[name])

    def event(self, name: str, kind: str, number: int = 0) -> WorkflowEvent:
        """The instance's event of that kind."""
        return WorkflowEvent.objects.filter(instance_id=self.ids[name], kind=kind).order_by("seq")[number]

    def mail(self, name: str, number: int = 0) -> Any:
        """The instance's mail, to be changed."""
        ids = WorkflowSignal.objects.filter(instance_id=self.ids[name]).order_by("id").values_list("pk", flat=True)
        return WorkflowSignal.objects.filter(pk=ids[number])

    def entry(self, what: str, name: str, **facts: Any) -> dict[str, Any]:
        """The ledger's first entry of that kind about the instance."""
        wanted = {"instance": str(self.ids[name]), **facts}.items()
        return next(dict(e) for e in ledger.read() if e["what"] == what and wanted <= e.items())


def everything_once() -> dict[str, Any]:
    """Let everything happen once; the instances' ids by the name of what happened to them."""
    ids = {
        program.name.removeprefix("proof_"): start(program, program.name)
        for program in (programs.Ladder, programs.Approvals, programs.Errands, programs.Saga, programs.Rounds)
    }
    ids |= {name: start(programs.Waiting, name) for name in ("waiting", "answered", "timed out")}
    ids |= {name: start(programs.Repaired, name) for name in ("repaired", "broken")}
    ids["cancelled"] = start(programs.Parked, "cancelled")
    until_quiet()
    Counter.objects.create(name="repaired")
    request("retry", ids["repaired"])
    request("cancel", ids["cancelled"])
    for call in ("one", "two"):
        send(ids["approvals"], "approved", call)
    send(ids["answered"], "yes", "three")
    until_quiet()
    pass_time(timedelta(minutes=61))
    until_quiet()
    send(ids["waiting"], "whatever", "four")
    until_quiet()
    return ids


class Corruption(NamedTuple):
    """A function that spoils the world in the way its name says, and the invariant that this breaks."""

    invariant: int
    corrupt: Callable[[World], object]


class Corruptions(list[Corruption]):
    """A table of them, filled by decorating functions."""

    def breaking(self, invariant: int) -> Callable[[Callable[[World], object]], Callable[[World], object]]:
        """Add the function as one that breaks this invariant."""

        def add(corrupt: Callable[[World], object]) -> Callable[[World], object]:
            self.append(Corruption(invariant, corrupt))
            return corrupt

        return add


def edit(event: WorkflowEvent, *, data: dict[str, Any] | None = None, **values: Any) -> None:
    """Change an event as no engine would; `data` is merged into what it tells."""
    for name, value in values.items():
        setattr(event, name, value)
    event.data = {**event.data, **(data or {})}
    event.save()


def append(world: World, name: str, like: WorkflowEvent, **values: Any) -> None:
    """One event more at the end of a history, and the row knows it."""
    row = world.row(name)
    row.update(last_seq=F("last_seq") + 1)
    like.pk, like.seq = None, row.get().last_seq
    edit(like, **values)
