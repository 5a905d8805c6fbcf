from __future__ import annotations

import xml.etree.ElementTree as ET
from datetime import timedelta

import pytest

from tests.inspection.flows import REFUSED, Parcel, Trip
from workflow_engine import Context, Goto, Workflow, clock, engine, step
from workflow_engine.inspection.diagram import Arrow, Mark, of_definition, of_instance
from workflow_engine.inspection.drawing import svg
from workflow_engine.inspection.mermaid import mermaid
from workflow_engine.models import WorkflowInstance
from workflow_engine.testing import drain

pytestmark = pytest.mark.django_db
SVG = "{http://www.w3.org/2000/svg}"


def started(name: str = "parcel", *signals: str, **context: str) -> WorkflowInstance:
    row = engine.start(name, context=context)
    drain()
    for signal in signals:
        engine.signal(row, signal)
        drain()
    row.refresh_from_db()
    return row


def marks(row: WorkflowInstance) -> dict[str, Mark]:
    return {box.key: box.mark for box in of_instance(row).boxes}


def test_a_definition_is_its_steps_and_declared_jumps() -> None:
    diagram = of_definition(Parcel)
    assert diagram.title == "parcel 2"
    assert [box.key for box in diagram.boxes] == list(Parcel.step_keys())
    assert {box.mark for box in diagram.boxes} == {Mark.DECLARED}
    assert diagram.jumps == [Arrow(1, 5), Arrow(1, 2)]


def test_a_step_that_can_be_undone_says_so() -> None:
    assert [box.compensates for box in of_definition(Trip).boxes] == [True, False]


def test_a_waiting_instance_shows_where_it_is() -> None:
    assert marks(started()) == {
        "pack": Mark.VISITED,
        "await_payment": Mark.CURRENT,
        "ship": Mark.DECLARED,
        "travel": Mark.DECLARED,
        "arrive": Mark.DECLARED,
        "give_up": Mark.DECLARED,
    }


def test_a_jump_that_was_taken_counts_and_skips() -> None:
    row = started("parcel", REFUSED)
    assert marks(row) == {
        "pack": Mark.VISITED,
        "await_payment": Mark.VISITED,
        "ship": Mark.SKIPPED,
        "travel": Mark.SKIPPED,
        "arrive": Mark.SKIPPED,
        "give_up": Mark.FAILED,
    }
    assert of_instance(row).jumps == [Arrow(1, 5, 1), Arrow(1, 2)]


def test_what_was_undone_and_what_failed_before_it() -> None:
    row = started("trip", hotel="silent")
    for _number in range(4):
        clock.shift(timedelta(minutes=5))
        drain()
    row.refresh_from_db()
    assert row.status == "compensated"
    assert marks(row) == {"flight": Mark.UNDONE, "hotel": Mark.FAILED}


def test_a_loop_counts_how_often_a_step_was_entered() -> None:
    class Loop(Workflow):
        name = "loop"

        @step
        def turn(self, ctx: Context) -> Goto | None:
            turns = ctx.get("turns", 0) + 1
            return Goto("turn", updates={"turns": turns}) if turns < 3 else None

    diagram = of_instance(started("loop"))
    assert [(box.entered, box.mark) for box in diagram.boxes] == [(3, Mark.VISITED)]
    assert diagram.jumps == [Arrow(0, 0, 2)]


def test_an_instance_is_drawn_where_no_code_knows_it() -> None:
    row = started()
    WorkflowInstance.objects.update(workflow_name="of_yore")
    row.refresh_from_db()
    assert of_instance(row).title == "of_yore 2"
    assert marks(row)["await_payment"] == Mark.CURRENT


def test_the_drawing_tells_in_words_what_it_shows() -> None:
    drawn = ET.fromstring(svg(of_instance(started("parcel", REFUSED))))  # noqa: S314 - our own drawing
    assert drawn.get("role") == "img"
    assert drawn.findtext(f"{SVG}title") == "parcel 2"
    assert drawn.findtext(f"{SVG}desc") == (
        "pack: done; await_payment: done; ship: skipped; travel: skipped; arrive: skipped; give_up: failed;"
        " await_payment went to give_up, 1 time; await_payment may go to ship"
    )
    classes = [group.get("class") for group in drawn.iter(f"{SVG}g")]
    assert [name for name in classes if name and name.startswith("step")] == [
        "step visited",
        "step visited",
        "step skipped",
        "step skipped",
        "step skipped",
        "step failed",
    ]
    assert "jump taken" in classes
    assert "jump declared" in classes


def test_the_drawing_has_neither_script_nor_style() -> None:
    drawn = svg(of_instance(started()))
    assert "style" not in drawn
    assert "script" not in drawn


def test_what_is_stored_is_text_in_the_drawing() -> None:
    row = started()
    WorkflowInstance.objects.update(step_sequence=["</text><script>"], step_index=0, current_step="</text><script>")
    row.refresh_from_db()
    drawn = svg(of_instance(row))
    assert "<script>" not in drawn
    assert "&lt;/text&gt;&lt;script&gt;" in drawn


def test_long_names_and_no_steps_are_drawn_too() -> None:
    row = started()
    row.step_sequence, row.step_index, row.current_step = ["x" * 80], 0, "x" * 80
    assert f"{'x' * 29}…</text>" in svg(of_instance(row))


def test_mermaid_text() -> None:
    assert mermaid(of_definition(Trip)) == (
        'flowchart TD\n    s0["flight<br>can be undone"]\n    s1["hotel"]\n    s0 --> s1\n'
    )
    text = mermaid(of_instance(started("parcel", REFUSED)))
    assert '    s5["give_up<br>failed"]\n' in text
    assert "    s1 -->|1\N{MULTIPLICATION SIGN}| s5\n    s1 -.-> s2\n" in text
    assert "    class s5 failed\n" in text
    assert "    class s2,s3,s4 skipped\n" in text


def test_mermaid_text_can_not_be_broken_out_of() -> None:
    row = started()
    row.step_sequence = ['"]<b>&']
    row.step_index, row.current_step = 0, '"]<b>&'
    assert '    s0["&quot;]&lt;b&gt;&amp;<br>now here"]\n' in mermaid(of_instance(row))
