"""Invariants 5 to 14, broken in the tables or in the ledger."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

from django.db.models import F

from tests.proof import ledger
from tests.proof.corrupting import Corruptions, World, append, edit
from tests.shop.models import Effect

corruptions = Corruptions()


# --- 5: results -------------------------------------------------------------------------------


@corruptions.breaking(5)
def a_visit_completed_twice(world: World) -> None:
    append(world, "waiting", world.event("rounds", "step_completed"), instance_id=world.ids["waiting"], visit=1)
    append(world, "waiting", world.event("rounds", "step_completed"), instance_id=world.ids["waiting"], visit=1)


@corruptions.breaking(5)
def a_result_of_another_run(world: World) -> None:
    edit(world.event("errands", "step_completed"), data={"updates": {"nonce": "somebody else's"}})


@corruptions.breaking(5)
def a_result_that_nobody_reached(world: World) -> None:
    Effect.objects.filter(instance_id=world.ids["ladder"], step="last").update(note="body#5")
    edit(world.event("ladder", "step_completed", 2), attempt=5)


@corruptions.breaking(5)
def an_attempt_that_was_not_the_newest_reported(world: World) -> None:
    edit(world.event("errands", "step_completed"), attempt=1)


@corruptions.breaking(5)
def a_claim_moved_the_token_by_two(world: World) -> None:
    event = world.event("errands", "step_started", 1)
    edit(event, data={"set": {**event.data["set"], "lease_token": 3}})


@corruptions.breaking(5)
def a_second_attempt_with_another_key(world: World) -> None:
    entry = world.entry("began", "errands", attempt=2)
    ledger.write(**{**entry, "key": "new", "lease": 0.0, "at": entry["at"]})


# --- 6: leases --------------------------------------------------------------------------------


@corruptions.breaking(6)
def an_activity_began_inside_another_lease(world: World) -> None:
    entry = world.entry("began", "errands")
    ledger.write(**{**entry, "at": ledger.now(), "nonce": "one", "lease": 60.0})
    ledger.write(**{**entry, "at": ledger.now(), "nonce": "two", "lease": 60.0})


@corruptions.breaking(6)
def two_handlers_ran_at_once(world: World) -> None:
    entry = world.entry("began", "ladder")
    ledger.write(**{**entry, "nonce": "one"})
    ledger.write(**{**entry, "nonce": "two"})


@corruptions.breaking(6)
def a_lease_was_given_up_before_its_end(world: World) -> None:
    event = world.event("errands", "step_failed")
    edit(event, data={"error": {**event.data["error"], "type": "LeaseExpired"}})


@corruptions.breaking(6)
def an_undo_began_beside_a_lease(world: World) -> None:
    event = world.event("saga", "step_failed")
    edit(event, data={"set": {key: value for key, value in event.data["set"].items() if key != "lease_owner"}})


# --- 7: undo ----------------------------------------------------------------------------------


@corruptions.breaking(7)
def an_undo_out_of_order(world: World) -> None:
    first, second = world.event("saga", "compensation_started", 0), world.event("saga", "compensation_started", 1)
    visits = first.visit, second.visit
    edit(first, visit=visits[1], step=second.step)
    edit(second, visit=visits[0], step="charge")


@corruptions.breaking(7)
def an_undo_that_was_done_runs_again(world: World) -> None:
    append(world, "saga", world.event("saga", "step_compensated"))


@corruptions.breaking(7)
def a_step_runs_after_an_undo(world: World) -> None:
    append(world, "saga", world.event("saga", "step_started"))


@corruptions.breaking(7)
def an_undo_was_left_out(world: World) -> None:
    event = world.event("saga", "step_compensated")
    edit(event, data={"undo": {**event.data["undo"], "undo": None}})
    edit(event, data={"undo": {key: value for key, value in event.data["undo"].items() if key != "undo"}})


@corruptions.breaking(7)
def what_may_have_been_done_was_never_undone(world: World) -> None:
    ledger.write(**{**world.entry("began", "saga", kind="activity"), "visit": 99, "nonce": "gone", "at": 0.0})


# --- 8: keys ----------------------------------------------------------------------------------


@corruptions.breaking(8)
def two_instances_have_one_key(world: World) -> None:
    world.row("waiting").update(idempotency_key="answered")


@corruptions.breaking(8)
def one_start_made_two_instances(world: World) -> None:
    world.row("waiting").update(input={"call": "answered"})


@corruptions.breaking(8)
def a_start_was_answered_with_another_instance(world: World) -> None:
    ledger.write(**{**world.entry("started", "answered"), "instance": str(world.ids["waiting"])})


@corruptions.breaking(8)
def what_an_instance_was_started_with_has_changed(world: World) -> None:
    world.row("ladder").update(input={})


# --- 9: rest ----------------------------------------------------------------------------------


@corruptions.breaking(9)
def a_wait_that_is_over_and_nobody_looks(world: World) -> None:
    world.row("waiting").update(due_at=F("created_at"), poll_at=F("created_at"))


@corruptions.breaking(9)
def an_instance_that_is_never_looked_at_again(world: World) -> None:
    world.row("waiting").update(poll_at=None)


@corruptions.breaking(9)
def an_instance_that_nobody_took_back_its_suspicion_of(world: World) -> None:
    world.row("waiting").update(suspect=True)


@corruptions.breaking(9)
def mail_that_nobody_has_looked_at(world: World) -> None:
    world.mail("waiting").update(state="pending")


@corruptions.breaking(9)
def mail_that_is_awaited_and_kept(world: World) -> None:
    world.mail("waiting").update(name="yes")


@corruptions.breaking(9)
def a_lease_of_nobody(world: World) -> None:
    world.row("waiting").update(lease_owner="nobody")


# --- 10: poison -------------------------------------------------------------------------------


@corruptions.breaking(10)
def poison_that_killed_nobody(world: World) -> None:
    event = world.event("broken", "step_failed")
    edit(event, data={"error": {**event.data["error"], "type": "Poison"}})


@corruptions.breaking(10)
def a_step_that_goes_on_killing(world: World) -> None:
    entry = world.entry("began", "ladder")
    for number in range(7):
        ledger.write(**{**entry, "nonce": str(number)})
        ledger.write("died", who=entry["pid"])


# --- 11: attempts and time --------------------------------------------------------------------


@corruptions.breaking(11)
def more_attempts_than_the_policy_allows(world: World) -> None:
    ledger.write(**{**world.entry("began", "errands", step="fetch", attempt=2), "limit": 1})


@corruptions.breaking(11)
def an_activity_that_nobody_claimed(world: World) -> None:
    ledger.write(**{**world.entry("began", "errands", step="carry"), "nonce": "again"})


@corruptions.breaking(11)
def a_step_that_began_before_it_was_due(world: World) -> None:
    event = world.event("rounds", "step_completed", 2)
    edit(event, created_at=event.created_at - timedelta(minutes=1))


@corruptions.breaking(11)
def a_handler_that_was_called_again_before_its_backoff(world: World) -> None:
    event = world.event("approvals", "signal_received", 1)
    edit(event, created_at=event.created_at - timedelta(seconds=1))


# --- 12: messages -----------------------------------------------------------------------------


@corruptions.breaking(12)
def an_event_was_told_that_is_not_there(world: World) -> None:
    ledger.write(**{**world.entry("told", "ladder"), "seq": 99})


@corruptions.breaking(12)
def another_event_was_told(world: World) -> None:
    ledger.write(**{**world.entry("told", "ladder"), "kind": "workflow_failed"})


@corruptions.breaking(12)
def an_instance_was_handed_out_that_does_not_exist(world: World) -> None:
    ledger.write("handed", instance=str(uuid4()), queue="")


# --- 13 and 14: ends and sequences ------------------------------------------------------------


@corruptions.breaking(13)
def something_happened_after_the_end(world: World) -> None:
    append(world, "ladder", world.event("ladder", "step_completed"))


@corruptions.breaking(13)
def an_ended_row_has_changed(world: World) -> None:
    world.row("ladder").update(queue="another")


@corruptions.breaking(13)
def a_denied_request_changed_something(world: World) -> None:
    append(
        world, "broken", world.event("ladder", "step_completed"), kind="request_denied", instance_id=world.ids["broken"]
    )


@corruptions.breaking(14)
def the_step_sequence_has_changed(world: World) -> None:
    event = world.event("ladder", "step_completed")
    edit(event, data={"set": {**event.data["set"], "step_sequence": ["first", "last"]}})


@corruptions.breaking(14)
def a_step_failed_that_never_ran(world: World) -> None:
    edit(world.event("rounds", "step_failed"), attempt=4)


@corruptions.breaking(14)
def the_current_step_is_not_in_its_place(world: World) -> None:
    event = world.event("ladder", "step_completed")
    edit(event, data={"set": {**event.data["set"], "step_index": 2}})
