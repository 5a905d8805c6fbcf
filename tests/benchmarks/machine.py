"""What a benchmark ran on, and what else the machine did meanwhile."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version

import django
from celery import current_app
from django.db import connection

from tests.databases import ENGINE, FIRST_DATABASE, TITLES
from tests.machine import processor


def described(broker: str) -> Iterator[str]:
    """One line each."""
    yield f"date      {datetime.now(UTC):%Y-%m-%d}"
    yield f"machine   {processor()}, {os.cpu_count()} cores"
    yield f"software  Python {platform.python_version()}, Django {django.get_version()}, Celery {version('celery')}"
    yield f"database  {TITLES[ENGINE]} {_database()}"
    yield f"broker    {broker} {_broker()}"


def load(when: str) -> str:
    """The load average of the last minute: what runs here besides us is in it."""
    return f"load      {os.getloadavg()[0]:.1f} {when}, of the last minute"


def _database() -> str:
    server = connection.copy()
    server.settings_dict["NAME"] = FIRST_DATABASE[ENGINE]
    with server.cursor() as cursor:
        cursor.execute("SELECT version()")
        text = str(cursor.fetchone()[0])
    server.close()
    return text.removeprefix("PostgreSQL ").split(" ")[0]


def _broker() -> str:
    with current_app.connection_for_write() as link:
        channel = link.default_channel
        if link.transport_cls == "redis":
            return str(channel.client.info("server")["redis_version"])
        return str(link.connection.server_properties["version"])
