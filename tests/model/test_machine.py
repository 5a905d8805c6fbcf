from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.machine import Machine
from workflow_engine.domain.registry import registry

DEFAULT_EXAMPLES = 40
DEFAULT_STEPS = 25


@pytest.fixture(autouse=True)
def own_registry() -> Iterator[None]:
    with registry.isolated():
        yield


@pytest.mark.django_db(transaction=True)
def test_whatever_people_senders_workers_and_time_do_the_invariants_hold(caplog: pytest.LogCaptureFixture) -> None:
    """The same examples on every run; more of them, and others each time, with HYPOTHESIS_PROFILE=explore."""
    caplog.set_level(logging.CRITICAL, "workflow_engine")
    profile = settings()
    explores = not profile.derandomize
    run_state_machine_as_test(
        Machine,
        settings=settings(
            profile,
            max_examples=profile.max_examples if explores else DEFAULT_EXAMPLES,
            stateful_step_count=2 * DEFAULT_STEPS if explores else DEFAULT_STEPS,
            print_blob=True,
        ),
    )
