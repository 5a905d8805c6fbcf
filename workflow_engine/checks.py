"""System checks: what is wrong before anything runs. `msg` states the problem, `hint` the remedy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from importlib.util import find_spec
from typing import Any, get_type_hints

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register  # noqa: A004 - Django's own name
from django.db import connections, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from workflow_engine import conf
from workflow_engine.dispatch import BUILT_IN, Dispatcher
from workflow_engine.domain.declarations import Declaration
from workflow_engine.domain.durations import Duration, as_timedelta, shown
from workflow_engine.domain.outcomes import Await
from workflow_engine.domain.registry import registry
from workflow_engine.domain.workflows import Workflow
from workflow_engine.exceptions import InvalidOutcomeError, nearest
from workflow_engine.inspection.source import Mention, mentions
from workflow_engine.models import WorkflowInstance

TAG = "workflow_engine"
"""The checks of this package that ask no database: `manage.py check --tag workflow_engine`."""

_MAY_BE_ZERO = {"INFRASTRUCTURE_RETRIES", "RETENTION", "IDLE_IN_TRANSACTION"}
_KINDS: dict[Any, tuple[type, ...]] = {str: (str,), int: (int,), bool: (bool,)}


@register(TAG)
def check_settings(**_kwargs: Any) -> list[CheckMessage]:
    """E001 unknown key, E002 wrong value, E003 and E004 the dispatcher, E005 USE_TZ, E008 REDACT."""
    return [*_keys_and_values(), *_time_zone()]


@register(TAG)
def check_definitions(**_kwargs: Any) -> list[CheckMessage]:
    """E006 and E007: what would fail at run time and can be seen in the source. The rest fails at import."""
    return [
        message
        for workflow in registry
        for declared in workflow.steps.values()
        for mention in mentions(workflow, declared)
        for message in _mistakes(workflow, declared, mention)
    ]


@register(TAG)
def check_sqlite_transactions(**_kwargs: Any) -> list[CheckMessage]:
    """W001, from the settings alone."""
    return [
        Warning(
            _("The SQLite database '%(alias)s' does not begin its transactions as IMMEDIATE.") % {"alias": alias},
            hint=_(
                "Set OPTIONS['transaction_mode'] = 'IMMEDIATE' in DATABASES['%(alias)s']. Else two processes that write"
                " at the same time fail with 'database is locked', without waiting for each other."
            )
            % {"alias": alias},
            id="workflow_engine.W001",
        )
        for alias, connection in _with_our_tables(list(connections))
        if connection.vendor == "sqlite"
        and str(connection.settings_dict["OPTIONS"].get("transaction_mode")).upper() not in {"IMMEDIATE", "EXCLUSIVE"}
    ]


@register(Tags.database)
def check_databases(databases: Sequence[str] | None = None, **_kwargs: Any) -> list[CheckMessage]:
    """W002 and W003: asked of the servers, so only where a database is named (`migrate`, `check --database`)."""
    messages: list[CheckMessage] = []
    for alias, connection in _with_our_tables(databases or ()):
        if connection.vendor == "sqlite":
            messages += _journal_mode(alias, connection)
        elif connection.vendor == "mysql":
            messages += _isolation(alias, connection)
    return messages


def _keys_and_values() -> Iterator[CheckMessage]:
    given = getattr(settings, "WORKFLOW_ENGINE", {})
    if not isinstance(given, dict):
        yield _wrong_value("WORKFLOW_ENGINE", given, _("Make it a dict, or leave it out."))
        return
    hints = get_type_hints(conf.Settings)
    for key, value in given.items():
        if key not in hints:
            yield Error(
                _("WORKFLOW_ENGINE has no setting %(key)s.") % {"key": repr(key)},
                hint=nearest(str(key), conf.KEYS),
                id="workflow_engine.E001",
            )
        elif remedy := _remedy(key, value, hints[key]):
            yield _wrong_value(f"WORKFLOW_ENGINE[{key!r}]", value, remedy)
    name = given.get("DISPATCHER", conf.Settings().DISPATCHER)
    if isinstance(name, str):
        yield from _dispatcher(name)
    if not _redact_remedy(entries := given.get("REDACT", ())):
        yield from _maskers(entries)


def _remedy(key: str, value: Any, kind: Any) -> str:
    """What the setting should be instead; "" where it is right."""
    if kind == Duration:
        return _duration_remedy(key, value)
    if key == "REDACT":
        return _redact_remedy(value)
    accepted = _KINDS.get(kind)
    if accepted is None or (isinstance(value, accepted) and (kind is bool or not isinstance(value, bool))):
        lowest = 0 if key in _MAY_BE_ZERO else 1
        return _("Give a number from %(lowest)d on.") % {"lowest": lowest} if kind is int and value < lowest else ""
    return {str: _("Give a text."), int: _("Give a whole number."), bool: _("Give True or False.")}[kind]


def _duration_remedy(key: str, value: Any) -> str:
    try:
        duration = as_timedelta(value, key)
    except InvalidOutcomeError:
        return _("Give a timedelta or a number of seconds.")
    return "" if duration > timedelta() or key in _MAY_BE_ZERO else _("Give a length of time above zero.")


def _redact_remedy(value: Any) -> str:
    if isinstance(value, list | tuple) and all(isinstance(entry, str) and entry.strip() for entry in value):
        return ""
    return _("Give a list of words that keys contain, and of dotted paths of callables.")


def _maskers(entries: Sequence[str]) -> Iterator[CheckMessage]:
    for path in entries:
        if "." not in path:
            continue
        try:
            usable = callable(import_string(path))
        except ImportError:
            usable = False
        if not usable:
            yield Error(
                _("WORKFLOW_ENGINE['REDACT'] names %(path)s, which can't be loaded or called.") % {"path": repr(path)},
                hint=_("Give the dotted path of a callable (key, value), or a word without a dot for keys."),
                id="workflow_engine.E008",
            )


def _wrong_value(what: str, value: Any, remedy: str) -> Error:
    return Error(
        _("%(what)s is %(value)s.") % {"what": what, "value": shown(value)}, hint=remedy, id="workflow_engine.E002"
    )


def _dispatcher(name: str) -> Iterator[CheckMessage]:
    told = {"name": repr(name)}
    if name == "celery" and find_spec("celery") is None:
        yield Error(
            _("WORKFLOW_ENGINE['DISPATCHER'] is 'celery', but Celery is not installed."),
            hint=_("Run: pip install 'django-workflow-steps[celery]'. Or use the dispatcher 'database'."),
            id="workflow_engine.E004",
        )
        return
    try:
        found = import_string(BUILT_IN.get(name, name))
    except ImportError as error:
        known = nearest(name, BUILT_IN)
        yield Error(
            _("WORKFLOW_ENGINE['DISPATCHER'] is %(name)s, which can't be loaded: %(error)s.")
            % {**told, "error": error},
            hint=_("%(known)s It may also be the dotted path of a Dispatcher class.") % {"known": known},
            id="workflow_engine.E003",
        )
        return
    if not (isinstance(found, type) and issubclass(found, Dispatcher)):
        yield Error(
            _("WORKFLOW_ENGINE['DISPATCHER'] is %(name)s, which is no Dispatcher.") % told,
            hint=_("Derive the class from workflow_engine.dispatch.Dispatcher."),
            id="workflow_engine.E003",
        )


def _time_zone() -> Iterator[CheckMessage]:
    if not settings.USE_TZ:
        yield Error(
            _("USE_TZ is False: deadlines would be ambiguous for an hour, and wrong between processes in two zones."),
            hint=_("Set USE_TZ = True."),
            id="workflow_engine.E005",
        )


def _mistakes(workflow: type[Workflow[Any]], declared: Declaration, mention: Mention) -> Iterator[CheckMessage]:
    where = f"{workflow.__name__}.{mention.function}"
    place = f"{workflow.__module__}:{mention.line}"
    if mention.outcome is Await:
        names = list(dict.fromkeys(mention.names))
        if len(names) > 1 and not declared.handles_signals:
            told = {"where": where, "names": ", ".join(names), "step": declared.attribute}
            yield Error(
                _("%(where)s awaits %(names)s, but nothing tells them apart.") % told,
                hint=_("Declare a handler with @%(step)s.on_signal: it gets the signal that came.") % told,
                obj=place,
                id="workflow_engine.E006",
            )
        return
    target = mention.names[0]
    told = {"where": where, "target": repr(target)}
    if target not in workflow.steps:
        yield Error(
            _("%(where)s goes to %(target)s, which is no step here.") % told,
            hint=nearest(target, workflow.steps),
            obj=place,
            id="workflow_engine.E007",
        )
    elif declared.goes_to is not None and target not in declared.goes_to:
        yield Error(
            _("%(where)s goes to %(target)s, which its goes_to does not list.") % told,
            hint=_("Add it to goes_to of the step %(step)s.") % {"step": repr(declared.key)},
            obj=place,
            id="workflow_engine.E007",
        )


def _with_our_tables(aliases: Sequence[str]) -> Iterator[tuple[str, BaseDatabaseWrapper]]:
    for alias in aliases:
        if router.allow_migrate_model(alias, WorkflowInstance):
            yield alias, connections[alias]


def _journal_mode(alias: str, connection: Any) -> Iterator[CheckMessage]:
    if connection.is_in_memory_db():
        return
    mode = _ask(connection, "PRAGMA journal_mode")
    if mode.lower() != "wal":
        told = {"alias": alias, "mode": mode}
        yield Warning(
            _("The SQLite database '%(alias)s' has the journal mode %(mode)s, not WAL.") % told,
            hint=_(
                "Set OPTIONS['init_command'] = 'PRAGMA journal_mode=WAL;' in DATABASES['%(alias)s']. Else whoever reads"
                " keeps the workers from writing."
            )
            % told,
            id="workflow_engine.W002",
        )


def _isolation(alias: str, connection: Any) -> Iterator[CheckMessage]:
    older = connection.mysql_is_mariadb and connection.mysql_version < (11, 1)
    level = _ask(connection, f"SELECT @@{'tx_isolation' if older else 'transaction_isolation'}")
    if level.upper() != "READ-COMMITTED":
        told = {"alias": alias, "level": level}
        yield Warning(
            _("The database '%(alias)s' has the isolation level %(level)s, not READ-COMMITTED.") % told,
            hint=_(
                "Remove OPTIONS['isolation_level'] from DATABASES['%(alias)s'], or set it to 'read committed', Django's"
                " default. At other levels what is read after a lock may be older than the lock."
            )
            % told,
            id="workflow_engine.W003",
        )


def _ask(connection: BaseDatabaseWrapper, question: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(question)
        return str(cursor.fetchone()[0])
