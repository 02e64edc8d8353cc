"""Sessions that move from one account to another, and targets that are asked again, with real processes."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from tests.integration.test_combos import BUSY, OK, asked, make_combo
from tests.support.processes import Gateway
from tests.support.upstream import DONE, Upstream, completion, delta, finish, reply, stream

SPENT = [("x-codex-primary-used-percent", "95"), ("x-codex-primary-window-minutes", "300")]
NOTE = "The user builds a boat; the keel is laid; next: the planks."
TURNS = [
    {"role": "system", "content": "You build boats."},
    {"role": "user", "content": "Lay the keel."},
    {"role": "assistant", "content": "The keel is laid, of oak."},
    {"role": "user", "content": "Go on."},
]


@pytest.fixture
def models(gateway: Gateway, upstream: Upstream) -> list[str]:
    """Models of two providers behind one scripted upstream."""
    return [f"{gateway.add_lane(upstream).prefix}/m{at}" for at in range(2)]


def say(gateway: Gateway, model: str, session: str, **fields: Any) -> Any:
    body = {"model": model, "messages": TURNS, **fields}
    return gateway.caller.post("/v1/chat/completions", json=body, headers={"x-session-id": session})


def system_of(seen: Any) -> list[str]:
    return [turn["content"] for turn in seen.json()["messages"] if turn["role"] == "system"]


def test_a_session_takes_a_note_to_its_next_account(
    gateway: Gateway, models: list[str], upstream: Upstream
) -> None:
    name = make_combo(gateway, *models, strategy="context-relay")
    session = secrets.token_hex(4)
    upstream.script(reply(completion("done"), headers=SPENT), model="m0")
    assert say(gateway, name, session).status_code == 200
    assert asked(upstream) == ["m0"]

    # The first account is nearly spent: the second one writes the note, then answers with it.
    upstream.script(reply(completion(NOTE)), OK, model="m1")
    moved = say(gateway, name, session)
    assert moved.status_code == 200, moved.text
    assert asked(upstream) == ["m0", "m1", "m1"]
    question, told = upstream.requests[1:]
    assert "The keel is laid, of oak." in question.json()["messages"][1]["content"]
    assert "You build boats." not in question.body.decode(), "instructions are no part of a note"
    assert system_of(told)[0] == "You build boats."
    assert NOTE in system_of(told)[1]
    assert [turn for turn in told.json()["messages"] if turn["role"] != "system"] == TURNS[1:]

    # Later turns carry the same note and ask for none.
    streamed = stream(delta("on"), finish(), DONE)
    upstream.script(streamed, model="m1")
    assert say(gateway, name, session, stream=True).status_code == 200
    assert len(upstream.requests) == 4
    assert system_of(upstream.last) == system_of(told)

    # Another session begins with whom there is room, and has no note.
    assert say(gateway, name, secrets.token_hex(4)).status_code == 200
    assert system_of(upstream.last) == ["You build boats."]

    record = gateway.record(moved.headers["x-gateway-request-id"])
    assert (record["attempts"], record["tokensInput"]) == (2, 14), "the note is paid for"


def test_a_named_model_writes_the_note_and_its_failure_is_no_failure(
    gateway: Gateway, models: list[str], upstream: Upstream
) -> None:
    writer = models[1].replace("m1", "writer")
    config = {"handoffModel": writer, "handoffThreshold": 0.5}
    name = make_combo(gateway, *models, strategy="context-relay", config=config)
    upstream.script(reply(completion("done"), headers=SPENT), model="m0")
    upstream.script(BUSY, reply(completion(NOTE)), model="writer")
    session = secrets.token_hex(4)
    assert say(gateway, name, session).status_code == 200
    answer = say(gateway, name, session)
    assert answer.status_code == 200, answer.text
    assert asked(upstream) == ["m0", "writer", "m1"]
    assert system_of(upstream.last) == ["You build boats."], (
        "without a note it goes on all the same"
    )


def test_messages_of_anthropic_get_the_note_in_their_own_form(
    gateway: Gateway, models: list[str], upstream: Upstream
) -> None:
    name = make_combo(gateway, *models, strategy="context-relay")
    upstream.script(reply(completion("done"), headers=SPENT), model="m0")
    upstream.script(reply(completion(NOTE)), OK, model="m1")
    body = {"model": name, "max_tokens": 50, "system": "You build boats.", "messages": TURNS[1:]}
    headers = {"x-session-id": secrets.token_hex(4)}
    for _ in range(2):
        answer = gateway.caller.post("/v1/messages", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
    told = "\n".join(system_of(upstream.last))
    assert told.startswith("You build boats.")
    assert NOTE in told


def test_a_target_is_asked_again_before_the_next(
    gateway: Gateway, models: list[str], upstream: Upstream
) -> None:
    name = make_combo(gateway, *models, config={"maxRetries": 1, "retryDelayMs": 10})
    upstream.script(BUSY, OK, model="m0")
    answer = gateway.caller.post(
        "/v1/chat/completions", json={"model": name, "messages": TURNS[1:]}
    )
    assert answer.status_code == 200, answer.text
    assert asked(upstream) == ["m0", "m0"]
    assert answer.headers["x-gateway-fallback-attempts"] == "1"
