"""A process that is stopped in the middle of a step keeps its transaction, and with it the row: only the database can
take that away, and does so after IDLE_IN_TRANSACTION.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from tests.shop.models import Counter
from tests.support import kinds
from tests.traps import needs
from tests.traps.background import eventually, line_from, process
from workflow_engine import Context, Workflow, clock, engine, step
from workflow_engine.engine.connections import _limited, limit_idle_transactions
from workflow_engine.testing import reload
from workflow_engine.worker import Worker

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def no_worker_yet() -> Iterator[None]:
    """As in a process in which no worker has started."""
    before = set(_limited)
    _limited.clear()
    connection.close()
    yield
    _limited.clear()
    _limited.update(before)
    connection.close()


def limit() -> str:
    """What this thread's connection says."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SHOW idle_in_transaction_session_timeout")
        else:
            cursor.execute("SELECT @@SESSION.idle_transaction_timeout")
        return str(cursor.fetchone()[0]).removesuffix("s")  # PostgreSQL adds a unit


@needs.server
def test_a_workers_connections_are_limited_and_no_others(no_worker_yet: None, settings: Settings) -> None:
    settings.WORKFLOW_ENGINE = {"IDLE_IN_TRANSACTION": 7}
    assert limit() == "0"
    limit_idle_transactions("other")
    connection.close()
    assert limit() == "0"
    Worker().run(burst=True)
    assert limit() == "7"
    connection.close()
    assert limit() == "7"


@needs.server
def test_the_limit_is_rounded_up_and_0_means_none(no_worker_yet: None, settings: Settings) -> None:
    settings.WORKFLOW_ENGINE = {"IDLE_IN_TRANSACTION": timedelta(days=365)}
    limit_idle_transactions("default")
    assert limit() in {"24d", str(24 * 24 * 3600)}
    settings.WORKFLOW_ENGINE = {"IDLE_IN_TRANSACTION": 1.2}
    connection.close()
    assert limit() == ("1200m" if connection.vendor == "postgresql" else "2")
    settings.WORKFLOW_ENGINE = {"IDLE_IN_TRANSACTION": 0}
    connection.close()
    assert limit() == "0"


@needs.server
def test_its_row_is_freed_and_when_it_goes_on_it_writes_nothing() -> None:
    class Shipping(Workflow):
        name = "shipping"

        @step
        def pack(self, ctx: Context) -> None:
            Counter.objects.create(name="by another process")

    instance = engine.start(Shipping)
    with process("worker_to_stop") as stopped:
        assert line_from(stopped) == "inside"
        os.kill(stopped.pid, signal.SIGSTOP)
        clock.shift(timedelta(minutes=2))  # its hold is over
        eventually(lambda: Worker().run(burst=True))
        os.kill(stopped.pid, signal.SIGCONT)
        said, _ = stopped.communicate("go on\n")
        assert (said, stopped.returncode) == ("driven: ended\n", 0)
    instance = reload(instance)
    assert [counter.name for counter in Counter.objects.all()] == ["by another process"]
    assert kinds(instance) == ["workflow_started", "step_completed", "workflow_completed"]
    assert (instance.recoveries, instance.suspect) == (0, False)
