"""Starting: one instance per idempotency key, in the caller's transaction."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

from workflow_engine import clock, serialization
from workflow_engine.after_commit import Effects
from workflow_engine.domain.events import EventKind
from workflow_engine.domain.journal import Journal
from workflow_engine.domain.registry import registry
from workflow_engine.domain.state import State
from workflow_engine.domain.workflows import Workflow
from workflow_engine.engine import store
from workflow_engine.engine.addressing import actor_name, database_of
from workflow_engine.engine.infrastructure import run_joined
from workflow_engine.engine.keys import checked_key, find_or_insert
from workflow_engine.engine.reporting import report
from workflow_engine.engine.routing import queue_for
from workflow_engine.engine.scheduling import handed_out
from workflow_engine.exceptions import DefinitionError, IdempotencyConflictError
from workflow_engine.models import WorkflowInstance
from workflow_engine.models.identifiers import key_hash, uuid7
from workflow_engine.models.querysets import Subject, subject_reference


@dataclass(slots=True)
class _Started:
    row: WorkflowInstance
    effects: Effects
    using: str

    def was_committed(self) -> bool:
        """Whether the row is there. All tries have the same id; the time tells which of them it is from."""
        rows = WorkflowInstance.objects.using(self.using)
        return rows.filter(pk=self.row.pk, created_at=self.row.created_at).exists()

    def finish(self) -> None:
        """Run the effects, if the commit hook has not."""
        self.effects.run()


def start(
    workflow: type[Workflow[Any]] | str,
    *,
    subject: Subject | None = None,
    context: Any = None,
    idempotency_key: str | None = None,
    actor: Any = None,
    tenant: str = "",
    version: int | None = None,
    queue: str | None = None,
    using: str | None = None,
) -> WorkflowInstance:
    """Start a workflow: store an instance in the caller's transaction. It runs after that commits, never before.

    The same idempotency key (per tenant and workflow) returns the instance that exists; nothing is started again.

    Args:
        workflow: the class, or its name for the newest version.
        subject: what it is about: a saved model instance, or a pair like ("shop.order", 42).
        context: what it starts with; passes the JSON gate and is also kept unchanged as `ctx.input`.
        idempotency_key: a name for this start that its repetition will use again.
        actor: who starts it: a user or a text, for the history.
        tenant: keeps keys of several customers apart.
        version: of the workflow, when a name is given and the newest is not wanted.
        queue: overrides the workflow's.
        using: the database alias; by default the router decides.

    Raises:
        UnknownWorkflowError: no such workflow is registered here.
        DefinitionError: the workflow is abstract.
        NotSerializableError: the context or the key can't be stored.
        IdempotencyConflictError: the key was used with other values; carries `.instance`.
    """
    definition = _definition(workflow, version)
    alias = database_of(None, using)
    data = serialization.object_to_json(context, "context")
    key = checked_key(idempotency_key)
    subject_type, subject_id = subject_reference(subject)
    queue = definition.queue if queue is None else queue
    texts = (
        (subject_type, "subject type", 100),
        (subject_id, "subject id", 255),
        (tenant, "tenant", 100),
        (queue, "queue", 100),
    )
    for text, what, limit in texts:
        if text != "":
            serialization.short_text(text, what, limit)
    name = definition.name
    row = WorkflowInstance(
        id=uuid7(),
        workflow_name=name,
        input=data,
        subject_type=subject_type,
        subject_id=subject_id,
        tenant=tenant,
        queue=queue,
        idempotency_key=key,
        key_hash=None if key is None else key_hash(tenant, name, key),
        fingerprint=key_hash(subject_type, subject_id, serialization.canonical(data)),
    )
    started = run_joined(alias, partial(_insert, row, definition, actor_name(actor), alias))
    if started.row.pk != row.pk:
        _check_same(started.row, row, version)
    return started.row


def _definition(workflow: type[Workflow[Any]] | str, version: int | None) -> type[Workflow[Any]]:
    if not isinstance(workflow, str):
        if workflow.abstract:
            raise DefinitionError(
                workflow.__name__,
                "it is abstract, a base for other workflows",
                "Start one of the workflows that are made of it.",
            )
        return workflow if version is None else registry.exact(workflow.name, version)
    return registry.newest(workflow) if version is None else registry.exact(workflow, version)


def _insert(asked: WorkflowInstance, definition: type[Workflow[Any]], actor: str, using: str) -> _Started:
    effects = Effects(using)
    row = copy(asked)  # a second try, with the same id, starts from the same values

    def insert() -> WorkflowInstance:
        now = clock.now(using)
        journal = Journal(State(), now, actor=actor)
        keys = list(definition.step_keys())
        journal.add(
            EventKind.WORKFLOW_STARTED,
            definition_version=definition.version,
            step_sequence=keys,
            current_step=keys[0],
            visit=1,
            visits_since_park=1,
            context=row.input,
            status=journal.state.status,
            due_at=now,
        )
        row.created_at = now
        row.poll_at = handed_out(now)
        (event,) = store.insert(row, journal, using)
        effects.register()
        effects.wake(row.pk, queue_for(row, journal.state))
        effects.send(row.workflow_name, definition.version, event)
        report(effects, row, event, None)
        return row

    found, _ = find_or_insert(WorkflowInstance, row.key_hash, insert, using)
    return _Started(found, effects, using)


def _check_same(found: WorkflowInstance, asked: WorkflowInstance, version: int | None) -> None:
    if found.fingerprint != asked.fingerprint:
        same_subject = (found.subject_type, found.subject_id) == (asked.subject_type, asked.subject_id)
        difference = "another context" if same_subject else f"another subject, {':'.join(found.subject_ref or ('',))}"
        raise IdempotencyConflictError(str(asked.idempotency_key), found, difference)
    if version is not None and found.definition_version != version:
        difference = f"version {found.definition_version} of its workflow"
        raise IdempotencyConflictError(str(asked.idempotency_key), found, difference)
