"""Pages of other origins, as their browsers ask for them, through a running gateway."""

from __future__ import annotations

import os
import shutil

import httpx
import pytest

from tests.support.callback import Callback
from tests.support.owner import OWNER_PASSWORD
from tests.support.processes import Gateway, expect

pytestmark = pytest.mark.both_fronts

APP = "https://app.example"
ASK = {"model": "demo/echo", "messages": [{"role": "user", "content": "hello"}]}
ALLOW = "access-control-allow-origin"


@pytest.fixture(scope="module")
def gateway(demo_gateway: Gateway) -> Gateway:
    return demo_gateway


def name_origins(gateway: Gateway, *origins: str) -> None:
    body = {"corsOrigins": list(origins), "currentPassword": OWNER_PASSWORD}
    expect(gateway.admin.patch("/api/settings", json=body), 200)


def preflight(gateway: Gateway, path: str, method: str, origin: str) -> httpx.Response:
    headers = {
        "origin": origin,
        "access-control-request-method": method,
        "access-control-request-headers": "authorization, content-type",
    }
    return gateway.client().options(path, headers=headers)


def test_a_named_origin_calls_models_with_a_key_and_nobody_else_does(gateway: Gateway) -> None:
    path = "/v1/chat/completions"
    assert preflight(gateway, path, "POST", APP).status_code == 405
    key = {"authorization": f"Bearer {gateway.key}", "origin": APP}
    assert ALLOW not in gateway.client().get("/v1/models", headers=key).headers
    # In force with the answer, without a restart.
    name_origins(gateway, APP)
    asked = preflight(gateway, path, "POST", APP)
    assert (asked.status_code, asked.headers[ALLOW]) == (204, APP)
    assert asked.headers["access-control-allow-methods"] == "POST"
    assert asked.headers["access-control-allow-headers"] == "authorization, content-type"
    for stream in (False, True):
        answer = gateway.client().post(path, json=ASK | {"stream": stream}, headers=key)
        assert answer.status_code == 200, answer.text
        assert (answer.headers[ALLOW], answer.headers["access-control-expose-headers"]) == (
            APP,
            "*",
        )
        assert "Origin" in answer.headers["vary"]
    # What is wrong can be read as well.
    told = gateway.client().post(path, json=ASK, headers={"origin": APP})
    assert (told.status_code, told.headers[ALLOW]) == (401, APP)
    # Control answers some of `/v1`.
    listed = gateway.client().get("/v1/files", headers=key)
    assert (listed.status_code, listed.headers[ALLOW]) == (200, APP)
    scraped = preflight(gateway, "/api/scrape", "POST", APP)
    assert (scraped.status_code, scraped.headers[ALLOW]) == (204, APP)
    for origin in ("https://other.example", "null", f"{APP}.evil.example", "http://app.example"):
        refused = preflight(gateway, path, "POST", origin)
        assert refused.status_code == 405
        assert ALLOW not in refused.headers
        answer = gateway.client().get("/v1/models", headers=key | {"origin": origin})
        assert ALLOW not in answer.headers
        assert "Origin" in answer.headers["vary"]
    name_origins(gateway)
    assert ALLOW not in gateway.client().get("/v1/models", headers=key).headers
    assert preflight(gateway, path, "POST", APP).status_code == 405


OTHER_ROUTES = [
    ("/api/settings", "GET"),
    ("/api/keys", "POST"),
    ("/api/auth/login", "POST"),
    ("/login", "POST"),
    ("/oauth/authorize", "GET"),
    ("/oauth/authorize", "POST"),
    ("/oauth/token", "POST"),
    ("/oauth/register", "POST"),
    ("/mcp/rpc", "POST"),
    ("/mcp", "POST"),
    ("/board", "GET"),
]


def test_no_route_that_a_cookie_opens_is_opened_by_an_origin(gateway: Gateway) -> None:
    name_origins(gateway, APP)
    session = gateway.client()
    expect(session.post("/api/auth/login", json={"password": OWNER_PASSWORD}), 200)
    for path, method in OTHER_ROUTES:
        for answer in (
            preflight(gateway, path, method, APP),
            session.request(method, path, headers={"origin": APP}),
        ):
            assert not [name for name in answer.headers if name.startswith("access-control")], path
    name_origins(gateway)


CHROMIUM = shutil.which("chromium")
ASK_IN_PAGE = """
async ([url, key, body, credentials]) => {
  const headers = {"authorization": `Bearer ${key}`, "content-type": "application/json", "x-stainless-lang": "js"};
  try {
    const answer = await fetch(url, {method: "POST", headers, body: JSON.stringify(body), credentials});
    return [answer.status, answer.headers.get("x-gateway-provider"), (await answer.text()).length > 20];
  } catch (error) {
    return error.name;
  }
}
"""


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: apt-get install chromium")
def test_a_browser_agrees(gateway: Gateway) -> None:
    """Chromium asks, from a page of another origin: it is the browser that lets the page read, or not."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with Callback() as elsewhere, playwright.sync_playwright() as running:
        origin = elsewhere.url.removesuffix("/callback")
        # In a container there is no other user than root, whom Chromium's sandbox refuses.
        browser = running.chromium.launch(
            executable_path=CHROMIUM, chromium_sandbox=os.geteuid() != 0
        )
        page = browser.new_page()
        page.goto(elsewhere.url)

        def ask(path: str, credentials: str, **more: bool) -> object:
            body = ASK | more
            return page.evaluate(
                ASK_IN_PAGE, [f"{gateway.url}{path}", gateway.key, body, credentials]
            )

        chat = "/v1/chat/completions"
        assert ask(chat, "omit") == "TypeError"
        name_origins(gateway, origin)
        for stream in (False, True):
            assert ask(chat, "omit", stream=stream) == [200, "demo", True]
        # With cookies nothing may be read, whatever is named; nor may management.
        assert ask(chat, "include") == "TypeError"
        assert ask("/api/keys", "omit") == "TypeError"
        name_origins(gateway, "https://app.example")
        assert ask(chat, "omit") == "TypeError"
        name_origins(gateway)
        browser.close()
