"""A model's name without a provider's prefix: `bareModels`, and the names that a refusal suggests."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.inference import EXAMPLES
from tests.support.processes import Gateway, Lane, expect
from tests.support.upstream import Upstream

pytestmark = pytest.mark.both_fronts

# Every call that names a model: through each of these doors a bare name means the same.
DOORS = [
    "POST /v1/chat/completions",
    "POST /v1/messages",
    "POST /v1/responses",
    "POST /v1/responses/input_tokens",
    "POST /v1beta/models/{*id}:generateContent",
    "POST /v1beta/models/{*id}:countTokens",
    "POST /v1beta/models/{*id}:embedContent",
    "POST /v1/completions",
    "POST /v1/embeddings",
    "POST /v1/images/generations",
    "POST /v1/images/edits",
    "POST /v1/moderations",
    "POST /v1/rerank",
    "POST /v1/ocr",
    "POST /v1/audio/speech",
    "POST /v1/audio/transcriptions",
    "POST /v1/videos",
    "POST /ollama/api/chat",
    "POST /ollama/api/generate",
    "POST /ollama/api/show",
]


def ask(gateway: Gateway, door: str, model: str, key: str | None = None) -> httpx.Response:
    example = EXAMPLES[door]
    method, path = door.split(" ")
    path = (example.path or path).format(model=model)
    headers = {"authorization": f"Bearer {key or gateway.key}", "x-gateway-no-cache": "true"}
    assert example.body is not None
    body = example.body(model)
    if example.file is not None:
        files = {example.file: ("a.bin", b"bytes")}
        return gateway.client().request(method, path, data=body, files=files, headers=headers)
    return gateway.client().request(method, path, json=body, headers=headers)


def named(lane: Lane, *names: str) -> None:
    """Makes the lane's connection list these models."""
    for name in names:
        body = {"provider": lane.prefix, "modelId": name}
        expect(lane.gateway.admin.post("/api/provider-models", json=body), 201)


@pytest.fixture
def bare(lane: Lane) -> str:
    name = f"bare-{secrets.token_hex(4)}"
    named(lane, name)
    return name


@pytest.fixture
def other(gateway: Gateway, upstream: Upstream) -> Lane:
    return gateway.add_lane(upstream)


@pytest.fixture
def refusing(gateway: Gateway) -> Iterator[None]:
    expect(gateway.admin.patch("/api/settings", json={"bareModels": "refuse"}), 200)
    yield
    expect(gateway.admin.patch("/api/settings", json={"bareModels": "resolve"}), 200)


@pytest.mark.parametrize("door", DOORS)
def test_a_bare_name_is_the_model_of_the_one_provider_that_has_it(
    gateway: Gateway, lane: Lane, bare: str, door: str
) -> None:
    """As the full name is answered, so is the bare one; and one that nobody has is 404 with the name that is meant."""
    full = ask(gateway, door, f"{lane.prefix}/{bare}")
    short = ask(gateway, door, bare)
    assert short.status_code == full.status_code, (full.text, short.text)
    if full.headers.get("x-gateway-model"):
        assert short.headers["x-gateway-model"] == full.headers["x-gateway-model"]
    missing = ask(gateway, door, f"{bare}x")
    assert missing.status_code == 404, missing.text
    if door not in ("POST /v1/videos", "POST /ollama/api/show"):
        assert f"Did you mean `{lane.prefix}/{bare}`?" in missing.text


