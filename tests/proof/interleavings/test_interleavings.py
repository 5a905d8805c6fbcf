"""Whatever the order in which the statements of several threads reach the database, no invariant breaks.

A failure prints its seed: `make chaos-interleave SEEDS=7:8 PYTEST='-k "advance, signal"'` repeats it.
"""

from __future__ import annotations

import pytest

from tests.proof.campaign import Campaign, seeds
from tests.proof.interleavings.meeting import meet
from tests.proof.interleavings.meetings import MEETINGS, Meeting
from tests.traps import needs

# Only the tables of these two are emptied after each test, which is quicker.
APPS = ["workflow_engine", "tests.shop"]

pytestmark = [pytest.mark.django_db(transaction=True, available_apps=APPS), needs.server]


@pytest.mark.parametrize("meeting", MEETINGS, ids=lambda meeting: meeting.name)
def test_no_order_breaks_an_invariant(meeting: Meeting, campaign: Campaign) -> None:
    for seed in seeds(usually=5):
        campaign.tries(seed)
        met = meet(meeting, seed)
        campaign.note(met.case)
        campaign.switches += met.switches
        assert met.complaints == [], "\n".join([f"{meeting.name}, seed {seed}", *met.told])
