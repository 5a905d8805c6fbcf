"""What befalls the broker, the connections to it, and the messages in it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from django.db import connection as database

from tests.celery.chaos.environment import QUEUE
from tests.celery.chaos.nemesis.victims import Victims
from tests.servers import redis as servers
from workflow_engine.models import WorkflowInstance

_LONGEST_AWAY = 3.0
_FORGED = 10


def lose_all_messages(victims: Victims, chance: Random) -> bool:
    """FLUSHALL; of RabbitMQ's, those that no worker has fetched."""
    broker = victims.cell.broker
    if isinstance(broker, servers.Redis):
        import redis

        with redis.Redis.from_url(broker.url) as client:
            client.flushall()
    else:
        with _channel(victims) as channel:
            channel.queue_purge(QUEUE)
    return True


def crash_the_broker(victims: Victims, chance: Random) -> bool:
    """As kill -9 does it. Redis has lost all its messages then."""
    victims.cell.broker.kill()
    time.sleep(chance.uniform(0, _LONGEST_AWAY))
    victims.cell.broker.start()
    return True


def restart_the_broker(victims: Victims, chance: Random) -> bool:
    """As for an upgrade."""
    victims.cell.broker.stop()
    time.sleep(chance.uniform(0, _LONGEST_AWAY))
    victims.cell.broker.start()
    return True


def cut_the_connections_to_the_broker(victims: Victims, chance: Random) -> bool:
    return victims.cell.before_broker.cut_all() > 0


def double_and_shuffle_messages(victims: Victims, chance: Random) -> bool:
    """All that wait are sent twice more, in another order; and so that there are some, one for each live instance."""
    with _channel(victims) as channel:
        taken = list(_taken(channel))
        for message in chance.sample(taken * 2, len(taken) * 2):
            _send_again(channel, message)
    database.close_if_unusable_or_obsolete()
    live = [str(key) for key in WorkflowInstance.objects.live().values_list("pk", flat=True)]
    _send(chance.sample(live * 2, len(live) * 2))
    return bool(live)


def forge_messages(victims: Victims, chance: Random) -> bool:
    """For any instances, for some that never were, and for what is no id at all."""
    database.close_if_unusable_or_obsolete()
    real = [str(key) for key in WorkflowInstance.objects.values_list("pk", flat=True)]
    strange = [str(uuid.UUID(int=chance.getrandbits(128))) for _ in range(_FORGED)]
    ids = [*chance.sample(real, min(_FORGED, len(real))), *strange, "nonsense"]
    _send(chance.sample(ids, len(ids)))
    return True


def _taken(channel: Any) -> Iterator[Any]:
    from tests.celery.chaos.project.app import app

    queue = app.amqp.queues[QUEUE](channel)
    while (message := queue.get()) is not None:
        message.ack()
        yield message


def _send(ids: list[str]) -> None:
    from tests.celery.chaos.project.app import app

    with app.connection_for_write() as connection:
        for instance_id in ids:
            app.send_task("workflow_engine.advance", [instance_id], connection=connection)


def _send_again(channel: Any, message: Any) -> None:
    from tests.celery.chaos.project.app import app

    app.amqp.Producer(channel, auto_declare=False).publish(
        message.body,
        routing_key=QUEUE,
        content_type=message.content_type,
        content_encoding=message.content_encoding,
        headers=message.headers,
        correlation_id=message.properties.get("correlation_id"),
    )


@contextmanager
def _channel(victims: Victims) -> Iterator[Any]:
    from tests.celery.chaos.project.app import app

    with app.connection_for_write(victims.cell.broker.url) as connection:
        yield connection.default_channel


DEEDS = (
    lose_all_messages,
    crash_the_broker,
    restart_the_broker,
    cut_the_connections_to_the_broker,
    double_and_shuffle_messages,
    forge_messages,
)
