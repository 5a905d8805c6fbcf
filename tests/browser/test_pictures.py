"""The picture in the README: make test-browser PYTEST='-k picture' with PICTURES=docs/images makes it anew."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import orders

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LARGEST = 150_000


def test_the_picture_in_the_readme(page: Page, tmp_path: Path) -> None:
    row = orders.failed(1042)
    page.evaluate("localStorage.setItem('django.admin.navSidebarIsOpen', 'false')")
    page.set_viewport_size({"width": 1180, "height": 880})
    page.goto(f"/admin/workflow_engine/workflowinstance/{row.pk}/change/")
    picture = Path(os.environ.get("PICTURES", tmp_path)) / "instance.png"
    page.screenshot(path=picture)
    assert 10_000 < picture.stat().st_size < LARGEST
