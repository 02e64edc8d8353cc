"""Coding tools as models: a tool that speaks the Agent Client Protocol by its own library, behind a running gateway."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.acp_command import install_agent
from tests.support.coding_tools import PATH, need
from tests.support.gateway_pool import GatewayPool
from tests.support.polling import eventually
from tests.support.processes import Gateway, expect, start_gateway
from tests.support.upstream import Upstream, delta, finish, stream, usage_event

MODEL = "acp/qwen"
SHARED = "of many tests"
"""A session whose process is started once. Each conversation in it begins anew."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("acp-home")


@pytest.fixture(scope="module")
def gateway(gateway_pool: GatewayPool, home: Path) -> Iterator[Gateway]:
    commands = home / "bin"
    commands.mkdir()
    install_agent(commands, "qwen")
    (commands / "opencode").symlink_to("/bin/false")
    with gateway_pool.lease(
        HOME=str(home),
        PATH=f"{commands}:{os.environ['PATH']}",
        FAIRLEAD_ACP_TOOLS="qwen, opencode, openclaw",
        FAIRLEAD_ACP_ALLOW_ROOT="true",
        FAIRLEAD_ACP_ENVIRONMENT="TOOL_SECRET",
        FAIRLEAD_ACP_MAX_SESSIONS="3",
        FAIRLEAD_ACP_MEMORY_MB="400",
        TOOL_SECRET="a secret of the tool's",
        OTHER_SECRET="a secret of somebody else",
    ) as running:
        yield running


def ask(
    gateway: Gateway, text: str, *, session: str | None = None, **fields: Any
) -> httpx.Response:
    headers = {} if session is None else {"x-session-id": session}
    messages = fields.pop("messages", [{"role": "user", "content": text}])
    body = {"model": MODEL, "messages": messages, **fields}
    return gateway.caller.post("/v1/chat/completions", json=body, headers=headers, timeout=60)


