"""Every way to a model is judged by the guardrails, or the documents say that it is not.

The routes come from the gateway's table and what is said of them from `docs/how-to/use-guardrails.md`: a new way
to a model without a row there is found out by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from websockets.sync.client import connect

from fairlead import _core
from tests.integration.test_realtime import Provider, heard, opened, prefix, provider  # noqa: F401
from tests.support.inference import EXAMPLES
from tests.support.processes import Gateway, Lane, expect
from tests.support.upstream import completion, reply

PAGE: Final = Path(__file__).parents[2] / "docs/how-to/use-guardrails.md"
MAIL: Final = "ada@example.org"
NO_MODEL: Final = re.compile(
    r"/webhooks|/files|/uploads|/responses/\{id\}/cancel|/interactions/.*cancel|/batches/.*cancel|^POST /(api|v2)/"
    r"|/web/fetch|/batches/delete-completed|/ollama/api/show|/videos/\{id\}/remix|/session-leases"
)
"""What is managed, stopped or kept, and what asks models through the gateway's own: scraping, changes of videos."""
SOCKETS: Final = ["GET /v1/ws", "GET /v1/realtime"]
ROUTES: Final = [
    route
    for each in _core.routes()
    if each["tier"] in ("inference", "key")
    for route in [f"{each['method']} {each['path']}"]
    if route in SOCKETS or (each["method"] == "POST" and not NO_MODEL.search(route))
]


def rows() -> dict[str, str]:
    """What the page says of each route's request."""
    found = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != 6 or "`" not in cells[1]:
            continue
        for route in re.findall(r"`((?:GET|POST) [^`]+)`", cells[1]):
            found[route] = cells[2]
            if "under `/v1`" in cells[1]:
                found[route.replace("/v1beta/", "/v1/")] = cells[2]
    return found


ROWS: Final = rows()
LATER: Final = [route for route in ROUTES if ROWS.get(route, "").startswith("later")]
JUDGED: Final = [route for route in ROUTES if route not in LATER and route not in SOCKETS]


@pytest.fixture
def blocking(gateway: Gateway) -> Iterator[None]:
    """Guardrails block mail addresses in what is asked and in what is answered."""
    both = ("guardrailPiiMasker", "guardrailAnswerPiiMasker")
    expect(gateway.admin.patch("/api/settings", json=dict.fromkeys(both, "block")), 200)
    yield
    back = dict(zip(both, ("warn", "off"), strict=True))
    expect(gateway.admin.patch("/api/settings", json=back), 200)


def said(body: Any) -> Any:
    """The example's body with a mail address where it says something."""
    told = json.dumps(body)
    changed = re.sub(r'"(hi|ho|a boat|https://x.example/a.pdf)"', json.dumps(MAIL), told)
    return json.loads(changed)


def ask(lane: Lane, route: str, **headers: str) -> httpx.Response:
    method, path = route.split(" ", 1)
    if route.endswith(":predictLongRunning"):
        body: Any = {"instances": [{"prompt": MAIL}]}
        path = path.replace("{*id}", lane.model)
        return lane.gateway.caller.request(method, path, json=body, headers=headers)
    example = EXAMPLES[route]
    assert example.body is not None
    path = (example.path or path).format(model=lane.model)
    body = said(example.body(lane.model))
    if route.endswith("/ocr"):
        body["prompt"] = MAIL
    if example.file is None:
        return lane.gateway.caller.request(method, path, json=body, headers=headers)
    files = {example.file: ("a.png", b"RIFF", "image/png")}
    fields = {"prompt": MAIL, **body}
    return lane.gateway.caller.request(method, path, data=fields, files=files, headers=headers)


def test_the_page_has_a_row_for_every_way_to_a_model() -> None:
    assert [route for route in ROUTES if route not in ROWS] == [], "say in the page what is judged"
    assert [route for route in ROWS if route not in ROUTES] == [], "there is no such route"
    assert LATER, "batches and interactions are judged when the model is asked"


@pytest.mark.parametrize("route", JUDGED)
def test_what_is_blocked_reaches_no_model(lane: Lane, blocking: None, route: str) -> None:
    before = len(lane.upstream.requests)
    answer = ask(lane, route)
    assert answer.status_code == 400, answer.text
    assert "pii-masker" in answer.text
    assert MAIL not in answer.text
    assert len(lane.upstream.requests) == before

    # It is the guardrail that refused it: without it the call goes on to where its answer is made.
    lane.upstream.script(
        reply({**completion(), "data": [], "results": [], "pages": [], "text": ""})
    )
    answer = ask(lane, route, **{"X-Gateway-Disabled-Guardrails": "pii-masker"})
    assert "pii-masker" not in answer.text


