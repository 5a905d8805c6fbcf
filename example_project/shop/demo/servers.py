"""The servers of the demo on Celery. Somebody else runs them: they are asked whether they are there, and go on."""

from __future__ import annotations

from typing import Any

from celery import current_app
from django.db import DatabaseError, connection
from kombu.exceptions import OperationalError

from .workers import ServerMissingError

PATIENCE = 5
"""Seconds that a broker may take to answer."""

_TITLES = {"postgresql": "PostgreSQL", "mysql": "MariaDB", "redis": "Redis", "amqp": "RabbitMQ"}
# One that is always there, to be asked for another one.
_FIRST_DATABASE = {"postgresql": "postgres", "mysql": ""}


def create_database() -> str:
    """Unless it is there. Returns the server's name and address. Raises ServerMissingError."""
    server = connection.copy()
    name = server.ops.quote_name(server.settings_dict["NAME"])
    title, where = _TITLES[server.vendor], "{HOST}:{PORT}".format(**server.settings_dict).rstrip(":")
    server.settings_dict["NAME"] = _FIRST_DATABASE[server.vendor]
    try:
        with server.cursor() as cursor:
            if server.vendor == "mysql":
                cursor.execute(f"CREATE DATABASE IF NOT EXISTS {name} CHARACTER SET utf8mb4")
            elif not _is_there(cursor):
                cursor.execute(f"CREATE DATABASE {name}")
    except DatabaseError as error:
        raise ServerMissingError(title, where, "SHOP_DATABASE_URL", error) from error
    finally:
        server.close()
    return f"{title} at {where}"


def _is_there(cursor: Any) -> bool:
    cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", [connection.settings_dict["NAME"]])
    return cursor.fetchone() is not None


def ask_broker() -> str:
    """Returns its name and address. Raises ServerMissingError if it does not answer."""
    with current_app.connection_for_write(connect_timeout=PATIENCE) as link:
        title = _TITLES.get(link.transport_cls, link.transport_cls)
        where = f"{link.hostname}:{link.port or link.transport.default_port}"
        try:
            link.ensure_connection(max_retries=1, interval_start=0)
        except Exception as error:
            raise ServerMissingError(title, where, "SHOP_BROKER_URL", error) from error
    return f"{title} at {where}"


def leave_broker() -> None:
    """Remove the queue, if the broker is still there: what an instance waits for is in the tables."""
    queue = current_app.amqp.queues[current_app.conf.task_default_queue]
    with current_app.connection_for_write(connect_timeout=PATIENCE) as link:
        try:
            link.ensure_connection(max_retries=1)
        except OperationalError:
            return
        bound = queue(link.default_channel)
        # kombu unbinds only what it has bound itself.
        bound.declare()
        bound.delete()
        bound.exchange.delete()
