"""The machine itself. `make test` runs a few examples, and `make chaos-model` more."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator

import pytest

from tests.model.machine import Machine
from tests.model.running import ASKED, SEED, STEPS, run
from tests.proof.figures import keep
from workflow_engine.domain.registry import registry


@pytest.fixture(autouse=True)
def own_registry() -> Iterator[None]:
    with registry.isolated():
        yield


@pytest.mark.django_db(transaction=True)
def test_whatever_people_senders_workers_and_time_do_the_invariants_hold(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """A failure is repeated with the same number and seed."""
    caplog.set_level(logging.CRITICAL, "workflow_engine")
    examples = ASKED or 40
    started, Machine.ran = time.monotonic(), 0
    try:
        run(examples, number=SEED)
    finally:
        told = f"{examples} examples, seed {SEED}: {Machine.ran} runs in {time.monotonic() - started:.0f} s"
        keep("model", {"examples": Machine.ran, "seed": SEED, "steps": STEPS})
        with capsys.disabled():
            sys.stdout.write(f"{told}\n" if ASKED else "")
