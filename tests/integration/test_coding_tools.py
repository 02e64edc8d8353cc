"""`/api/cli-tools` of a running gateway: tools are found, configured, backed up and restored."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.gateway_pool import GatewayPool
from tests.support.polling import eventually
from tests.support.processes import Gateway, expect
from tests.support.upstream import Upstream, completion, reply

SLEEPER = "#!/bin/sh\nsleep 60 &\nsleep 60\n"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of commands: one that answers, one that fails, and several that hang."""
    folder = tmp_path_factory.mktemp("bin")
    for name, script in {
        "aider": "#!/bin/sh\necho asked >> $0.log\necho aider 0.86.2\n",
        "qwen": "#!/bin/sh\nexit 3\n",
        **dict.fromkeys(("codex", "claude", "goose"), SLEEPER),
    }.items():
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def gateway(gateway_pool: GatewayPool, home: Path, commands: Path) -> Iterator[Gateway]:
    with gateway_pool.lease(
        CLI_CONFIG_HOME=str(home),
        GATEWAY_ALLOW_CONTAINER_CONFIG_WRITE="true",
        PATH=f"{commands}:/usr/bin:/bin",
    ) as running:
        yield running


@pytest.fixture
def tools(gateway: Gateway) -> httpx.Client:
    return gateway.admin


def apply(tools: httpx.Client, status: int = 200, **fields: object) -> dict:
    return expect(tools.post("/api/cli-tools/apply", json=fields), status)


def test_the_list_has_what_can_be_configured(tools: httpx.Client) -> None:
    listed = expect(tools.get("/api/cli-tools"), 200)
    assert listed["total"] == 32
    ids = {each["id"] for each in listed["tools"]}
    assert "codex" in ids
    assert not ids & {"cursor", "kiro", "gemini"}


@pytest.mark.one_node(reason="a tool's files are on the machine of one node")
def test_tools_are_asked_side_by_side_and_not_waited_for(
    tools: httpx.Client, gateway: Gateway, commands: Path
) -> None:
    started = time.monotonic()
    found = expect(tools.get("/api/cli-tools/all-statuses", timeout=30), 200)
    assert time.monotonic() - started < 12, "three that hang are waited for at once"
    assert found["aider"]["detection"] == {
        "installed": True,
        "runnable": True,
        "version": "0.86.2",
        "command": "aider",
        "commandPath": str(commands / "aider"),
        "reason": None,
    }
    assert found["qwen"]["detection"]["reason"] == "It ended with exit code 3."
    assert found["codex"]["detection"]["reason"] == "It did not answer within 5 s."
    assert found["crush"]["detection"]["installed"] is False
    assert found["crush"]["config"]["status"] == "not_installed"
    assert found["aider"]["config"]["status"] == "not_configured"
    sleeping = [
        process.read_bytes()
        for process in Path("/proc").glob("[0-9]*/cmdline")
        if process.exists() and b"sleep\x0060" in process.read_bytes()
    ]
    assert sleeping == [], "who hangs is killed with what it started"
    expect(tools.get("/api/cli-tools/status", params={"tool": "aider"}), 200)
    assert (commands / "aider.log").read_text() == "asked\n", "it is asked once"


@pytest.mark.one_node(reason="a tool's files are on the machine of one node")
def test_who_does_not_wait_is_told_what_is_known(tools: httpx.Client, commands: Path) -> None:
    crush = commands / "crush"
    crush.write_text("#!/bin/sh\nsleep 1\necho asked >> $0.log\necho crush 1.2.3\n")
    crush.chmod(0o755)

    def found() -> dict:
        asked = {"tool": "crush", "wait": "false"}
        status: dict = expect(tools.get("/api/cli-tools/status", params=asked), 200)["detection"]
        return status

    first = found()
    assert (first["installed"], first["version"]) == (True, None)
    assert "being asked" in first["reason"]
    eventually(lambda: found()["version"] == "1.2.3", "the version is known", within_s=10)
    assert (commands / "crush.log").read_text() == "asked\n", "it is asked once"
    crush.unlink()


