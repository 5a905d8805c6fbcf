"""Who is meant: instances, ids, databases and actors as callers name them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import router

from workflow_engine.exceptions import InstanceNotFoundError
from workflow_engine.models import WorkflowInstance
from workflow_engine.serialization import clean_text

Addressed = WorkflowInstance | UUID | str
"""An instance, or its id."""


def database_of(instance: Addressed | None, using: str | None) -> str:
    """The alias to write to: the one named, else what the router says."""
    if using is not None:
        return using
    hints = {"instance": instance} if isinstance(instance, WorkflowInstance) else {}
    return router.db_for_write(WorkflowInstance, **hints)


def id_of(instance: Addressed, using: str) -> UUID:
    """The id of the instance meant.

    Raises:
        InstanceNotFoundError: the text is no id.
    """
    if isinstance(instance, WorkflowInstance):
        return instance.pk
    try:
        return instance if isinstance(instance, UUID) else UUID(str(instance))
    except ValueError:
        raise InstanceNotFoundError(instance, using) from None


def load(instance: Addressed, using: str) -> WorkflowInstance:
    """The instance as it is visible now, from the database that is written to.

    Raises:
        InstanceNotFoundError: there is none of that id.
    """
    instance_id = id_of(instance, using)
    row = WorkflowInstance.objects.using(using).filter(pk=instance_id).first()
    if row is None:
        raise InstanceNotFoundError(instance_id, using)
    return row


def actor_name(actor: Any) -> str:
    """Who asked, as text: a user's username, anything else as it prints. "" for nobody in particular."""
    if actor is None:
        return ""
    name = actor.get_username() if hasattr(actor, "get_username") else str(actor)
    return clean_text(name, 255)
