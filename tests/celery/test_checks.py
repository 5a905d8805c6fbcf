from __future__ import annotations

import sqlite3
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.core.checks import CheckMessage, Error, Warning, run_checks  # noqa: A004 - Django's own name
from django.db import connection

from tests.celery import recording
from tests.traps import needs
from workflow_engine import Context, Workflow, activity, beat, checks_distributed, clock, tick
from workflow_engine.domain.registry import registry
from workflow_engine.models import WorkflowWorker

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

BOUNDED = {"socket_timeout": 10, "socket_connect_timeout": 5}


def messages(*, deploy: bool = False) -> list[CheckMessage]:
    """Those of this package that are about several processes."""
    found = run_checks(include_deployment_checks=deploy, tags=["workflow_engine"])
    return [message for message in found if str(message.id) >= "workflow_engine.E009"]


@pytest.fixture
def celery_settings(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("celery", reason="needs Celery: pip install -e '.[services]'")
    settings.WORKFLOW_ENGINE = {"DISPATCHER": "celery"}
    monkeypatch.setattr(registry, "_classes", {})


@pytest.fixture
def ticking(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what ticks is looked at."""
    settings.WORKFLOW_ENGINE = {"DISPATCHER": recording.PATH}
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 51, 3))
    monkeypatch.setattr(checks_distributed, "_with_our_tables", lambda: iter(["default"]))


@pytest.mark.usefixtures("celery_settings")
def test_without_an_app_messages_go_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    from weakref import WeakSet

    from celery import _state

    monkeypatch.setattr(_state, "default_app", None)
    monkeypatch.setattr(_state, "_apps", WeakSet())
    assert messages() == [
        Warning(
            "No Celery app is loaded, so messages go to amqp://localhost, where nobody waits for them.",
            hint=(
                "Import your app in the package of your settings, so that every process has it: in its __init__.py"
                " write 'from .celery import app as celery_app'."
            ),
            id="workflow_engine.W004",
        )
    ]
    assert _state.default_app is None


@pytest.mark.usefixtures("celery_settings")
@pytest.mark.parametrize("url", ["amqp://127.0.0.1//", "redis://127.0.0.1/0", "memory://"])
def test_a_project_that_is_right_has_no_messages(url: str) -> None:
    from tests.celery.brokers import app_at

    with app_at(url, broker_transport_options=BOUNDED if url.startswith("redis") else {}):
        assert messages() == []


@pytest.mark.usefixtures("celery_settings")
def test_redis_needs_socket_timeouts() -> None:
    from tests.celery.brokers import app_at

    with app_at("redis://127.0.0.1/0"):
        (message,) = messages()
    assert message == Warning(
        "The Redis broker has no socket_timeout and no socket_connect_timeout.",
        hint=(
            "A Redis that stops answering then holds workers and beat for ever. Set CELERY_BROKER_TRANSPORT_OPTIONS ="
            " {'socket_timeout': 10, 'socket_connect_timeout': 5}."
        ),
        id="workflow_engine.W005",
    )
    with app_at("redis://127.0.0.1/0", broker_transport_options={"socket_timeout": 10}):
        (message,) = messages()
    assert message.msg == "The Redis broker has no socket_connect_timeout."


@pytest.mark.usefixtures("celery_settings")
def test_an_attempt_longer_than_the_visibility_timeout_is_told() -> None:
    from tests.celery.brokers import app_at

    class Film(Workflow):
        name = "film"

        @activity(timeout=timedelta(minutes=90))
        def render(self, ctx: Context) -> None: ...

        @render.compensation(timeout=timedelta(hours=2))
        def delete(self, ctx: Context, result: object) -> None: ...

    with app_at("redis://127.0.0.1/0", broker_transport_options=BOUNDED):
        assert messages() == [
            Warning(
                "Redis delivers a message again after 1 h, but the undo of film.render may take 2 h.",
                hint=(
                    "Set CELERY_BROKER_TRANSPORT_OPTIONS['visibility_timeout'] above 7200. Until then other workers are"
                    " woken for nothing while it runs."
                ),
                id="workflow_engine.W006",
            )
        ]
    with app_at("redis://127.0.0.1/0", broker_transport_options={**BOUNDED, "visibility_timeout": 7201}):
        assert messages() == []
    with app_at("amqp://127.0.0.1//"):
        assert messages() == []


@pytest.mark.usefixtures("celery_settings")
def test_messages_are_json() -> None:
    from tests.celery.brokers import MEMORY, app_at

    with app_at(MEMORY, task_serializer="pickle", accept_content=["pickle", "json"]):
        assert messages() == [
            Error(
                "Celery's task_serializer is 'pickle', not json.",
                hint=(
                    "Remove CELERY_TASK_SERIALIZER, or set it to 'json'. With pickle, whoever can write to the broker"
                    " can run any code in your workers; with others, workers that don't know them refuse the messages."
                ),
                id="workflow_engine.E009",
            )
        ]
    with app_at(MEMORY, accept_content=["msgpack"]):
        assert messages() == [
            Error(
                "Celery's accept_content does not contain json, so workers refuse every message.",
                hint="Add 'json' to CELERY_ACCEPT_CONTENT.",
                id="workflow_engine.E009",
            )
        ]


@pytest.mark.parametrize("grace", [5, 10])
def test_a_grace_no_longer_than_an_interval_is_told(grace: int, settings: Settings) -> None:
    settings.WORKFLOW_ENGINE = {"DISPATCHER": recording.PATH, "GRACE": grace}
    assert messages() == [
        Warning(
            "WORKFLOW_ENGINE['GRACE'] is not above TICK_INTERVAL, so every tick sends everything again.",
            hint="Set GRACE to several intervals: the time that a message may wait for a worker.",
            id="workflow_engine.W007",
        )
    ]
    settings.WORKFLOW_ENGINE = {"GRACE": grace}
    assert messages() == []


@pytest.mark.usefixtures("ticking")
def test_a_deployment_without_a_tick_is_told_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beat, "is_installed", lambda: False)
    assert messages() == []
    assert messages(deploy=True) == [
        Warning(
            "No tick has run for the database 'default': what waits for its time waits for ever.",
            hint=("Run this beside the workers: python manage.py workflow_tick --loop. Or install django-celery-beat."),
            id="workflow_engine.W008",
        )
    ]
    tick.tick("default")
    assert messages(deploy=True) == []
    clock.shift(timedelta(minutes=5, seconds=1))
    (message,) = messages(deploy=True)
    assert message.msg == ("The last tick for the database 'default' ran 5 m 1 s ago: what waits for its time waits.")


@pytest.mark.usefixtures("ticking")
@pytest.mark.skipif(not beat.is_installed(), reason="needs django-celery-beat: pytest --ds=tests.settings_with_beat")
def test_where_beat_is_installed_the_periodic_task_is_looked_for() -> None:
    (message,) = messages(deploy=True)
    assert message.hint == "Run: python manage.py workflow_beat"
    beat.install("default")
    (message,) = messages(deploy=True)
    assert message.hint == (
        "The periodic task is installed. Is beat running, and a worker of the queue that it sends to?"
    )


@pytest.mark.usefixtures("ticking")
def test_a_build_without_a_database_is_not_bothered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorkflowWorker._meta, "db_table", "not migrated yet")
    assert messages(deploy=True) == []


@needs.sqlite
def test_a_sqlite_that_can_damage_its_file_is_told_to_a_deployment(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 40, 1))
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.40.1")
    assert messages() == []
    message = messages(deploy=True)[0]
    assert message == Warning(
        "SQLite 3.40.1 can damage the database 'default' when several processes write to it at once.",
        hint=(
            "Its WAL-reset bug is rare, but what it destroys is gone. Use SQLite 3.51.3 or newer (or 3.50.7, or"
            " 3.44.6), or PostgreSQL or MariaDB; until then let one worker process write, and nothing beside it."
        ),
        id="workflow_engine.W009",
    )


@pytest.mark.parametrize(
    ("version", "affected"),
    [
        ((3, 6, 23), False),
        ((3, 7, 0), True),
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 45, 0), True),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 0), True),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 53, 0), False),
    ],
)
def test_the_releases_with_the_bug(version: tuple[int, ...], affected: bool) -> None:
    assert checks_distributed._has_wal_reset_bug(version) is affected


def test_a_server_database_knows_nothing_of_it() -> None:
    if connection.vendor != "sqlite":
        assert [message.id for message in messages(deploy=True)] == []
