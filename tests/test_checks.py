from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.core.checks import CheckMessage, Error, Tags, Warning, run_checks  # noqa: A004 - Django's own name
from django.core.management import call_command
from django.db import connection, connections

from tests.traps.needs import mariadb, sqlite
from workflow_engine import Await, Context, Goto, Signal, Workflow, checks, checks_distributed, step
from workflow_engine.domain.registry import registry

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings


def messages() -> list[CheckMessage]:
    return run_checks(tags=[checks.TAG])


def messages_of_databases() -> list[CheckMessage]:
    found = run_checks(tags=[Tags.database], databases=["default"])
    return [message for message in found if str(message.id).startswith("workflow_engine.")]


@pytest.fixture(autouse=True)
def before() -> Iterator[dict[tuple[str, int], type[Workflow[Any]]]]:
    """Nothing is registered but what a test defines; gives what was registered before."""
    with registry.isolated():
        before, registry._classes = registry._classes, {}
        yield before


def test_a_project_that_is_right_has_no_messages(before: dict[tuple[str, int], type[Workflow[Any]]]) -> None:
    registry._classes = before
    assert messages() == []


def test_the_checks_run_with_manage_py_check() -> None:
    call_command("check", tags=["workflow_engine"])


def test_an_unknown_setting_asks_whether_another_was_meant(settings: Settings) -> None:
    settings.WORKFLOW_ENGINE = {"DISPATCH": "inline"}
    assert messages() == [
        Error(
            "WORKFLOW_ENGINE has no setting 'DISPATCH'.",
            hint="Did you mean 'DISPATCHER'?",
            id="workflow_engine.E001",
        )
    ]


@pytest.mark.parametrize(
    ("key", "value", "shown", "hint"),
    [
        ("HOLD", "60", "'60'", "Give a timedelta or a number of seconds."),
        ("HOLD", -1, "-1", "Give a timedelta or a number of seconds."),
        ("HOLD", 0, "0", "Give a length of time above zero."),
        ("MAX_RECOVERIES", 1.5, "1.5", "Give a whole number."),
        ("MAX_RECOVERIES", True, "True", "Give a whole number."),
        ("MAX_RECOVERIES", 0, "0", "Give a number from 1 on."),
        ("INFRASTRUCTURE_RETRIES", -1, "-1", "Give a number from 0 on."),
        ("SIGNALS_BUFFER_EARLY", "yes", "'yes'", "Give True or False."),
        ("DISPATCHER", None, "None", "Give a text."),
    ],
)
def test_a_wrong_value_is_shown_with_what_would_be_right(
    settings: Settings, key: str, value: object, shown: str, hint: str
) -> None:
    settings.WORKFLOW_ENGINE = {key: value}
    assert messages() == [Error(f"WORKFLOW_ENGINE['{key}'] is {shown}.", hint=hint, id="workflow_engine.E002")]


def test_values_at_their_limits_are_right(settings: Settings) -> None:
    settings.WORKFLOW_ENGINE = {"RETENTION": 0, "INFRASTRUCTURE_RETRIES": 0, "POLL_INTERVAL": 0.1, "DRIVE_STEPS": 1}
    assert messages() == []


def test_the_settings_have_to_be_a_dict(settings: Settings) -> None:
    settings.WORKFLOW_ENGINE = ["HOLD"]
    assert messages() == [
        Error("WORKFLOW_ENGINE is a list.", hint="Make it a dict, or leave it out.", id="workflow_engine.E002")
    ]


def test_a_dispatcher_that_does_not_exist_is_told_with_those_that_do(settings: Settings) -> None:
    settings.WORKFLOW_ENGINE = {"DISPATCHER": "databse"}
    assert messages() == [
        Error(
            "WORKFLOW_ENGINE['DISPATCHER'] is 'databse', which can't be loaded:"
            " databse doesn't look like a module path.",
            hint="Did you mean 'database'? It may also be the dotted path of a Dispatcher class.",
            id="workflow_engine.E003",
        )
    ]


def test_a_dispatcher_has_to_be_one(settings: Settings) -> None:
    settings.WORKFLOW_ENGINE = {"DISPATCHER": "decimal.Decimal"}
    assert messages() == [
        Error(
            "WORKFLOW_ENGINE['DISPATCHER'] is 'decimal.Decimal', which is no Dispatcher.",
            hint="Derive the class from workflow_engine.dispatch.Dispatcher.",
            id="workflow_engine.E003",
        )
    ]


