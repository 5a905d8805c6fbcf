from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.engine.broken import Broken
from tests.shop.workflows import OneStep, WaitForGo
from tests.support import events, kinds, mailbox, settled
from workflow_engine import InvalidStateError, engine
from workflow_engine.engine import Answer
from workflow_engine.models import WorkflowInstance, WorkflowSignal
from workflow_engine.testing import reload


def completed() -> WorkflowInstance:
    return settled(engine.start(OneStep))


def failed() -> WorkflowInstance:
    return settled(engine.start(Broken().workflow))


def cancelled() -> WorkflowInstance:
    instance = engine.start(WaitForGo)
    engine.cancel(instance)
    return settled(instance)


def waiting() -> WorkflowInstance:
    return settled(engine.start(WaitForGo))


def paused() -> WorkflowInstance:
    instance = waiting()
    engine.pause(instance)
    return settled(instance)


ENDED = "It has ended and can't be changed any more."


@pytest.mark.parametrize(
    ("verb", "arrange", "status", "remedy"),
    [
        ("cancel", completed, "completed", ENDED),
        ("cancel", cancelled, "cancelled", ENDED),
        ("cancel", failed, "failed", ENDED),
        ("pause", completed, "completed", ENDED),
        ("pause", failed, "failed", ENDED),
        ("pause", paused, "awaiting and paused", "It is paused already."),
        ("resume", waiting, "awaiting", "It is not paused."),
        ("resume", completed, "completed", ENDED),
        ("retry", waiting, "awaiting", "Only a failed instance can be retried."),
        ("retry", completed, "completed", "Only a failed instance can be retried."),
        ("retry", cancelled, "cancelled", "Only a failed instance can be retried."),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_at_once(
    verb: str, arrange: Callable[[], WorkflowInstance], status: str, remedy: str
) -> None:
    instance = arrange()
    before = (kinds(instance), mailbox(instance))

    with pytest.raises(InvalidStateError) as raised:
        getattr(engine, verb)(instance)

    assert str(raised.value) == f"Can't {verb} workflow instance {instance.pk}: it is {status}. {remedy}"
    assert (kinds(instance), mailbox(instance)) == before


@pytest.mark.parametrize(
    ("verbs", "states", "reason"),
    [
        (["cancel", "cancel"], ["consumed", "rejected"], ENDED),
        (["cancel", "pause"], ["consumed", "rejected"], ENDED),
        (["pause", "pause"], ["consumed", "rejected"], "It is paused already."),
        (["pause", "cancel"], ["consumed", "consumed"], ""),
    ],
)
def test_a_request_that_makes_no_sense_any_more_is_recorded_as_denied(
    verbs: list[str], states: list[str], reason: str
) -> None:
    instance = waiting()
    sent = [getattr(engine, verb)(instance, actor="riley") for verb in verbs]
    instance = settled(instance)

    rows = list(WorkflowSignal.objects.order_by("id"))
    assert ([row.state for row in rows], rows[-1].reason) == (states, reason)
    denied = events(instance, "request_denied")
    assert [(event.actor, event.trigger, event.data) for event in denied] == [
        ("riley", f"signal:{sent[-1].pk}", {"request": verbs[-1], "reason": reason})
    ][: bool(reason)]


@pytest.mark.parametrize("verbs", [["pause", "resume"], ["pause", "resume", "pause"]])
def test_a_pause_may_be_taken_back_before_anybody_has_looked_at_it(verbs: list[str]) -> None:
    instance = waiting()
    for verb in verbs:
        getattr(engine, verb)(instance)
    instance = settled(instance)
    assert instance.paused == (verbs[-1] == "pause")
    assert mailbox(instance) == [(verb, "consumed") for verb in verbs]


def test_a_denied_request_adds_to_the_history_and_leaves_the_row_as_it_is() -> None:
    instance = waiting()
    for _ in range(2):
        engine.pause(instance)
    engine.advance(instance)
    before = reload(instance)
    while engine.advance(instance).answer == Answer.ADVANCED:
        pass
    after = reload(instance)

    assert (before.version, before.status, before.paused) == (after.version, after.status, after.paused)
    assert kinds(after)[-1] == "request_denied"


def test_two_retries_at_once_retry_once() -> None:
    instance = failed()
    engine.retry(instance)
    engine.retry(instance)
    instance = settled(instance)

    assert instance.status == "failed"
    assert len(events(instance, "workflow_retried")) + len(events(instance, "request_denied")) == 2


def test_the_reason_of_a_request_is_cleaned_so_that_it_can_always_be_stored() -> None:
    instance = waiting()
    engine.pause(instance, reason="a\x00b\ud800", actor="x" * 300)
    instance = settled(instance)

    (event,) = events(instance, "workflow_paused")
    assert event.data["reason"] == "a\N{REPLACEMENT CHARACTER}b?"
    assert (len(event.actor), event.actor[-1]) == (255, "…")
