"""System checks of several processes on one database: what a broker, beat or SQLite can do to them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from importlib.util import find_spec
from typing import Any

from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004 - Django's own name
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, connections, router
from django.utils.translation import gettext as _

from workflow_engine import beat, clock, conf
from workflow_engine.dispatch import dispatcher
from workflow_engine.domain.registry import registry
from workflow_engine.exceptions import WorkflowEngineError
from workflow_engine.inspection import health
from workflow_engine.inspection.times import length
from workflow_engine.models import WorkflowInstance

TAG = "workflow_engine"

_REDIS = {"redis", "rediss", "sentinel"}
_REDIS_VISIBILITY = 3600
"""Seconds: what kombu takes where the project says nothing."""

_FIXED = ((3, 51, 3), (3, 50, 7), (3, 44, 6))
"""The SQLite releases that fixed the WAL-reset bug: the newest line, and two that got the fix later."""


@register(TAG)
def check_celery(**_kwargs: Any) -> list[CheckMessage]:
    """E009 the serializer, W004 no app, W005 and W006 Redis. From the settings of Celery alone."""
    settings = _settings()
    if settings is None or settings.DISPATCHER != "celery" or find_spec("celery") is None:
        return []
    from celery import current_app

    from workflow_engine.dispatchers.celery import an_app_is_loaded

    if not an_app_is_loaded():
        return [
            Warning(
                _("No Celery app is loaded, so messages go to amqp://localhost, where nobody waits for them."),
                hint=_(
                    "Import your app in the package of your settings, so that every process has it: in its __init__.py"
                    " write 'from .celery import app as celery_app'."
                ),
                id="workflow_engine.W004",
            )
        ]
    return [*_serializer(current_app.conf), *_redis(current_app)]


@register(TAG)
def check_grace(**_kwargs: Any) -> list[CheckMessage]:
    """W007."""
    settings = _settings()
    if settings is None or not _pushes() or settings.duration("GRACE") > settings.duration("TICK_INTERVAL"):
        return []
    return [
        Warning(
            _("WORKFLOW_ENGINE['GRACE'] is not above TICK_INTERVAL, so every tick sends everything again."),
            hint=_("Set GRACE to several intervals: the time that a message may wait for a worker."),
            id="workflow_engine.W007",
        )
    ]


@register(TAG, deploy=True)
def check_tick(**_kwargs: Any) -> list[CheckMessage]:
    """W008. Asks the database; where there is none, as in a build, nothing is said."""
    if not _pushes():
        return []
    messages: list[CheckMessage] = []
    for alias in _with_our_tables():
        try:
            age = health.last_tick(alias, clock.now(alias))
        except (DatabaseError, InterfaceError):
            continue
        if age is None or age > health.longest_tick_age():
            messages.append(_no_tick(alias, age))
    return messages


@register(TAG, deploy=True)
def check_sqlite_version(**_kwargs: Any) -> list[CheckMessage]:
    """W009."""
    if not _has_wal_reset_bug(sqlite3.sqlite_version_info):
        return []
    return [
        Warning(
            _("SQLite %(version)s can damage the database '%(alias)s' when several processes write to it at once.")
            % {"version": sqlite3.sqlite_version, "alias": alias},
            hint=_(
                "Its WAL-reset bug is rare, but what it destroys is gone. Use SQLite 3.51.3 or newer (or 3.50.7, or"
                " 3.44.6), or PostgreSQL or MariaDB; until then let one worker process write, and nothing beside it."
            ),
            id="workflow_engine.W009",
        )
        for alias in _with_our_tables()
        if connections[alias].vendor == "sqlite"
    ]


def _settings() -> conf.Settings | None:
    """None if something is wrong with them: other checks tell what."""
    try:
        settings = conf.current()
        settings.duration("GRACE"), settings.duration("TICK_INTERVAL")
    except (WorkflowEngineError, TypeError, ValueError):
        return None
    return settings


def _pushes() -> bool:
    try:
        return _settings() is not None and dispatcher().pushes
    except (ImproperlyConfigured, TypeError, AttributeError):
        return False


def _serializer(celery: Any) -> Iterator[CheckMessage]:
    accepted = celery.accept_content or ()
    if celery.task_serializer != "json":
        yield Error(
            _("Celery's task_serializer is %(serializer)s, not json.") % {"serializer": repr(celery.task_serializer)},
            hint=_(
                "Remove CELERY_TASK_SERIALIZER, or set it to 'json'. With pickle, whoever can write to the broker can"
                " run any code in your workers; with others, workers that don't know them refuse the messages."
            ),
            id="workflow_engine.E009",
        )
    elif not {"json", "application/json"} & set(accepted):
        yield Error(
            _("Celery's accept_content does not contain json, so workers refuse every message."),
            hint=_("Add 'json' to CELERY_ACCEPT_CONTENT."),
            id="workflow_engine.E009",
        )


def _redis(app: Any) -> Iterator[CheckMessage]:
    if app.connection_for_write().transport_cls not in _REDIS:
        return
    options = app.conf.broker_transport_options
    if missing := [name for name in ("socket_timeout", "socket_connect_timeout") if not options.get(name)]:
        yield Warning(
            _("The Redis broker has no %(missing)s.") % {"missing": _(" and no ").join(missing)},
            hint=_(
                "A Redis that stops answering then holds workers and beat for ever. Set"
                " CELERY_BROKER_TRANSPORT_OPTIONS = {'socket_timeout': 10, 'socket_connect_timeout': 5}."
            ),
            id="workflow_engine.W005",
        )
    visible = timedelta(seconds=options.get("visibility_timeout") or _REDIS_VISIBILITY)
    longest, where = max(_attempts(), default=(timedelta(), ""))
    if longest >= visible:
        told = {"visible": length(visible), "where": where, "longest": length(longest)}
        yield Warning(
            _("Redis delivers a message again after %(visible)s, but %(where)s may take %(longest)s.") % told,
            hint=_(
                "Set CELERY_BROKER_TRANSPORT_OPTIONS['visibility_timeout'] above %(seconds)d. Until then other workers"
                " are woken for nothing while it runs."
            )
            % {"seconds": longest.total_seconds()},
            id="workflow_engine.W006",
        )


def _attempts() -> Iterator[tuple[timedelta, str]]:
    """How long each activity and each undo may take, and its name."""
    for workflow in registry:
        for key, declared in workflow.steps.items():
            if declared.is_activity:
                yield declared.timeout, f"{workflow.name}.{key}"
            if declared.compensates and not declared.compensation.atomic:
                yield declared.compensation.timeout, _("the undo of %(step)s") % {"step": f"{workflow.name}.{key}"}


def _no_tick(alias: str, age: timedelta | None) -> CheckMessage:
    told = {"alias": alias, "age": "" if age is None else length(age)}
    if age is None:
        text = _("No tick has run for the database '%(alias)s': what waits for its time waits for ever.") % told
    else:
        text = _("The last tick for the database '%(alias)s' ran %(age)s ago: what waits for its time waits.") % told
    return Warning(text, hint=_remedy(alias), id="workflow_engine.W008")


def _remedy(alias: str) -> str:
    option = "" if alias == "default" else f" --database {alias}"
    loop = f"python manage.py workflow_tick --loop{option}"
    if not beat.is_installed():
        return _("Run this beside the workers: %(loop)s. Or install django-celery-beat.") % {"loop": loop}
    if any(finding.state != "right" for finding in beat.inspect(alias)):
        return _("Run: python manage.py workflow_beat%(option)s") % {"option": option}
    return _("The periodic task is installed. Is beat running, and a worker of the queue that it sends to?")


def _has_wal_reset_bug(version: tuple[int, ...]) -> bool:
    """SQLite 3.7.0 to 3.51.2, but for the releases that got the fix later."""
    fixed = any(version[:2] == release[:2] and version >= release for release in _FIXED)
    return (3, 7, 0) <= version < max(_FIXED) and not fixed


def _with_our_tables() -> Iterator[str]:
    return (alias for alias in connections if router.allow_migrate_model(alias, WorkflowInstance))
