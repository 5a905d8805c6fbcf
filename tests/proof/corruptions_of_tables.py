"""Invariants 1 to 4, broken in the tables."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

from django.db.models import F

from tests.proof import ledger
from tests.proof.corrupting import Corruptions, World, edit
from tests.shop.models import Effect
from workflow_engine.models import WorkflowInstance

corruptions = Corruptions()


# --- 1: writes and progress -------------------------------------------------------------------


@corruptions.breaking(1)
def a_step_wrote_twice(world: World) -> None:
    row = Effect.objects.filter(instance_id=world.ids["ladder"], step="middle").get()
    row.pk = None
    row.save()


@corruptions.breaking(1)
def a_step_wrote_nothing(world: World) -> None:
    Effect.objects.filter(instance_id=world.ids["ladder"], step="last").delete()


@corruptions.breaking(1)
def a_failed_attempt_left_its_writes(world: World) -> None:
    Effect.objects.create(instance_id=world.ids["rounds"], step="work", visit=1, note="body#1")


@corruptions.breaking(1)
def a_step_wrote_and_its_instance_was_never_there(world: World) -> None:
    Effect.objects.create(instance_id=uuid4(), step="first", visit=1, note="body#1")


@corruptions.breaking(1)
def an_undo_inside_its_transaction_wrote_twice(world: World) -> None:
    Effect.objects.create(instance_id=world.ids["saga"], step="reserve", visit=1, note="undo#1")


# --- 2: history -------------------------------------------------------------------------------


@corruptions.breaking(2)
def an_event_is_missing(world: World) -> None:
    world.event("ladder", "step_completed").delete()


@corruptions.breaking(2)
def the_row_counts_an_event_too_many(world: World) -> None:
    world.row("waiting").update(last_seq=F("last_seq") + 1)


@corruptions.breaking(2)
def the_context_has_a_value_that_no_step_gave(world: World) -> None:
    world.row("ladder").update(context={"first": 1})


@corruptions.breaking(2)
def the_row_stands_somewhere_else(world: World) -> None:
    world.row("waiting").update(status="sleeping")


@corruptions.breaking(2)
def the_row_counts_other_attempts(world: World) -> None:
    world.row("broken").update(attempts=0)


@corruptions.breaking(2)
def a_wait_ends_at_another_time(world: World) -> None:
    world.row("waiting").update(due_at=F("due_at") + timedelta(hours=1), poll_at=F("due_at") + timedelta(hours=1))


@corruptions.breaking(2)
def a_transition_that_is_not_in_the_table(world: World) -> None:
    event = world.event("rounds", "step_completed")
    edit(event, data={"set": {**event.data["set"], "status": "compensating"}})


@corruptions.breaking(2)
def an_event_of_an_unknown_kind(world: World) -> None:
    edit(world.event("ladder", "step_completed"), kind="step_done")


@corruptions.breaking(2)
def an_event_about_another_step(world: World) -> None:
    edit(world.event("ladder", "step_completed"), step="last")


@corruptions.breaking(2)
def a_history_without_its_row(world: World) -> None:
    WorkflowInstance.objects.filter(pk=world.ids["ladder"])._raw_delete("default")


@corruptions.breaking(2)
def a_row_written_more_often_than_its_history_tells(world: World) -> None:
    world.row("ladder").update(version=99)


# --- 3: the mailbox ---------------------------------------------------------------------------


@corruptions.breaking(3)
def a_committed_signal_is_gone(world: World) -> None:
    world.mail("waiting").delete()


@corruptions.breaking(3)
def a_received_signal_is_kept(world: World) -> None:
    world.mail("answered").update(state="buffered", consumed_at=None)


@corruptions.breaking(3)
def a_signal_is_consumed_and_nobody_received_it(world: World) -> None:
    world.mail("waiting").update(state="consumed", consumed_at=F("received_at"))


@corruptions.breaking(3)
def a_signal_was_received_by_another_instance(world: World) -> None:
    world.mail("answered").update(instance_id=world.ids["waiting"])


@corruptions.breaking(3)
def a_signal_was_received_twice(world: World) -> None:
    first = world.event("approvals", "signal_received").data["signal_id"]
    edit(world.event("approvals", "signal_received", 1), data={"signal_id": first})


@corruptions.breaking(3)
def the_younger_signal_went_first(world: World) -> None:
    one, two = (world.event("approvals", "signal_received", number) for number in (0, 1))
    first, second = one.data["signal_id"], two.data["signal_id"]
    edit(one, data={"signal_id": second})
    edit(two, data={"signal_id": first})


@corruptions.breaking(3)
def one_call_left_two_signals(world: World) -> None:
    item = world.mail("waiting").get()
    item.pk, item.key_hash, item.idempotency_key = None, None, None
    item.save()


@corruptions.breaking(3)
def a_live_instance_had_its_mail_discarded(world: World) -> None:
    world.mail("waiting").update(state="discarded", reason="no idea")


@corruptions.breaking(3)
def a_signal_is_discarded_for_no_reason(world: World) -> None:
    world.mail("waiting").update(state="discarded", instance_id=world.ids["ladder"])


@corruptions.breaking(3)
def a_request_was_carried_out_and_is_called_rejected(world: World) -> None:
    world.mail("cancelled").update(state="rejected", reason="no", consumed_at=None)


# --- 4: signal or timeout ---------------------------------------------------------------------


@corruptions.breaking(4)
def a_timeout_came_early(world: World) -> None:
    event = world.event("timed out", "step_timed_out")
    edit(event, created_at=event.created_at - timedelta(minutes=30))


@corruptions.breaking(4)
def a_signal_and_the_timeout_ended_one_wait(world: World) -> None:
    edit(world.event("approvals", "workflow_awaiting", 1), kind="step_timed_out", data={"set": {}})


@corruptions.breaking(4)
def a_signal_ended_a_wait_for_another_one(world: World) -> None:
    edit(world.event("answered", "signal_received"), data={"signal": "perhaps"})


@corruptions.breaking(4)
def a_timeout_although_the_signal_was_there(world: World) -> None:
    event, item = world.event("timed out", "step_timed_out"), world.mail("waiting").get()
    world.mail("waiting").update(instance_id=world.ids["timed out"], name="yes")
    early = (event.created_at - timedelta(minutes=1)).isoformat()
    sent = {"what": "sent", "mail": item.pk}.items()
    ledger.replace({**entry, "committed_at": early} if sent <= entry.items() else entry for entry in ledger.read())
