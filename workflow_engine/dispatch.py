"""Which dispatcher is configured, and the one call that hands an instance to it."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from workflow_engine import conf
from workflow_engine.exceptions import BrokerUnavailableError
from workflow_engine.failpoints import around

if TYPE_CHECKING:
    from uuid import UUID

logger = logging.getLogger("workflow_engine")

NO_DELAY = timedelta()
BUILT_IN = {
    "database": "workflow_engine.dispatchers.database.DatabaseDispatcher",
    "inline": "workflow_engine.dispatchers.inline.InlineDispatcher",
    "celery": "workflow_engine.dispatchers.celery.CeleryDispatcher",
}


class Dispatcher(ABC):
    """Gets an instance driven by some process, soon. A dispatch is a hint: it may be lost, doubled or late."""

    pushes: ClassVar[bool]
    """Whether work is handed out (then `tick` repeats what got lost), or fetched by workers that poll."""

    @abstractmethod
    def dispatch(self, instance_id: UUID, *, queue: str, using: str, delay: timedelta) -> None:
        """Hand out one instance. Called outside transactions. May raise: the caller logs it and `tick` repeats it.

        Args:
            instance_id: of the instance.
            queue: that its workflow asks for; "" for the default.
            using: the database alias it is in.
            delay: how long from now it is due; never longer than a tick's interval.
        """


def dispatcher() -> Dispatcher:
    """The configured dispatcher.

    Raises:
        ImproperlyConfigured: `WORKFLOW_ENGINE["DISPATCHER"]` names none.
    """
    return _load(conf.current().DISPATCHER)


def wake(instance_id: UUID, *, queue: str, using: str, delay: timedelta = NO_DELAY) -> bool:
    """Hand the instance to the dispatcher; False if that failed, which is logged and never raised.

    The work is committed: failing the caller's request for it would be a lie, and whoever polls finds it anyway.
    """
    try:
        with around("dispatch"):
            dispatcher().dispatch(instance_id, queue=queue, using=using, delay=delay)
    except BrokerUnavailableError as error:
        # One line each: a broker that is away for an hour must not fill the log with tracebacks.
        logger.warning(
            "Workflow instance %s is handed out again later: %s",
            instance_id,
            error,
            extra={"workflow_instance_id": str(instance_id)},
        )
        return False
    except Exception:
        logger.exception(
            "Handing out workflow instance %s failed; it is handed out again later",
            instance_id,
            extra={"workflow_instance_id": str(instance_id)},
        )
        return False
    return True


@cache
def _load(name: str) -> Dispatcher:
    path = BUILT_IN.get(name, name)
    try:
        built = import_string(path)()
    except ImportError as error:
        msg = f"WORKFLOW_ENGINE['DISPATCHER'] is {name!r}, which can't be loaded ({error})."
        raise ImproperlyConfigured(f"{msg} Use one of {', '.join(sorted(BUILT_IN))} or the path of a class.") from error
    if not isinstance(built, Dispatcher):
        msg = f"WORKFLOW_ENGINE['DISPATCHER']: {path} is not a workflow_engine.dispatch.Dispatcher."
        raise ImproperlyConfigured(msg)
    return built
