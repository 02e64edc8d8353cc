"""The page on which people connect a tool client, in a real browser: with a mouse, by keyboard alone, with a
second factor, at phone width, without scripts.

With `FAIRLEAD_DOCS_IMAGES=docs/images` the slow test takes the pictures that the documentation shows.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pyotp
import pytest

from tests.support.callback import Callback
from tests.support.processes import Gateway, expect, start_gateway
from tests.support.tool_client import ToolClient

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: `make develop` installs it"
)
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no chromium: apt-get install chromium"
)

PASSWORD = "correct horse battery staple"
WIDE = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
ADA = "ada@example.org"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    """One for each test: all of them sign in from one address, ten times a minute at most."""
    with start_gateway(tmp_path, INITIAL_PASSWORD=PASSWORD) as running:
        running.canaries.append(PASSWORD)
        yield running
        running.assert_keeps_secrets()


@pytest.fixture(scope="module")
def callback() -> Iterator[Callback]:
    with Callback() as running:
        yield running


@pytest.fixture
def recovery_code(gateway: Gateway) -> str:
    """One of Ada's, who has a second factor."""
    body = {"email": ADA, "name": "Ada", "password": PASSWORD, "role": "member"}
    expect(gateway.admin.post("/api/users", json=body | {"currentPassword": PASSWORD}), 201)
    client = gateway.client()
    expect(client.post("/api/auth/login", json={"email": ADA, "password": PASSWORD}), 200)
    client.headers["origin"] = gateway.url
    enrolled = expect(client.post("/api/auth/2fa/enrol", json={"currentPassword": PASSWORD}), 200)
    totp = pyotp.parse_uri(enrolled["otpauthUri"])
    confirmed = client.post("/api/auth/2fa/confirm", json={"code": totp.now()})
    codes: list[str] = expect(confirmed, 200)["recoveryCodes"]
    return codes[0]


@pytest.fixture
def tool(gateway: Gateway, callback: Callback) -> ToolClient:
    # Playwright has an event loop in this thread, so the client is registered without one.
    body = {"client_name": "Deck planner", "redirect_uris": [callback.url]}
    registered = expect(gateway.client().post("/oauth/register", json=body), 201)
    nowhere = httpx.AsyncClient()
    return ToolClient(
        nowhere, gateway.url, client_id=registered["client_id"], redirect_uri=callback.url
    )


