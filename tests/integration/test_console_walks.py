"""The console by keyboard alone, in two tabs, without scripts, and a newcomer's first run, in a real browser.

One gateway and one browser serve all of these.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from fairlead.dashboard.registry import all_pages
from tests.integration.test_console_pages import (
    NARROW,
    addresses,
    page_at,
    press_to,
)
from tests.support.browser_tab import Tab
from tests.support.gateway_pool import operator_settings
from tests.support.owner import OWNER_PASSWORD
from tests.support.polling import eventually
from tests.support.processes import Gateway, expect

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: `make develop` installs it"
)
pytestmark = pytest.mark.skipif(
    shutil.which("chromium") is None, reason="there is no chromium: apt-get install chromium"
)
CHANGED = re.compile("Somebody has changed")
# Pages that change what is no record: a password.
UNSEEN: Final = {"account/password"}
# What has the focus: what it is, its name, whether that is seen, and where it stands in the page.
FOCUSED = """() => {
  const it = document.activeElement;
  if (it === document.body) return null;
  const named = it.labels?.[0]?.innerText || it.getAttribute('aria-label') || it.innerText || it.title || '';
  const style = getComputedStyle(it);
  const box = it.getBoundingClientRect();
  return { name: named.trim(), isSeen: style.outlineStyle !== 'none', tag: it.tagName, size: box.width * box.height,
           at: [...document.querySelectorAll('*')].indexOf(it) };
}"""
REACHABLE = """() => {
  const kinds = ['a[href]', 'button', 'input:not([type=hidden])', 'select', 'textarea', 'summary'];
  const all = [...document.querySelectorAll(kinds.map(each => `main ${each}`).join(', '))];
  const isSeen = each => each.checkVisibility({ visibilityProperty: true });
  return all.filter(each => isSeen(each) && !each.disabled && each.tabIndex >= 0).length;
}"""
STEPS_MAX = 900
# So often in one test.
SIGN_INS = 4
WAIT_MS = 15_000


@pytest.fixture(scope="module")
def gateway(demo_gateway: Gateway) -> Gateway:
    return demo_gateway


@pytest.fixture(scope="module")
def owner(demo_owner: httpx.Client) -> httpx.Client:
    return demo_owner


def walk(page: Any, path: str) -> int:
    """Presses Tab through a page, from its content on: how many controls had the focus."""
    page.goto(path)
    page.evaluate("document.getElementById('main').focus()")
    reached, last = 0, -1
    for _ in range(STEPS_MAX):
        page.keyboard.press("Tab")
        it = page.evaluate(FOCUSED)
        if it is None or it["at"] < last:
            break
        assert it["name"] or it["tag"] == "DIV", (path, it)
        assert it["isSeen"], (path, "the focus is not seen", it)
        assert it["size"] > 0, (path, "what has no size has the focus", it)
        reached, last = reached + (it["tag"] != "DIV"), it["at"]
    return reached


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_control_of_every_page_is_reached_by_tab_in_order_and_seen(
    gateway: Gateway, owner: httpx.Client, browser: Any
) -> None:
    with Tab(browser, gateway, owner, reduced_motion="reduce") as tab:
        for path in addresses(owner):
            reached = walk(tab.page, path)
            there = tab.page.evaluate(REACHABLE)
            assert reached >= min(there, STEPS_MAX - 1), (path, reached, there)


# What a record's form wants before it can be saved, beside the field that both tabs change.
WANTED: Final[dict[str, dict[str, str]]] = {
    "settings/mail": {
        "sender": "fairlead@example.com",
        "recipients": "ops@example.com",
    },
    "identity/{user_id}": {"currentPassword": OWNER_PASSWORD},
}
# The form of a record says which state of it was shown.
RECORD = (
    "form[method=post]:has(input[name=seen]), form[method=post]:has(input[name=settingsRevision])"
)
# Its first field that takes any text or number.
EDITABLE = "input[type=text]:not([inputmode]), textarea, input[inputmode=numeric], input[inputmode=decimal], select"


def edit(tab: Tab, path: str, at: int, value: str) -> Any:
    """Opens a page and changes the first field of its record number `at`, unsaved: the field."""
    tab.page.goto(path)
    form = tab.page.locator(RECORD).nth(at)
    form.evaluate("it => it.querySelectorAll('details').forEach(each => { each.open = true; })")
    page = page_at(path).path
    for name, text in WANTED.get(page, {}).items():
        form.locator(f"[name={name}]").fill(text)
    field = form.locator(EDITABLE).first
    if field.evaluate("it => it.tagName") == "SELECT":
        field.select_option(index=int(value))
    else:
        # A name, and a host where one is wanted.
        field.fill(value if field.get_attribute("inputmode") else f"tab{value}.example")
    return field


def save(tab: Tab, at: int) -> None:
    tab.page.locator(RECORD).nth(at).locator(
        "button:not([tabindex='-1']):not([name=edit])"
    ).last.click()


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_of_two_tabs_that_edit_one_record_the_second_is_told(
    gateway: Gateway, owner: httpx.Client, browser: Any
) -> None:
    edited = []
    settings = operator_settings(gateway)
    with Tab(browser, gateway, owner) as one, Tab(browser, gateway, owner) as two:
        for path in addresses(owner):
            one.page.goto(path)
            for at in range(one.page.locator(RECORD).count()):
                edit(one, path, at, "1")
                field = edit(two, path, at, "2")
                typed = field.input_value()
                save(one, at)
                sync_api.expect(one.page.get_by_role("status").first).to_be_visible()
                save(two, at)
                sync_api.expect(two.page.get_by_role("alert").first).to_have_text(CHANGED)
                shown = two.page.locator(RECORD).nth(at).locator(EDITABLE).first
                assert shown.input_value() == typed, path
                edited.append(page_at(path).path)
        # The answer to the second tab is an error by its status, which the browser notes.
        two.complaints[:] = [said for said in two.complaints if "409" not in said]
    # Every page that changes a record is among them.
    assert {page.path for page in all_pages() if "change" in page.actions} - set(edited) == UNSEEN
    expect(owner.delete("/api/settings/mail"), 200)
    now = operator_settings(gateway)
    changed = {name: value for name, value in settings.items() if now[name] != value}
    expect(gateway.admin.patch("/api/settings", json=changed), 200)


# What is typed or chosen in each form of a page, and what it is worth.
FORMS = """
  const typed = form => [...form.elements].filter(each => each.name
    && each.matches('input, select, textarea') && !['hidden', 'password', 'file'].includes(each.type));
  const forms = [...document.querySelectorAll('form[method=post]')].filter(form => typed(form).length);
  const worth = each => each.type === 'checkbox' ? each.checked : each.value;
  const told = form => form && typed(form).map(each => [each.name, worth(each)]);
