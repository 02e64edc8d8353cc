"""Bodies that are kept: off unless asked for, masked, sealed, bounded, whole or not at all, never for `noLog`."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from fairlead import _core
from tests.support.chat import CHAT
from tests.support.polling import eventually, holds_for
from tests.support.processes import Gateway, Lane, expect
from tests.support.upstream import DONE, RESET, completion, delta, finish, head, reply, stream

pytestmark = pytest.mark.both_fronts

MAIL: Final = "ada@example.org"
SECRET: Final = "sk-live0123456789abcdefghij0123456789"
HOSTILE: Final = "</pre><script>alert(1)</script> \u202etxt.exe \u0000 \U0001f600 \x1b[2J"

# How each dialect is asked, whole and streamed.
DIALECTS: Final[dict[str, tuple[str, dict[str, Any], str, dict[str, Any]]]] = {
    "openai": (CHAT, {}, CHAT, {"stream": True}),
    "responses": ("/v1/responses", {"store": False}, "/v1/responses", {"store": False, "stream": True}),
    "anthropic": ("/v1/messages", {"max_tokens": 50}, "/v1/messages", {"max_tokens": 50, "stream": True}),
    "gemini": ("/v1beta/models/{}:generateContent", {}, "/v1beta/models/{}:streamGenerateContent?alt=sse", {}),
    "gemini as a list": ("", {}, "/v1beta/models/{}:streamGenerateContent", {}),
}  # fmt: skip


def asked_as(dialect: str, text: str) -> dict[str, Any]:
    said = {"role": "user", "content": text}
    if dialect.startswith("gemini"):
        return {"contents": [{"role": "user", "parts": [{"text": text}]}]}
    return {"input": [said]} if dialect == "responses" else {"messages": [said]}


def _texts(document: Any) -> list[str]:
    """Every text of a JSON document."""
    if isinstance(document, dict):
        document = list(document.values())
    if isinstance(document, list):
        return [text for each in document for text in _texts(each)]
    return [document] if isinstance(document, str) else []


@pytest.fixture
def loud(gateway: Gateway) -> httpx.Client:
    """A caller whose bodies are kept."""
    key = gateway.create_key(name="loud", captureBodies=True)["key"]
    return gateway.client(headers={"Authorization": f"Bearer {key}"})


@pytest.fixture
def body_kb(gateway: Gateway) -> Iterator[Callable[[int], None]]:
    """Sets how much of each body is kept; all is as before afterwards."""

    def keep(kib: int) -> None:
        expect(gateway.admin.patch("/api/settings", json={"captureBodyKb": kib}), 200)

    yield keep
    keep(256)


def request_id_of(answer: httpx.Response) -> str:
    return answer.headers["x-gateway-request-id"]


def bodies(gateway: Gateway, request_id: str) -> dict[str, Any]:
    """What is kept of a request, once it is settled and written."""

    def find() -> dict[str, Any] | None:
        answer = gateway.admin.get(f"/api/usage/logs/{request_id}/body")
        return answer.json() if answer.status_code == 200 else None

    found: dict[str, Any] = eventually(find, f"bodies of {request_id}", within_s=10, every_s=0.1)
    assert gateway.shown_record(request_id)["hasBodies"] is True
    return found


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_said_in_each_dialect_is_kept_masked(
    gateway: Gateway, lane: Lane, loud: httpx.Client, dialect: str, is_stream: bool
) -> None:
    path, fields = DIALECTS[dialect][2:] if is_stream else DIALECTS[dialect][:2]
    if not path:
        pytest.skip("only streams are lists")
    if is_stream:
        # Findings lie across events.
        pieces = (delta("Hello, write to ada@exam"), delta("ple.org"), delta(f" with {SECRET[:9]}"))
        lane.upstream.script(stream(*pieces, delta(f"{SECRET[9:]} soon."), finish(), DONE))
    else:
        lane.upstream.script(reply(completion(f"Hello, write to {MAIL} with {SECRET} soon.")))
    body = asked_as(dialect, f"mail {MAIL} {HOSTILE}") | fields | {"user": MAIL}
    if dialect in ("anthropic", "gemini", "gemini as a list"):
        body.pop("user")
    if dialect.startswith("gemini"):
        path = path.format(lane.model)
    else:
        body["model"] = lane.model
    answer = loud.post(path, json=body, headers={"x-secret-of-mine": SECRET})
    assert answer.status_code == 200, answer.text
    kept = bodies(gateway, request_id_of(answer))
    request, response = kept["request"], kept["response"]
    assert (request["isCut"], response["isCut"], response["isWhole"]) == (False, False, True)
    assert response["status"] == 200
    assert response["bytes"] == len(answer.content)
    told = json.dumps(kept)
    for hidden in (MAIL, "ada@exam", SECRET, SECRET[3:20], "Bearer", "x-secret-of-mine"):
        assert hidden not in told, hidden
    # It is read as it was said, but for what is masked.
    assert f"mail [REDACTED:email] {HOSTILE}" in _texts(json.loads(request["body"]))
    if response["text"] is not None:
        assert response["text"] == "Hello, write to [REDACTED:email] with [REDACTED:api-key] soon."
    else:
        assert not is_stream or dialect == "gemini as a list"
        assert "[REDACTED:" in response["body"]
        json.loads(response["body"])


def test_nothing_is_kept_unless_it_is_asked_for_and_no_log_wins(
    gateway: Gateway, lane: Lane
) -> None:
    folders = [gateway.data_dir / "spool" / "bodies", gateway.data_dir / "bodies"]

    def files_of(request_id: str) -> list[Path]:
        return [path for folder in folders for path in folder.rglob(f"*{request_id}*")]

    def ask(**fields: Any) -> str:
        key = gateway.create_key(**fields)["key"]
        answer = gateway.client().post(
            CHAT, json=lane.body(), headers={"Authorization": f"Bearer {key}"}
        )
        assert answer.status_code == 200, answer.text
        return request_id_of(answer)

    plain, quiet = ask(name="plain"), ask(name="quiet", captureBodies=True, noLog=True)
    assert gateway.shown_record(plain)["hasBodies"] is False
    expect(gateway.admin.patch("/api/settings", json={"captureBodies": True}), 200)
    try:
        everyone, silent = ask(name="everyone"), ask(name="silent", noLog=True)
        bodies(gateway, everyone)
    finally:
        expect(gateway.admin.patch("/api/settings", json={"captureBodies": False}), 200)
    for request_id in (plain, quiet, silent):
        assert files_of(request_id) == []
        expect(gateway.admin.get(f"/api/usage/logs/{request_id}/body"), 404)
    eventually(lambda: not list(folders[0].iterdir()), "control takes them in", within_s=10)
    (kept,) = files_of(everyone)
    assert b"messages" not in kept.read_bytes(), "sealed"
    assert kept.stat().st_mode & 0o077 == 0
    expect(gateway.admin.patch("/api/settings", json={"captureBodies": "all"}), 400)


def test_long_bodies_are_cut_and_say_so(
    gateway: Gateway, lane: Lane, loud: httpx.Client, body_kb: Callable[[int], None]
) -> None:
    body_kb(4)
    long = "word " * 4_000
    lane.upstream.script(stream(*[delta(long[:200]) for _ in range(100)], finish(), DONE))
    messages = [{"role": "user", "content": f"{long} {MAIL}"}]
    streamed = loud.post(CHAT, json=lane.body(messages=messages, stream=True))
    lane.upstream.script(reply(completion(long)))
    whole = loud.post(CHAT, json=lane.body(messages=messages))
    for answer in (streamed, whole):
        assert answer.status_code == 200, answer.text
        kept = bodies(gateway, request_id_of(answer))
        for side in ("request", "response"):
            assert kept[side]["isCut"] is True
            assert 1_000 < len(kept[side]["body"]) <= 4 * 1024
        assert kept["response"]["bytes"] == len(answer.content)
        assert kept["request"]["body"].startswith("{")


def test_a_line_of_a_megabyte_is_kept_whole_where_that_is_wanted(
    gateway: Gateway, lane: Lane, loud: httpx.Client, body_kb: Callable[[int], None]
) -> None:
    body_kb(2048)
    line = f"{'x' * 500_000} {MAIL} {HOSTILE} {'y' * 500_000}"
    lane.upstream.script(reply(completion(line)))
    answer = loud.post(CHAT, json=lane.body(messages=[{"role": "user", "content": line}]))
    kept = bodies(gateway, request_id_of(answer))
    expected = line.replace(MAIL, "[REDACTED:email]")
    assert json.loads(kept["request"]["body"])["messages"][0]["content"] == expected
    assert json.loads(kept["response"]["body"])["choices"][0]["message"]["content"] == expected
    page = gateway.admin.get(f"/dashboard/logs/{request_id_of(answer)}/bodies")
    if page.status_code == 200:
        assert "<script>alert(1)" not in page.text


def test_refusals_and_failures_are_kept_too(
    gateway: Gateway, lane: Lane, loud: httpx.Client
) -> None:
    refused = loud.post(CHAT, json={"model": "no-such/model", "messages": []})
    kept = bodies(gateway, request_id_of(refused))
    assert kept["response"]["status"] == refused.status_code
    assert json.loads(kept["response"]["body"]) == refused.json()
    lane.upstream.script([*stream(delta("half"), ended=False), RESET])
    with loud.stream("POST", CHAT, json=lane.body(stream=True)) as answer:
        text = answer.read().decode()
    kept = bodies(gateway, request_id_of(answer))
    assert "half" in kept["response"]["text"] or "half" in text


def test_sound_is_counted_and_not_kept(gateway: Gateway, lane: Lane, loud: httpx.Client) -> None:
    lane.upstream.script(
        [head(200, [("content-type", "audio/mpeg"), ("content-length", "4")]) + b"ID3x"]
    )
    answer = loud.post("/v1/audio/speech", json={"model": lane.model, "input": MAIL, "voice": "a"})
    assert answer.status_code == 200, answer.text
    kept = bodies(gateway, request_id_of(answer))
    assert (kept["response"]["body"], kept["response"]["bytes"]) == (None, 4)
    assert MAIL not in kept["request"]["body"]


def test_a_killed_worker_leaves_no_half_of_a_file(
    gateway: Gateway, lane: Lane, loud: httpx.Client
) -> None:
    answers = [loud.post(CHAT, json=lane.body()) for _ in range(20)]
    assert {answer.status_code for answer in answers} == {200}
    gateway.relay.kill()
    eventually(gateway.manages, "the relay is back", within_s=30)
    kept = 0
    for answer in answers:
        gateway.shown_record(request_id_of(answer))
        found = gateway.admin.get(f"/api/usage/logs/{request_id_of(answer)}/body")
        assert found.status_code in (200, 404), found.text
        kept += found.status_code == 200
        if found.status_code == 200:
            assert json.loads(found.json()["response"]["body"])["choices"]
    assert kept > 0
    gateway.remember_processes()


def test_bodies_of_an_earlier_key_of_secrets_are_not_found(
    gateway: Gateway, lane: Lane, loud: httpx.Client
) -> None:
    request_id = request_id_of(loud.post(CHAT, json=lane.body()))
    bodies(gateway, request_id)
    (kept,) = (gateway.data_dir / "bodies").rglob(f"*{request_id}*")
    kept.write_bytes(_core.seal(bytes(32), f"kept-body:{kept.name}", b"{}"))
    for end in ("body", "headers"):
        answer = gateway.admin.get(f"/api/usage/logs/{request_id}/{end}")
        assert answer.status_code == 404, answer.text
        assert "earlier key" in answer.json()["error"]["message"]


def test_no_other_secret_opens_as_a_body(gateway: Gateway, lane: Lane, loud: httpx.Client) -> None:
    """A caller chooses the id of its request, which may be that of another record. Bodies of earlier versions open."""
    request_id = request_id_of(loud.post(CHAT, json=lane.body()))
    shown = bodies(gateway, request_id)
    (kept,) = (gateway.data_dir / "bodies").rglob(f"*{request_id}*")
    key = base64.b64decode((gateway.data_dir / "secret.key").read_text())
    with pytest.raises(ValueError, match=r".*"):
        _core.unseal(key, request_id, kept.read_bytes())
    plain = _core.unseal(key, f"kept-body:{kept.name}", kept.read_bytes())
    kept.write_bytes(_core.seal(key, request_id, plain))
    assert bodies(gateway, request_id) == shown
    kept.write_bytes(
        _core.seal(key, request_id, b'{"api_key": "sk-of-a-connection", "headers": {}}')
    )
    answer = gateway.admin.get(f"/api/usage/logs/{request_id}/body")
    assert (answer.status_code, "sk-of-a-connection" in answer.text) == (404, False)


def test_numbers_are_masked_in_kept_bodies(
    gateway: Gateway, lane: Lane, loud: httpx.Client
) -> None:
    lane.upstream.script(reply({**completion(), "card": 4111111111111111}))
    tool = {"type": "tool_use", "id": "t", "name": "f", "input": {"card": 4111111111111111}}
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [tool]}]
    asked = {"model": lane.model, "max_tokens": 5, "messages": messages}
    kept = bodies(gateway, request_id_of(loud.post("/v1/messages", json=asked)))
    assert "4111111111111111" not in json.dumps(kept)
    assert "[REDACTED:card]" in kept["request"]["body"]


def test_a_folder_that_takes_nothing_costs_bodies_and_no_call(
    gateways: Callable[..., Gateway], upstream: Any
) -> None:
    if os.geteuid() == 0 and not Path("/proc/self/mountinfo").exists():
        pytest.skip("needs a folder that cannot be written")
    gateway = gateways()
    lane = gateway.add_lane(upstream)
    expect(gateway.admin.patch("/api/settings", json={"captureBodies": True}), 200)
    spool = gateway.data_dir / "spool" / "bodies"
    eventually(spool.is_dir, "the worker's folder")
    # Whoever may write anywhere cannot write into a file.
    spool.rmdir()
    spool.touch()
    answer = gateway.caller.post(CHAT, json=lane.body())
    assert answer.status_code == 200
    eventually(lambda: "bodies of requests are not kept" in gateway.log, "the log tells it")
    holds_for(gateway.manages, "control stands", for_s=0.5)
    assert gateway.caller.post(CHAT, json=lane.body()).status_code == 200


def test_the_headers_that_steered_a_request_are_kept_and_no_others(
    gateway: Gateway, lane: Lane, loud: httpx.Client
) -> None:
    lane.upstream.script(reply(completion("Hello.")))
    sent = {
        "x-gateway-session-id": f"of {MAIL}",
        "x-gateway-no-cache": "true",
        "x-gateway-disabled-guardrails": "pii-masker, nobody",
        "x-secret-of-mine": SECRET,
        "cookie": f"auth_token={SECRET}",
    }
    body = asked_as("openai", "Hello") | {"model": lane.model}
    answer = loud.post(CHAT, json=body, headers=sent)
    request_id = request_id_of(answer)
    bodies(gateway, request_id)
    kept = expect(gateway.admin.get(f"/api/usage/logs/{request_id}/headers"), 200)
    assert kept["request"] == {
        "x-gateway-session-id": "of [REDACTED:email]",
        "x-gateway-no-cache": "true",
        "x-gateway-disabled-guardrails": "pii-masker",
    }
    told = kept["response"]
    assert told["x-gateway-request-id"] == request_id
    assert told["x-gateway-model"] == answer.headers["x-gateway-model"]
    assert set(told) <= {"content-type", "retry-after"} | {
        name for name in answer.headers if name.startswith("x-gateway-")
    }
    assert SECRET not in json.dumps(kept)
