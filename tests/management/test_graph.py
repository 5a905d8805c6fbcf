from __future__ import annotations

import pytest

from tests.inspection.flows import REFUSED, Parcel
from tests.management.calling import refused, say, started
from workflow_engine import engine
from workflow_engine.inspection.diagram import of_definition, of_instance
from workflow_engine.inspection.drawing import svg
from workflow_engine.inspection.mermaid import mermaid

pytestmark = pytest.mark.django_db


def test_a_workflow_is_printed_as_mermaid_text() -> None:
    assert say("workflow_graph", "parcel").out == mermaid(of_definition(Parcel))
    assert say("workflow_graph", "parcel", "--workflow-version", 2).out == mermaid(of_definition(Parcel))


def test_an_instance_is_printed_with_what_it_has_done() -> None:
    row = started(idempotency_key="order-7")
    engine.signal(row, REFUSED)
    engine.drive(row)
    row.refresh_from_db()
    drawn = mermaid(of_instance(row))
    assert "|1\N{MULTIPLICATION SIGN}|" in drawn
    for reference in (row.pk, str(row.pk)[:23], "order-7"):
        assert say("workflow_graph", reference).out == drawn


def test_the_svg_is_the_admins_own_drawing() -> None:
    row = started()
    assert say("workflow_graph", row.pk, "--format", "svg").out.rstrip("\n") == svg(of_instance(row))
    assert say("workflow_graph", "parcel", "--format", "svg").out.rstrip("\n") == svg(of_definition(Parcel))


def test_what_is_not_there_is_told() -> None:
    assert refused("workflow_graph", "parcle").startswith("No workflow instance 'parcle' in database 'default'.")
    assert refused("workflow_graph", "parcel", "--workflow-version", 9).startswith(
        "No workflow 'parcel' version 9 is registered."
    )
