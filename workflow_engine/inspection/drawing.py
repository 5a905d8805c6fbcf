"""A diagram as SVG, drawn on the server: no script, no style attribute, so a strict Content-Security-Policy holds.

Colours are presentation attributes with classes beside them: a page's style sheet overrides them, a file stands alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from workflow_engine.inspection.diagram import Arrow, Box, Diagram, Mark

_WIDTH, _HEIGHT, _GAP = 260, 46, 26
_MARGIN, _LANE = 12, 22
_MOST_SHOWN = 30

_FILLS = {
    Mark.DECLARED: ("#ffffff", "#777777"),
    Mark.VISITED: ("#e3f1e3", "#2f7d32"),
    Mark.CURRENT: ("#e1ecf9", "#1f5fa8"),
    Mark.FAILED: ("#fae3e1", "#b3261e"),
    Mark.UNDONE: ("#f3eadb", "#8a5a00"),
    Mark.SKIPPED: ("#f2f2f2", "#8c8c8c"),
}


def svg(diagram: Diagram) -> SafeString:
    """The drawing, with a title and a description in words for those who can't see it."""
    lanes = _lanes(diagram.jumps)
    width = 2 * _MARGIN + _WIDTH + _LANE * (max(lanes, default=0) + 2)
    height = 2 * _MARGIN + len(diagram.boxes) * (_HEIGHT + _GAP) - _GAP
    return format_html(
        '<svg xmlns="http://www.w3.org/2000/svg" class="workflow-diagram" role="img" viewBox="0 0 {w} {h}"'
        ' width="{w}" height="{h}" font-family="system-ui, sans-serif" font-size="13">'
        "<title>{title}</title><desc>{desc}</desc>{arrows}{jumps}{boxes}</svg>",
        w=width,
        h=height,
        title=diagram.title,
        desc="; ".join(_in_words(diagram)),
        arrows=format_html_join("", "{}", ((_down(position),) for position in range(len(diagram.boxes) - 1))),
        jumps=format_html_join(
            "", "{}", ((_jump(arrow, lane),) for arrow, lane in zip(diagram.jumps, lanes, strict=True))
        ),
        boxes=format_html_join("", "{}", ((_box(box, position),) for position, box in enumerate(diagram.boxes))),
    )


def caption(box: Box) -> str:
    """What became of a step, in words: colour alone tells nobody who can't see it."""
    words = {
        Mark.VISITED: _("done"),
        Mark.CURRENT: _("now here"),
        Mark.FAILED: _("failed"),
        Mark.UNDONE: _("undone"),
        Mark.SKIPPED: _("skipped"),
    }
    parts = [words[box.mark]] if box.mark in words else []
    if box.entered > 1:
        parts.append(
            ngettext("entered %(count)d time", "entered %(count)d times", box.entered) % {"count": box.entered}
        )
    if box.mark == Mark.DECLARED:
        parts += [_("activity")] if box.is_activity else []
        parts += [_("can be undone")] if box.compensates else []
    return ", ".join(parts)


def _in_words(diagram: Diagram) -> Iterator[str]:
    for box in diagram.boxes:
        text = caption(box)
        yield f"{box.key}: {text}" if text else box.key
    for arrow in diagram.jumps:
        told = {"source": diagram.boxes[arrow.source].key, "target": diagram.boxes[arrow.target].key}
        if arrow.taken:
            count = ngettext("%(count)d time", "%(count)d times", arrow.taken) % {"count": arrow.taken}
            yield _("%(source)s went to %(target)s, %(count)s") % {**told, "count": count}
        else:
            yield _("%(source)s may go to %(target)s") % told


def _top(position: int) -> int:
    return _MARGIN + position * (_HEIGHT + _GAP)


def _box(box: Box, position: int) -> SafeString:
    fill, stroke = _FILLS[box.mark]
    told = caption(box)
    middle = _MARGIN + _WIDTH // 2
    second = format_html(
        '<text class="caption" x="{}" y="{}" text-anchor="middle" font-size="11" fill="#444444">{}</text>',
        middle,
        _top(position) + 36,
        told,
    )
    return format_html(
        '<g class="step {mark}"><rect x="{x}" y="{y}" width="{w}" height="{h}" rx="{rx}" fill="{fill}"'
        ' stroke="{stroke}" stroke-width="{bold}"{dash}></rect>'
        '<text class="key" x="{middle}" y="{text_y}" text-anchor="middle" fill="#111111">{key}</text>{second}</g>',
        mark=box.mark.value,
        x=_MARGIN,
        y=_top(position),
        w=_WIDTH,
        h=_HEIGHT,
        rx=_HEIGHT // 2 if box.is_activity else 5,
        fill=fill,
        stroke=stroke,
        bold=3 if box.mark in {Mark.CURRENT, Mark.FAILED} else 1,
        dash=_dashed() if box.mark == Mark.SKIPPED else "",
        middle=middle,
        text_y=_top(position) + (20 if told else 28),
        key=box.key if len(box.key) <= _MOST_SHOWN else f"{box.key[: _MOST_SHOWN - 1]}…",
        second=second if told else "",
    )


def _down(position: int) -> SafeString:
    x, y = _MARGIN + _WIDTH // 2, _top(position) + _HEIGHT
    return format_html(
        '<g class="next" stroke="#777777" fill="none"><path d="M{x} {y}V{end}"></path>{head}</g>',
        x=x,
        y=y,
        end=y + _GAP - 2,
        head=format_html('<path d="M{} {}l4 -7h-8z" fill="#777777"></path>', x, y + _GAP - 1),
    )


def _jump(arrow: Arrow, lane: int) -> SafeString:
    """A line out of the box's right side, along its lane, into the target's: solid if taken, else dashed."""
    right = _MARGIN + _WIDTH
    out, back = _top(arrow.source) + 2 * _HEIGHT // 3, _top(arrow.target) + _HEIGHT // 3
    x = right + _LANE * (lane + 1)
    colour = "#1f5fa8" if arrow.taken else "#999999"
    label = format_html(
        '<text x="{}" y="{}" font-size="11" fill="{}" stroke="none">{}{}</text>',
        x + 3,
        out - 4,
        colour,
        arrow.taken,
        "\N{MULTIPLICATION SIGN}",
    )
    return format_html(
        '<g class="jump {state}" stroke="{colour}" fill="none"><path d="M{right} {out}H{x}V{back}H{end}"{dash}></path>'
        '<path d="M{right} {back}l7 -4v8z" fill="{colour}"></path>{label}</g>',
        state="taken" if arrow.taken else "declared",
        colour=colour,
        right=right,
        out=out,
        x=x,
        back=back,
        end=right + 5,
        dash="" if arrow.taken else _dashed(),
        label=label if arrow.taken else "",
    )


def _dashed() -> SafeString:
    return format_html(' stroke-dasharray="{}"', "4 3")


def _lanes(jumps: Sequence[Arrow]) -> list[int]:
    """For each jump the innermost lane in which no other jump runs along the same boxes."""
    taken: list[list[tuple[int, int]]] = []
    lanes = []
    for jump in jumps:
        low, high = sorted((jump.source, jump.target))
        lane = next(
            (number for number, spans in enumerate(taken) if all(high < start or low > end for start, end in spans)),
            len(taken),
        )
        if lane == len(taken):
            taken.append([])
        taken[lane].append((low, high))
        lanes.append(lane)
    return lanes
