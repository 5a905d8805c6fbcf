from __future__ import annotations

import pytest

from tests.shop.models import Counter
from tests.shop.workflows import OneStep, WaitForGo
from tests.support import mailbox, settled
from workflow_engine import IdempotencyConflictError, NoLiveInstanceError, engine

ORDER = ("shop.order", 42)


def test_a_signal_to_a_subject_reaches_every_live_instance_of_it_and_nobody_else() -> None:
    ended = settled(engine.start(OneStep, subject=ORDER))
    live = [engine.start(WaitForGo, subject=ORDER) for _ in range(2)]
    stranger = engine.start(WaitForGo, subject=("shop.order", 421))

    sent = engine.signal_subject(ORDER, "go", {"n": 1}, actor="stripe")

    assert [row.instance_id for row in sent] == [instance.pk for instance in live]
    assert [settled(instance).status for instance in live] == ["completed", "completed"]
    assert mailbox(stranger) == mailbox(ended) == []


def test_a_subject_may_be_a_row() -> None:
    counter = Counter.objects.create(name="it")
    instance = engine.start(WaitForGo, subject=counter)

    engine.signal_subject(counter, "go")

    assert settled(instance).status == "completed"


@pytest.mark.parametrize("ended", [False, True])
def test_a_subject_without_a_live_instance_is_an_error_so_that_the_sender_tries_again(ended: bool) -> None:
    if ended:
        settled(engine.start(OneStep, subject=ORDER))

    with pytest.raises(NoLiveInstanceError) as raised:
        engine.signal_subject(ORDER, "go", idempotency_key="evt_1")

    assert str(raised.value) == (
        "No live workflow instance for shop.order:42, so the signal 'go' was not stored."
        " Answer the sender with an error so that it tries again, or start the workflow first."
    )


def test_a_repetition_after_the_end_is_answered_like_the_first_time() -> None:
    instance = settled(engine.start(WaitForGo, subject=ORDER))
    first = engine.signal_subject(ORDER, "go", {"n": 1}, idempotency_key="evt_1")
    assert settled(instance).status == "completed"

    again = engine.signal_subject(ORDER, "go", {"n": 1}, idempotency_key="evt_1")

    assert [row.pk for row in again] == [row.pk for row in first]
    assert mailbox(instance) == [("go", "consumed")]


def test_a_repetition_with_other_data_after_the_end_is_an_error() -> None:
    instance = settled(engine.start(WaitForGo, subject=ORDER))
    (first,) = engine.signal_subject(ORDER, "go", {"n": 1}, idempotency_key="evt_1")
    settled(instance)

    with pytest.raises(IdempotencyConflictError) as raised:
        engine.signal_subject(ORDER, "go", {"n": 2}, idempotency_key="evt_1")

    assert str(raised.value) == (
        f"The idempotency key 'evt_1' already belongs to workflow instance {instance.pk}, with another signal, 'go'"
        f" #{first.pk}. Use the same values to get that instance, or another key for another one."
    )


def test_all_instances_of_the_subject_get_the_signal_or_none_does() -> None:
    first, second = (settled(engine.start(WaitForGo, subject=ORDER)) for _ in range(2))
    engine.signal(second, "go", {"n": 2}, idempotency_key="evt_1")

    with pytest.raises(IdempotencyConflictError):
        engine.signal_subject(ORDER, "go", {"n": 1}, idempotency_key="evt_1")

    assert mailbox(first) == []
