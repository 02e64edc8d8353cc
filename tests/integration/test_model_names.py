"""A model has one name: no other spelling of it goes around a key's rules, its price or its records, on no route.

Providers of Gemini's dialect are asked by address, so what a name may say there is shown as raw request lines.
"""

from __future__ import annotations

import http.client
import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import pytest

from tests.support.processes import Gateway, expect
from tests.support.upstream import Upstream, reply

BLOCKED: Final = "g-1"
ANSWER: Final = {
    "candidates": [
        {"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}
    ],
    "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
    "totalTokens": 10,
    "embedding": {"values": [1.0]},
    "embeddings": [{"values": [1.0]}],
    "name": "models/g-1/operations/abc",
}

# Of the blocked model, behind the prefix and a slash.
SPELLINGS: Final = (
    "g-1",
    "models/g-1",
    "models/models/g-1",
    "Models/g-1",
    "MODELS/g-1",
    "G-1",
    "./g-1",
    "x/../g-1",
    "../models/g-1",
    "tunedModels/../models/g-1",
    "/g-1",
    "models//g-1",
    "g-1/",
    "g-1/.",
    "g-1 ",
    " g-1",
    "g-1\t",
    "g-1\u00a0",
    "g-1\u200b",
    "g-1\u0000",
    "g-1%00",
    "g-1%20",
    "x%2F..%2Fg-1",
    "models%2Fg-1",
    "%2e/g-1",
    "%67-1",
    "g-1?x=y",
    "g-1#x",
    "g-1;x",
    "g-1/../../../admin",
    "..\\models\\g-1",
    ".\\g-1",
    "models\uff0fg-1",
    "models\u2215g-1",
    "\uff47-1",
    "models/g\uff0d1",
)

PARTS: Final[dict[str, Any]] = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
CHAT: Final[dict[str, Any]] = {"messages": [{"role": "user", "content": "hi"}]}
# Routes that name the model in the body, and those that name it in the address.
BODIES: Final[dict[str, dict[str, Any]]] = {
    "/v1/chat/completions": CHAT,
    "/v1/messages": {**CHAT, "max_tokens": 5},
    "/v1/messages/count_tokens": CHAT,
    "/v1/responses": {"input": "hi", "store": False},
    "/v1/embeddings": {"input": "hi"},
    "/v1/completions": {"prompt": "hi"},
    "/v1/moderations": {"input": "hi"},
}
ACTIONS: Final[dict[str, dict[str, Any]]] = {
    "generateContent": PARTS,
    "streamGenerateContent": PARTS,
    "countTokens": PARTS,
    "embedContent": {"content": {"parts": [{"text": "hi"}]}},
    "batchEmbedContents": {"requests": [{"content": {"parts": [{"text": "hi"}]}}]},
    "predictLongRunning": {"instances": [{"prompt": "a boat"}]},
}


@dataclass
class Google:
    gateway: Gateway
    upstream: Upstream
    prefix: str
    node: str

    def post(self, path: str, body: dict[str, Any], key: str, **headers: str) -> tuple[int, Any]:
        """The path goes out as it is: other clients would fold it."""
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway.port, timeout=20)
        try:
            told = {"content-type": "application/json", "authorization": f"Bearer {key}", **headers}
            connection.request("POST", path, json.dumps(body), told)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        try:
            return answer.status, json.loads(text)
        except json.JSONDecodeError:
            return answer.status, text.decode(errors="replace")

    def targets(self) -> list[str]:
        return [seen.target for seen in self.upstream.requests]


@pytest.fixture
def google(gateway: Gateway, upstream: Upstream) -> Google:
    prefix = f"names{secrets.token_hex(4)}"
    node = gateway.add_node(prefix, upstream.url.replace("/v1", "/v1beta"), dialect="gemini")
    gateway.add_connection(node["id"], f"sk-names-canary-{secrets.token_hex(8)}")
    upstream.script(reply(ANSWER))
    return Google(gateway, upstream, prefix, node["id"])


KEYS: Final[dict[str, dict[str, Any]]] = {
    "blocked": {"blockedModels": ["{prefix}/g-1"]},
    "blocked in the provider's spelling": {"blockedModels": ["{prefix}/models/g-1"]},
    "another allowed": {"modelAccessMode": "restricted", "allowedModels": ["{prefix}/g-2"]},
}


def _key(google: Google, fields: dict[str, Any]) -> str:
    text = json.dumps(fields).replace("{prefix}", google.prefix)
    return str(google.gateway.create_key(**json.loads(text))["key"])


