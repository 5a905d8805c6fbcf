from __future__ import annotations

from typing import Any

import pytest

from tests.shop.workflows import WaitForGo
from tests.support import mailbox, settled
from workflow_engine import (
    IdempotencyConflictError,
    engine,
)


def test_the_same_key_again_is_the_first_row_even_after_the_end() -> None:
    instance = settled(engine.start(WaitForGo))
    first = engine.signal(instance, "go", {"id": 1}, idempotency_key="evt_1")
    again = engine.signal(instance, "go", {"id": 1.0}, idempotency_key="evt_1")
    settled(instance)
    afterwards = engine.signal(instance, "go", {"id": 1}, idempotency_key="evt_1")

    assert first.pk == again.pk == afterwards.pk
    assert afterwards.state == "consumed"
    assert mailbox(instance) == [("go", "consumed")]


@pytest.mark.parametrize(("name", "data"), [("go", {"id": 2}), ("stop", {"id": 1}), ("go", None)])
def test_the_same_key_with_another_name_or_other_data_is_an_error_that_carries_the_instance(
    name: str, data: Any
) -> None:
    instance = settled(engine.start(WaitForGo))
    first = engine.signal(instance, "go", {"id": 1}, idempotency_key="evt_1")

    with pytest.raises(IdempotencyConflictError) as raised:
        engine.signal(instance, name, data, idempotency_key="evt_1")

    assert str(raised.value) == (
        f"The idempotency key 'evt_1' already belongs to workflow instance {instance.pk}, with another signal, 'go'"
        f" #{first.pk}. Use the same values to get that instance, or another key for another one."
    )
    assert raised.value.instance == instance
    assert mailbox(instance) == [("go", "pending")]


def test_keys_of_signals_belong_to_their_instance() -> None:
    instances = [settled(engine.start(WaitForGo)) for _ in range(2)]

    sent = [engine.signal(instance, "go", n, idempotency_key="evt_1") for n, instance in enumerate(instances)]

    assert sent[0].pk != sent[1].pk


def test_a_signal_without_a_key_is_a_signal_of_its_own_each_time() -> None:
    instance = settled(engine.start(WaitForGo))
    engine.signal(instance, "go", 1)
    engine.signal(instance, "go", 1)

    instance = settled(instance)

    assert instance.status == "completed"
    assert mailbox(instance) == [("go", "consumed"), ("go", "discarded")]
