"""One instance on one screen of a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

from django.core.management.color import Style
from django.utils.translation import gettext as _

from workflow_engine.inspection.account import Account
from workflow_engine.inspection.mail import told
from workflow_engine.inspection.timeline import Entry, entry
from workflow_engine.inspection.times import both, relative
from workflow_engine.inspection.wording import one_line, visible
from workflow_engine.management.tables import table
from workflow_engine.models import WorkflowInstance

_INDENT = "  "


def page(account: Account, style: Style, *, traceback: bool) -> Iterator[str]:
    """The lines: which one it is, the answers, what happened so far, what is left in the mailbox."""
    yield style.MIGRATE_HEADING(_name(account.row))
    for label, lines in _answers(account):
        for number, line in enumerate(lines):
            yield f"{_INDENT}{'' if number else label:<12}{line}"
    if account.no_worker:
        yield style.WARNING(account.no_worker)
    yield ""
    yield from _history(account, style, traceback=traceback)
    if account.mailbox:
        yield ""
        yield style.MIGRATE_HEADING(_("Mailbox"))
        yield from (f"{_INDENT}{told(item)} {relative(item.received_at, account.now)}" for item in account.mailbox)


def _name(row: WorkflowInstance) -> str:
    parts = [f"{row.workflow_name} {row.definition_version}", str(row.pk), ":".join(row.subject_ref or ())]
    parts.append(row.idempotency_key or "")
    return _INDENT.join(one_line(part) for part in parts if part)


def _answers(account: Account) -> Iterator[tuple[str, Sequence[str]]]:
    why, now = account.why, account.now
    yield _("Status"), [why.headline]
    yield _("Since"), [both(why.since, now)]
    if why.waits_for:
        yield _("Waits for"), [why.waits_for]
    if why.until is not None:
        yield _("Until"), [both(why.until, now)]
    if why.wrong:
        yield _("Went wrong"), [why.wrong]
    if why.notes:
        yield _("Next"), why.notes
    if why.remaining:
        yield _("Steps left"), [one_line(", ".join(why.remaining))]
    if commands := list(_commands(account)):
        yield _("You can"), commands


def _commands(account: Account) -> Iterator[str]:
    """What to type, ready to be copied."""
    for verb in account.why.verbs:
        if verb != "signal":
            yield f"workflow_{verb} {account.row.pk}"
        else:
            yield from (f"workflow_signal {account.row.pk} {quote(one_line(name))}" for name in account.why.signals)


def _history(account: Account, style: Style, *, traceback: bool) -> Iterator[str]:
    entries = [entry(event) for event in account.events]
    yield style.MIGRATE_HEADING(_("What happened"))
    earlier = account.row.last_seq - len(entries)
    if earlier > 0:
        yield _INDENT + _("... %(count)d earlier events (--all shows them)") % {"count": earlier}
    lines = table(("", "", "", ""), [_cells(account, item) for item in entries])
    next(lines)  # without headings
    for item, line in zip(entries, lines, strict=True):
        yield f"{_INDENT}{line}"
        if traceback and item.traceback:
            yield from (f"{_INDENT * 3}{visible(row)}" for row in item.traceback.splitlines())


def _cells(account: Account, item: Entry) -> tuple[str, str, str, str]:
    actor = _("by %(actor)s") % {"actor": item.actor} if item.actor else ""
    return str(item.seq), relative(item.at, account.now), item.text, actor
