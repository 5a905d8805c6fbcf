"""The machine sees: an engine that was sabotaged is found out within 200 examples."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.model.running import ASKED, run
from workflow_engine.domain.decisions import failure, leases, waiting
from workflow_engine.domain.registry import registry
from workflow_engine.domain.statuses import Status
from workflow_engine.engine import advancing, mailbox
from workflow_engine.engine.leases import HeldLease

MOST_EXAMPLES = 200

Put = Callable[[Any, Any], None]
"""Puts the second in the place of the first, wherever the engine has imported it."""


@pytest.fixture(autouse=True)
def own_registry() -> Iterator[None]:
    with registry.isolated():
        yield


def a_stale_attempt_records(put: Put) -> None:
    put(HeldLease.holds, lambda lease, row: True)


def undos_run_in_the_order_of_completion(put: Put) -> None:
    def first_undo(state: Any) -> Any:
        return next((dict(entry) for entry in state.compensation_stack if failure._undoable(entry)), None)

    put(failure.next_undo, first_undo)


def a_claim_does_not_count(put: Put) -> None:
    right = leases.claim_attempt

    def claim(journal: Any, *arguments: Any) -> None:
        before = journal.state.attempts
        right(journal, *arguments)
        journal.state = replace(journal.state, attempts=before)
        del journal.events[-1].changes["attempts"]

    put(right, claim)


def a_signal_is_consumed_although_its_handler_is_to_be_called_again(put: Put) -> None:
    right = waiting.decide_signal_failure

    def decide(*arguments: Any) -> bool:
        right(*arguments)
        return True

    put(right, decide)


def a_passed_deadline_beats_a_signal(put: Put) -> None:
    right = mailbox.sort

    def sort(turn: Any, items: Any) -> Any:
        taken = right(turn, items)
        return None if turn.state.status == Status.AWAITING and advancing._is_due(turn) else taken

    put(right, sort)


SABOTAGES = (
    a_stale_attempt_records,
    undos_run_in_the_order_of_completion,
    a_claim_does_not_count,
    a_signal_is_consumed_although_its_handler_is_to_be_called_again,
    a_passed_deadline_beats_a_signal,
)


@pytest.mark.skipif(not ASKED, reason="takes longer than what it tests: make chaos-model")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("sabotage", SABOTAGES, ids=lambda sabotage: sabotage.__name__)
def test_it_is_found(
    sabotage: Callable[[Put], None], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "workflow_engine")

    def put(right: Any, wrong: Any) -> None:
        for module in [module for name, module in sys.modules.items() if name.startswith("workflow_engine")]:
            for owner in (module, *(each for each in vars(module).values() if isinstance(each, type))):
                for name, value in list(vars(owner).items()):
                    if value is right:
                        monkeypatch.setattr(owner, name, wrong)

    sabotage(put)
    with pytest.raises(AssertionError):
        run(MOST_EXAMPLES, shrink=False)
