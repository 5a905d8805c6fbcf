"""What retry, cancel, pause and resume have in common, and what each does."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.inspection.flows import PAID, REFUSED
from tests.management.calling import Terminal, refused, say, started
from workflow_engine import clock, engine
from workflow_engine.models import WorkflowInstance, WorkflowSignal

pytestmark = pytest.mark.django_db


def failed(**options: object) -> WorkflowInstance:
    row = started("parcel", **options)
    engine.signal(row, REFUSED)
    engine.drive(row)
    return row


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What is typed when a command asks."""
    typed: list[str] = []
    terminal = Terminal()
    monkeypatch.setattr(terminal, "readline", lambda: f"{typed.pop(0)}\n")
    monkeypatch.setattr("sys.stdin", terminal)
    yield typed
    assert typed == []


# --- one instance -------------------------------------------------------------------------------


def test_a_failed_instance_is_retried_at_once_without_being_asked() -> None:
    row = started("parcel", context={"carrier": "busy"})
    engine.signal(row, PAID)
    engine.drive(row)
    clock.shift(timedelta(hours=4))
    engine.drive(row)
    said = say("workflow_retry", row.pk, "--reason", "the strike is over")
    assert said.lines == [f"parcel {row.pk}: in progress at ship, in 3 h"]
    event = row.events.get(kind="workflow_retried")
    assert (event.actor, event.data["reason"]) == ("anna (shell)", "the strike is over")


def test_what_follows_can_be_left_to_a_worker() -> None:
    row = failed()
    said = say("workflow_retry", row.pk, "--no-advance", "--actor", "bob")
    assert said.lines == [f"parcel {row.pk}: failed at give_up"]
    assert WorkflowSignal.objects.get(kind="retry").state == "pending"
    assert WorkflowSignal.objects.get(kind="retry").actor == "bob"


def test_an_instance_is_cancelled_with_its_undo_or_without() -> None:
    first, second = started("trip"), started("trip")
    assert say("workflow_cancel", first.pk).lines == [f"trip {first.pk}: cancelled"]
    assert say("workflow_cancel", second.pk, "--no-undo").lines == [f"trip {second.pk}: cancelled"]
    assert first.events.filter(kind="step_compensated").exists()
    assert not second.events.filter(kind="step_compensated").exists()


def test_an_instance_is_paused_and_resumed() -> None:
    row = started("leave")
    assert say("workflow_pause", row.pk).lines == [f"leave {row.pk}: awaiting approved at approve, paused"]
    assert say("workflow_resume", row.pk).lines == [f"leave {row.pk}: awaiting approved at approve"]


def test_of_a_subjects_instances_the_one_that_can_is_meant() -> None:
    started("leave", subject=("ticket", "7"))
    row = failed(subject=("ticket", "7"))
    assert say("workflow_retry", "ticket:7").lines == [f"parcel {row.pk}: failed at give_up"]


def test_json_tells_where_it_is() -> None:
    row = started("leave")
    assert say("workflow_pause", row.pk, "--json").json["paused"] is True


def test_a_dry_run_of_one_changes_nothing() -> None:
    row = started("leave")
    said = say("workflow_pause", row.pk, "--dry-run")
    assert said.lines[1].startswith(str(row.pk))
    assert said.lines[-1] == "Would pause 1 instance."
    assert not WorkflowSignal.objects.exists()


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_what_makes_no_sense_is_refused(options: tuple[str, ...]) -> None:
    row = started("leave")
    assert refused("workflow_retry", row.pk, *options) == (
        f"Can't retry workflow instance {row.pk}: it is awaiting. Only a failed instance can be retried."
    )
    assert refused("workflow_resume", row.pk, *options) == (
        f"Can't resume workflow instance {row.pk}: it is awaiting. It is not paused."
    )
    engine.cancel(row)
    engine.drive(row)
    for verb in ("cancel", "pause", "resume"):
        assert refused(f"workflow_{verb}", row.pk, *options) == (
            f"Can't {verb} workflow instance {row.pk}: it is cancelled. It has ended and can't be changed any more."
        )


def test_a_request_that_came_too_late_is_refused() -> None:
    row = started("leave")
    engine.cancel(row)
    # The cancellation is not carried out yet, so a second request is taken, and refused when its turn comes.
    assert refused("workflow_pause", row.pk) == (
        f"Can't pause workflow instance {row.pk}: it is cancelled. It has ended and can't be changed any more."
    )


def test_an_ambiguous_or_unknown_instance_is_refused() -> None:
    first, second = (started("leave", subject=("ticket", "7")) for _ in range(2))
    assert refused("workflow_pause", "ticket:7") == (
        f"'ticket:7' means 2 workflow instances: {second.pk} (awaiting), {first.pk} (awaiting). Give the id of one."
    )
    assert refused("workflow_pause", "ticket:8").startswith("No workflow instance 'ticket:8' in database 'default'. ")


# --- many ---------------------------------------------------------------------------------------


