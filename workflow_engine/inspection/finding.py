"""Which instance is meant: by id, by the beginning of an id, by idempotency key, or by subject."""

from __future__ import annotations

import re
from collections.abc import Sequence
from uuid import UUID

from django.apps import apps
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from workflow_engine.domain.registry import registry
from workflow_engine.exceptions import WorkflowEngineError, nearest
from workflow_engine.models import WorkflowInstance
from workflow_engine.models.identifiers import key_hash

MOST = 50
"""So many matches are looked at. Who gets that many has to say it better."""

_HEX = re.compile(r"[0-9a-f]{4,32}")
_DIGITS = 32
_NAMED = 5


class NoMatchError(WorkflowEngineError):
    """Nothing is meant by that reference."""

    def __init__(self, reference: str, using: str) -> None:
        self.reference, self.using = reference, using
        super().__init__(
            _(
                "No workflow instance %(reference)s in database '%(using)s'. Give an id, the beginning of one (4 or"
                " more hex digits), an idempotency key, or a subject such as shop.order:42."
            )
            % {"reference": repr(reference), "using": using}
        )


class SeveralMatchesError(WorkflowEngineError):
    """More than one instance is meant by that reference. `.rows` are those."""

    def __init__(self, reference: str, rows: Sequence[WorkflowInstance]) -> None:
        self.reference, self.rows = reference, rows
        named = ", ".join(f"{row.pk} ({row.get_status_display()})" for row in rows[:_NAMED])
        count = ngettext("%(count)d workflow instance", "%(count)d workflow instances", len(rows)) % {
            "count": len(rows)
        }
        super().__init__(
            _("%(reference)s means %(count)s: %(named)s%(more)s. Give the id of one.")
            % {
                "reference": repr(reference),
                "count": count,
                "named": named,
                "more": ", ..." if len(rows) > _NAMED else "",
            }
        )


class UnknownSubjectError(WorkflowEngineError):
    """A subject names a model that its app does not have, or an object that is not there."""


def find(reference: str, using: str) -> list[WorkflowInstance]:
    """Every instance that the reference may mean, the newest first; at most `MOST`.

    An exact id wins. A key is looked up by its hash, among the workflows known here; only when nothing else matches is
    the whole table searched for it.
    """
    rows = WorkflowInstance.objects.using(using)
    if (exact := _whole_id(reference)) is not None:
        return list(rows.filter(pk=exact))
    found = list(rows.filter(meant_by(reference)).order_by("-pk")[:MOST])
    if not found:
        # The database may fold case and accents; the key is meant as it is written.
        same_key = rows.filter(idempotency_key=reference).order_by("-pk")[:MOST]
        found = [row for row in same_key if row.idempotency_key == reference]
    return found


def find_one(reference: str, using: str, among: Q | None = None) -> WorkflowInstance:
    """The instance that is meant. Where there are several, the one of them that `among` holds for.

    Raises:
        NoMatchError: there is none.
        SeveralMatchesError: there are several.
    """
    rows = find(reference, using)
    if not rows:
        raise NoMatchError(reference, using)
    if len(rows) > 1 and among is not None:
        fit = WorkflowInstance.objects.using(using).filter(among, pk__in=[row.pk for row in rows])
        rows = list(fit.order_by("-pk")) or rows
    if len(rows) > 1:
        raise SeveralMatchesError(reference, rows)
    return rows[0]


def meant_by(reference: str) -> Q:
    """The condition for a reference, on indexed columns only."""
    keys = [key_hash("", name, reference) for name in registry.names()]
    meant = Q(key_hash__in=keys)
    digits = reference.replace("-", "").lower()
    if _HEX.fullmatch(digits):
        meant |= Q(pk__range=_ids_beginning_with(digits))
    subject = _pair(reference)
    if subject is not None:
        meant |= Q(subject_type=subject[0], subject_id=subject[1])
    return meant


def means_subject(reference: str, using: str) -> tuple[str, str] | None:
    """The subject that the reference names, unless an instance has that text as its key."""
    pair = _pair(reference)
    if pair is None or any(row.subject_ref != pair for row in find(reference, using)):
        return None
    return pair


def subject_of(text: str) -> tuple[str, str]:
    """`shop.Order:42` as the pair that rows store.

    Raises:
        UnknownSubjectError: it is no such pair.
    """
    pair = _pair(text)
    if pair is None:
        raise UnknownSubjectError(
            _("%(text)s is no subject. Write its model and key, such as shop.order:42.") % {"text": repr(text)}
        )
    return pair


def check_subject_exists(subject: tuple[str, str]) -> None:
    """Refuse a slip of the pen before it becomes an instance about nothing. Names of other things are let through.

    Raises:
        UnknownSubjectError: the app is installed but has no such model, or the model no such object.
    """
    subject_type, subject_id = subject
    app_label, dot, model_name = subject_type.partition(".")
    if not dot or app_label not in apps.app_configs:
        return
    models = apps.all_models[app_label]
    if model_name not in models:
        raise UnknownSubjectError(
            _("The app %(app)s has no model %(model)s. %(nearest)s")
            % {"app": repr(app_label), "model": repr(model_name), "nearest": nearest(model_name, models)}
        )
    try:
        exists = models[model_name]._base_manager.filter(pk=subject_id).exists()
    except (ValueError, ValidationError):
        exists = False  # no object of that model can have such a key
    if not exists:
        raise UnknownSubjectError(_("There is no %(subject)s.") % {"subject": ":".join(subject)})


def _pair(text: str) -> tuple[str, str] | None:
    subject_type, colon, subject_id = text.partition(":")
    if not (subject_type and colon and subject_id):
        return None
    try:
        return apps.get_model(subject_type)._meta.label_lower, subject_id
    except (LookupError, ValueError):
        return subject_type, subject_id


def _whole_id(text: str) -> UUID | None:
    digits = text.replace("-", "").lower()
    return UUID(digits) if len(digits) == _DIGITS and _HEX.fullmatch(digits) else None


def _ids_beginning_with(digits: str) -> tuple[UUID, UUID]:
    """The least and the greatest UUIDv7 that begin so. MariaDB sorts UUIDs of other versions in another order."""
    lowest = digits + "00000000000070008000000000000000"[len(digits) :]
    highest = digits + "ffffffffffff7fffbfffffffffffffff"[len(digits) :]
    return UUID(lowest), UUID(highest)
