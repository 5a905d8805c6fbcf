"""The `ctx` that a handler gets, made from a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from django.apps import apps
from django.core.exceptions import ObjectDoesNotExist

from workflow_engine.domain.context import Context, Lease
from workflow_engine.domain.events import EventKind
from workflow_engine.domain.state import State
from workflow_engine.exceptions import SubjectMissingError
from workflow_engine.models import WorkflowEvent, WorkflowInstance
from workflow_engine.models.identifiers import key_hash


def make_context(
    row: WorkflowInstance,
    state: State,
    context_class: type[Any] | None,
    *,
    now: datetime,
    attempt: int,
    step: str,
    visit: int,
    undo: bool = False,
    deadline: datetime | None = None,
    lease: Lease | None = None,
) -> Context[Any]:
    """A handler's view of the instance.

    Args:
        row: the instance.
        state: its journalled part, as of this attempt.
        context_class: the workflow's, if it declares one.
        now: the database's time of the attempt.
        attempt: its number, from 1.
        step: the step's key.
        visit: which entry of the step this is.
        undo: whether this is a compensation, which has an idempotency key of its own.
        deadline: when the wait or the attempt is over.
        lease: what an activity renews with `ctx.heartbeat()`.
    """
    forward = idempotency_key(row.pk, step, visit)
    return Context(
        data=state.context,
        context_class=context_class,
        input=row.input,
        results=_Results(row),
        subject_ref=row.subject_ref,
        load_subject=_subject_loader(row),
        workflow=row.workflow_name,
        instance_id=row.pk,
        tenant=row.tenant,
        step=step,
        visit=visit,
        attempt=attempt,
        idempotency_key=idempotency_key(row.pk, step, visit, "undo") if undo else forward,
        forward_idempotency_key=forward if undo else None,
        now=now,
        deadline=deadline,
        lease=lease,
    )


def idempotency_key(instance_id: UUID, step: str, visit: int, *more: str) -> str:
    """One key per visit, the same in all attempts and recoveries; ids are unique across databases, so this is too."""
    return key_hash(str(instance_id), step, str(visit), *more)


class _Results(Mapping[str, Any]):
    """The latest result of each completed step, read from the history when asked for."""

    def __init__(self, row: WorkflowInstance) -> None:
        self._row = row

    @cached_property
    def _by_step(self) -> dict[str, Any]:
        completed = WorkflowEvent.objects.using(self._row._state.db).filter(
            instance_id=self._row.pk, kind=EventKind.STEP_COMPLETED
        )
        events = completed.order_by("seq").values_list("step", "data")
        results = ((step, data.get("result", data.get("updates"))) for step, data in events)
        return {step: result for step, result in results if result is not None}

    def __getitem__(self, step: str) -> Any:
        return self._by_step[step]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_step)

    def __len__(self) -> int:
        return len(self._by_step)


def _subject_loader(row: WorkflowInstance) -> Callable[[], Any]:
    def load() -> Any:
        if row.subject_ref is None:
            return None
        try:
            model = apps.get_model(row.subject_type)
            return model._default_manager.using(row._state.db).get(pk=row.subject_id)
        except (LookupError, ValueError, ObjectDoesNotExist):
            raise SubjectMissingError(row.subject_type, row.subject_id) from None

    return load
