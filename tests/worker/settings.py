"""The settings of worker processes: those of the tests, with WORKFLOW_ENGINE as the test that starts them says."""

from __future__ import annotations

import json
import os

from tests.settings import *  # noqa: F403  # Everything but the setting below is the same project.

SETTINGS_VARIABLE = "WORKFLOW_ENGINE_TEST_SETTINGS"
WORKFLOW_ENGINE = json.loads(os.environ.get(SETTINGS_VARIABLE, "{}"))
