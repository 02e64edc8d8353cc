"""Clients whose base URL is written in another way: served by the route that they mean, or told the right one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from fairlead import _core
from tests.support.processes import Gateway, Lane, expect
from tests.support.sdks import openai
from tests.support.tls import NO_AUTHORITIES
from tests.support.upstream import Upstream, completion, reply

pytestmark = pytest.mark.both_fronts

CHAT = {"model": "{model}", "messages": [{"role": "user", "content": "hi"}]}
GEMINI = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}

# Other paths, the path of the route, and the body of a call; `{model}` is the model.
OTHERS: list[tuple[str, str, str, dict[str, Any] | None]] = [
    ("POST", "/chat/completions", "/v1/chat/completions", CHAT),
    ("POST", "/v1/v1/chat/completions", "/v1/chat/completions", CHAT),
    ("POST", "/openai/v1/chat/completions", "/v1/chat/completions", CHAT),
    ("POST", "/openai/chat/completions", "/v1/chat/completions", CHAT),
    ("POST", "/ollama/v1/chat/completions", "/v1/chat/completions", CHAT),
    ("POST", "/v1beta/openai/chat/completions", "/v1/chat/completions", CHAT),
    ("POST", "/api/v1/chat/completions", "/v1/chat/completions", CHAT),
    ("POST", "/responses", "/v1/responses", {"model": "{model}", "input": "hi", "store": False}),
    ("POST", "/embeddings", "/v1/embeddings", {"model": "{model}", "input": "hi"}),
    ("POST", "/messages", "/v1/messages", {**CHAT, "max_tokens": 9}),
    ("POST", "/anthropic/v1/messages", "/v1/messages", {**CHAT, "max_tokens": 9}),
    ("POST", "/v1/v1/messages", "/v1/messages", {**CHAT, "max_tokens": 9}),
    ("POST", "/v2/rerank", "/v1/rerank", {"model": "{model}", "query": "a", "documents": ["b"]}),
    ("POST", "/rerank", "/v1/rerank", {"model": "{model}", "query": "a", "documents": ["b"]}),
    ("GET", "/models", "/v1/models", None),
    ("GET", "/models/{model}", "/v1/models/{model}", None),
    ("GET", "/openai/v1/models", "/v1/models", None),
    ("GET", "/files", "/v1/files", None),
    ("POST", "/models/{model}:generateContent", "/v1/models/{model}:generateContent", GEMINI),
    ("POST", "/v1beta/{model}:generateContent", "/v1beta/models/{model}:generateContent", GEMINI),
    ("POST", "/v1/{model}:countTokens", "/v1/models/{model}:countTokens", GEMINI),
    (
        "POST",
        "/v1/v1beta/models/{model}:generateContent",
        "/v1beta/models/{model}:generateContent",
        GEMINI,
    ),
    ("POST", "/api/chat", "/ollama/api/chat", {**CHAT, "stream": False}),
    ("GET", "/api/tags", "/ollama/api/tags", None),
]


def call(
    gateway: Gateway, method: str, path: str, body: dict[str, Any] | None, model: str, **more: Any
) -> httpx.Response:
    body = body and {**body, **({"model": model} if "model" in body else {})}
    headers = {"x-gateway-no-cache": "true", **more}
    return gateway.client().request(method, path.format(model=model), json=body, headers=headers)


def bearer(key: dict[str, Any]) -> dict[str, str]:
    return {"authorization": f"Bearer {key['key']}"}


@pytest.fixture(scope="module")
def way(gateway: Gateway) -> Iterator[Lane]:
    """One lane for every path."""
    with Upstream() as upstream:
        yield gateway.add_lane(upstream)


@pytest.fixture(scope="module")
def callers(gateway: Gateway) -> dict[str, dict[str, str]]:
    """The headers of callers of every kind."""
    restricted = {"modelAccessMode": "restricted", "allowedModels": ["none/none"]}
    return {
        "nobody": {},
        "a wrong key": {"authorization": "Bearer sk-fl-wrong"},
        "other routes only": bearer(gateway.create_key(allowedEndpoints=["moderations"])),
        "other models only": bearer(gateway.create_key(**restricted)),
        "a banned key": bearer(gateway.create_key(isBanned=True)),
        "another address": bearer(gateway.create_key(ipAllowlist=["192.0.2.1"])),
        "a key that may": bearer(gateway.create_key()),
        "management": {"x-gateway-cli-token": gateway.cli_token},
    }


@pytest.mark.parametrize(
    ("method", "other", "own", "body"), OTHERS, ids=[f"{each[0]} {each[1]}" for each in OTHERS]
)
def test_an_other_path_passes_what_its_route_passes_and_nothing_more(
    gateway: Gateway,
    way: Lane,
    callers: dict[str, dict[str, str]],
    method: str,
    other: str,
    own: str,
    body: dict[str, Any] | None,
) -> None:
    """Without a key, with a wrong one, and with keys that may not call the route or the model: the same answer
    by both paths, and the same with a key that may.
    """
    told = {}
    for name, headers in callers.items():
        answers = [call(gateway, method, path, body, way.model, **headers) for path in (other, own)]
        codes = [answer.status_code for answer in answers]
        assert codes[0] == codes[1], (name, [answer.text for answer in answers])
        types = [answer.headers.get("content-type") for answer in answers]
        assert types[0] == types[1], name
        told[name] = codes[0]
    assert told["nobody"] == told["a wrong key"] == 401
    assert told["other routes only"] in (401, 403)
    assert told["a banned key"] in (401, 403)
    assert told["another address"] in (401, 403)
    assert told["a key that may"] not in (401, 403, 405)


def test_limits_hold_by_every_path_together(gateway: Gateway, way: Lane) -> None:
    limited = bearer(gateway.create_key(rateLimits=[{"limit": 2, "window": 3600}]))
    paths = ["/chat/completions", "/v1/chat/completions", "/openai/v1/chat/completions"]
    codes = [call(gateway, "POST", path, CHAT, way.model, **limited).status_code for path in paths]
    assert codes == [200, 200, 429]


def test_an_other_path_is_counted_and_open_to_pages_as_its_route_is(gateway: Gateway) -> None:
    def preflight(path: str) -> httpx.Response:
        headers = {"origin": "https://app.example", "access-control-request-method": "POST"}
        return gateway.client().options(path, headers=headers)

    for path in ("/v1/chat/completions", "/chat/completions", "/anthropic/v1/messages"):
        answer = preflight(path)
        assert answer.status_code == 405
        message = answer.json()["error"]["message"]
        assert "https://app.example" in message
        assert "corsOrigins" in message
    # What is no route of a client is open to nobody by another name.
    for path in ("/keys", "/v1/keys", "/openai/v1/keys", "/v1/api/keys", "/openai/api/keys"):
        assert gateway.admin.get(path).status_code == 404, path


@pytest.mark.parametrize(
    "base", ["", "/v1", "/v1/v1", "/openai/v1", "/openai", "/v1beta/openai", "/ollama/v1"]
)
def test_openais_client_works_by_every_usual_base_url(
    gateway: Gateway, lane: Lane, base: str
) -> None:
    client = openai.OpenAI(
        base_url=f"{gateway.url}{base}",
        api_key=gateway.key,
        max_retries=0,
        http_client=openai.DefaultHttpxClient(verify=NO_AUTHORITIES),
    )
    with client:
        asked: Any = {"model": lane.model, "messages": [{"role": "user", "content": "hi"}]}
        assert client.chat.completions.create(**asked).choices
        assert client.models.list().data is not None


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/v1", "/v1` is the base URL for OpenAI clients"),
        ("/v1/", "/v1` is the base URL for OpenAI clients"),
        ("/v1/nothing", "/v1`"),
        ("/nothing", "/ollama` for Ollama clients"),
        ("/docs", "/api/openapi.json"),
        ("/openapi.json", "/api/openapi.json"),
        ("/health", "/healthz"),
        ("/ping", "/healthz"),
        ("/v2/embed", "/v1/embeddings"),
        ("/v2/chat", "/v1/embeddings"),
        ("/v1/chat/completions/", "`/v1/chat/completions`"),
        ("/ollama/api/nothing", "/ollama`"),
        ("/x/v1/messages", "Anthropic clients"),
        ("/v1beta/nothing", "Google clients"),
        ("/api/nothing", "/api/openapi.json"),
        ("/openai/deployments/d/chat/completions", "Azure"),
    ],
)
def test_an_unknown_path_is_told_with_the_base_url(gateway: Gateway, path: str, words: str) -> None:
    for method in ("GET", "POST"):
        answer = gateway.caller.request(method, path)
        assert answer.status_code == 404
        told = answer.text
        assert words in told, told
        assert path in told
        assert gateway.url.split("://")[1] in told
        assert answer.headers["x-gateway-version"]


def test_a_wrong_method_names_the_path(gateway: Gateway) -> None:
    answer = gateway.caller.get("/embeddings")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.json()["error"]["message"] == "`/embeddings` answers POST."


def test_a_socket_where_there_is_none_is_refused_at_once(gateway: Gateway) -> None:
    """Codex opens one for `/v1/responses` first, and goes on over HTTP after 426."""
    headers = {
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    for path in ("/v1/responses", "/responses", "/v1/embeddings"):
        answer = gateway.caller.get(path, headers=headers)
        assert answer.status_code == 426, answer.text
        error = answer.json()["error"]
        assert error["code"] == "upgrade_refused"
        assert "over HTTP" in error["message"]
        assert "POST" in answer.headers["allow"]
    assert gateway.caller.get("/v1/responses").status_code == 405


def test_ollamas_clients_need_no_content_type(gateway: Gateway, lane: Lane) -> None:
    body = f'{{"model": "{lane.model}", "messages": [{{"role": "user", "content": "hi"}}], "stream": false}}'
    key = {"authorization": f"Bearer {gateway.key}"}
    for headers in (
        key,
        key | {"content-type": "text/plain"},
        key | {"origin": "https://a.example"},
    ):
        answer = gateway.client().post("/ollama/api/chat", content=body, headers=headers)
        assert answer.status_code == 200, answer.text
    for path in ("/ollama/api/generate", "/api/generate"):
        prompt = f'{{"model": "{lane.model}", "prompt": "hi", "stream": false}}'
        assert gateway.client().post(path, content=prompt, headers=key).status_code == 200
    # Elsewhere the type is asked for as before.
    other = gateway.client().post("/v1/chat/completions", content=body, headers=key)
    assert other.status_code == 415


def test_without_keys_a_page_of_another_site_still_needs_the_type(
    keyless_gateway: Gateway, upstream: Upstream
) -> None:
    lane = keyless_gateway.add_lane(upstream)
    upstream.script(reply(completion("hello")))
    body = json.dumps(lane.body(stream=False))
    caller = keyless_gateway.client()
    assert caller.post("/ollama/api/chat", content=body).status_code == 200
    for page in (
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"host": "rebound.example"},
    ):
        for kind in ({}, {"content-type": "text/plain"}):
            refused = caller.post("/ollama/api/chat", content=body, headers={**page, **kind})
            assert refused.status_code in (403, 415), (page, refused.text)


def test_an_empty_object_passes_where_no_body_is_taken(gateway: Gateway) -> None:
    """OpenAPI clients and `fetch` send `{}` along with a call that needs nothing."""
    empty = [
        route
        for route in _core.routes()
        if route["body"] == "none" and route["method"] in ("POST", "PUT", "PATCH")
    ]
    assert empty
    for route in empty:
        # Of a record that is not there; a path without one would do what it is for.
        path = re.sub(r"\{[^}]+\}", "none", route["path"])
        if path != route["path"]:
            answer = gateway.admin.request(route["method"], path, json={})
            assert answer.status_code != 413, (route, answer.text)
    key = gateway.create_key()
    renewed = expect(gateway.admin.post(f"/api/keys/{key['id']}/regenerate", json={}), 200)
    gateway.canaries.append(renewed["key"])
    refused = gateway.admin.post(f"/api/keys/{key['id']}/regenerate", json={"name": "x"})
    assert refused.status_code == 400
    assert "takes no body" in refused.json()["error"]["message"]
    listed = gateway.caller.request("GET", "/v1/models", json={})
    assert listed.status_code == 200