@pytest.fixture
def visit(browser: Any, gateway: Gateway) -> Iterator[Callable[..., Any]]:
    """Opens a page in a browser without cookies. Whatever it complains of but refused sign-ins fails the test."""
    contexts = []
    complaints: list[str] = []

    def complain(said: Any) -> None:
        if said.type == "error" and "status of 4" not in said.text:
            complaints.append(said.text)

    def open_page(path: str, **options: Any) -> Any:
        context = browser.new_context(base_url=gateway.url, **({"viewport": WIDE} | options))
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", complain)
        page.goto(path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def path_of(tool: ToolClient) -> str:
    return f"/oauth/authorize?{httpx.QueryParams(tool.asked())}"


def fits(page: Any) -> bool:
    wanted: int = page.viewport_size["width"]
    return bool(page.evaluate("document.documentElement.scrollWidth") <= wanted)


def test_by_keyboard_alone(
    gateway: Gateway, tool: ToolClient, callback: Callback, visit: Callable[..., Any]
) -> None:
    """Also the short form of the test below."""
    page = visit(path_of(tool))
    page.get_by_label("Password").focus()
    page.keyboard.type("a guess")
    page.keyboard.press("Enter")
    alert = page.get_by_role("alert")
    sync_api.expect(alert).to_have_text("Login failed. Check your email and password.")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    sync_api.expect(page.get_by_role("heading")).to_have_text("Approve access for Deck planner?")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.value") == "approve"
    page.keyboard.press("Enter")
    page.wait_for_url(f"{callback.url}?**")
    assert callback.take(tool.state)["iss"] == gateway.url
    # Whoever has a session is asked for consent at once; saying no is told to the client.
    page.goto(path_of(tool))
    page.get_by_role("button", name="Deny").click()
    page.wait_for_url(f"{callback.url}?**")
    assert callback.take(tool.state)["error"] == "access_denied"


@pytest.mark.slow
def test_a_second_factor_inline(
    gateway: Gateway,
    tool: ToolClient,
    callback: Callback,
    recovery_code: str,
    visit: Callable[..., Any],
) -> None:
    page = visit(path_of(tool))
    address = page.url

    def first_step() -> None:
        page.get_by_label("E-mail address").fill(ADA)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()
        sync_api.expect(page.get_by_label("Code")).to_be_focused()

    first_step()
    assert page.url == address
    assert ADA in page.inner_text("#code-form")
    assert not page.is_visible("#password-form")
    # The token that waits is in no storage, in no field and in no address.
    kept = page.evaluate(
        "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
    )
    assert kept == '[{},{},""]'
    page.get_by_label("Code").fill("000000")
    page.keyboard.press("Enter")
    alert = page.get_by_role("alert")
    sync_api.expect(alert).to_have_text("Invalid authentication code.")
    page.get_by_role("button", name="Start over").click()
    sync_api.expect(page.get_by_label("Password")).to_be_focused()
    assert not page.is_visible("#code-form")
    assert not alert.is_visible()
    assert page.get_by_label("Password").input_value() == ""
    first_step()
    page.get_by_label("Code").fill(recovery_code)
    page.get_by_role("button", name="Verify").click()
    sync_api.expect(page.get_by_role("heading")).to_contain_text("Approve access")
    assert page.url == address
    page.get_by_role("button", name="Approve").click()
    page.wait_for_url(f"{callback.url}?**")
    assert callback.take(tool.state)["code"]


@pytest.mark.slow
def test_without_scripts(
    gateway: Gateway,
    tool: ToolClient,
    callback: Callback,
    recovery_code: str,
    visit: Callable[..., Any],
) -> None:
    page = visit(path_of(tool), java_script_enabled=False)
    page.get_by_label("E-mail address").fill(ADA)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_label("Code").fill(recovery_code)
    page.get_by_role("button", name="Verify").click()
    page.get_by_role("button", name="Approve").click()
    page.wait_for_url(f"{callback.url}?**")
    assert callback.take(tool.state)["code"]


@pytest.mark.slow
def test_pages_fit_and_are_legible(
    tool: ToolClient, recovery_code: str, visit: Callable[..., Any]
) -> None:
    cookies = None
    for name, viewport in (("wide", WIDE), ("phone", PHONE)):
        for scheme in ("light", "dark"):
            cookies = look(visit, tool, recovery_code, name, viewport, scheme, cookies)


def look(
    visit: Callable[..., Any],
    tool: ToolClient,
    recovery_code: str,
    name: str,
    viewport: dict[str, int],
    scheme: str,
    cookies: Any,
) -> Any:
    """Looks at the three pages; signs in at the first call and returns the session for the next."""
    folder = os.environ.get("FAIRLEAD_DOCS_IMAGES")

    def shoot(what: str) -> None:
        assert fits(page), what
        assert contrasts(page) >= 4.5, what
        if folder and scheme == "light":
            Path(folder).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=Path(folder) / f"connect-{what}-{name}.png")

    page = visit(path_of(tool), viewport=viewport, color_scheme=scheme)
    shoot("login")
    page.get_by_label("E-mail address").fill(ADA)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    sync_api.expect(page.get_by_label("Code")).to_be_focused()
    shoot("second-factor")
    if cookies is None:
        page.get_by_label("Code").fill(recovery_code)
        page.get_by_role("button", name="Verify").click()
    else:
        page.context.add_cookies(cookies)
        page.reload()
    sync_api.expect(page.get_by_role("heading")).to_contain_text("Approve access")
    shoot("consent")
    return page.context.cookies()


CONTRAST = """
() => {
  const light = (text) => {
    const [r, g, b] = text.match(/[\\d.]+/g).map(Number).map((v) => {
      const c = v / 255;
      return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const color = getComputedStyle(e).backgroundColor;
      if (color !== "rgba(0, 0, 0, 0)") return color;
    }
    return "rgb(255, 255, 255)";
  };
  const ratios = [...document.querySelectorAll("h1, p, label, button, a, input, b")]
    .filter((e) => e.checkVisibility() && e.type !== "hidden")
    .map((e) => [light(getComputedStyle(e).color), light(ground(e))].sort((a, b) => b - a))
    .map(([more, less]) => (more + 0.05) / (less + 0.05));
  return Math.min(...ratios);
}
"""


def contrasts(page: Any) -> float:
    """The least contrast of any text to what is behind it (WCAG 2.2, 1.4.3)."""
    found: float = page.evaluate(CONTRAST)
    return found