def test_the_celery_dispatcher_needs_celery(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    monkeypatch.setattr(checks_distributed, "find_spec", lambda name: None)
    settings.WORKFLOW_ENGINE = {"DISPATCHER": "celery"}
    assert messages() == [
        Error(
            "WORKFLOW_ENGINE['DISPATCHER'] is 'celery', but Celery is not installed.",
            hint="Run: pip install 'django-workflow-steps[celery]'. Or use the dispatcher 'database'.",
            id="workflow_engine.E004",
        )
    ]


def test_times_without_a_zone_are_refused(settings: Settings) -> None:
    settings.USE_TZ = False
    assert messages() == [
        Error(
            "USE_TZ is False: deadlines would be ambiguous for an hour, and wrong between processes in two zones.",
            hint="Set USE_TZ = True.",
            id="workflow_engine.E005",
        )
    ]


def line_of(text: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_several_awaited_names_need_a_handler() -> None:
    class Order(Workflow):
        name = "order"

        @step
        def await_payment(self, ctx: Context) -> Await:
            return Await("paid", "refused")  # without a handler

        @step
        def await_parcel(self, ctx: Context) -> Await:
            return Await("sent", "lost")

        @await_parcel.on_signal
        def answered(self, ctx: Context, signal: Signal) -> None:
            pass

        @step
        def await_one(self, ctx: Context) -> Await:
            return Await("one", "one")

    assert messages() == [
        Error(
            "Order.await_payment awaits paid, refused, but nothing tells them apart.",
            hint="Declare a handler with @await_payment.on_signal: it gets the signal that came.",
            obj=f"tests.test_checks:{line_of('# without a handler')}",
            id="workflow_engine.E006",
        )
    ]


def test_a_goto_that_can_be_seen_to_lead_nowhere_is_an_error() -> None:
    class Order(Workflow):
        name = "order"

        @step(goes_to=("pay",))
        def reserve(self, ctx: Context) -> Goto:
            return Goto("shipp") if ctx.get("paid") else Goto("ship")  # both are wrong

        @step
        def pay(self, ctx: Context) -> Goto:
            return Goto("ship")

        @step
        def ship(self, ctx: Context) -> None:
            pass

    place = f"tests.test_checks:{line_of('# both are wrong')}"
    assert sorted(messages(), key=str) == [
        Error(
            "Order.reserve goes to 'ship', which its goes_to does not list.",
            hint="Add it to goes_to of the step 'reserve'.",
            obj=place,
            id="workflow_engine.E007",
        ),
        Error(
            "Order.reserve goes to 'shipp', which is no step here.",
            hint="Did you mean 'ship'?",
            obj=place,
            id="workflow_engine.E007",
        ),
    ]


@sqlite
def test_sqlite_has_to_begin_its_transactions_as_immediate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections["default"].settings_dict, "OPTIONS", {"timeout": 20})
    assert messages() == [
        Warning(
            "The SQLite database 'default' does not begin its transactions as IMMEDIATE.",
            hint=(
                "Set OPTIONS['transaction_mode'] = 'IMMEDIATE' in DATABASES['default']. Else two processes that write"
                " at the same time fail with 'database is locked', without waiting for each other."
            ),
            id="workflow_engine.W001",
        )
    ]


@sqlite
@pytest.mark.django_db(transaction=True)
def test_sqlite_should_write_ahead() -> None:
    assert messages_of_databases() == []
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode=DELETE")
        try:
            found = messages_of_databases()
        finally:
            cursor.execute("PRAGMA journal_mode=WAL")
    assert found == [
        Warning(
            "The SQLite database 'default' has the journal mode delete, not WAL.",
            hint=(
                "Set OPTIONS['init_command'] = 'PRAGMA journal_mode=WAL;' in DATABASES['default']. Else whoever reads"
                " keeps the workers from writing."
            ),
            id="workflow_engine.W002",
        )
    ]


@mariadb
@pytest.mark.django_db(transaction=True)
def test_mariadb_should_read_what_is_committed() -> None:
    assert messages_of_databases() == []
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        try:
            found = messages_of_databases()
        finally:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    assert found == [
        Warning(
            "The database 'default' has the isolation level REPEATABLE-READ, not READ-COMMITTED.",
            hint=(
                "Remove OPTIONS['isolation_level'] from DATABASES['default'], or set it to 'read committed', Django's"
                " default. At other levels what is read after a lock may be older than the lock."
            ),
            id="workflow_engine.W003",
        )
    ]


def test_no_database_is_asked_unless_it_is_named() -> None:
    # Without a database mark, pytest-django refuses any query.
    assert messages() == []


@pytest.mark.parametrize("value", ["password", [1], [""], None])
def test_what_is_masked_is_a_list_of_texts(settings: Settings, value: object) -> None:
    settings.WORKFLOW_ENGINE = {"REDACT": value}
    [message] = messages()
    assert message.id == "workflow_engine.E002"
    assert message.hint == "Give a list of words that keys contain, and of dotted paths of callables."


@pytest.mark.parametrize("path", ["no.such.thing", "workflow_engine.conf.KEYS"])
def test_what_masks_has_to_be_callable(settings: Settings, path: str) -> None:
    settings.WORKFLOW_ENGINE = {"REDACT": ["password", path, "decimal.Decimal"]}
    assert messages() == [
        Error(
            f"WORKFLOW_ENGINE['REDACT'] names {path!r}, which can't be loaded or called.",
            hint="Give the dotted path of a callable (key, value), or a word without a dot for keys.",
            id="workflow_engine.E008",
        )
    ]
