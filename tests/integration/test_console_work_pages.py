"""Pages where people work with the gateway, in a real browser: the playground, its code, files and batches."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest

from fairlead.dashboard.dialect_request import Conversation, Dialect, Turn, make_request
from fairlead.dashboard.request_code import curl, javascript, python
from tests.support.browser_tab import Tab
from tests.support.owner import OWNER_PASSWORD
from tests.support.processes import Gateway, expect

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: `make develop` installs it"
)
needs_chromium = pytest.mark.skipif(
    shutil.which("chromium") is None, reason="there is no chromium: apt-get install chromium"
)
NODE = Path(__file__).parents[1] / "support" / "node"
HOSTILE = (
    "<img src=x onerror=alert(1)> \u202egnp.exe 'quoted' \"twice\" $HOME `id` \\ \n second line"
)
WAIT_MS = 15_000


@pytest.fixture(scope="module")
def gateway(demo_gateway: Gateway) -> Gateway:
    return demo_gateway


@pytest.fixture(scope="module")
def owner(gateway: Gateway) -> httpx.Client:
    client = gateway.client()
    expect(client.post("/api/auth/login", json={"password": OWNER_PASSWORD}), 200)
    client.headers["origin"] = gateway.url
    return client


@pytest.fixture(scope="module")
def key(gateway: Gateway, owner: httpx.Client) -> str:
    made = expect(owner.post("/api/keys", json={"name": "of the code"}), 201)
    gateway.canaries.append(made["key"])
    return str(made["key"])


def run(words: list[str], key: str, folder: Path) -> str:
    environment = {**os.environ, "FAIRLEAD_API_KEY": key, "HOME": "/nowhere"}
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        environment.pop(name, None)
    done = subprocess.run(
        words, env=environment, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize(
    "is_streamed", [pytest.param(False, id="whole", marks=pytest.mark.slow), True]
)
@pytest.mark.parametrize("dialect", get_args(Dialect))
def test_the_code_of_a_request_makes_it(
    gateway: Gateway, key: str, tmp_path: Path, dialect: Dialect, is_streamed: bool
) -> None:
    turns = (Turn("user", "One"), Turn("assistant", "Uno"), Turn("user", HOSTILE))
    asked = Conversation("demo/echo", turns, "Be 'kind'.", 200, 0.5, is_streamed)
    request = make_request(dialect, asked)
    (tmp_path / "code.py").write_text(python(gateway.url, request), encoding="utf-8")
    said = run([sys.executable, "code.py"], key, tmp_path)
    assert "second line" in said
    assert "'quoted' \"twice\" $HOME `id` \\ \n" in said
    if is_streamed and shutil.which("curl"):
        told = run(["/bin/sh", "-c", curl(gateway.url, request) + " -sS"], key, tmp_path)
        assert told.startswith(("data: {", "event: "))
        assert "$HOME" in told


@pytest.mark.slow
@pytest.mark.parametrize("dialect", get_args(Dialect))
@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_the_javascript_of_a_request_makes_it(
    gateway: Gateway, key: str, dialect: Dialect, is_streamed: bool
) -> None:
    module = {"openai": "openai", "responses": "openai", "anthropic": "@anthropic-ai/sdk"}
    name = module.get(dialect, "@google/genai")
    if shutil.which("node") is None or not (NODE / "node_modules" / name).is_dir():
        pytest.skip(f"there is no {name}: make develop with npm")
    asked = Conversation("demo/echo", (Turn("user", HOSTILE),), "", 200, None, is_streamed)
    code = javascript(gateway.url, make_request(dialect, asked))
    said = run(["node", "--input-type=module", "-e", code], key, NODE)
    assert "second line" in said


@needs_chromium
def test_two_models_answer_side_by_side_as_they_stream(
    gateway: Gateway, owner: httpx.Client, browser: Any
) -> None:
    with Tab(browser, gateway, owner) as tab:
        page = tab.page
        page.goto("/dashboard/playground")
        page.get_by_label("Model required").fill("demo/echo")
        page.get_by_label("Second model").fill("demo/standin")
        for dialect, words in (("openai", HOSTILE), ("gemini", "And again")):
            page.get_by_label("Dialect").select_option(dialect)
            page.get_by_label("Prompt").fill(words)
            page.locator("#ask button").click()
            badges = page.locator(".side-of .badge")
            for side in (0, 1):
                sync_api.expect(badges.nth(side)).to_have_text("answered", timeout=WAIT_MS)
                cost = page.locator("[data-cost]").nth(side)
                sync_api.expect(cost).to_have_text("no price", timeout=WAIT_MS)
            assert page.locator("[data-said]").nth(0).inner_text().startswith(words[:8])
            assert "ms" in page.locator("[data-first]").nth(0).inner_text()
        first = page.locator(".side-of").nth(0)
        said = first.locator(".said").all_inner_texts()
        assert [each[:9] for each in said] == [HOSTILE[:9], HOSTILE[:9], "And again", "And again"]
        assert first.locator("img").count() == 0
        assert page.get_by_label("Prompt").input_value() == "", "what was sent is not typed"
        first.locator("[data-request] a").click()
        sync_api.expect(page.get_by_role("heading", name="Timeline")).to_be_visible()


@needs_chromium
def test_without_scripts_the_page_asks_and_files_are_run(
    gateway: Gateway, owner: httpx.Client, browser: Any
) -> None:
    with Tab(browser, gateway, owner, java_script_enabled=False) as tab:
        page = tab.page
        page.goto("/dashboard/playground")
        page.get_by_label("Model required").fill("demo/echo")
        for words in ("Ahoy", "Once more"):
            page.get_by_label("Prompt").fill(words)
            page.locator("#ask button").click()
            assert page.locator("[data-said]").inner_text() == words
            assert page.locator("[data-cost]").inner_text() == "no price"
        assert page.locator(".said").all_inner_texts() == ["Ahoy", "Ahoy", "Once more", "Once more"]
        page.get_by_label("Model", exact=True).fill("nobody/knows-it")
        page.get_by_label("Prompt").fill("Lost")
        page.locator("#ask button").click()
        assert page.locator("[data-error]").inner_text()
        page.goto("/dashboard/batches")
        page.get_by_role("link", name="New file").click()
        page.get_by_label("File name").fill("lines.jsonl")
        page.get_by_label("Content").fill(
            '{"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": '
            '{"model": "demo/echo", "messages": [{"role": "user", "content": "In a batch"}]}}'
        )
        page.get_by_role("button", name="Upload").click()
        page.get_by_role("button", name="Start it").click()
        assert page.get_by_role("heading", level=1).inner_text() == "Batch"


@needs_chromium
def test_a_batch_is_watched_to_its_end_and_its_answers_are_downloaded(
    gateway: Gateway, owner: httpx.Client, browser: Any, tmp_path: Path
) -> None:
    with Tab(browser, gateway, owner) as tab:
        page = tab.page
        lines = tmp_path / "from-the-device.jsonl"
        lines.write_text(
            '{"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": '
            '{"model": "demo/echo", "messages": [{"role": "user", "content": "In a batch"}]}}',
            encoding="utf-8",
        )
        page.goto("/dashboard/batches/new-file")
        page.get_by_label("Take it from this device").set_input_files(lines)
        sync_api.expect(page.get_by_label("File name")).to_have_value(lines.name)
        page.get_by_role("button", name="Upload").click()
        page.get_by_role("button", name="Start it").click()
        state = page.locator("[data-live='state']")
        sync_api.expect(state).to_contain_text("completed", timeout=30_000)
        with page.expect_download() as download:
            page.get_by_role("link", name="Answers").click()
        assert "In a batch" in Path(download.value.path()).read_text(encoding="utf-8")


@needs_chromium
def test_words_of_the_playground_outlive_a_session_that_ended(
    gateway: Gateway, browser: Any
) -> None:
    with Tab(browser, gateway, None) as tab:
        page = tab.page
        page.goto("/dashboard/playground")
        page.get_by_label("Password").fill(OWNER_PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_label("Model required").fill("demo/echo")
        page.get_by_label("Prompt").fill("typed in time")
        tab.context.clear_cookies()
        page.locator("#ask button").click()
        page.get_by_label("Password").fill(OWNER_PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/playground")
        assert page.get_by_label("Prompt").input_value() == "typed in time"
        assert page.get_by_label("Model required").input_value() == "demo/echo"
