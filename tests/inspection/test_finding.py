from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.db.models import Q

from workflow_engine import engine
from workflow_engine.inspection import finding
from workflow_engine.models import WorkflowInstance

pytestmark = pytest.mark.django_db


@pytest.fixture
def parcel() -> WorkflowInstance:
    return engine.start("parcel", subject=("shop.order", 42), idempotency_key="order-42")


def ids(rows: list[WorkflowInstance]) -> list[object]:
    return [row.pk for row in rows]


@pytest.mark.parametrize("write", [str, lambda pk: pk.hex, lambda pk: str(pk).upper()])
def test_an_instance_is_found_by_its_id_however_it_is_written(parcel: WorkflowInstance, write: object) -> None:
    assert callable(write)
    assert ids(finding.find(write(parcel.pk), "default")) == [parcel.pk]


@pytest.mark.parametrize("digits", [4, 8, 9, 13, 14, 15, 18, 19, 20, 24, 35])
def test_an_instance_is_found_by_the_beginning_of_its_id(parcel: WorkflowInstance, digits: int) -> None:
    assert ids(finding.find(str(parcel.pk)[:digits], "default")) == [parcel.pk]


def test_the_beginning_of_an_id_excludes_its_neighbours(parcel: WorkflowInstance) -> None:
    beginning = parcel.pk.hex[:8]
    assert finding.find(f"{int(beginning, 16) + 1:08x}", "default") == []
    assert finding.find(f"{int(beginning, 16) - 1:08x}", "default") == []


def test_three_digits_are_not_the_beginning_of_an_id(parcel: WorkflowInstance) -> None:
    assert finding.find(parcel.pk.hex[:3], "default") == []


def test_an_instance_is_found_by_its_key(parcel: WorkflowInstance) -> None:
    assert ids(finding.find("order-42", "default")) == [parcel.pk]
    assert finding.find("ORDER-42", "default") == []


def test_a_key_of_a_tenant_is_found_too() -> None:
    row = engine.start("parcel", idempotency_key="order-43", tenant="acme")
    assert ids(finding.find("order-43", "default")) == [row.pk]


def test_an_instance_is_found_by_its_subject(parcel: WorkflowInstance) -> None:
    assert ids(finding.find("shop.order:42", "default")) == [parcel.pk]
    # The model's label is written as people write it; names of other things are taken as they are.
    assert ids(finding.find("shop.Order:42", "default")) == [parcel.pk]
    assert finding.find("shop.order:4", "default") == []


def test_several_instances_of_a_subject_come_the_newest_first(parcel: WorkflowInstance) -> None:
    newer = engine.start("leave", subject=("shop.order", 42))
    assert ids(finding.find("shop.order:42", "default")) == [newer.pk, parcel.pk]


def test_nothing_found_says_what_to_give() -> None:
    with pytest.raises(finding.NoMatchError) as caught:
        finding.find_one("nothing", "default")
    assert str(caught.value) == (
        "No workflow instance 'nothing' in database 'default'. Give an id, the beginning of one (4 or more hex digits),"
        " an idempotency key, or a subject such as shop.order:42."
    )


def test_an_ambiguous_reference_names_the_candidates(parcel: WorkflowInstance) -> None:
    newer = engine.start("leave", subject=("shop.order", 42))
    with pytest.raises(finding.SeveralMatchesError) as caught:
        finding.find_one("shop.order:42", "default")
    assert str(caught.value) == (
        f"'shop.order:42' means 2 workflow instances: {newer.pk} (pending), {parcel.pk} (pending). Give the id of one."
    )


def test_of_several_the_only_one_that_fits_is_meant(parcel: WorkflowInstance) -> None:
    newer = engine.start("leave", subject=("shop.order", 42))
    assert finding.find_one("shop.order:42", "default", Q(workflow_name="leave")).pk == newer.pk
    with pytest.raises(finding.SeveralMatchesError):
        finding.find_one("shop.order:42", "default", Q(workflow_name="trip"))


def test_a_subject_has_to_be_a_model_and_a_key() -> None:
    with pytest.raises(finding.UnknownSubjectError) as caught:
        finding.subject_of("order 42")
    assert str(caught.value) == "'order 42' is no subject. Write its model and key, such as shop.order:42."


def test_a_subject_of_an_installed_app_has_to_exist() -> None:
    user = get_user_model().objects.create_user("anna")
    finding.check_subject_exists(("auth.user", str(user.pk)))
    for missing in ("999", "x"):
        with pytest.raises(finding.UnknownSubjectError, match=rf"^There is no auth\.user:{missing}\.$"):
            finding.check_subject_exists(("auth.user", missing))
    with pytest.raises(finding.UnknownSubjectError) as caught:
        finding.check_subject_exists(("auth.usr", "1"))
    assert str(caught.value) == "The app 'auth' has no model 'usr'. Did you mean 'user'?"


@pytest.mark.parametrize("subject", [("ticket", "7"), ("elsewhere.order", "7")])
def test_a_subject_may_be_something_that_is_no_model_here(subject: tuple[str, str]) -> None:
    finding.check_subject_exists(subject)