def _raw(spelling: str) -> Iterator[str]:
    """In an address: encoded once, and as it stands where a request line can have it."""
    yield quote(spelling, safe="/")
    yield quote(spelling, safe="")
    if spelling.isascii() and spelling.isprintable() and not set(spelling) & set(" ?#"):
        yield spelling


@pytest.mark.parametrize("fields", KEYS.values(), ids=KEYS.keys())
@pytest.mark.parametrize("route", BODIES)
def test_no_spelling_in_a_body_goes_around_a_keys_rules(
    google: Google, route: str, fields: dict[str, Any]
) -> None:
    key = _key(google, fields)
    for spelling in SPELLINGS:
        body = {"model": f"{google.prefix}/{spelling}", **BODIES[route]}
        status, told = google.post(route, body, key)
        assert status in (400, 403, 404), (spelling, status, told)
        by_header = spelling.isascii() and spelling.isprintable()
        if by_header and spelling.strip() == spelling:
            allowed = {"model": f"{google.prefix}/g-2", **BODIES[route]}
            header = {"X-Route-Model": f"{google.prefix}/{spelling}"}
            status, told = google.post(route, allowed, key, **header)
            assert status in (400, 403, 404), (spelling, status, told)
    assert google.targets() == []


@pytest.mark.parametrize("fields", KEYS.values(), ids=KEYS.keys())
@pytest.mark.parametrize("action", ACTIONS)
def test_no_spelling_in_an_address_goes_around_a_keys_rules(
    google: Google, action: str, fields: dict[str, Any]
) -> None:
    key = _key(google, fields)
    for spelling in SPELLINGS:
        for raw in _raw(f"{google.prefix}/{spelling}"):
            for version in ("v1", "v1beta"):
                path = f"/{version}/models/{raw}:{action}"
                status, told = google.post(path, ACTIONS[action], key)
                assert status in (400, 403, 404, 405), (path, status, told)
    assert google.targets() == []


# Names that end up somewhere else than they say, for a key that may call everything.
ELSEWHERE: Final = (
    "g-1/../../../admin",
    "../../admin",
    "..",
    ".",
    "a/b/c",
    "projects/p/models/x",
    "Models/../x",
    "x?key=1",
    "x#y",
    "x%2F..",
    "x;y",
    "x\\y",
    "x\u0000",
    "x\n",
    "endpoints/../x",
    "operations/x",
    "publishers/google/x",
    "files/x:download",
    "cachedContents/x",
)


def test_an_address_never_leaves_the_providers_models(google: Google) -> None:
    for spelling in ELSEWHERE:
        for route in ("/v1/chat/completions", "/v1/messages/count_tokens", "/v1/embeddings"):
            body = {"model": f"{google.prefix}/{spelling}", **BODIES[route]}
            status, told = google.post(route, body, google.gateway.key)
            assert (status, "model" in str(told)) == (400, True), (spelling, route, status, told)
    assert google.targets() == []


@pytest.mark.parametrize(
    ("spelling", "target"),
    [
        ("g-1", "/v1beta/models/g-1:generateContent"),
        ("models/g-1", "/v1beta/models/g-1:generateContent"),
        ("tunedModels/mine-1", "/v1beta/tunedModels/mine-1:generateContent"),
        (
            "publishers/google/models/g-1@001",
            "/v1beta/publishers/google/models/g-1@001:generateContent",
        ),
        ("endpoints/123", "/v1beta/endpoints/123:generateContent"),
        ("g-1:countTokens", "/v1beta/models/g-1%3AcountTokens:generateContent"),
        ("g.1_x~y", "/v1beta/models/g.1_x~y:generateContent"),
    ],
)
def test_names_that_providers_have_are_called(google: Google, spelling: str, target: str) -> None:
    body = {"model": f"{google.prefix}/{spelling}", **CHAT}
    status, told = google.post("/v1/chat/completions", body, google.gateway.key)
    assert status == 200, told
    assert google.targets() == [target]


def test_a_spelling_costs_what_the_model_costs_and_is_recorded_as_it(google: Google) -> None:
    price = {google.node: {"g-1": {"input": 10, "output": 20}}}
    expect(google.gateway.admin.put("/api/pricing", json=price), 200)
    for spelling in ("g-1", "models/g-1", "models/models/g-1"):
        body = {"model": f"{google.prefix}/{spelling}", **CHAT}
        answer = google.gateway.caller.post("/v1/chat/completions", json=body)
        assert answer.status_code == 200, answer.text
        record = google.gateway.record(answer.headers["x-gateway-request-id"])
        assert record["model"] == f"{google.prefix}/g-1"
        assert record["costUsdMicros"] == 10 * 10 + 5 * 20