@pytest.mark.one_node(reason="a tool's files are on the machine of one node")
def test_a_tool_is_configured_seen_and_restored(tools: httpx.Client, home: Path) -> None:
    place = home / ".aider.conf.yml"
    place.write_bytes(b"dark-mode: true  # mine\nother-api-key: sk-mine\n")
    wanted = {
        "tool": "aider",
        "model": "p/m",
        "apiKey": "sk-fl-canary",
        "baseUrl": "http://gate.test:1/v1/",
    }
    preview = apply(tools, **wanted, dryRun=True)
    assert (preview["dryRun"], preview["configPath"]) == (True, str(place))
    assert "openai/p/m" in preview["content"]
    assert "http://gate.test:1/v1" in preview["content"]
    assert "sk-fl-canary" not in json.dumps(preview)
    assert "sk-mine" not in json.dumps(preview)
    assert place.read_bytes() == b"dark-mode: true  # mine\nother-api-key: sk-mine\n"
    applied = apply(tools, **wanted)
    assert applied["success"]
    assert "sk-fl-canary" not in json.dumps(applied)
    assert "sk-fl-canary" in place.read_text()
    assert (Path(applied["backupPath"]) / "manifest.json").is_file()
    status = expect(tools.get("/api/cli-tools/status", params={"tool": "aider"}), 200)
    assert status["config"]["status"] == "configured"
    assert status["config"]["endpoint"] == "http://gate.test:1/v1"
    assert status["config"]["lastConfiguredAt"]
    listed = expect(tools.get("/api/cli-tools/backups", params={"tool": "aider"}), 200)
    assert [each["reason"] for each in listed["backups"]] == ["apply"]
    body = {"tool": "aider", "backupId": applied["backupId"]}
    restored = expect(tools.post("/api/cli-tools/backups", json=body), 200)
    assert restored["paths"] == [str(place)]
    assert place.read_bytes() == b"dark-mode: true  # mine\nother-api-key: sk-mine\n"
    place.write_text("openai-api-base: https://elsewhere.test/v1\n")
    status = expect(tools.get("/api/cli-tools/status", params={"tool": "aider"}), 200)
    assert status["config"]["status"] == "other"
    made = expect(tools.post("/api/cli-tools/backups", json={}), 200)["backups"]
    assert {"aider", "codex"} <= {each["tool"] for each in made}


def test_what_cannot_be_done_says_why(tools: httpx.Client, home: Path) -> None:
    (home / ".claude").mkdir(exist_ok=True)
    (home / ".claude/settings.json").write_text("{ no json")
    refusals = [
        ({"tool": "claude", "model": "p/m", "apiKey": "k"}, 409, "was not changed"),
        ({"tool": "kiro", "model": "p/m"}, 404, "no coding tool"),
        ({"tool": "warp", "model": "p/m", "apiKey": "k"}, 400, "has no file to write"),
        ({"tool": "codex", "apiKey": "k"}, 400, "model is required"),
        ({"tool": "codex", "model": 'x"y', "apiKey": "k"}, 400, "quotes"),
        ({"tool": "codex", "model": "p/m", "command": "sh"}, 400, "command is not a field"),
        ({"tool": "codex", "model": "p/m", "apiKey": "k", "baseUrl": "file:///x"}, 400, "baseUrl"),
    ]
    for body, status, reason in refusals:
        assert reason in apply(tools, status, **body)["error"]["message"]
    status = expect(tools.get("/api/cli-tools/status", params={"tool": "claude"}), 200)
    assert status["config"]["status"] == "unknown"
    assert "no valid JSON" in status["error"]
    half = tools.post("/api/cli-tools/backups", json={"tool": "aider"})
    assert expect(half, 400)["error"]["param"] == "backupId"
    gone = {"tool": "aider", "backupId": "1700000000000-00000000"}
    expect(tools.post("/api/cli-tools/backups", json=gone), 404)


def test_only_people_and_this_machine_may_configure_tools(gateway: Gateway) -> None:
    key = gateway.create_key(scopes=["manage"])["key"]
    with gateway.client() as anybody:
        for headers in ({}, {"Authorization": f"Bearer {key}"}):
            for path in ("all-statuses", "backups", "kiro-mitm"):
                answer = anybody.get(f"/api/cli-tools/{path}", headers=headers)
                assert answer.status_code in (401, 403), path


def test_aliases_of_a_tool_are_used_by_the_router(gateway: Gateway, tools: httpx.Client) -> None:
    with Upstream() as upstream:
        upstream.script(reply(completion()))
        lane = gateway.add_lane(upstream)
        shown = expect(tools.get("/api/cli-tools/kiro-mitm"), 200)
        assert (shown["intercepting"], shown["aliases"]) == (False, {})
        assert "No traffic of this tool is intercepted" in shown["note"]
        body = {"aliases": {"kiro-sonnet": lane.model}}
        stored = expect(tools.post("/api/cli-tools/kiro-mitm/alias", json=body), 200)
        assert stored["aliases"] == body["aliases"]
        with gateway.client() as caller:
            asked = caller.post(
                "/v1/chat/completions",
                headers={"Authorization": f"Bearer {gateway.key}"},
                json={**lane.body(), "model": "kiro-sonnet"},
            )
        assert expect(asked, 200)
        assert upstream.requests[-1].json()["model"] == "m"
        taken = tools.post("/api/cli-tools/antigravity-mitm/alias", json=body)
        assert "belongs to another tool" in expect(taken, 409)["error"]["message"]
        expect(tools.post("/api/cli-tools/kiro-mitm/alias", json={"aliases": {}}), 200)
        assert "kiro-sonnet" not in expect(tools.get("/api/models/alias"), 200)["aliases"]
    expect(tools.get("/api/cli-tools/codex-mitm"), 404)


def test_what_codex_notes_about_itself_is_no_reason_to_refuse(gateway: Gateway) -> None:
    with Upstream() as upstream:
        upstream.script(reply(completion()))
        lane = gateway.add_lane(upstream)
        body = {"model": lane.model, "input": "hi", "client_metadata": {"session": "1"}}
        with gateway.client() as caller:
            headers = {"Authorization": f"Bearer {gateway.key}"}
            expect(caller.post("/v1/responses", headers=headers, json=body), 200)
        assert "client_metadata" not in upstream.requests[-1].json()
