"""The log by keyboard, the search over the console, and parts that narrow at once, in a real browser."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from tests.support.browser_tab import Tab
from tests.support.chromium import needs_chromium
from tests.support.processes import Gateway

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: `make develop` installs it"
)
pytestmark = needs_chromium


@pytest.fixture(scope="module")
def gateway(demo_gateway: Gateway) -> Gateway:
    return demo_gateway


@pytest.fixture(scope="module")
def owner(demo_owner: httpx.Client) -> httpx.Client:
    return demo_owner


def test_rows_are_walked_and_an_open_request_has_its_address(
    gateway: Gateway, owner: httpx.Client, browser: Any
) -> None:
    with Tab(browser, gateway, owner) as tab:
        page = tab.page
        page.goto("/dashboard/logs?window=7d")
        rows = page.locator("main a[data-drawer]")
        first, second = (rows.nth(at).get_attribute("href") for at in (0, 1))
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("k")
        sync_api.expect(rows.nth(0)).to_be_focused()
        page.keyboard.press("Enter")
        drawer = page.get_by_role("dialog", name="Details")
        sync_api.expect(drawer.get_by_role("heading", name="Timeline")).to_be_visible()
        assert page.url == f"{gateway.url}{first}"
        page.keyboard.press("j")
        sync_api.expect(page).to_have_url(f"{gateway.url}{second}")
        page.keyboard.press("Escape")
        sync_api.expect(drawer).to_be_hidden()
        assert page.url == f"{gateway.url}/dashboard/logs?window=7d"
        page.goto(second)
        sync_api.expect(page.get_by_role("heading", name="Timeline")).to_be_visible()


def test_the_search_opens_by_keyboard_and_leads_to_pages_and_requests(
    gateway: Gateway, owner: httpx.Client, browser: Any
) -> None:
    with Tab(browser, gateway, owner) as tab:
        page = tab.page
        page.goto("/dashboard")
        page.keyboard.press("Control+k")
        palette = page.get_by_role("dialog", name="Search the console")
        field = palette.get_by_role("searchbox")
        sync_api.expect(field).to_be_focused()
        field.fill("audit")
        sync_api.expect(palette.get_by_role("link").first).to_contain_text("Audit log")
        page.keyboard.press("Enter")
        sync_api.expect(page).to_have_url(f"{gateway.url}/dashboard/audit")
        page.goto("/dashboard/logs")
        page.keyboard.press("/")
        sync_api.expect(page.get_by_label("Search reasons and ids")).to_be_focused()
        page.keyboard.type("no such reason")
        page.keyboard.press("Enter")
        sync_api.expect(page.get_by_text("No request matches")).to_be_visible()
        assert "errorKind" not in page.url, "empty fields stay out of the address"


def test_a_column_of_a_chart_and_a_choice_narrow_at_once(
    gateway: Gateway, owner: httpx.Client, browser: Any
) -> None:
    with Tab(browser, gateway, owner) as tab:
        page = tab.page
        page.goto("/dashboard/usage?window=7d&by=key")
        page.locator(".column").nth(2).click()
        sync_api.expect(page).to_have_url(re.compile(r"[?&]from=\d{4}-\d\d-\d\dT00%3A00&to="))
        page.goto("/dashboard/logs?window=7d")
        page.get_by_label("Outcome").select_option("upstream_failed")
        sync_api.expect(page).to_have_url(re.compile("outcome=upstream_failed"))
        page.get_by_role("link", name=re.compile("Remove the filter Outcome")).click()
        sync_api.expect(page).not_to_have_url(re.compile("outcome="))


def test_settings_and_providers_are_filtered_while_one_types(
    gateway: Gateway, owner: httpx.Client, browser: Any
) -> None:
    with Tab(browser, gateway, owner) as tab:
        page = tab.page
        page.goto("/dashboard/settings")
        shown = page.locator("form.long .field:visible")
        every = shown.count()
        page.get_by_label("Search settings").fill("backup newest")
        assert 0 < shown.count() < every / 4
        page.get_by_label("Keep newest").fill("31")
        sync_api.expect(page.locator("[data-changes]")).to_have_text("1 change")
        page.goto("/dashboard/providers/new")
        page.get_by_label("Search", exact=True).fill("groq")
        sync_api.expect(page.get_by_role("link", name="Groq")).to_be_visible()
        sync_api.expect(page.get_by_role("link", name="OpenAI", exact=True)).to_be_hidden()


def test_the_prompt_is_sent_by_keyboard_to_three_models_which_say_who_served(
    gateway: Gateway, owner: httpx.Client, browser: Any
) -> None:
    with Tab(browser, gateway, owner) as tab:
        page = tab.page
        page.goto("/dashboard/playground")
        page.get_by_label("Model required").fill("demo/echo")
        for name in ("Second", "Third"):
            page.get_by_label(f"{name} model").fill("demo/standin")
        page.get_by_label("Prompt").fill("Ahoy")
        page.keyboard.press("Control+Enter")
        badges = page.locator(".side-of .badge")
        for side in range(3):
            sync_api.expect(badges.nth(side)).to_have_text("answered", timeout=15_000)
        assert "echo" in page.locator("[data-served]").nth(0).inner_text()
