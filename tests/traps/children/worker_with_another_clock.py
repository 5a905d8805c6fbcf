"""One burst of a worker on a machine whose clock is wrong: the argument says by how many seconds."""

from __future__ import annotations

import datetime as dt
import sys
import time
from typing import Any

OFFSET = int(sys.argv[1])
RIGHT, real_time, real_time_ns = dt.datetime, time.time, time.time_ns


class Kind(type):
    """What drivers make by other ways is a datetime too."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, RIGHT)


def wrong_now(cls: object, tz: dt.tzinfo | None = None) -> Any:
    """What everything that is imported from here on gets from datetime.now()."""
    return RIGHT.now(tz) + dt.timedelta(seconds=OFFSET)


vars(dt)["datetime"] = Kind("WrongDatetime", (RIGHT,), {"now": classmethod(wrong_now)})
time.time = lambda: real_time() + OFFSET
time.time_ns = lambda: real_time_ns() + OFFSET * 10**9

import django  # noqa: E402 - after the clock is wrong

django.setup()

from django.utils import timezone  # noqa: E402

from tests.traps.skewed import define  # noqa: E402
from workflow_engine.worker import Worker  # noqa: E402

assert abs(timezone.now().timestamp() - real_time() - OFFSET) < 60, "nothing would be tested"
define()
Worker(report=lambda instance_id, driven: print(f"{instance_id} {driven.answer}")).run(burst=True)