def test_what_comes_of_it_goes_by_the_full_name(gateway: Gateway, lane: Lane, bare: str) -> None:
    """Rules of keys, budgets and records."""
    chat = "POST /v1/chat/completions"
    full = f"{lane.prefix}/{bare}"
    blocked = gateway.create_key(blockedModels=[full])["key"]
    assert ask(gateway, chat, bare, blocked).status_code == 404
    only = gateway.create_key(modelAccessMode="restricted", allowedModels=[full])["key"]
    assert ask(gateway, chat, bare, only).status_code == 200
    assert lane.upstream.requests[-1].json()["model"] == bare
    none = gateway.create_key(modelAccessMode="restricted", allowedModels=["else/where"])["key"]
    told = ask(gateway, chat, bare, none)
    assert told.status_code == 404
    assert lane.prefix not in told.text
    elsewhere = gateway.create_key(
        connectionAccessMode="restricted",
        allowedConnections=["00000000-0000-4000-8000-000000000000"],
    )["key"]
    assert ask(gateway, chat, bare, elsewhere).status_code == 404
    listed = expect(gateway.caller.get(f"/v1/models/{bare}"), 200)
    assert listed["id"] == full


def test_two_providers_of_one_name_are_told_apart(
    gateway: Gateway, lane: Lane, other: Lane, bare: str
) -> None:
    named(other, bare)
    chat = "POST /v1/chat/completions"
    told = ask(gateway, chat, bare)
    assert told.status_code == 404
    error = told.json()["error"]
    assert error["code"] == "model_not_found"
    for one in (lane, other):
        assert f"`{one.prefix}/{bare}`" in error["message"]
    key = gateway.create_key(
        connectionAccessMode="restricted", allowedConnections=[other.connections[0]["id"]]
    )["key"]
    assert ask(gateway, chat, bare, key).status_code == 200
    resolves = gateway.create_key(autoResolve=True)["key"]
    assert ask(gateway, chat, bare, resolves).status_code == 200


def test_a_name_without_its_date_is_the_newest(gateway: Gateway, lane: Lane, bare: str) -> None:
    named(lane, f"{bare}-one-20240101", f"{bare}-one-20250101", f"{bare}-two-2025-03-04")
    for asked, called in (("one", "one-20250101"), ("two", "two-2025-03-04")):
        answer = ask(gateway, "POST /v1/chat/completions", f"{bare}-{asked}")
        assert answer.status_code == 200, answer.text
        assert lane.upstream.requests[-1].json()["model"] == f"{bare}-{called}"


def test_aliases_and_combos_of_the_name_go_first(
    gateway: Gateway, lane: Lane, other: Lane, bare: str
) -> None:
    elsewhere = f"{other.prefix}/elsewhere"
    chat = "POST /v1/chat/completions"
    combo = {"name": bare, "models": [{"model": elsewhere}]}
    made = expect(gateway.admin.post("/api/combos", json=combo), 201)
    assert ask(gateway, chat, bare).status_code == 200
    assert lane.upstream.requests[-1].json()["model"] == "elsewhere"
    combo_id = (made.get("combo") or made)["id"]
    expect(gateway.admin.delete(f"/api/combos/{combo_id}"), 200)
    alias: dict[str, Any] = {"alias": bare, "model": elsewhere}
    expect(gateway.admin.post("/api/models/alias", json=alias), 200)
    assert ask(gateway, chat, bare).status_code == 200
    assert lane.upstream.requests[-1].json()["model"] == "elsewhere"
    gateway.admin.delete("/api/models/alias", params={"alias": bare})


@pytest.mark.usefixtures("refusing")
@pytest.mark.parametrize("door", DOORS[:4])
def test_the_setting_refuses_bare_names(gateway: Gateway, lane: Lane, bare: str, door: str) -> None:
    told = ask(gateway, door, bare)
    assert told.status_code == 404
    assert f"Did you mean `{lane.prefix}/{bare}`?" in told.text
    assert ask(gateway, door, f"{lane.prefix}/{bare}").status_code == 200


def test_a_wrong_prefix_is_told_with_the_right_one(gateway: Gateway, lane: Lane, bare: str) -> None:
    told = ask(gateway, "POST /v1/chat/completions", f"{lane.prefix}x/{bare}")
    assert told.status_code == 404
    assert f"`{lane.prefix}/{bare}`" in told.json()["error"]["message"]
