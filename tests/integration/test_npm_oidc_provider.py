"""The OpenID provider that Node has, `oidc-provider`, signs a person in through its own pages.

`make test` installs it where there is npm; elsewhere this is skipped.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urljoin

import httpx
import pytest

from tests.support.polling import eventually
from tests.support.process import free_port
from tests.support.processes import Gateway, expect

FOLDER = Path(__file__).parents[1] / "support" / "node"
CLIENT = ("fairlead-tests", "a secret of the tests that nobody uses")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("node") is None or not (FOLDER / "node_modules" / "oidc-provider").is_dir(),
        reason="npm's oidc-provider is not installed in tests/support/node",
    ),
]


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def gateway(gateways: Callable[..., Gateway], port: int) -> Gateway:
    return gateways(
        INITIAL_PASSWORD="the owner's own words",
        SERVICE_OIDC_ISSUER=f"http://127.0.0.1:{port}",
        SERVICE_OIDC_CLIENT_ID=CLIENT[0],
        SERVICE_OIDC_CLIENT_SECRET=CLIENT[1],
    )


@pytest.fixture
def provider(gateway: Gateway, port: int, tmp_path: Path) -> Iterator[str]:
    log = tmp_path / "oidc-provider.log"
    callback = f"{gateway.url}/api/auth/oidc/callback"
    command = ["node", str(FOLDER / "oidc_provider.mjs"), str(port), *CLIENT, callback]
    with log.open("wb") as out:
        running = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        eventually(lambda: "ready" in log.read_text(), "oidc-provider listens", within_s=30)
        yield f"http://127.0.0.1:{port}"
    finally:
        running.terminate()
        running.wait(10)


def test_a_person_signs_in_through_its_pages(gateway: Gateway, provider: str) -> None:
    browser = httpx.Client(trust_env=False, timeout=20.0)
    url = f"{gateway.url}/api/auth/oidc/login?return_to=/login%3Fhello"
    page = follow(browser, url, until=provider)
    page = submit(browser, page, provider, login="ada", password="any")
    page = submit(browser, page, provider)
    assert page.url == f"{gateway.url}/login?hello"
    assert "ada@example.org" in page.text
    me = expect(browser.get(f"{gateway.url}/api/auth/me"), 200)
    assert (me["email"], me["name"], me["role"]) == ("ada@example.org", "Ada", "member")
    browser.close()


def follow(browser: httpx.Client, url: str, *, until: str | None = None) -> httpx.Response:
    """Goes where it is sent, to the first page."""
    for _ in range(10):
        answer = browser.get(url)
        if not answer.is_redirect:
            assert answer.status_code == 200, answer.text
            assert until is None or str(answer.url).startswith(until)
            return answer
        url = urljoin(url, answer.headers["location"])
    raise AssertionError("sent in circles")


def submit(
    browser: httpx.Client, page: httpx.Response, provider: str, **fields: str
) -> httpx.Response:
    """Sends the page's form with its hidden fields, and follows."""
    action = re.search(r'<form[^>]* action="([^"]+)"', page.text)
    assert action is not None, page.text
    hidden = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', page.text))
    target = urljoin(str(page.url), action[1])
    answer = browser.post(target, data=hidden | fields, headers={"origin": provider})
    assert answer.is_redirect, answer.text
    return follow(browser, urljoin(target, answer.headers["location"]))
