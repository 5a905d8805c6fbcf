"""Mutants of what leaves a transaction, and of the recovery of what got lost."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F

from tests.proof import hunts
from tests.proof.hunting import crash_at
from tests.proof.mutants import Mutants, Patch
from workflow_engine import after_commit, dispatch, signals
from workflow_engine import tick as tick_module
from workflow_engine.engine import claims, handing_out, sending
from workflow_engine.engine.turns import Advanced, Answer
from workflow_engine.models import WorkflowEvent, WorkflowInstance

mutants = Mutants()


# --- after commit -----------------------------------------------------------------------------


@mutants.breaking(12, hunt=crash_at("start", "commit.before"))
def events_told_before_the_commit(patch: Patch) -> None:
    """Django signals are sent when the event is written."""

    def at_once(effects: after_commit.Effects, name: str, version: int, event: WorkflowEvent) -> None:
        if (signal := signals.BY_EVENT_KIND.get(event.kind)) is not None:
            signal.send_robust(None, event=event, instance_id=event.instance_id)

    patch.setattr(after_commit.Effects, "send", at_once)


@mutants.breaking(12, hunt=hunts.a_start_is_taken_back)
def dispatch_before_the_commit(patch: Patch) -> None:
    """The job leaves when it is thought of."""

    def wake(effects: after_commit.Effects, instance_id: UUID, queue: str, *_: Any) -> None:
        dispatch.wake(instance_id, queue=queue, using=effects.using)

    patch.setattr(after_commit.Effects, "wake", wake)


@mutants.breaking(12, hunt=hunts.a_start_is_taken_back, aliases=("default", "other"))
def the_hook_on_the_wrong_alias(patch: Patch) -> None:
    """Registered where no transaction is open, it runs at once: the job leaves before the commit."""

    def wake(effects: after_commit.Effects, instance_id: UUID, queue: str, *_: Any) -> None:
        hand_out = partial(dispatch.wake, instance_id, queue=queue, using=effects.using)
        transaction.on_commit(hand_out, using="other")

    patch.setattr(after_commit.Effects, "wake", wake)


@mutants.breaking(3, hunt=hunts.the_answer_to_a_signal_is_lost)
def a_commit_of_unknown_outcome_taken_for_a_failure(patch: Patch) -> None:
    """The signal is sent once more, although it is there."""
    patch.setattr(sending._Sent, "was_committed", lambda _: False)


# --- recovery ---------------------------------------------------------------------------------


@mutants.breaking(9, hunt=crash_at("rounds, pushed", "hook.before"))
def no_tick(patch: Patch) -> None:
    """A job that is lost stays lost."""
    patch.setattr(tick_module._Tick, "run", lambda _: None)


@mutants.breaking(9, hunt=hunts.one_queue_takes_nothing)
def a_tick_that_stops_at_a_bad_row(patch: Patch) -> None:
    """What is behind it is never handed out."""

    def raising(tick: Any, job: Any) -> bool:
        dispatch.dispatcher().dispatch(job.instance_id, queue=job.queue, using=tick._using, delay=job.delay)
        return True

    patch.setattr(tick_module._Tick, "_dispatch", raising)


@mutants.breaking(9, hunt=crash_at("signal, pushed", "hook.before"))
def mail_that_nobody_was_woken_for_is_not_looked_for(patch: Patch) -> None:
    """The wake-up was lost with its sender, and the instance waits for nothing that time brings."""
    patch.setattr(tick_module, "_with_old_mail", lambda *_: iter(()))


@mutants.breaking(10, hunt=hunts.the_killer)
def the_recovery_counted_inside_the_transaction(patch: Patch) -> None:
    """The crash rolls the count back, so that nothing is ever poison."""

    def uncommitted(instance_id: UUID, using: str) -> Advanced:
        return Advanced(Answer.SUSPECT, instance_id, using, more=True)

    patch.setattr(claims, "claim_suspect", uncommitted)


@mutants.breaking(10, hunt=hunts.a_long_backlog)
def counting_at_hand_out(patch: Patch) -> None:
    """Every message counts as a death, so that a long backlog is poison."""
    mark = handing_out._mark

    def counting(ids: Any, wanted: Any, using: str) -> Any:
        marked = mark(ids, wanted, using)
        rows = WorkflowInstance.objects.using(using).filter(pk__in=[job.instance_id for job in marked.jobs])
        rows.update(recoveries=F("recoveries") + 1, suspect=True)
        return marked

    patch.setattr(handing_out, "_mark", counting)


@mutants.breaking(10, hunt=hunts.all_deliveries_at_once)
def every_delivery_is_a_claim(patch: Patch) -> None:
    """A suspect stays one while somebody works on it, and whoever comes along counts a death."""
    patch.setattr(claims, "is_claimed", lambda *_: False)
