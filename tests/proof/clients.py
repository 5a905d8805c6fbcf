"""Clients of the engine that survive their crashes: every call can be repeated, and they note what they were told."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import UUID

from django.db import transaction

from tests.proof import ledger
from workflow_engine import Workflow, engine
from workflow_engine.exceptions import InstanceNotFoundError, InvalidStateError


def start(program: type[Workflow[Any]], key: str, *, tenant: str = "", queue: str | None = None) -> UUID:
    """Start under a key, and note which instance that is, once it is committed."""
    instance = engine.start(program, context={"call": key}, idempotency_key=key, tenant=tenant, queue=queue)
    facts = {"tenant": tenant, "workflow": program.name, "key": key, "instance": str(instance.pk)}
    transaction.on_commit(lambda: ledger.write("started", **facts))
    return instance.pk


def send(instance: UUID, name: str, call: str) -> None:
    """Send a signal under a key. An instance that has ended refuses it, which is no news to a client that repeats."""
    with suppress(InvalidStateError):
        item = engine.signal(instance, name, {"call": call}, idempotency_key=call)
        ledger.write("sent", mail=item.pk, instance=str(instance), committed_at=ledger.database_time())


def request(verb: str, instance: UUID) -> None:
    """Cancel, pause, resume or retry; once that is done, the repetition is refused."""
    with suppress(InvalidStateError, InstanceNotFoundError):
        item = getattr(engine, verb)(instance)
        ledger.write("sent", mail=item.pk, instance=str(instance), committed_at=ledger.database_time())