def is_running(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def told(stream: str) -> str:
    """What the tool has said so far in a stream."""
    events = [line[6:] for line in stream.splitlines() if line.startswith("data: {")]
    whole = [json.loads(each) for each in events if each.endswith("}")]
    parts = [each["choices"][0]["delta"].get("content") for each in whole if each["choices"]]
    return "".join(part or "" for part in parts)


def said(answer: httpx.Response) -> str:
    return str(expect(answer, 200)["choices"][0]["message"]["content"])


def test_a_tool_answers_as_a_model_and_is_in_the_list(gateway: Gateway) -> None:
    listed = {each["id"] for each in expect(gateway.caller.get("/v1/models"), 200)["data"]}
    assert {"acp/qwen", "acp/opencode", "acp/openclaw"} <= listed
    answer = expect(ask(gateway, "work for me", session=SHARED), 200)
    message = answer["choices"][0]["message"]
    assert message["content"].endswith(" turn 1, 0 pictures: work for me")
    reasoning = message["reasoning_content"]
    assert reasoning.startswith("I think.")
    assert "[plan; in_progress: look around]" in reasoning
    assert "[edit: Edit hello.txt]" in reasoning
    assert answer["choices"][0]["finish_reason"] == "stop"
    usage = answer["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (15, 5)
    assert usage["prompt_tokens_details"]["cached_tokens"] == 4


def test_its_stream_reaches_callers_of_every_dialect(gateway: Gateway) -> None:
    wish = {"stream": True, "stream_options": {"include_usage": True}}
    chat = ask(gateway, "hello", session=SHARED, **wish).text
    events = [json.loads(line[6:]) for line in chat.splitlines() if line.startswith("data: {")]
    parts = [each["choices"][0]["delta"].get("content", "") for each in events if each["choices"]]
    assert "".join(parts).endswith(" turn 1, 0 pictures: hello")
    assert len([part for part in parts if part]) >= 2
    assert events[-1]["usage"]["prompt_tokens"] == 15
    assert chat.rstrip().endswith("data: [DONE]")

    for path, body, word in (
        (
            "/v1/messages",
            {"model": MODEL, "max_tokens": 99, "messages": [{"role": "user", "content": "hello"}]},
            "message_stop",
        ),
        ("/v1/responses", {"model": MODEL, "input": "hello"}, "response.completed"),
    ):
        send = {"headers": {"x-session-id": SHARED}, "timeout": 60}
        heard = gateway.caller.post(path, json={**body, "stream": True}, **send)
        assert heard.status_code == 200, heard.text
        assert "pictures: hello" in heard.text
        assert word in heard.text
    google = gateway.caller.post(
        f"/v1beta/models/{MODEL}:streamGenerateContent?alt=sse",
        json={"contents": [{"role": "user", "parts": [{"text": "hello"}]}]},
        **send,
    )
    assert "pictures: hello" in google.text, google.text


@pytest.mark.one_node(reason="the process of a session is at the node that began it")
def test_a_session_keeps_its_process_and_is_told_what_is_new(gateway: Gateway) -> None:
    first = said(ask(gateway, "where", session="one"))
    pid = first[1:].split("|")[0]
    history = [
        {"role": "user", "content": "where"},
        {"role": "assistant", "content": first},
        {"role": "user", "content": "where again"},
    ]
    second = said(ask(gateway, "", session="one", messages=history))
    assert second.startswith(f"<{pid}|")
    assert second.endswith("s1 turn 2, 0 pictures: where again")
    # Another history is another conversation, in the same process.
    third = said(ask(gateway, "where now", session="one"))
    assert third.startswith(f"<{pid}|")
    assert third.endswith("s2 turn 1, 0 pictures: where now")
    # A key of somebody else with the same name for its session has another process.
    key = gateway.create_key(name="acp-other")["key"]
    other = gateway.client(headers={"Authorization": f"Bearer {key}"})
    body = {"model": MODEL, "messages": [{"role": "user", "content": "where"}]}
    theirs = other.post(
        "/v1/chat/completions", json=body, headers={"x-session-id": "one"}, timeout=60
    )
    assert not said(theirs).startswith(f"<{pid}|")


def test_a_call_without_a_session_leaves_no_process_and_no_folder(gateway: Gateway) -> None:
    found = re.match(r"<(\d+)\|([^|]+)\|", said(ask(gateway, "where")))
    assert found is not None
    eventually(lambda: not is_running(int(found[1])), "the tool's end")
    assert found[2].rpartition("/")[2].startswith("fairlead-acp-")
    eventually(lambda: not Path(found[2]).exists(), "the folder's end")


def test_a_tool_gets_named_variables_and_no_others(gateway: Gateway) -> None:
    names = said(ask(gateway, "where", session=SHARED)).split("|")[2].split(">")[0].split(",")
    assert "TOOL_SECRET" in names
    assert "OTHER_SECRET" not in names
    assert not [name for name in names if name.startswith("FAIRLEAD_")]


def test_permissions_are_refused_and_files_are_not_offered(gateway: Gateway) -> None:
    assert said(ask(gateway, "permit", session=SHARED)).startswith("<reject_once>")
    assert said(ask(gateway, "read", session=SHARED)).startswith("<-32601> <-32601> <-32601>")


def test_who_leaves_ends_the_tool_with_all_that_it_started(gateway: Gateway, home: Path) -> None:
    body = {"model": MODEL, "stream": True, "messages": [{"role": "user", "content": "wait"}]}
    heard = ""
    with gateway.caller.stream(
        "POST", "/v1/chat/completions", json=body, headers={"x-session-id": "left"}, timeout=60
    ) as answer:
        for part in answer.iter_text():
            heard += part
            if found := re.search(r"<(\d+) (\d+)>", told(heard)):
                break
    assert found
    for pid in (int(found[1]), int(found[2])):
        eventually(lambda pid=pid: not is_running(pid), "the end of what the tool started")
    assert (home / "cancelled").exists(), "it was told before it was killed"


def test_too_much_memory_ends_a_session(gateway: Gateway) -> None:
    answer = ask(gateway, "eat", stream=True)
    assert "used more memory than 400 MiB" in answer.text
    assert '"finish_reason":"stop"' not in answer.text


def test_faults_are_told_and_blame_no_other_tool(gateway: Gateway) -> None:
    for model, code in (("openclaw", "not in PATH"), ("opencode", "ended before it answered")):
        body = {"model": f"acp/{model}", "messages": [{"role": "user", "content": "hello"}]}
        answer = gateway.caller.post("/v1/chat/completions", json=body, timeout=60)
        assert answer.status_code == 424, answer.text
        assert code in answer.json()["error"]["message"]
    died = ask(gateway, "die")
    assert died.status_code == 424, died.text
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    refused = expect(ask(gateway, "hello", tools=tools), 400)
    assert "send no tools" in refused["error"]["message"]
    assert said(ask(gateway, "hello", session=SHARED)).endswith("0 pictures: hello")


def test_what_a_tool_did_is_done_again_and_not_remembered(gateway: Gateway) -> None:
    answers = {said(ask(gateway, "where", temperature=0)) for _ in range(2)}
    assert len(answers) == 2


def test_pictures_and_instructions_reach_the_tool(gateway: Gateway) -> None:
    url = "data:image/png;base64,iVBORw0KGgo="
    content = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url}}]
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": content}]
    heard = said(ask(gateway, "", session=SHARED, messages=messages))
    assert "1 pictures: Instructions:\nBe brief.\n\nUser:\nlook" in heard


