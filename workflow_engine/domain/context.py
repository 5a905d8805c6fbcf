"""What a handler sees: the context and the circumstances of this attempt. Nothing in it can be changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Protocol, overload
from uuid import UUID

from workflow_engine.domain.restoring import restore, restore_field
from workflow_engine.exceptions import FinalError

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T = TypeVar("T", default=Mapping[str, Any])
else:
    from typing import TypeVar

    T = TypeVar("T")


class Lease(Protocol):
    """What an activity holds while it runs."""

    def heartbeat(self) -> None:
        """Renew it. Raises LeaseLost."""

    def remaining(self) -> timedelta:
        """How long it still lasts without a heartbeat."""


class JsonView(Mapping[str, Any]):
    """A read-only mapping over stored JSON. Each look-up hands out a copy, of the type its field in `kind` has."""

    def __init__(self, stored: Mapping[str, Any], kind: type | None = None) -> None:
        self._stored, self._kind = stored, kind

    def __getitem__(self, key: str) -> Any:
        value = self._stored[key]
        return restore(Any, value) if self._kind is None else restore_field(self._kind, key, value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)

    def __repr__(self) -> str:
        return repr(dict(self._stored))


class _Data:
    """The constructor takes `data` as stored JSON; reading it gives the typed object.

    It is restored when first read, so that a value which does not fit fails the handler that wants it.
    """

    @overload
    def __get__(self, ctx: None, owner: type) -> _Data: ...
    @overload
    def __get__(self, ctx: Context[T], owner: type) -> T: ...
    def __get__(self, ctx: Context[T] | None, owner: type) -> _Data | T:
        if ctx is None:
            raise AttributeError("data")  # tells dataclass() that the field has no default
        data: T = ctx._data  # noqa: SLF001 - the two classes are one thing
        return data

    def __set__(self, ctx: Context[Any], stored: Mapping[str, Any]) -> None:
        vars(ctx)["_stored"] = stored


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Context(Mapping[str, Any], Generic[T]):
    """A read-only mapping over the workflow's context, and what is known about this attempt.

    Values are in their JSON form (a Decimal is its string), unless the workflow has a `context_class`: then they have
    the types it declares, and `data` is an object of it. To change the context, return the changes from the step.
    """

    data: _Data = _Data()
    context_class: type[Any] | None = None
    input: Mapping[str, Any] = field(default_factory=dict)
    """What the workflow was started with; it never changes."""
    results: Mapping[str, Any] = field(default_factory=dict)
    """The newest result of each step that gave one, by step key."""
    subject_ref: tuple[str, str] | None = None
    """Type and id of the subject; valid even when the object is gone."""
    load_subject: Callable[[], Any] = lambda: None
    workflow: str
    instance_id: UUID
    tenant: str = ""
    step: str
    visit: int
    """Counts the entries into steps, so that it tells the rounds of a loop apart."""
    attempt: int
    """Of this visit, from 1."""
    idempotency_key: str
    """For the other side of a call: the same in every attempt of this visit, another in the next visit."""
    forward_idempotency_key: str | None = None
    """In a compensation: the key under which the step itself made its call."""
    now: datetime
    deadline: datetime | None = None
    """When this attempt, or this wait, is over."""
    lease: Lease | None = None

    def __post_init__(self) -> None:
        vars(self).update(input=JsonView(self.input, self.context_class), results=JsonView(self.results))

    @cached_property
    def _view(self) -> JsonView:
        return JsonView(vars(self)["_stored"], self.context_class)

    @cached_property
    def _data(self) -> Any:
        return self._view if self.context_class is None else restore(self.context_class, dict(vars(self)["_stored"]))

    def __getitem__(self, key: str) -> Any:
        return self._view[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._view)

    def __len__(self) -> int:
        return len(self._view)

    def __repr__(self) -> str:
        """Without the context, which may be secret."""
        return f"<Context of {self.workflow}.{self.step} visit {self.visit} attempt {self.attempt}>"

    @cached_property
    def subject(self) -> Any:
        """The object the workflow is about, fetched once per attempt. Raises SubjectMissingError when it is gone."""
        return self.load_subject()

    def heartbeat(self) -> None:
        """Renew the activity's lease: "still at it". Raises LeaseLost when it is someone else's by now."""
        self._held("heartbeat").heartbeat()

    def lease_remaining(self) -> timedelta:
        """How much of the activity's lease is left without another heartbeat."""
        return self._held("lease_remaining").remaining()

    def _held(self, asked: str) -> Lease:
        if self.lease is None:
            raise FinalError(
                f"Step {self.step!r} called ctx.{asked}(), but only an activity has a lease. Declare it with"
                " @activity, or leave the call out: a @step runs inside one transaction."
            )
        return self.lease