def test_what_is_blocked_in_a_frame_reaches_no_model(lane: Lane, blocking: None) -> None:
    url = f"ws://127.0.0.1:{lane.gateway.port}/v1/ws"
    headers = {"Authorization": f"Bearer {lane.gateway.key}"}
    with connect(url, additional_headers=headers, open_timeout=20, proxy=None) as socket:
        payload = lane.body() | {"messages": [{"role": "user", "content": MAIL}]}
        socket.send(json.dumps({"type": "request", "id": "a", "payload": payload}))
        told = ""
        while "guardrail_blocked" not in told:
            told = str(socket.recv(timeout=20))
    assert lane.upstream.requests == []


def test_token_counts_are_those_of_what_would_be_sent(lane: Lane, gateway: Gateway) -> None:
    settings = {"guardrailPiiMasker": "redact"}
    expect(gateway.admin.patch("/api/settings", json=settings), 200)
    try:
        for path, member, body in [
            ("/v1/messages/count_tokens", "input_tokens", "messages"),
            (f"/v1beta/models/{lane.model}:countTokens", "totalTokens", "contents"),
            (f"/v1/models/{lane.model}:countTokens", "totalTokens", "contents"),
        ]:

            def count(text: str, path: str = path, member: str = member, body: str = body) -> int:
                message = {"role": "user", "content": text}
                turn = {"role": "user", "parts": [{"text": text}]}
                asked = {body: [message if body == "messages" else turn], "model": lane.model}
                if body == "contents":
                    asked.pop("model")
                answer = gateway.caller.post(path, json=asked)
                assert answer.status_code == 200, answer.text
                return int(answer.json()[member])

            long = f"{'a' * 60}@{'b' * 60}.example.org"
            assert count(long) == count("[REDACTED:email]") < count("x" * len(long))
    finally:
        expect(gateway.admin.patch("/api/settings", json={"guardrailPiiMasker": "warn"}), 200)


def test_texts_of_a_realtime_conversation_are_judged(
    gateway: Gateway,
    provider: Provider,  # noqa: F811
    prefix: str,  # noqa: F811
    blocking: None,
) -> None:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": MAIL}]}
    got: list[str] = []

    def talk(socket: Any) -> None:
        for text in socket:
            got.append(str(text))
            for piece in ("it is ada", "@exam", "ple.org, ", "so."):
                told = {
                    "type": "response.output_audio_transcript.delta",
                    "item_id": "i",
                    "output_index": 0,
                    "content_index": 0,
                    "delta": piece,
                }
                socket.send(json.dumps(told))

    provider.talk = talk
    with opened(gateway, f"{prefix}/gpt-realtime") as socket:
        socket.send(json.dumps({"type": "conversation.item.create", "item": item}))
        refused = heard(socket)
        assert (refused["type"], refused["error"]["code"]) == ("error", "guardrail_blocked")
        assert got == []
        socket.send(json.dumps({"type": "response.create"}))
        told = []
        while not told or told[-1]["type"] != "error":
            told.append(heard(socket))
    assert told[-1]["error"]["code"] == "guardrail_blocked"
    assert "ada" not in json.dumps(told)
    assert [json.loads(each)["type"] for each in got] == ["response.create"]


def test_findings_of_a_realtime_conversation_are_redacted(
    gateway: Gateway,
    provider: Provider,  # noqa: F811
    prefix: str,  # noqa: F811
) -> None:
    both = ("guardrailPiiMasker", "guardrailAnswerPiiMasker")
    expect(gateway.admin.patch("/api/settings", json=dict.fromkeys(both, "redact")), 200)

    def talk(socket: Any) -> None:
        for text in socket:
            said = json.loads(text)["item"]["content"][0]["text"]
            told = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0}
            for piece in ("it is ada", "@exam", "ple.org"):
                socket.send(json.dumps({**told, "delta": piece}))
            socket.send(json.dumps({**told, "type": "response.output_text.done", "text": said}))

    provider.talk = talk
    try:
        with opened(gateway, f"{prefix}/gpt-realtime") as socket:
            item = {"type": "message", "content": [{"type": "input_text", "text": f"to {MAIL}"}]}
            socket.send(json.dumps({"type": "conversation.item.create", "item": item}))
            told = [heard(socket)]
            while told[-1]["type"] != "response.output_text.done":
                told.append(heard(socket))
    finally:
        back = dict(zip(both, ("warn", "off"), strict=True))
        expect(gateway.admin.patch("/api/settings", json=back), 200)
    assert "".join(each.get("delta", "") for each in told[:-1]) == "it is [REDACTED:email]"
    assert told[-1]["text"] == "to [REDACTED:email]"