def test_a_limit_on_a_model_counts_every_spelling_of_it(google: Google) -> None:
    created = google.gateway.create_key()
    limit = {
        "apiKeyId": created["id"],
        "scopeType": "model",
        "scopeValue": f"{google.prefix}/models/g-1",
        "tokenLimit": 35,
        "resetInterval": "monthly",
    }
    expect(google.gateway.admin.post("/api/usage/token-limits", json=limit), 201)
    statuses = []
    for spelling in ("g-1", "models/g-1", "g-2"):
        body = {"model": f"{google.prefix}/{spelling}", "max_tokens": 2, **CHAT}
        statuses.append(google.post("/v1/chat/completions", body, created["key"])[0])
    assert statuses == [200, 429, 200]


def test_aliases_forced_models_and_combos_lead_to_the_one_name(google: Google) -> None:
    gateway, spelled = google.gateway, f"{google.prefix}/models/g-1"
    alias, combo = f"alias-{secrets.token_hex(4)}", f"combo-{secrets.token_hex(4)}"
    expect(gateway.admin.post("/api/models/alias", json={"alias": alias, "model": spelled}), 200)
    expect(gateway.admin.post("/api/combos", json={"name": combo, "models": [spelled]}), 201)
    for name in (alias, combo):
        status, told = google.post("/v1/chat/completions", {"model": name, **CHAT}, gateway.key)
        assert status == 200, told
    forced = gateway.create_key(forcedModel=spelled)["key"]
    body = {"model": f"{google.prefix}/g-2", **CHAT}
    assert google.post("/v1/chat/completions", body, forced)[0] == 200
    assert google.targets() == ["/v1beta/models/g-1:generateContent"] * 3
    blocked = gateway.create_key(blockedModels=[f"{google.prefix}/g-1"])["key"]
    for name in (alias, combo):
        assert google.post("/v1/chat/completions", {"model": name, **CHAT}, blocked)[0] == 403
    assert len(google.targets()) == 3


def test_a_body_names_the_model_that_was_judged(google: Google) -> None:
    """Google's bodies may name the model again, beside the address."""
    key = _key(google, {"blockedModels": ["{prefix}/g-1"]})
    path = f"/v1beta/models/{google.prefix}/g-2"
    inner = {"model": "models/g-1", **PARTS}
    for action, body in (
        ("generateContent", inner),
        ("countTokens", {"generateContentRequest": inner}),
        ("embedContent", {"model": "models/g-1", **ACTIONS["embedContent"]}),
    ):
        status, told = google.post(f"{path}:{action}", body, key)
        assert status == 200, told
        seen = google.upstream.last.body
        assert b"g-1" not in seen
        assert b"models/g-2" in seen
    named = json.dumps({"model": f"{google.prefix}/g-2", **CHAT})
    twice = named[:-1] + f', "\\u006dodel": "{google.prefix}/g-1"}}'
    told = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    answer = google.gateway.caller.post("/v1/chat/completions", content=twice, headers=told)
    assert (answer.status_code, "twice" in answer.text) == (400, True), answer.text


def test_names_in_bodies_stay_as_providers_have_them(gateway: Gateway, upstream: Upstream) -> None:
    lane = gateway.add_lane(upstream)
    names = (
        "meta-llama/llama-3:free",
        "@cf/meta/llama",
        "arn:aws:bedrock:us-east-1::model/a.b-v1:0",
        "accounts/a/models/m#accounts/a/deployments/d",
        "My Model",
        "größe",
    )
    for name in names:
        body = {"model": f"{lane.prefix}/{name}", **CHAT}
        answer = gateway.caller.post("/v1/chat/completions", json=body)
        assert answer.status_code == 200, answer.text
        assert upstream.last.json()["model"] == name


def test_a_query_names_one_model(gateway: Gateway) -> None:
    for query in ("model=a/b&model=a/c", "model=a/b&%6dodel=a/c", "model=a/b&MODEL=a/c"):
        answer = gateway.caller.get(
            f"/v1/realtime?{query}",
            headers={
                "connection": "upgrade",
                "upgrade": "websocket",
                "sec-websocket-version": "13",
                "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
            },
        )
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["param"] == "model"
