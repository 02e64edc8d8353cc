"""What control works on is done once under an `Idempotency-Key`: videos, searches, batches, files, leases, jobs."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane, expect
from tests.support.upstream import Gate, Upstream, completion, reply
from tests.support.video_provider import VideoProvider

pytestmark = pytest.mark.both_fronts

MARK = "x-gateway-idempotent"
REPEATS = 6
FOUND = reply(json.dumps({"results": [{"title": "T", "url": "https://a.example/"}]}).encode())
LINE = {"custom_id": "1", "method": "POST", "url": "/v1/chat/completions"}


def fresh() -> str:
    return f"key-{secrets.token_hex(8)}"


def conflicts(answer: httpx.Response) -> bool:
    return answer.status_code == 409 and answer.json()["error"]["param"] == "Idempotency-Key"


@pytest.fixture
def searched(gateway: Gateway, upstream: Upstream) -> Iterator[Upstream]:
    body = {"name": fresh(), "kind": "searxng", "baseUrl": upstream.url, "perQuery": 0.2}
    made = expect(gateway.admin.post("/api/search-providers", json=body), 201)["provider"]
    upstream.requests.clear()
    yield upstream
    gone = gateway.admin.delete(f"/api/search-providers/{made['id']}")
    assert gone.status_code == 204, gone.text


def test_a_search_is_made_and_paid_once(gateway: Gateway, searched: Upstream) -> None:
    searched.script(FOUND, reply(b"{}", 500))
    key, asked = {"Idempotency-Key": fresh()}, {"query": "once"}
    first, again = (gateway.caller.post("/v1/search", json=asked, headers=key) for _ in range(2))
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    assert (first.headers.get(MARK), again.headers.get(MARK)) == (None, "true")
    assert len(searched.requests) == 1
    ids = [answer.headers["x-gateway-request-id"] for answer in (first, again)]
    records = [gateway.record(each) for each in ids]
    assert [each["costUsdMicros"] for each in records] == [200_000, 0]
    assert [each["outcome"] for each in records] == ["completed", "completed"]
    assert conflicts(gateway.caller.post("/v1/search", json={"query": "other"}, headers=key))
    other = {"Authorization": f"Bearer {gateway.create_key()['key']}", **key}
    searched.script(FOUND)
    assert MARK not in gateway.caller.post("/v1/search", json=asked, headers=other).headers


def test_searches_at_once_wait_for_the_first(gateway: Gateway, searched: Upstream) -> None:
    gate = Gate()
    searched.script([gate, *FOUND])
    key = {"Idempotency-Key": fresh()}

    def ask(_: int) -> httpx.Response:
        return gateway.caller.post("/v1/search", json={"query": "at once"}, headers=key)

    with ThreadPoolExecutor(REPEATS) as pool:
        try:
            asked = [pool.submit(ask, number) for number in range(REPEATS)]
            eventually(gate.reached.is_set, "the engine is asked")
        finally:
            # Whoever waits ends, also after a failure.
            gate.open()
        answers = [each.result(30) for each in asked]
    assert [answer.status_code for answer in answers] == [200] * REPEATS
    assert sum(answer.headers.get(MARK) == "true" for answer in answers) == REPEATS - 1
    assert len(searched.requests) == 1


def test_a_search_that_failed_is_made_again(gateway: Gateway, searched: Upstream) -> None:
    searched.script(reply(b"{}", 500), FOUND)
    key = {"Idempotency-Key": fresh()}
    first, again = (
        gateway.caller.post("/v1/search", json={"query": "fails"}, headers=key) for _ in range(2)
    )
    assert (first.status_code, again.status_code) == (502, 200)
    assert MARK not in again.headers


@pytest.mark.parametrize("path", ["/v1/videos", "/v1/videos/generations"])
@pytest.mark.parametrize("as_form", [True, False], ids=["form", "json"])
def test_a_video_is_begun_once(gateway: Gateway, path: str, as_form: bool) -> None:
    with VideoProvider() as provider:
        prefix = f"v{secrets.token_hex(4)}"
        node = gateway.add_node(prefix, provider.url)
        gateway.add_connection(node["id"], f"sk-video-canary-{prefix}")
        key = {"Idempotency-Key": fresh()}

        def ask(prompt: str, boundary: str) -> httpx.Response:
            fields = {"model": f"{prefix}/reel", "prompt": prompt, "seconds": "4"}
            if not as_form:
                return gateway.caller.post(path, json=fields, headers=key)
            kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
            parts = {name: (None, value) for name, value in fields.items()}
            return gateway.caller.post(path, files=parts, headers=key | kind)

        first, again = ask("a boat", "one"), ask("a boat", "two")
        assert first.status_code == 200, first.text
        assert first.json() == again.json()
        assert again.headers[MARK] == "true"
        assert conflicts(ask("a ship", "three"))
        assert sum(method == "POST" for method, _ in provider.calls) == 1


def test_a_google_video_is_begun_once(gateway: Gateway, upstream: Upstream) -> None:
    upstream.script(reply({"name": "models/veo/operations/x"}))
    prefix = f"v{secrets.token_hex(4)}"
    node = gateway.add_node(prefix, f"{upstream.url}/v1beta", dialect="gemini")
    gateway.add_connection(node["id"], f"veo-canary-{prefix}")
    path = f"/v1beta/models/{prefix}/veo:predictLongRunning"
    key = {"Idempotency-Key": fresh()}

    def ask(seconds: int) -> httpx.Response:
        body = {"instances": [{"prompt": "a"}], "parameters": {"durationSeconds": seconds}}
        return gateway.caller.post(path, json=body, headers=key)

    first, again = ask(4), ask(4)
    assert first.json() == again.json()
    assert (first.status_code, again.headers[MARK]) == (200, "true")
    assert ask(8).status_code == 409
    assert sum("predictLongRunning" in seen.target for seen in upstream.requests) == 1


def upload(
    gateway: Gateway, key: dict[str, str], content: bytes, boundary: str = "one"
) -> httpx.Response:
    kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    files = {"purpose": (None, "batch"), "file": ("lines.jsonl", content)}
    return gateway.caller.post("/v1/files", files=files, headers={**kind, **key})


@pytest.mark.parametrize("size", [100, 200_000], ids=["in memory", "on disk"])
def test_a_file_is_kept_once(gateway: Gateway, size: int) -> None:
    key = {"Idempotency-Key": fresh()}
    content = json.dumps({**LINE, "body": {"model": "m", "x": "y" * size}}).encode()
    first, again = upload(gateway, key, content), upload(gateway, key, content, boundary="two")
    assert first.status_code == 200, first.text
    assert first.json() == again.json()
    assert (first.headers.get(MARK), again.headers.get(MARK)) == (None, "true")
    assert conflicts(upload(gateway, key, content + b"\n"))
    assert expect(upload(gateway, {}, content), 200)["id"] != first.json()["id"]


def test_a_batch_is_made_once(gateway: Gateway, lane: Lane) -> None:
    lane.upstream.script(reply(completion()))
    asked = {"model": lane.model, "messages": [{"role": "user", "content": "hi"}]}
    line = json.dumps({**LINE, "body": asked}).encode()
    file_id = expect(upload(gateway, {}, line), 200)["id"]
    body = {"input_file_id": file_id, "endpoint": LINE["url"], "completion_window": "24h"}
    key = {"Idempotency-Key": fresh()}
    first, again = (gateway.caller.post("/v1/batches", json=body, headers=key) for _ in range(2))
    assert first.status_code == 200, first.text
    assert first.json()["id"] == again.json()["id"]
    assert again.headers[MARK] == "true"
    other = {**body, "metadata": {"a": "b"}}
    assert conflicts(gateway.caller.post("/v1/batches", json=other, headers=key))
    path = f"/v1/batches/{first.json()['id']}"

    def has_ended() -> bool:
        return bool(gateway.caller.get(path).json()["status"] == "completed")

    eventually(has_ended, "the batch has ended", within_s=20, every_s=0.2)
    assert len(lane.upstream.requests) == 1


def test_a_lease_is_taken_once_and_a_shared_request_id_repeats_nothing(
    gateway: Gateway, lane: Lane
) -> None:
    key = gateway.create_key(scopes=["lease:exclusive"])["key"]
    owner = {"X-Gateway-Lease-Owner": f"vlo_{secrets.token_urlsafe(32)}"}
    http = gateway.client(headers={"Authorization": f"Bearer {key}", **owner})

    def ask(action: str, headers: dict[str, str], **fields: Any) -> httpx.Response:
        return http.post("/v1/session-leases", json={"action": action, **fields}, headers=headers)

    once = {"Idempotency-Key": fresh()}
    first, again = (ask("acquire", once, model=lane.model) for _ in range(2))
    assert first.status_code == 200, first.text
    assert first.json() == again.json()
    assert again.headers[MARK] == "true"
    generation = first.json()["generation"]
    shared = {"X-Request-Id": fresh()}
    assert expect(ask("release", shared, generation=generation), 200)["state"] == "RELEASED"
    anew = ask("acquire", shared, model=lane.model)
    assert anew.status_code == 200, anew.text
    assert anew.json()["generation"] != generation
    expect(ask("release", shared, generation=anew.json()["generation"]), 200)
    last = ask("acquire", shared, model=lane.model)
    assert MARK not in last.headers
    assert last.json()["generation"] != anew.json()["generation"], "it is taken, not repeated"


def test_what_is_refused_under_a_key_is_refused_again(gateway: Gateway) -> None:
    key = {"Idempotency-Key": fresh()}
    for _ in range(2):
        answer = gateway.caller.post("/v1/batches", json={"endpoint": "/v1/x"}, headers=key)
        assert answer.status_code == 400
        assert MARK not in answer.headers