"""
COUNT = "() => {" + FORMS + "return forms.length; }"
READ = "at => {" + FORMS + "return told(forms[at]); }"
SEND = "at => {" + FORMS + "forms[at].requestSubmit(); }"
# Another choice, the other side of a switch, some words.
FILL = (
    "at => {"
    + FORMS
    + """
  for (const each of typed(forms[at])) {
    if (each.type === 'checkbox') each.checked = !each.checked;
    else if (each.matches('select')) each.selectedIndex = each.options.length - 1;
    else if (each.type === 'datetime-local') each.value = '2026-03-04T05:06';
    else if (each.type !== 'radio') each.value = '7';
  }
  forms[at].noValidate = true;
  return told(forms[at]);
}"""
)


def sign_in_again(tab: Tab, sessions: list[Any], *, is_typed: bool) -> None:
    """By the form, or with the session that was there: sign-ins are counted, and too many are turned away."""
    if is_typed:
        tab.page.get_by_label("Password").fill(OWNER_PASSWORD)
        tab.page.get_by_role("button", name="Sign in").click()
        tab.page.wait_for_url(lambda url: "/login" not in url)
        return
    tab.context.add_cookies(sessions)
    tab.page.goto(parse_qs(urlsplit(tab.page.url).query)["return_to"][0])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_where_a_session_ends_no_form_loses_what_was_typed(
    gateway: Gateway, owner: httpx.Client, browser: Any
) -> None:
    kept = 0
    with Tab(browser, gateway, owner) as tab:
        page = tab.page
        for path in addresses(owner):
            page.goto(path)
            for at in range(page.evaluate(COUNT)):
                page.goto(path)
                typed = page.evaluate(FILL, at)
                sessions = tab.context.cookies()
                tab.context.clear_cookies()
                page.evaluate(SEND, at)
                page.wait_for_url("**/login?**")
                sign_in_again(tab, sessions, is_typed=kept < SIGN_INS)
                page.wait_for_url(f"**{path.partition('?')[0]}*")
                assert page.evaluate(READ, at) == typed, (path, at)
                kept += 1
    assert kept > 30, "every page with a form is among them"


def test_connections_are_put_in_an_order_by_keys_and_by_dragging(
    gateway: Gateway, owner: httpx.Client, browser: Any
) -> None:
    (node,) = expect(owner.get("/api/provider-nodes"), 200)["nodes"][:1]
    # Before those of the demo.
    for name in ("first line", "second line", "third line"):
        body = {"provider": node["id"], "name": name, "authType": "none", "priority": 1}
        expect(owner.post("/api/providers", json=body), 201)

    def order(page: Any) -> list[str]:
        return list(page.locator("[data-order] th a").all_inner_texts())[:3]

    with Tab(browser, gateway, owner) as tab:
        page = tab.page
        page.goto("/dashboard/providers")
        assert order(page) == ["first line", "second line", "third line"]
        press_to(page, "Move third line up")
        page.keyboard.press("Enter")
        sync_api.expect(page.get_by_role("status").first).to_have_text("The order was saved.")
        assert order(page) == ["first line", "third line", "second line"]
        focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
        assert focused == "Move third line up", "the button has the focus again"
        page.keyboard.press("Enter")
        page.wait_for_load_state()
        sync_api.expect(page.locator("[data-order] th a").first).to_have_text("third line")
        grip = page.locator("[data-order] tr").nth(2).locator(".grip")
        start = grip.bounding_box()
        goal = page.locator("[data-order] tr").first.bounding_box()
        assert start is not None
        assert goal is not None
        page.mouse.move(start["x"] + 5, start["y"] + 5)
        page.mouse.down()
        page.mouse.move(start["x"] + 5, goal["y"] + 3, steps=8)
        page.mouse.up()
        sync_api.expect(page.locator("[data-order] th a").first).to_have_text("second line")
    found = expect(owner.get("/api/providers"), 200)["connections"]
    shown = [each["name"] for each in sorted(found, key=lambda each: int(each["priority"]))]
    assert shown[0] == "second line"
    for each in found:
        if each["name"].endswith("line"):
            expect(owner.delete(f"/api/providers/{each['id']}"), 200)


def test_a_request_shows_the_headers_that_steered_it(gateway: Gateway, owner: httpx.Client) -> None:
    expect(owner.patch("/api/settings", json={"captureBodies": True}), 200)
    body = {"model": "demo/echo", "messages": [{"role": "user", "content": "Ahoy"}]}
    headers = {"x-gateway-no-cache": "true", "x-gateway-session-id": "<b>bold</b>"}
    answer = gateway.caller.post("/v1/chat/completions", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    path = f"/dashboard/logs/{answer.headers['x-gateway-request-id']}"

    def is_shown() -> bool:
        return "x-gateway-no-cache" in owner.get(path).text

    eventually(is_shown, "the headers are shown", within_s=15, every_s=0.2)
    page = owner.get(path).text
    assert "x-gateway-decision" in page
    assert "&lt;b&gt;bold&lt;/b&gt;" in page
    assert "<b>bold" not in page
    expect(owner.patch("/api/settings", json={"captureBodies": False}), 200)


# What is there, and does nothing without a script; what is hidden until one shows it may do so.
SCRIPTED = """() => {
  const isSeen = each => each.checkVisibility({ visibilityProperty: true });
  const buttons = [...document.querySelectorAll('button, input[type=button]')];
  const links = [...document.querySelectorAll('a')].filter(each => {
    const goal = each.getAttribute('href');
    return !goal || (goal.startsWith('#') && !document.getElementById(goal.slice(1)));
  });
  return [...buttons.filter(each => !each.form || each.type === 'button'), ...links].filter(isSeen)
    .map(each => each.outerHTML.slice(0, 120));
}"""


def read_without_scripts(tab: Tab, path: str) -> None:
    """Its heading, and its data or what it says where there is none; nothing that a script alone would serve."""
    tab.page.goto(path)
    assert tab.page.locator("h1").count() == 1, path
    # A page of a script's making would be its heading alone.
    words = tab.page.locator("main").inner_text().removeprefix(tab.page.locator("h1").inner_text())
    assert len(words.strip()) > 60, (path, words)
    assert tab.page.evaluate(SCRIPTED) == [], path


@pytest.mark.parametrize("is_whole", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_without_scripts_every_page_is_read(
    gateway: Gateway, owner: httpx.Client, browser: Any, is_whole: bool
) -> None:
    short = [f"/dashboard/{path}" for path in ("cache", "providers", "limits", "health", "logs")]
    with Tab(browser, gateway, owner, java_script_enabled=False, viewport=NARROW) as tab:
        for path in addresses(owner) if is_whole else short:
            read_without_scripts(tab, path)


def test_a_newcomer_sees_the_first_call_arrive(
    gateways: Callable[..., Gateway], browser: Any, standin_url: str
) -> None:
    gateway = gateways(INITIAL_PASSWORD=OWNER_PASSWORD)
    with Tab(browser, gateway, None) as tab:
        page = tab.page
        page.goto("/dashboard")
        page.get_by_label("Password").fill(OWNER_PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        sync_api.expect(page.get_by_role("heading", name="Start here")).to_be_visible()
        page.get_by_role("link", name="Add", exact=True).click()
        page.goto("/dashboard/providers/new-endpoint")
        page.get_by_label("Name").fill("Our lab")
        page.get_by_label("Prefix").fill("lab")
        page.get_by_label("Base URL").fill(f"{standin_url}/v1")
        page.get_by_role("button", name="Continue").click()
        page.get_by_label("API key").fill("sk-any-will-do-here")
        gateway.canaries.append("sk-any-will-do-here")
        page.get_by_role("button", name="Check and store").click()
        sync_api.expect(page.get_by_role("status").first).to_contain_text("checked and stored")
        page.goto("/dashboard")
        page.get_by_role("link", name="Make", exact=True).click()
        page.get_by_label("Name").fill("first application")
        page.get_by_role("button", name="Create key").click()
        key = page.get_by_label("Key of").input_value()
        gateway.canaries.append(key)
        page.goto("/dashboard")
        sync_api.expect(page.locator(".live")).to_have_text("Live")
        body = {"model": "lab/echo", "messages": [{"role": "user", "content": "Ahoy"}]}
        headers = {"authorization": f"Bearer {key}"}
        url = f"{gateway.url}/v1/chat/completions"
        assert httpx.post(url, json=body, headers=headers).status_code == 200
        arrived = page.locator("[data-live='begin']")
        sync_api.expect(arrived).to_contain_text("It has arrived: lab/echo", timeout=WAIT_MS)
        arrived.get_by_role("link", name="Look at it").click()
        sync_api.expect(page.get_by_role("heading", name="Timeline")).to_be_visible()
        assert page.locator(".events li").count() == 4, "admitted, chosen, first byte, end"


def test_rows_of_the_log_arrive_and_a_key_is_copied(
    gateway: Gateway, owner: httpx.Client, browser: Any
) -> None:
    with Tab(browser, gateway, owner, permissions=["clipboard-read", "clipboard-write"]) as tab:
        page = tab.page
        page.goto("/dashboard/logs")
        sync_api.expect(page.locator(".live")).to_have_text("Live")
        page.evaluate("window.isTheSame = true")
        body = {"model": "demo/echo", "messages": [{"role": "user", "content": "Ahoy"}]}
        answer = gateway.caller.post("/v1/chat/completions", json=body)
        expect(answer, 200)
        request_id = answer.headers["x-gateway-request-id"]
        row = page.locator(f"tbody a[href$='{request_id}']")
        sync_api.expect(row).to_be_visible(timeout=WAIT_MS)
        assert page.evaluate("window.isTheSame"), "the page was not loaded again"
        page.goto("/dashboard/keys/new")
        page.get_by_label("Name").fill("copied")
        page.get_by_role("button", name="Create key").click()
        secret = page.get_by_label("Key of").input_value()
        gateway.canaries.append(secret)
        button = page.get_by_role("button", name="Copy", exact=True)
        button.focus()
        page.keyboard.press("Enter")
        sync_api.expect(page.get_by_role("button", name="Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == secret
