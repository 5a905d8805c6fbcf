"""What befalls processes."""

from __future__ import annotations

from random import Random

from tests.celery.chaos.nemesis.victims import Victims

_SHORTEST, _LONGEST = 3.0, 6.0
"""Seconds that somebody is stopped: past every lease and IDLE_IN_TRANSACTION, and mostly past HOLD and GRACE."""


def kill_a_child(victims: Victims, chance: Random) -> bool:
    """In the middle of a handler, an activity or an undo; or wherever it is."""
    kind = chance.choice(["handler", "activity", "undo"])
    caught = victims.fleet.caught({kind})
    children = victims.fleet.children() if caught is None else [caught]
    if not children:
        return False
    victims.fleet.kill_child(chance.choice(children))
    return True


def kill_a_worker(victims: Victims, chance: Random) -> bool:
    worker = chance.choice(victims.fleet.workers)
    if worker.has_ended():
        return False
    victims.fleet.kill(worker)
    return True


def stop_a_child_past_its_lease(victims: Victims, chance: Random) -> bool:
    """In the middle of an activity or an undo: its lease ends while it stands still."""
    caught = victims.fleet.caught({"activity", "undo"})
    if caught is None:
        return False
    victims.fleet.stop([caught], chance.uniform(_SHORTEST, _LONGEST))
    return True


def stop_a_child_in_a_transaction(victims: Victims, chance: Random) -> bool:
    """The database ends the transaction after IDLE_IN_TRANSACTION, or the instance would be locked for as long."""
    caught = victims.fleet.caught({"handler"})
    if caught is None:
        return False
    victims.fleet.stop([caught], chance.uniform(_SHORTEST, _LONGEST))
    return True


def stop_a_worker_past_its_leases(victims: Victims, chance: Random) -> bool:
    worker = chance.choice(victims.fleet.workers)
    if worker.has_ended():
        return False
    victims.fleet.stop([worker.pid, *worker.children], chance.uniform(_SHORTEST, _LONGEST))
    return True


def kill_the_tick(victims: Victims, chance: Random) -> bool:
    if victims.fleet.tick.has_ended():
        return False
    victims.fleet.kill(victims.fleet.tick)
    return True


def kill_the_web_process(victims: Victims, chance: Random) -> bool:
    if victims.fleet.web.has_ended():
        return False
    victims.fleet.kill(victims.fleet.web)
    return True


DEEDS = (
    kill_a_child,
    kill_a_worker,
    stop_a_child_past_its_lease,
    stop_a_child_in_a_transaction,
    stop_a_worker_past_its_leases,
    kill_the_tick,
    kill_the_web_process,
)
