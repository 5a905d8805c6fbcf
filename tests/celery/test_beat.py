from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.apps import apps
from pytest_django.fixtures import Settings

from tests.celery import recording
from tests.management.calling import refused, say
from workflow_engine import beat

HERE = apps.is_installed("django_celery_beat")
needs_beat = pytest.mark.skipif(not HERE, reason="needs django-celery-beat: pytest --ds=tests.settings_with_beat")


@pytest.fixture(autouse=True)
def pushing(settings: Settings) -> None:
    settings.WORKFLOW_ENGINE = {"DISPATCHER": recording.PATH}


def rows() -> Any:
    app = apps.get_app_config("django_celery_beat")
    return app.get_model("PeriodicTask")._default_manager.filter(name__startswith="workflow_engine.")


def stored() -> list[tuple[str, str, str, int, str, str | None]]:
    return [
        (row.name, row.task, row.kwargs, row.interval.every, row.interval.period, row.queue)
        for row in rows().order_by("pk")
    ]


@pytest.mark.skipif(HERE, reason="django-celery-beat is installed here")
def test_without_beat_the_command_says_what_else_there_is() -> None:
    assert refused("workflow_beat") == (
        "django-celery-beat is not among INSTALLED_APPS. Install it (pip install 'django-workflow-steps[beat]'), add"
        " 'django_celery_beat' and migrate; or run this beside the workers instead: python manage.py workflow_tick"
        " --loop"
    )


@needs_beat
def test_the_periodic_tasks_are_installed_and_installing_them_again_changes_nothing() -> None:
    assert say("workflow_beat").lines == [
        "workflow_engine.tick: installed, every 10 s.",
        "workflow_engine.prune: installed, every 1 d.",
    ]
    first = stored()
    assert first == [
        ("workflow_engine.tick", "workflow_engine.tick", '{"using": "default"}', 10, "seconds", None),
        ("workflow_engine.prune", "workflow_engine.prune", '{"using": "default"}', 86_400, "seconds", None),
    ]
    assert say("workflow_beat").lines == [
        "workflow_engine.tick: as it should be, every 10 s.",
        "workflow_engine.prune: as it should be, every 1 d.",
    ]
    assert stored() == first


@needs_beat
def test_another_interval_or_queue_is_taken_over(settings: Settings) -> None:
    say("workflow_beat")
    settings.WORKFLOW_ENGINE = {**settings.WORKFLOW_ENGINE, "TICK_INTERVAL": 2.5}
    assert say("workflow_beat", "--queue", "ticks").lines == [
        "workflow_engine.tick: changed (every, queue), every 2 s.",
        "workflow_engine.prune: changed (queue), every 1 d.",
    ]
    assert [(row[3], row[4], row[5]) for row in stored()] == [
        (2_500_000, "microseconds", "ticks"),
        (86_400, "seconds", "ticks"),
    ]


@needs_beat
def test_a_queue_that_was_set_by_hand_is_kept() -> None:
    say("workflow_beat")
    rows().update(queue="by hand")
    assert say("workflow_beat", "--check").lines[0] == "workflow_engine.tick: as it should be, every 10 s."
    say("workflow_beat")
    assert {row[5] for row in stored()} == {"by hand"}


@needs_beat
def test_one_that_was_disabled_stays_so() -> None:
    say("workflow_beat")
    rows().update(enabled=False)
    assert say("workflow_beat").lines == [
        "workflow_engine.tick: every 10 s, but it is disabled. Enable it in the admin.",
        "workflow_engine.prune: every 1 d, but it is disabled. Enable it in the admin.",
    ]
    assert list(rows().values_list("enabled", flat=True)) == [False, False]


@needs_beat
def test_the_check_tells_what_is_wrong_and_changes_nothing() -> None:
    told = "The periodic tasks are not as they should be. Run: python manage.py workflow_beat"
    assert refused("workflow_beat", "--check") == told
    assert stored() == []
    say("workflow_beat")
    say("workflow_beat", "--check")
    rows().filter(name="workflow_engine.tick").update(task="somebody.elses")
    rows().filter(name="workflow_engine.prune").update(enabled=False)
    assert refused("workflow_beat", "--check") == told
    states = {finding.wanted.name: (finding.state, dict(finding.differences)) for finding in beat.inspect("default")}
    assert states == {
        "workflow_engine.tick": ("different", {"task": ("somebody.elses", "workflow_engine.tick")}),
        "workflow_engine.prune": ("disabled", {}),
    }


@needs_beat
def test_json_tells_the_same(settings: Settings) -> None:
    say("workflow_beat")
    settings.WORKFLOW_ENGINE = {**settings.WORKFLOW_ENGINE, "TICK_INTERVAL": 5}
    tick, prune = say("workflow_beat", "--json").json
    assert tick == {
        "name": "workflow_engine.tick",
        "task": "workflow_engine.tick",
        "every": 5.0,
        "state": "different",
        "differences": {"every": {"is": "P0DT00H00M10S", "should_be": "P0DT00H00M05S"}},
    }
    assert prune["state"] == "right"


@needs_beat
def test_each_database_has_tasks_of_its_own() -> None:
    beat.install("default")
    beat.install("other")
    assert [(row[0], row[2]) for row in stored()] == [
        ("workflow_engine.tick", '{"using": "default"}'),
        ("workflow_engine.prune", '{"using": "default"}'),
        ("workflow_engine.tick of other", '{"using": "other"}'),
        ("workflow_engine.prune of other", '{"using": "other"}'),
    ]


@needs_beat
def test_a_dispatcher_that_polls_needs_no_tick(settings: Settings) -> None:
    settings.WORKFLOW_ENGINE = {}
    assert say("workflow_beat").err == (
        "The dispatcher 'database' hands nothing out, so tick will find nothing to do.\n"
    )


@needs_beat
def test_beat_sends_what_was_installed() -> None:
    from django_celery_beat.schedulers import DatabaseScheduler

    from tests.celery.brokers import MEMORY, app_at, messages

    say("workflow_beat", "--queue", "ticks")
    sent_at = datetime.now(UTC)
    with app_at(MEMORY) as app:
        scheduler = DatabaseScheduler(app=app)
        schedule = scheduler.schedule
        assert schedule["workflow_engine.tick"].schedule.run_every == timedelta(seconds=10)
        scheduler.apply_async(schedule["workflow_engine.tick"])
        (message,) = messages(app, "ticks")
    assert (message.task, message.args, message.kwargs) == ("workflow_engine.tick", [], {"using": "default"})
    # A backlog that is longer than an interval makes ticks late, and drops none of them.
    assert datetime.fromisoformat(message.headers["expires"]) >= sent_at + timedelta(minutes=59)