@pytest.mark.slow
def test_sessions_have_a_limit(gateway: Gateway) -> None:
    body = {"model": MODEL, "stream": True, "messages": [{"role": "user", "content": "wait"}]}
    send = {"json": body, "timeout": 60}
    path = "/v1/chat/completions"
    with (
        gateway.caller.stream("POST", path, headers={"x-session-id": "a"}, **send) as first,
        gateway.caller.stream("POST", path, headers={"x-session-id": "b"}, **send) as second,
        gateway.caller.stream("POST", path, headers={"x-session-id": "c"}, **send) as third,
    ):
        streams = [each.iter_lines() for each in (first, second, third)]
        assert all(next(each) for each in streams)
        busy = ask(gateway, "hello", session="a")
        assert busy.status_code == 409, busy.text
        full = ask(gateway, "hello", session="d")
        assert full.status_code == 409, full.text
        assert "All 3 sessions" in full.text


@pytest.mark.slow
def test_tools_end_with_the_process_that_started_them_however_it_ends(gateway: Gateway) -> None:
    body = {"model": MODEL, "stream": True, "messages": [{"role": "user", "content": "wait"}]}
    with gateway.caller.stream("POST", "/v1/chat/completions", json=body, timeout=60) as answer:
        heard = ""
        for part in answer.iter_text():
            heard += part
            if found := re.search(r"<(\d+) (\d+)>", told(heard)):
                break
        assert found
        gateway._plane("acp").signal(signal.SIGKILL)
    for pid in (int(found[1]), int(found[2])):
        eventually(lambda pid=pid: not is_running(pid), "the end of what the tool started")
    # The relay lets a connection rest that it could not open.
    eventually(
        lambda: ask(gateway, "hello").status_code == 200,
        "another process in its place",
        within_s=60,
        every_s=1,
    )


@pytest.mark.slow
def test_a_tool_from_a_registry_answers_unmodified(tmp_path: Path) -> None:
    need("qwen")
    home = tmp_path / "home"
    (home / ".qwen").mkdir(parents=True)
    chosen = {"security": {"auth": {"selectedType": "openai"}}, "model": {"name": "m"}}
    (home / ".qwen/settings.json").write_text(json.dumps(chosen))
    names = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL")
    with Upstream() as upstream:
        upstream.script(stream(delta("said by "), delta("the model"), finish(), usage_event()))
        with start_gateway(
            tmp_path,
            HOME=str(home),
            PATH=PATH,
            FAIRLEAD_ACP_TOOLS="qwen",
            FAIRLEAD_ACP_ALLOW_ROOT="true",
            FAIRLEAD_ACP_ENVIRONMENT=",".join(names),
            **dict(zip(names, ("sk-of-the-tool", f"{upstream.url}/v1", "m"), strict=True)),
        ) as gateway:
            answer = ask(gateway, "Say it.", session="real")
            assert "said by the model" in said(answer), gateway.log
            assert upstream.last.bearer == "sk-of-the-tool"
