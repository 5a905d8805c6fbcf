from __future__ import annotations

from tests.celery.chaos.judging import with_all_deaths


def test_a_process_is_dead_right_after_its_last_word() -> None:
    told = [{"what": "began", "pid": pid, "at": at} for at, pid in enumerate([1, 2, 1])]
    died = [{"what": "died", "pid": pid, "at": at, "who": pid, "by": "end"} for at, pid in ((1, 2), (2, 1))]
    assert with_all_deaths(told) == [told[0], told[1], died[0], told[2], died[1]]
