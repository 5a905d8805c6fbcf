"""An operations team at work: find what is stuck, read why, get it moving. In a browser, under a strict policy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser import orders
from tests.browser.policy import POLICY
from workflow_engine import engine
from workflow_engine.models import WorkflowInstance

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def carrier() -> Iterator[None]:
    """Down at first."""
    orders.CARRIER["is_down"] = True
    yield
    orders.CARRIER["is_down"] = True


def now(row: WorkflowInstance) -> WorkflowInstance:
    row.refresh_from_db()
    return row


def test_the_policy_is_in_force(page: Page) -> None:
    answer = page.goto("/admin/workflow_engine/workflowinstance/")
    assert answer is not None
    assert answer.headers["content-security-policy"] == POLICY
    assert (
        page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--wf-live')").strip() == "#1f5fa8"
    )


def test_find_a_stuck_order_read_why_signal_it_see_it_move(page: Page) -> None:
    row = orders.placed(7)
    orders.placed(8)
    page.goto("/admin/")
    page.get_by_role("link", name="Workflow instances").first.click()
    page.locator("#searchbar").fill("shop.order:7")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name="deliver_order 1").click()
    why = page.get_by_role("region", name="Why is it here?")
    assert "Awaiting payment_succeeded or payment_declined at await_payment" in why.inner_text()
    assert "If it does not come in time, payment_is_late decides." in why.inner_text()
    page.get_by_role("link", name="Send a signal").click()
    page.get_by_label("payment_succeeded").check()
    page.get_by_label("Data").fill('{"id": "pay_7", "amount": 42')
    page.get_by_role("button", name="Send a signal").click()
    assert "This is not JSON" in page.locator(".errorlist").inner_text()
    page.get_by_label("Data").fill('{"id": "pay_7", "amount": 42}')
    page.get_by_role("button", name="Send a signal").click()
    assert "Now: sleeping at wait_for_delivery." in page.locator(".messagelist").inner_text()
    assert page.locator("h1 .wf-pill").inner_text() == "sleeping"
    assert "by olga" in page.get_by_role("region", name="History").inner_text()
    assert now(row).context["payment"] == {"id": "pay_7", "amount": 42}


def test_retry_a_failed_one(page: Page) -> None:
    row = orders.failed(1042)
    page.goto("/admin/workflow_engine/workflowinstance/?status=failed")
    page.get_by_role("link", name="deliver_order 1").click()
    assert "carrier.example answered 503" in page.get_by_role("region", name="Why is it here?").inner_text()
    page.get_by_text("Traceback").first.click()
    assert "ConnectionError" in page.locator("details[open] pre").first.inner_text()
    orders.CARRIER["is_down"] = False
    page.get_by_role("link", name="Retry").click()
    assert "It would run ship again." in page.locator("#content").inner_text()
    page.get_by_label("Reason").fill("the carrier is back")
    page.get_by_role("button", name="Retry").click()
    assert "Now: sleeping at wait_for_delivery." in page.locator(".messagelist").inner_text()
    assert now(row).status == "sleeping"


def test_a_live_page_follows_the_instance_and_keeps_what_is_open(page: Page) -> None:
    row = orders.placed(7)
    page.goto(f"/admin/workflow_engine/workflowinstance/{row.pk}/change/")
    page.get_by_text("Input: what it was started with").click()
    page.locator("#wf-do-pause").focus()
    engine.signal(row, "payment_succeeded", {"id": "pay_7"}, actor="stripe")
    engine.drive(row)
    page.locator("h1 .wf-pill", has_text="sleeping").wait_for(timeout=15_000)
    assert page.locator("#wf-carries-input").get_attribute("open") is not None
    assert page.evaluate("document.activeElement.id") == "wf-do-pause"
    assert page.locator("#wf-refreshed").inner_text().startswith("Updated ")


def test_many_are_paused_at_once(page: Page) -> None:
    rows = [orders.placed(number) for number in range(3)]
    page.goto("/admin/workflow_engine/workflowinstance/")
    page.locator("#action-toggle").check()
    page.get_by_label("Action:").select_option(label="Pause the selected instances")
    page.get_by_role("button", name="Go").click()
    assert "This is for 3 instances." in page.locator("#content").inner_text()
    page.get_by_role("button", name=re.compile("^Pause")).click()
    assert "Pause: asked of 3 instances." in page.locator(".messagelist").inner_text()
    assert [orders.moved(row).paused for row in rows] == [True] * 3


def test_a_filter_to_type_into(page: Page) -> None:
    orders.failed(1)
    orders.placed(2)
    page.goto("/admin/workflow_engine/workflowinstance/")
    page.get_by_text("By step").click()
    page.get_by_role("combobox", name="step").fill("ship")
    page.keyboard.press("Enter")
    page.wait_for_url("**step=ship*")
    assert page.locator("#result_list tbody tr").count() == 1


@pytest.mark.parametrize("path", ["overview", "definitions"])
def test_the_other_pages(page: Page, path: str) -> None:
    orders.failed(1)
    page.goto(f"/admin/workflow_engine/workflowinstance/{path}/")
    assert "ship" in page.locator("#content").inner_text()


def test_everything_is_within_reach_of_the_keyboard(page: Page) -> None:
    row = orders.placed(7)
    page.goto(f"/admin/workflow_engine/workflowinstance/{row.pk}/act/cancel/")
    reached = []
    for _press in range(60):
        page.keyboard.press("Tab")
        focused: dict[str, Any] = page.evaluate(
            "({id: document.activeElement.id, name: document.activeElement.name || ''})"
        )
        reached.append(focused["name"] or focused["id"])
    assert [name for name in reached if name in {"undo", "reason", "wf-confirm"}][:3] == [
        "undo",
        "reason",
        "wf-confirm",
    ]


@pytest.mark.parametrize("path", ["change/", "act/signal/", "../overview/", "../definitions/"])
def test_nothing_is_cut_off_on_a_phone(page: Page, path: str) -> None:
    row = orders.placed(7)
    page.set_viewport_size({"width": 390, "height": 844})
    base = f"/admin/workflow_engine/workflowinstance/{row.pk}/"
    page.goto(base.replace(f"{row.pk}/", "") + path.removeprefix("../") if path.startswith("../") else base + path)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out_in_both_themes(page: Page, theme: Any) -> None:
    row = orders.failed(7)
    page.emulate_media(color_scheme=theme)
    page.goto(f"/admin/workflow_engine/workflowinstance/{row.pk}/change/")
    for selector in (".wf-headline", ".wf-error", ".wf-quiet", "h1 .wf-pill", ".wf-list dt", "pre.wf-json", "summary"):
        assert page.evaluate(CONTRAST, selector) >= 4.5, (selector, theme)


CONTRAST = """selector => {
    const parse = text => { const [r, g, b, a] = text.match(/[\\d.]+/g).map(Number); return {r, g, b, a: a ?? 1}; };
    const over = (top, base) => Object.fromEntries(
        ["r", "g", "b"].map(c => [c, top[c] * top.a + base[c] * (1 - top.a)]));
    const backdrop = element => {
        const own = parse(getComputedStyle(element).backgroundColor);
        return own.a === 1 || !element.parentElement ? own : {...over(own, backdrop(element.parentElement)), a: 1};
    };
    const light = colour => {
        const [r, g, b] = [colour.r, colour.g, colour.b].map(v => v / 255)
            .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const element = document.querySelector(selector);
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(backdrop(element))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}"""
"""The contrast of an element's text, as WCAG reckons it."""
