"""Providers read conversations from their prompt caches, whatever dialect the caller speaks."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.long_talks import INSTRUCTIONS, Talk
from tests.support.polling import eventually
from tests.support.processes import Gateway, expect
from tests.support.prompt_caches import BILLING, CachingUpstream, form_of, share

pytestmark = pytest.mark.one_node(
    reason="where a conversation was served is told to other workers within a second, and the next turn comes at once"
)

TURNS = 30
CALLERS = ("chat", "responses", "messages", "gemini")
# A provider's dialect, with the model that its connections serve.
DIALECTS = {
    "openai": "gpt-5.5",
    "openai-responses": "gpt-5.5",
    "anthropic": "claude-sonnet-5",
    "gemini": "gemini-3-pro",
}
FORMS = {
    "openai": "chat",
    "openai-responses": "responses",
    "anthropic": "messages",
    "gemini": "gemini",
}
PRICE = {"input": 3.0, "output": 15.0, "cachedInput": 0.3, "cacheWrite": 3.75}


@pytest.fixture
def upstream() -> Iterator[CachingUpstream]:
    with CachingUpstream() as made:
        yield made


def base_url(upstream: CachingUpstream, dialect: str) -> str:
    return upstream.url.replace("/v1", "/v1beta") if dialect == "gemini" else upstream.url


def add_provider(
    gateway: Gateway, upstream: CachingUpstream, dialect: str, connections: int = 1, **specific: Any
) -> str:
    """A node with priced connections of equal priority: the name of its model."""
    prefix, model = f"t{secrets.token_hex(4)}", DIALECTS[dialect]
    node = gateway.add_node(prefix, base_url(upstream, dialect), dialect=dialect)
    for at in range(connections):
        secret = f"sk-upstream-canary-{secrets.token_hex(12)}"
        fields = {"prices": {model: PRICE}} | specific
        gateway.add_connection(node["id"], secret, name=f"c{at}", providerSpecificData=fields)
    return f"{prefix}/{model}"


def add_known(gateway: Gateway, upstream: CachingUpstream, provider: str, model: str) -> str:
    """A connection to a provider of the catalogue, at `upstream`: the name of its model."""
    page: list[dict[str, Any]] = expect(gateway.admin.get("/api/providers?limit=500"), 200)[
        "connections"
    ]
    for each in page:
        if each["provider"] == provider:
            expect(gateway.admin.delete(f"/api/providers/{each['id']}"), 200)
    secret = f"sk-upstream-canary-{secrets.token_hex(12)}"
    specific = {"baseUrl": upstream.url, "prices": {model: PRICE}}
    gateway.add_connection(provider, secret, providerSpecificData=specific)
    if provider == "openrouter":
        upstream.marked_keys.add(secret)
    return f"{provider}/{model}"


def path_of(form: str, model: str) -> str:
    return {
        "chat": "/v1/chat/completions",
        "responses": "/v1/responses",
        "messages": "/v1/messages",
        "gemini": f"/v1beta/models/{model}:generateContent",
    }[form]


def ask(gateway: Gateway, talk: Talk, model: str, **headers: str) -> dict[str, Any]:
    answer = gateway.caller.post(
        path_of(talk.form, model), json=talk.body(model), headers=headers, timeout=60
    )
    found: dict[str, Any] = expect(answer, 200)
    talk.take(found)
    return found


def direct_share(form: str, *, is_marked: bool) -> float:
    """What the provider's own form reads from the cache without a gateway."""
    with CachingUpstream() as upstream, httpx.Client(trust_env=False) as client:
        if is_marked:
            upstream.marked_keys.add("direct")
        talk = Talk(form)
        base = base_url(upstream, "gemini" if form == "gemini" else "")
        path = path_of(form, "m").removeprefix("/v1beta").removeprefix("/v1")
        for _ in range(TURNS):
            body = talk.marked_body("m") if is_marked else talk.body("m")
            auth = {"Authorization": "Bearer direct"}
            talk.take(expect(client.post(f"{base}{path}", json=body, headers=auth), 200))
        return share(upstream.metered)


def keeps_the_share(upstream: CachingUpstream, *, is_marked: bool) -> None:
    assert len(upstream.metered) == TURNS
    form = upstream.metered[0].form
    direct, found = direct_share(form, is_marked=is_marked), share(upstream.metered)
    assert direct > 0.8, "a long conversation is mostly read from the cache"
    assert found >= 0.98 * direct, f"{found:.3f} of {direct:.3f}"


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_thirty_turns_are_cached_as_in_the_providers_own_form(
    gateway: Gateway, upstream: CachingUpstream, caller: str, dialect: str
) -> None:
    model, talk = add_provider(gateway, upstream, dialect), Talk(caller)
    for _ in range(TURNS):
        ask(gateway, talk, model)
    keeps_the_share(upstream, is_marked=dialect == "anthropic")


@pytest.mark.parametrize("caller", CALLERS)
def test_a_chat_provider_with_marks_caches_them_too(
    gateway: Gateway, upstream: CachingUpstream, caller: str
) -> None:
    model, talk = (
        add_known(gateway, upstream, "openrouter", "anthropic/claude-sonnet-5"),
        Talk(caller),
    )
    for _ in range(TURNS):
        ask(gateway, talk, model)
    keeps_the_share(upstream, is_marked=True)


def test_the_billing_block_of_claude_code_reaches_anthropic_alone(
    gateway: Gateway, upstream: CachingUpstream
) -> None:
    for dialect in DIALECTS:
        ask(gateway, Talk("messages"), add_provider(gateway, upstream, dialect))
        has_block = BILLING in upstream.last.body.decode()
        assert has_block == (dialect == "anthropic"), dialect


