"""The cells of {PostgreSQL, MariaDB} x {Redis, RabbitMQ}: what a run's workers and its web side agree on.

WORKFLOW_ENGINE_TEST_REDIS and WORKFLOW_ENGINE_TEST_RABBITMQ say where the brokers are; without them on this machine.
Each run has a queue and, on Redis, a prefix of its own.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.databases import ENGINE

BROKER_VARIABLE = "WORKFLOW_ENGINE_TEST_BROKER"
NAME_VARIABLE = "WORKFLOW_ENGINE_TEST_QUEUE"

BROKERS = {
    "redis": os.environ.get("WORKFLOW_ENGINE_TEST_REDIS", "redis://127.0.0.1:6379/0"),
    "rabbitmq": os.environ.get("WORKFLOW_ENGINE_TEST_RABBITMQ", "amqp://guest:guest@127.0.0.1:5672//"),
}

ENGINE_SETTINGS: dict[str, Any] = {
    "DISPATCHER": "celery",
    # Everything that is waited for is shorter than in life, in the same proportions.
    "TICK_INTERVAL": 1,
    "GRACE": 4,
    "HOLD": 4,
    "POSTPONE": 4,
    "MAX_RECOVERIES": 1,
}


def cell(broker: str) -> Any:
    """The parameter for a broker: one cell belongs to the tests of the services, all to those of every cell."""
    default = (ENGINE, broker) == ("postgresql", "redis")
    return pytest.param(broker, marks=[pytest.mark.services] if default else [pytest.mark.every_cell])


def queue() -> str:
    """The default queue of this run."""
    return os.environ.setdefault(NAME_VARIABLE, f"workflow_engine_test_{os.getpid()}")


def transport_options(url: str) -> dict[str, Any]:
    """As a deployment has them."""
    if not url.startswith("redis"):
        return {}
    return {"socket_timeout": 10, "socket_connect_timeout": 5, "global_keyprefix": f"{queue()}:"}
