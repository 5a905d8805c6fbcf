"""A diagram as Mermaid text, for documents and pull requests."""

from __future__ import annotations

from collections.abc import Iterator

from workflow_engine.inspection.diagram import Box, Diagram, Mark
from workflow_engine.inspection.drawing import caption

_CLASSES = {
    Mark.VISITED: "fill:#e3f1e3,stroke:#2f7d32,color:#123d14",
    Mark.CURRENT: "fill:#e1ecf9,stroke:#1f5fa8,stroke-width:3px,color:#0c2c52",
    Mark.FAILED: "fill:#fae3e1,stroke:#b3261e,stroke-width:3px,color:#5b100b",
    Mark.UNDONE: "fill:#f3eadb,stroke:#8a5a00,color:#4a3000",
    Mark.SKIPPED: "fill:#f2f2f2,stroke:#8c8c8c,stroke-dasharray:4,color:#555555",
}


def mermaid(diagram: Diagram) -> str:
    """A flowchart; dotted arrows are jumps that were declared and not taken."""
    return "\n".join([*_lines(diagram), ""])


def _lines(diagram: Diagram) -> Iterator[str]:
    yield "flowchart TD"
    for position, box in enumerate(diagram.boxes):
        yield f"    s{position}{_shape(box)}"
    for position in range(len(diagram.boxes) - 1):
        yield f"    s{position} --> s{position + 1}"
    for jump in diagram.jumps:
        arrow = f"-->|{jump.taken}\N{MULTIPLICATION SIGN}|" if jump.taken else "-.->"
        yield f"    s{jump.source} {arrow} s{jump.target}"
    for mark in sorted({box.mark for box in diagram.boxes} & _CLASSES.keys()):
        members = ",".join(f"s{position}" for position, box in enumerate(diagram.boxes) if box.mark == mark)
        yield f"    classDef {mark} {_CLASSES[mark]}"
        yield f"    class {members} {mark}"


def _shape(box: Box) -> str:
    """Activities, which reach outside the transaction, have rounded ends."""
    text = "<br>".join(_escaped(line) for line in (box.key, caption(box)) if line)
    return f'(["{text}"])' if box.is_activity else f'["{text}"]'


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
