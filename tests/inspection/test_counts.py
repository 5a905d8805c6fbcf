from __future__ import annotations

import pytest

from workflow_engine import engine
from workflow_engine.inspection.counts import versions
from workflow_engine.models import WorkflowInstance

pytestmark = pytest.mark.django_db


def test_every_version_has_its_live_instances_counted_by_status() -> None:
    engine.drive(engine.start("parcel"))
    engine.start("parcel")
    engine.start("parcel")
    ended = engine.start("leave")
    engine.cancel(ended)
    engine.drive(ended)
    WorkflowInstance.objects.filter(pk=engine.start("trip").pk).update(workflow_name="retired", definition_version=7)

    assert [(entry.name, entry.version, entry.live_total, dict(entry.live)) for entry in versions("default")] == [
        ("leave", 1, 0, {}),
        ("parcel", 2, 3, {"awaiting": 1, "pending": 2}),
        ("retired", 7, 1, {"pending": 1}),
        ("trip", 1, 0, {}),
    ]
    retired = versions("default")[2]
    assert (retired.definition, retired.steps) == (None, ())
    assert versions("default")[0].steps == ("approve",)
