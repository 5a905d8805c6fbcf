from __future__ import annotations

from datetime import timedelta

from tests.shop.workflows import OneStep
from tests.support import ONCE, settled
from workflow_engine import Context, Outcome, Workflow, clock, engine, step
from workflow_engine.models import WorkflowEvent, WorkflowInstance
from workflow_engine.prune import Pruned, _prune_batch, prunable, prune


def failing_flow() -> type[Workflow]:
    class Failing(Workflow):
        name = "failing"

        @step(retry=ONCE)
        def work(self, ctx: Context) -> Outcome:
            raise ValueError("still broken")

    return Failing


def test_what_ended_long_ago_goes_with_its_history_and_mailbox() -> None:
    old = settled(engine.start(OneStep))
    clock.shift(timedelta(days=100))
    young = settled(engine.start(OneStep))

    assert prune(prunable("default", timedelta(days=90))) == Pruned(instances=1, events=3, signals=0)
    assert list(WorkflowInstance.objects.values_list("pk", flat=True)) == [young.pk]
    assert not WorkflowEvent.objects.filter(instance_id=old.pk).exists()


def test_a_limit_is_kept_and_batches_are_told() -> None:
    for _ in range(3):
        settled(engine.start(OneStep))
    clock.shift(timedelta(days=100))
    told: list[int] = []

    assert prune(prunable("default", timedelta(days=90)), limit=2, progress=told.append).instances == 2
    assert told == [2]


def test_failed_ones_stay_unless_asked_for_because_they_can_be_retried() -> None:
    settled(engine.start(failing_flow()))
    clock.shift(timedelta(days=100))

    assert prune(prunable("default", timedelta(days=90))).instances == 0
    assert prune(prunable("default", timedelta(days=90), with_failed=True)).instances == 1


def test_one_that_was_retried_since_it_was_found_stays() -> None:
    flow = failing_flow()
    retried, other = (settled(engine.start(flow)) for _ in range(2))
    clock.shift(timedelta(days=100))
    rows = prunable("default", timedelta(days=90), with_failed=True)
    found = list(rows.values_list("pk", flat=True))
    engine.retry(retried)
    settled(retried)

    assert _prune_batch(rows, found).instances == 1
    assert [row.pk for row in WorkflowInstance.objects.all()] == [retried.pk]
    assert set(found) == {retried.pk, other.pk}
