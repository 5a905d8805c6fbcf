from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model

from tests.management.calling import refused, say
from workflow_engine.models import WorkflowInstance

pytestmark = pytest.mark.django_db


def only() -> WorkflowInstance:
    return WorkflowInstance.objects.get()


def test_an_instance_is_started_and_runs_until_it_waits() -> None:
    said = say("workflow_start", "parcel", "--data", '{"weight": 3}', "--subject", "ticket:7", "--tenant", "acme")
    row = only()
    assert said.lines == [f"parcel {row.pk}: awaiting paid or refused at await_payment, in 2 d"]
    assert said.err == ""
    assert (row.input, row.subject_ref, row.tenant) == ({"weight": 3}, ("ticket", "7"), "acme")
    assert row.events.get(seq=1).actor == "anna (shell)"


def test_its_steps_can_be_left_to_a_worker() -> None:
    said = say("workflow_start", "parcel", "--no-advance", "--actor", "bob", "--queue", "slow")
    row = only()
    assert said.lines == [f"parcel {row.pk}: pending at pack"]
    assert said.err == "No worker has been seen. Start one: python manage.py workflow_worker\n"
    assert (row.events.get(seq=1).actor, row.queue) == ("bob", "slow")


def test_the_same_key_starts_nothing_again() -> None:
    first = say("workflow_start", "parcel", "--key", "order-42")
    again = say("workflow_start", "parcel", "--key", "order-42")
    assert again.out == first.out
    assert again.err == "The key 'order-42' has this instance already; nothing was started.\n"
    assert only().idempotency_key == "order-42"


def test_json_tells_where_it_is() -> None:
    said = say("workflow_start", "leave", "--json")
    row = only()
    assert said.json["id"] == str(row.pk)
    assert (said.json["status"], said.json["awaiting_signals"]) == ("awaiting", ["approved"])


def test_a_subject_of_an_installed_app_has_to_exist() -> None:
    user = get_user_model().objects.create_user("zoe")
    say("workflow_start", "leave", "--subject", f"auth.User:{user.pk}")
    assert only().subject_ref == ("auth.user", str(user.pk))
    assert refused("workflow_start", "leave", "--subject", "auth.user:999") == "There is no auth.user:999."
    assert refused("workflow_start", "leave", "--subject", "auth.user") == (
        "'auth.user' is no subject. Write its model and key, such as shop.order:42."
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ("parcl",),
            (
                "No workflow 'parcl' is registered. Did you mean 'parcel'? Workflows are found in the 'workflows'"
                " module of installed apps."
            ),
        ),
        (
            ("parcel", "--workflow-version", "1"),
            (
                "No workflow 'parcel' version 1 is registered. Known: parcel version 2. Workflows are found in the"
                " 'workflows' module of installed apps."
            ),
        ),
        (
            ("parcel", "--data", "{"),
            (
                "--data is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)."
                " Write it like '{\"a\": 1}', or give @file or - for standard input."
            ),
        ),
        (("parcel", "--data", "[1]"), "context: must be a dict, not list"),
        (("parcel", "--data", "[]"), "context: must be a dict, not list"),
        (
            ("parcel", "--data", '{"a": NaN}'),
            "context at a: nan is not a JSON number; store None or a string",
        ),
    ],
)
def test_a_slip_of_the_pen_is_refused(arguments: tuple[str, ...], problem: str) -> None:
    assert refused("workflow_start", *arguments) == problem
    assert not WorkflowInstance.objects.exists()


def test_a_key_with_other_values_is_refused() -> None:
    say("workflow_start", "parcel", "--key", "k")
    assert refused("workflow_start", "parcel", "--key", "k", "--data", '{"a": 1}') == (
        f"The idempotency key 'k' already belongs to workflow instance {only().pk}, with another context. Use the same"
        " values to get that instance, or another key for another one."
    )