def test_many_are_retried_after_a_confirmation_that_says_how_many(answers: list[str]) -> None:
    rows = [failed() for _ in range(3)]
    started("parcel")
    answers.append("y")
    said = say("workflow_retry", "--workflow", "parcel", "--failed-since", "1h")
    assert said.err == "Retry 3 instances? [y/N]\n"
    assert said.lines == [*(f"parcel {row.pk}: failed at give_up" for row in rows), "Retried 3 instances."]


def test_without_a_yes_nothing_is_done(answers: list[str]) -> None:
    failed()
    answers.append("")
    assert refused("workflow_retry", "--all") == "Nothing was done."
    assert not WorkflowSignal.objects.filter(kind="retry").exists()


def test_where_nobody_can_be_asked_no_input_has_to_be_given() -> None:
    failed()
    assert refused("workflow_retry", "--all") == "Retry 1 instance? Nobody can be asked here: add --no-input."
    assert say("workflow_retry", "--all", "--no-input").lines[-1] == "Retried 1 instance."


def test_bulk_retry_is_by_workflow_step_and_since_when() -> None:
    failed()
    for options in (("--step", "ship"), ("--failed-since", "2300-01-01T00:00"), ("--workflow", "leave")):
        assert say("workflow_retry", *options).lines == ["Retried 0 instances."]
    assert say("workflow_retry", "--step", "give_up", "--no-input").lines[-1] == "Retried 1 instance."


def test_the_oldest_come_first_up_to_the_limit() -> None:
    rows = [started("leave") for _ in range(3)]
    said = say("workflow_pause", "--all", "--no-input", "--limit", "2")
    assert [line.split()[1] for line in said.lines[:-1]] == [f"{row.pk}:" for row in rows[:2]]
    assert said.lines[-1] == "Paused 2 instances."


def test_a_dry_run_lists_them_and_changes_nothing() -> None:
    rows = [started("leave") for _ in range(2)]
    said = say("workflow_cancel", "--awaiting", "approved", "--dry-run")
    assert [line.split()[0] for line in said.lines] == ["id", *(str(row.pk) for row in rows), "Would"]
    assert said.lines[-1] == "Would cancel 2 instances."
    assert [entry["id"] for entry in say("workflow_cancel", "--all", "--dry-run", "--json").json] == [
        str(row.pk) for row in rows
    ]
    assert say("workflow_cancel", "--workflow", "trip", "--dry-run").lines == ["Would cancel 0 instances."]
    assert not WorkflowSignal.objects.exists()


def test_one_that_has_moved_on_meanwhile_is_skipped_and_the_others_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = started("leave"), started("leave")
    engine.cancel(first)  # waits in the mailbox: the row does not show it yet
    said = say("workflow_pause", "--all", "--no-input")
    assert said.err == (
        f"Skipped: Can't pause workflow instance {first.pk}: it is cancelled. It has ended and can't be changed any"
        " more.\n"
    )
    assert said.lines == [f"leave {second.pk}: awaiting approved at approve, paused", "Paused 1 instance."]


def test_json_lists_what_was_done_and_what_was_skipped() -> None:
    first, second = started("leave"), started("leave")
    engine.cancel(first)
    done, skipped = sorted(
        say("workflow_pause", "--all", "--no-input", "--json").json, key=lambda entry: "reason" in entry
    )
    assert (done["id"], done["paused"]) == (str(second.pk), True)
    assert set(skipped) == {"id", "reason"}
    assert skipped["id"] == str(first.pk)


@pytest.mark.parametrize("verb", ["retry", "cancel", "pause", "resume"])
def test_it_has_to_be_said_which(verb: str) -> None:
    assert refused(f"workflow_{verb}") == "Say which: an instance, filters such as --workflow, or --all."
    for filters in (("--all",), ("--workflow", "parcel")):
        assert refused(f"workflow_{verb}", "0198", *filters) == "Give an instance or filters, not both."


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--limit", "0"), "--limit is 0. Give a number from 1 on."),
        (
            ("--failed-since", "soon"),
            "--failed-since is 'soon'. Write how long ago, like 2h or 7d, or a moment like 2030-01-31T12:00.",
        ),
        (
            ("--stuck-longer-than", "x"),
            "--stuck-longer-than is 'x'. Write a length of time like 90s, 30m, 2h, 7d or 1d12h.",
        ),
        (
            ("--status", "broken"),
            (
                "There is no status 'broken'. Known: awaiting, cancelled, compensated, compensating,"
                " completed, failed, in_progress, live, pending, sleeping."
            ),
        ),
        (
            ("--workflow", "parcl"),
            (
                "No workflow 'parcl' is registered. Did you mean 'parcel'? Workflows are found in the"
                " 'workflows' module of installed apps."
            ),
        ),
        (("--subject", "x"), "'x' is no subject. Write its model and key, such as shop.order:42."),
    ],
)
def test_a_wrong_filter_is_refused(options: tuple[str, ...], problem: str) -> None:
    assert refused("workflow_retry", *options) == problem
