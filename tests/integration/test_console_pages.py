"""The console in a real browser: live, by keyboard alone, at every width, dark and light, without scripts.

With `FAIRLEAD_DOCS_IMAGES=docs/images` the slow test takes the pictures that the documentation shows; with
`FAIRLEAD_PAGE_IMAGES` and a folder, every page is kept as a picture of each width and scheme, to be looked at.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from fairlead.dashboard.page import Page
from fairlead.dashboard.registry import all_pages, find_page
from tests.support.browser_tab import WIDE, Tab
from tests.support.owner import OWNER_PASSWORD, demo_owner_of
from tests.support.polling import eventually
from tests.support.processes import Gateway, expect

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: `make develop` installs it"
)
pytestmark = pytest.mark.skipif(
    shutil.which("chromium") is None, reason="there is no chromium: apt-get install chromium"
)

AXE = Path(__file__).parents[1] / "support" / "node" / "node_modules" / "axe-core" / "axe.min.js"
needs_axe = pytest.mark.skipif(
    not AXE.is_file(), reason="there is no axe-core: make develop with npm"
)
NARROW = {"width": 360, "height": 740}
VAST = {"width": 2560, "height": 1300}
WAIT_MS = 15_000
# What the address of a page says behind its path, where it shows one thing of many.
QUERIES = {"models/model": "?id=openai%2Fgpt-4o", "combos/simulate": "?combo=either"}


@pytest.fixture(scope="module")
def gateway(demo_gateway: Gateway) -> Gateway:
    return demo_gateway


@pytest.fixture(scope="module")
def owner(demo_owner: httpx.Client) -> httpx.Client:
    return demo_owner


def work_ids(owner: httpx.Client, webhook_id: str) -> dict[str, str]:
    """What pages show that no made-up traffic brings: a batch, a crawl, an agent, a delivery."""
    key = expect(owner.post("/api/keys", json={"name": "of the pages", "captureBodies": True}), 201)
    headers = {"authorization": f"Bearer {key['key']}"}
    # The model answers what it was asked.
    said = f"<script>alert(1)</script><img src=x onerror=alert(2)> \u202egnp.exe {'w' * 3000}"
    call = {"model": "demo/echo", "messages": [{"role": "user", "content": said}]}
    url = "/v1/chat/completions"
    line = orjson.dumps({"custom_id": "1", "method": "POST", "url": url, "body": call})
    form = {"files": {"file": ("lines.jsonl", line)}, "data": {"purpose": "batch"}}
    file = expect(httpx.post(f"{owner.base_url}/v1/files", headers=headers, **form), 200)
    ask = {"input_file_id": file["id"], "endpoint": url, "completion_window": "24h"}
    batches, crawls = f"{owner.base_url}/v1/batches", f"{owner.base_url}/api/crawl"
    batch = expect(httpx.post(batches, headers=headers, json=ask), 200)
    answer = httpx.post(f"{owner.base_url}{url}", headers=headers, json=call)
    request_id = answer.headers["x-gateway-request-id"]
    eventually(
        lambda: owner.get(f"/api/usage/logs/{request_id}/body").status_code == 200,
        "what was said is kept",
        within_s=20,
    )
    site = {"url": "https://93.184.215.14/"}
    agents = expect(owner.get("/api/agent-skills"), 200)["skills"]
    agent = {"name": f"Reader {len(agents)}", "description": "It reads.", "prompt": "Read."}
    test = expect(owner.post(f"/api/webhooks/{webhook_id}/test", json={}), 200)
    return {
        "{batch_id}": f"{batch['id']}?key={key['id']}",
        "{job_id}": f"{expect(httpx.post(crawls, headers=headers, json=site), 200)['id']}?key={key['id']}",
        "{skill_id}": expect(owner.post("/api/agent-skills", json=agent), 201)["id"],
        "{user_id}": expect(owner.get("/api/users"), 200)["users"][0]["id"],
        "{delivery_id}": test["deliveryId"],
        "{tool_id}": "codex",
        "{file_id}": file["id"],
        "{request_id}": request_id,
    }


def addresses(owner: httpx.Client) -> list[str]:
    """An address of every page that is read."""
    key = expect(owner.get("/api/keys", params={"limit": 1}), 200)["keys"][0]["id"]
    connection = expect(owner.get("/api/providers", params={"limit": 1}), 200)["connections"][0]
    hooks = expect(owner.get("/api/webhooks"), 200)["webhooks"]
    if not hooks:
        body = {
            "name": "on call",
            "url": "https://93.184.215.14/hook",
            "events": ["provider.error"],
        }
        hooks = [expect(owner.post("/api/webhooks", json=body), 201)["webhook"]]
    combo = expect(owner.get("/api/combos", params={"limit": 1}), 200)["combos"]
    if not combo:
        body = {"name": "either", "models": ["demo/echo", "demo/slow"]}
        combo = [expect(owner.post("/api/combos", json=body), 201)]
    mappings = expect(owner.get("/api/model-combo-mappings"), 200)["mappings"]
    if not mappings:
        body = {"pattern": "demo/gpt-4*", "comboId": combo[0]["id"]}
        mappings = [expect(owner.post("/api/model-combo-mappings", json=body), 201)]
    pipelines = expect(owner.get("/api/context/combos"), 200)["combos"]
    if not pipelines:
        body = {"name": "ours", "stages": [{"engine": "lite"}]}
        pipelines = [expect(owner.post("/api/context/combos", json=body), 201)]
    groups = expect(owner.get("/api/groups"), 200)["groups"]
    if not groups:
        groups = [expect(owner.post("/api/groups", json={"name": "research"}), 201)]
    node = expect(owner.get("/api/provider-nodes"), 200)["nodes"][0]["id"]
    ids = {
        "{group_id}": groups[0]["id"],
        "{node_id}": node,
        "{pipeline_id}": pipelines[0]["id"],
        "{mapping_id}": mappings[0]["id"],
        "{combo_id}": combo[0]["id"],
        "{key_id}": key,
        "{connection_id}": connection["id"],
        "{webhook_id}": hooks[0]["id"],
        "{provider}": "openai",
        **work_ids(owner, hooks[0]["id"]),
    }
    found = []
    for page in all_pages():
        path = page.address.replace("mitm/{tool_id}", "mitm/kiro")
        path = path.replace("cli-agents/{tool_id}", "cli-agents/goose")
        for name, value in ids.items():
            path = path.replace(name, value)
        assert "{" not in path, f"the page {page.path} is not looked at: name what it shows"
        path += QUERIES.get(page.path, "")
        if not path.endswith((".csv", ".parquet", ".zip")) and "/files/" not in path:
            found.append(path)
    return found


def page_at(path: str) -> Page:
    """The page of the registry at an address."""
    found = find_page(path.partition("?")[0].removeprefix("/dashboard").strip("/"))
    assert found is not None, path
    return found[0]


def judge(tab: Tab, path: str) -> list[Any]:
    """What axe finds against WCAG 2.2 AA, with the first elements."""
    tab.page.evaluate(AXE.read_text(encoding="utf-8"))
    tags = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}"
    found = tab.page.evaluate(f"axe.run(document, {tags}).then(each => each.violations)")
    return [
        (path, each["id"], [node["html"][:160] for node in each["nodes"][:3]]) for each in found
    ]


def keep_picture(tab: Tab, kind: str, path: str) -> None:
    """The whole page as a picture, where somebody wants to look at it."""
    if folder := os.environ.get("FAIRLEAD_PAGE_IMAGES"):
        name = re.sub(r"[^a-z]+", "-", re.sub(r"[0-9a-f-]{30,}|_\w+", "one", path)).strip("-")
        said = len(tab.complaints)
        tab.page.screenshot(path=Path(folder) / kind / f"{name}.png", full_page=True)
        # The picture is taken with a style that the page's policy refuses.
        del tab.complaints[said:]


@pytest.fixture(scope="module")
def paths(owner: httpx.Client) -> list[str]:
    return addresses(owner)


@needs_axe
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("viewport", [WIDE, NARROW, VAST], ids=["wide", "narrow", "vast"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_for_everybody_at_every_width(
    gateway: Gateway,
    owner: httpx.Client,
    browser: Any,
    paths: list[str],
    scheme: str,
    viewport: dict[str, int],
) -> None:
    faults = []
    options = {"color_scheme": scheme, "reduced_motion": "reduce", "viewport": viewport}
    with Tab(browser, gateway, owner, **options) as tab:
        for path in paths:
            tab.page.goto(path)
            assert tab.fits(), (path, viewport)
            assert tab.page.locator("h1").count() == 1, path
            keep_picture(tab, f"{scheme}-{viewport['width']}", path)
            if viewport != VAST:
                tab.page.evaluate(
                    "document.querySelectorAll('details').forEach(each => { each.open = true; })"
                )
                assert tab.fits(), (path, viewport, "with all open")
                faults += judge(tab, path)
    assert faults == []


def test_the_first_page_lives_over_one_stream(
    gateway: Gateway, owner: httpx.Client, browser: Any
) -> None:
    with Tab(browser, gateway, owner) as tab:
        asked: list[str] = []
        tab.page.on("request", lambda request: asked.append(request.url.removeprefix(gateway.url)))
        tab.page.goto("/dashboard?window=30d")
        sync_api.expect(tab.page.locator(".live")).to_have_text("Live")
        count = tab.page.locator("[data-live='charts'] .unit").first
        before = int(count.inner_text().partition(": ")[2].split()[0].replace(",", ""))
        body = {"model": "demo/echo", "messages": [{"role": "user", "content": "Ahoy"}]}
        expect(gateway.caller.post("/v1/chat/completions", json=body), 200)
        sync_api.expect(count).to_contain_text(f": {before + 1:,} in all", timeout=WAIT_MS)
        streams = [path for path in asked if path.startswith("/dashboard/live")]
        assert len(streams) == 1
        pages = [path for path in asked if "/dashboard" in path and "console." not in path]
        assert len(pages) == 2, "nothing is polled"


@pytest.mark.parametrize("viewport", [{"width": 1366, "height": 768}, NARROW], ids=str)
def test_the_navigation_fits_the_window(
    gateway: Gateway, owner: httpx.Client, browser: Any, viewport: dict[str, int]
) -> None:
    with Tab(browser, gateway, owner, viewport=viewport) as tab:
        for path in ("/dashboard", "/dashboard/keys", "/dashboard/audit", "/dashboard/account"):
            tab.page.goto(path)
            if viewport == NARROW:
                tab.page.get_by_role("link", name="Menu").click()
            places = tab.page.locator(".side")
            for group in tab.page.locator(".places summary").all():
                group.click()
                room = places.evaluate("e => [e.scrollHeight, e.clientHeight]")
                assert room[0] <= room[1], (path, group.inner_text(), room)
                inner = tab.page.locator(".places").evaluate(
                    "e => [e.scrollHeight, e.clientHeight]"
                )
                assert inner[0] <= inner[1], (path, group.inner_text(), inner)


def test_a_failure_is_explained_in_the_drawer(
    gateway: Gateway, owner: httpx.Client, browser: Any
) -> None:
    body = {"model": "demo/standin@status=500", "messages": [{"role": "user", "content": "Ahoy"}]}
    answer = expect(gateway.caller.post("/v1/chat/completions", json=body), 502)
    said = answer["error"]["message"]
    with Tab(browser, gateway, owner) as tab:
        page = tab.page

        def is_listed() -> bool:
            page.goto("/dashboard/logs?window=1h&errorKind=upstream_status")
            return page.locator("tbody .reason", has_text=said).count() > 0

        eventually(is_listed, "the failure is in the list", within_s=20)
        page.locator("tbody a").first.click()
        drawer = page.get_by_role("dialog")
        first = drawer.locator("section").first
        sync_api.expect(first).to_contain_text(said)
        sync_api.expect(first).to_contain_text("What to do:")


@needs_axe
def test_a_request_opens_beside_the_list_by_keyboard(
    gateway: Gateway, owner: httpx.Client, browser: Any
) -> None:
    with Tab(browser, gateway, owner) as tab:
        page = tab.page
        page.goto("/dashboard/logs")
        page.locator("tbody a").first.focus()
        page.keyboard.press("Enter")
        drawer = page.get_by_role("dialog")
        sync_api.expect(drawer.get_by_role("heading", name="Timeline")).to_be_visible()
        assert judge(tab, "the drawer") == []
        page.keyboard.press("Escape")
        sync_api.expect(drawer).to_be_hidden()
        assert page.url == f"{gateway.url}/dashboard/logs"
        page.goto("/dashboard/usage")
        page.locator(".column").nth(2).hover()
        assert "large" in page.locator(".tip").inner_text()


def press_to(page: Any, name: str) -> None:
    """Presses Tab until what has this name has the focus, and shows it."""
    for _ in range(120):
        page.keyboard.press("Tab")
        focused = page.evaluate(
            "(e => e.labels?.[0]?.innerText || e.getAttribute('aria-label') || e.innerText)(document.activeElement)"
        )
        if focused and focused.strip().startswith(name):
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", f"the focus on {name} is not seen"
            return
    raise AssertionError(f"{name} cannot be reached by Tab")


@pytest.mark.slow
def test_by_keyboard_alone_a_key_is_made_and_revoked(
    gateway: Gateway, owner: httpx.Client, browser: Any
) -> None:
    with Tab(browser, gateway, owner) as tab:
        page = tab.page
        page.goto("/dashboard")
        press_to(page, "Skip to the content")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        page.goto("/dashboard/keys")
        press_to(page, "New key")
        page.keyboard.press("Enter")
        page.wait_for_url("**/keys/new")
        press_to(page, "Name")
        page.keyboard.type("<b>by keys</b>")
        press_to(page, "Create key")
        page.keyboard.press("Enter")
        secret = page.get_by_label("Key of")
        gateway.canaries.append(secret.input_value())
        assert secret.input_value().startswith("sk-fl-")
        press_to(page, "To the key")
        page.keyboard.press("Enter")
        assert page.get_by_role("heading", level=1).inner_text() == "<b>by keys</b>"
        press_to(page, "Revoke")
        page.keyboard.press("Enter")
        goes = page.locator(".danger li").first
        sync_api.expect(goes).to_contain_text("The key <b>by keys</b>")
        press_to(page, "Revoke it")
        page.keyboard.press("Enter")
        sync_api.expect(page.get_by_role("status").first).to_have_text("The key was revoked.")


def test_without_scripts_pages_are_read_and_forms_work(
    gateway: Gateway, owner: httpx.Client, browser: Any
) -> None:
    with Tab(browser, gateway, owner, java_script_enabled=False, viewport=NARROW) as tab:
        page = tab.page
        page.goto("/dashboard")
        page.get_by_role("link", name="Menu").click()
        page.get_by_role("link", name="Logs").click()
        page.get_by_label("Outcome").select_option("upstream_failed")
        page.get_by_role("button", name="Filter").click()
        assert "provider failed" in page.locator("tbody tr").first.inner_text()
        page.goto("/dashboard/logs")
        page.get_by_role("link", name="Older").click()
        page.locator("tbody a").first.click()
        assert page.get_by_role("heading", name="Timeline").is_visible()
        page.goto("/dashboard/keys/new")
        page.get_by_label("Name").fill("plain")
        page.get_by_role("button", name="Create key").click()
        gateway.canaries.append(page.get_by_label("Key of").input_value())
        page.get_by_role("link", name="To the key").click()
        page.get_by_label("Banned").check()
        page.get_by_role("button", name="Save").click()
        assert page.get_by_role("status").inner_text() == "The key was saved."
        assert page.get_by_label("Banned").is_checked()
        page.get_by_role("button", name="Revoke").click()
        page.get_by_role("button", name="Revoke it").click()
        assert page.get_by_role("heading", name="Keys").is_visible()


def test_a_session_that_ended_loses_nothing_that_was_typed(
    gateway: Gateway, owner: httpx.Client, browser: Any
) -> None:
    with Tab(browser, gateway, None) as tab:
        page = tab.page
        page.goto("/dashboard/keys/new")
        page.get_by_label("Password").fill(OWNER_PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_label("Name").fill("typed in time")
        page.get_by_label("Banned").check()
        tab.context.clear_cookies()
        page.get_by_role("button", name="Create key").click()
        page.get_by_label("Password").fill(OWNER_PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/keys/new")
        assert page.get_by_label("Name").input_value() == "typed in time"
        assert page.get_by_label("Banned").is_checked()


def turn_the_vector_cache_on(owner: httpx.Client) -> None:
    expect(owner.patch("/api/settings", json={"vectorCacheEnabled": True}), 200)

    def is_ready() -> bool:
        state = expect(owner.get("/api/cache"), 200)["vectorCache"]["state"]
        return bool(state == "ready")

    eventually(is_ready, "the vectors are loaded", within_s=60)


def seed_for_pictures(gateway: Gateway, owner: httpx.Client) -> None:
    """Connections and cached answers, which made-up traffic does not bring."""
    node = expect(owner.get("/api/provider-nodes"), 200)["nodes"][0]["id"]
    for name, limit in (("Batch line", 4), ("Spare line", None)):
        body = {"provider": node, "name": name, "authType": "none", "maxConcurrent": limit}
        expect(owner.post("/api/providers", json=body), 201)
    turn_the_vector_cache_on(owner)
    asked = "How do I cancel my order within 14 days?"
    for words in (asked, "How can I cancel my order within 14 days?", "How do I cancel my order within 30 days?",
                  "How do I not cancel my order within 14 days?", asked):  # fmt: skip
        messages = [{"role": "user", "content": words}]
        body = {"model": "demo/echo", "temperature": 0, "messages": messages}
        expect(gateway.caller.post("/v1/chat/completions", json=body), 200)


def limited_key(owner: httpx.Client) -> str:
    """The key of the made-up code review, with more limits."""
    keys = expect(owner.get("/api/keys", params={"limit": 100}), 200)["keys"]
    found = next(key["id"] for key in keys if key["name"] == "demo: code review")
    changes = {
        "rateLimits": [{"limit": 600, "window": 60}],
        "allowedModels": ["anthropic/*", "openai/*"],
        "modelAccessMode": "restricted",
    }
    expect(owner.patch(f"/api/keys/{found}", json=changes), 200)
    limit = {"apiKeyId": found, "tokenLimit": 200_000_000, "resetInterval": "monthly"}
    expect(owner.post("/api/usage/token-limits", json=limit), 201)
    return str(found)


def ask_two_models(page: Any) -> None:
    page.get_by_label("Model required").fill("demo/standin")
    page.get_by_label("Second model").fill("demo/echo")
    page.get_by_label("Prompt").fill("Write a haiku about a lighthouse.")
    page.locator("#ask button").click()
    for side in (0, 1):
        badge = page.locator(".side-of .badge").nth(side)
        sync_api.expect(badge).to_have_text("answered", timeout=WAIT_MS)
        # A stream's cost is in the log, a moment later.
        sync_api.expect(page.locator("[data-cost]").nth(side)).not_to_be_empty(timeout=WAIT_MS)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_pictures_for_the_documentation(
    gateways: Callable[..., Gateway], browser: Any, tmp_path: Path
) -> None:
    gateway = gateways("--demo", INITIAL_PASSWORD=OWNER_PASSWORD)
    owner = demo_owner_of(gateway)
    folder = Path(os.environ.get("FAIRLEAD_DOCS_IMAGES", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    seed_for_pictures(gateway, owner)
    for name, path, options in (
        ("console-home", "/dashboard?window=7d", {}),
        ("console-home-dark", "/dashboard?window=7d", {"color_scheme": "dark"}),
        ("console-phone", "/dashboard", {"viewport": NARROW, "is_mobile": True}),
        ("console-usage", "/dashboard/usage", {}),
        ("console-providers", "/dashboard/providers", {}),
        ("console-key", f"/dashboard/keys/{limited_key(owner)}", {}),
        ("console-cache", "/dashboard/cache", {}),
        ("console-playground", "/dashboard/playground", {}),
        ("console-request", "/dashboard/logs", {}),
    ):
        with Tab(browser, gateway, owner, **options) as tab:
            tab.page.goto(path)
            if name == "console-request":
                tab.page.locator("tbody tr", has_text="demo-east/large").first.get_by_role(
                    "link"
                ).click()
                tab.page.get_by_role("dialog").wait_for()
            if name == "console-playground":
                ask_two_models(tab.page)
            if tab.page.locator(".live").count():
                sync_api.expect(tab.page.locator(".live")).to_have_text("Live")
            tab.page.screenshot(path=folder / f"{name}.png")
            assert (folder / f"{name}.png").stat().st_size > 10_000