def test_a_conversation_has_one_cache_key(gateway: Gateway, upstream: CachingUpstream) -> None:
    model = add_known(gateway, upstream, "openai", "gpt-5.5")
    keys = []
    for headers in ({}, {"X-Claude-Code-Session-Id": secrets.token_hex(8)}):
        for caller in ("chat", "messages"):
            talk = Talk(caller)
            for _ in range(3):
                ask(gateway, talk, model, **headers)
            sent = [one.body.get("prompt_cache_key") for one in upstream.metered[-3:]]
            assert len(set(sent)) == 1, sent
            keys.append(sent[0])
    assert None not in keys
    assert len(set(keys)) == 3, "two conversations without a session, and one session"

    body = Talk("chat").body(model) | {"prompt_cache_key": "mine"}
    expect(gateway.caller.post("/v1/chat/completions", json=body), 200)
    assert upstream.metered[-1].body["prompt_cache_key"] == "mine"
    other = {"Authorization": f"Bearer {gateway.create_key()['key']}"}
    ask(gateway, Talk("chat"), model, **other, **headers)
    assert upstream.metered[-1].body["prompt_cache_key"] not in keys, "another key, another session"
    short = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
    expect(gateway.caller.post("/v1/chat/completions", json=short), 200)
    assert "prompt_cache_key" not in upstream.metered[-1].body


@pytest.mark.parametrize("caller", ["messages", "chat"])
def test_an_operator_can_switch_it_off(
    gateway: Gateway, upstream: CachingUpstream, caller: str
) -> None:
    model = add_provider(gateway, upstream, "anthropic", promptCache="off")
    body = Talk(caller).body(model)
    expect(gateway.caller.post(path_of(caller, model), json=body), 200)
    assert b"cache_control" not in upstream.last.body
    if caller == "messages":
        assert upstream.last.json() == body | {"model": "claude-sonnet-5"}


@pytest.mark.parametrize(
    "name",
    [
        "X-Claude-Code-Session-Id",
        "X-Codex-Session-Id",
        "session_id",
        "session-id",
        "conversation_id",
        "thread_id",
    ],
)
def test_a_coding_tools_session_is_a_session(
    gateway: Gateway, upstream: CachingUpstream, name: str
) -> None:
    model = add_provider(gateway, upstream, "anthropic", connections=4)
    session, talk = secrets.token_hex(8), Talk("messages")
    short = {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    for _ in range(6):
        answer = gateway.caller.post("/v1/messages", json=short, headers={name: session})
        expect(answer, 200)
        assert answer.headers["x-gateway-session-id"] == session
    ask(gateway, talk, model, **{name: session})
    assert len({seen.header("x-api-key") for seen in upstream.requests}) == 1
    records = eventually(
        lambda: found if len(found := gateway.shown_records(model=model)) == 7 else None,
        "all calls are on record",
        within_s=8,
    )
    assert {record["sessionId"] for record in records} == {session}


def test_a_conversation_without_a_session_stays_with_its_connection(
    gateway: Gateway, upstream: CachingUpstream
) -> None:
    model = add_provider(gateway, upstream, "anthropic", connections=4)
    talk = Talk("messages")
    for _ in range(10):
        ask(gateway, talk, model)
    assert len({seen.header("x-api-key") for seen in upstream.requests}) == 1
    assert all(one.cached for one in upstream.metered[1:])
    records = eventually(
        lambda: found if len(found := gateway.shown_records(model=model)) == 10 else None,
        "all turns are on record",
        within_s=8,
    )
    by_time = sorted(records, key=lambda record: record["timestamp"])
    assert [record["cacheHold"] for record in by_time] == ["begun", *["held"] * 9]


def test_short_conversations_are_spread(gateway: Gateway, upstream: CachingUpstream) -> None:
    model = add_provider(gateway, upstream, "anthropic", connections=4)
    body = {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    for _ in range(20):
        expect(gateway.caller.post("/v1/messages", json=body), 200)
    assert len({seen.header("x-api-key") for seen in upstream.requests}) > 1


def test_a_miss_names_its_cause(gateway: Gateway, upstream: CachingUpstream) -> None:
    model = add_provider(gateway, upstream, "openai")
    talk = Talk("messages")
    for _ in range(3):
        ask(gateway, talk, model)
    body = talk.body(model)
    body["tools"][0]["description"] = "Something else."
    expect(gateway.caller.post("/v1/messages", json=body, timeout=60), 200)
    assert upstream.metered[-1].cached == 0
    name = model.partition("/")[2]

    def own_misses() -> list[dict[str, Any]] | None:
        found = expect(gateway.admin.get("/api/usage/cache-health?range=1h"), 200)
        ids = {record["requestId"] for record in gateway.shown_records(model=model)}
        return [one for one in found["recentMisses"] if one["requestId"] in ids] or None

    (miss,) = eventually(own_misses, "the miss is known", within_s=8)
    assert (miss["cause"], miss["changedBy"]) == ("tools", "client")
    assert (miss["firstDifference"], miss["model"]) == ("tools", name)
    tokens = upstream.metered[-2].tokens
    assert 0.9 * tokens < miss["tokens"] <= tokens
    assert miss["costUsdMicros"] == miss["tokens"] * 2_700_000 // 1_000_000


def test_no_prompt_is_stored(gateway: Gateway, upstream: CachingUpstream) -> None:
    model = add_provider(gateway, upstream, "openai")
    ask(gateway, Talk("chat"), model)
    (record,) = gateway.records(model=model)
    assert record["promptHashes"].count(".") == 3
    assert INSTRUCTIONS[:20] not in str(record)
    assert form_of(upstream.last.target) == "chat"
