"""A live server with the admin, a browser under a strict policy, and orders in every state."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model

from tests.browser import orders
from workflow_engine import clock
from workflow_engine.domain.registry import registry

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page
    from pytest_django.live_server_helper import LiveServer

# Playwright runs an event loop in this thread, which Django takes for one that the ORM would block.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")

PASSWORD = "for the browser"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is missing: make test-browser")
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.fail(
            "Chromium is missing. On Debian and Ubuntu: sudo apt install chromium. Or set CHROMIUM to its path."
        )
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(autouse=True)
def workflows() -> Iterator[None]:
    """The orders' workflow alone is registered."""
    assert "tests.browser.policy.StrictPolicy" in settings.MIDDLEWARE, "run these with make test-browser"
    with registry.isolated():
        registry._classes = {(orders.DeliverOrder.name, 1): orders.DeliverOrder}
        yield
    clock.reset_shift()


@pytest.fixture
def complaints() -> list[str]:
    """What the browser had to say: errors, and what the policy forbade."""
    return []


@pytest.fixture
def page(chromium: Browser, live_server: LiveServer, complaints: list[str]) -> Iterator[Page]:
    """A member of staff, logged in."""
    get_user_model().objects.create_superuser("olga", password=PASSWORD)
    context = chromium.new_context(base_url=live_server.url, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    watch(page, complaints)
    page.goto("/admin/login/?next=/admin/")
    page.get_by_label("Username").fill("olga")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    yield page
    context.close()
    assert complaints == []


def watch(page: Page, complaints: list[str]) -> None:
    """Note every error and warning of the page."""

    def note(said: ConsoleMessage) -> None:
        if said.type in {"error", "warning"}:
            complaints.append(said.text)

    page.on("console", note)
    page.on("pageerror", lambda error: complaints.append(str(error)))
