"""The official `google-genai` client begins, reads, cancels and deletes interactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jwt
import openai
import pytest
import standardwebhooks

from tests.support.listener import Listener
from tests.support.polling import holds_for
from tests.support.processes import Gateway
from tests.support.sdk_clients import GenaiCaller


@pytest.fixture(params=["gemini", "openai"])
def model(request: pytest.FixtureRequest, loopback_standin: dict[str, str]) -> str:
    return f"{loopback_standin[request.param]}/standin"


def begin(caller: GenaiCaller, **ask: Any) -> Any:
    return caller.genai.interactions.create(background=True, **ask)


@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_an_interaction_is_answered_and_told_of(
    callers: Callable[..., GenaiCaller], listener: Listener, model: str, version: str
) -> None:
    caller, stranger = callers(version), callers(version)
    webhook = caller.add_webhook(f"{listener.url}/ok")
    made = begin(
        caller,
        model=model,
        input="Say hello.",
        system_instruction="Be brief.",
        generation_config={"temperature": 0.2, "thinking_level": "low"},
        labels={"a": "b"},
    )
    assert made.status in {"queued", "in_progress"}
    done = caller.ended_interaction(made.id)
    assert (done.status, done.model, done.labels) == ("completed", model, {"a": "b"})
    assert "Say hello." in done.output_text
    assert done.usage.total_tokens == done.usage.total_input_tokens + done.usage.total_output_tokens
    (told,) = listener.wait_for()
    assert (told.event["type"], told.event["data"]) == ("interaction.completed", {"id": made.id})
    standardwebhooks.Webhook(webhook.new_signing_secret).verify(told.body, told.headers)
    with pytest.raises(Exception, match="no response"):
        stranger.genai.interactions.get(made.id)
    # It stays as it is.
    assert caller.genai.interactions.cancel(made.id).status == "completed"
    caller.genai.interactions.delete(made.id)
    with pytest.raises(Exception, match="no response"):
        caller.genai.interactions.get(made.id)


def test_a_function_is_called_and_its_result_taken(
    callers: Callable[..., GenaiCaller], listener: Listener, model: str
) -> None:
    """It waits for its caller, who goes on with another interaction."""
    caller = callers()
    caller.add_webhook(f"{listener.url}/ok")
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tools = [{"type": "function", "name": "weather", "parameters": schema}]
    made = begin(caller, model=model, input="Weather?", tools=tools)
    done = caller.ended_interaction(made.id)
    assert done.status == "requires_action"
    (call,) = [step for step in done.steps if step.type == "function_call"]
    assert call.name == "weather"
    assert set(call.arguments) == {"city"}
    result = {"type": "function_result", "call_id": call.id, "result": "21 degrees"}
    continued = begin(
        caller,
        model=model,
        input=[result],
        tools=tools,
        previous_interaction_id=made.id,
        generation_config={"tool_choice": "none"},
    )
    following = caller.ended_interaction(continued.id)
    assert following.status == "completed"
    assert following.previous_interaction_id == made.id
    types_told = {one.event["data"]["id"]: one.event["type"] for one in listener.wait_for(count=2)}
    assert types_told == {
        made.id: "interaction.requires_action",
        following.id: "interaction.completed",
    }


def test_its_own_listeners_get_a_token(
    callers: Callable[..., GenaiCaller], loopback_gateway: Gateway, listener: Listener, model: str
) -> None:
    """Of a failure and of a cancellation, in the place of the key's webhooks."""
    caller = callers()
    caller.add_webhook(f"{listener.url}/ok")
    uri = f"{listener.url}/status/200"
    hooks = {"uris": [uri], "user_metadata": {"order": 7}}
    failed = begin(caller, model=f"{model}@status=400", input="x", webhook_config=hooks)
    assert caller.ended_interaction(failed.id).status == "failed"
    slow = begin(caller, model=f"{model}@latency_ms=20000", input="x", webhook_config=hooks)
    assert caller.genai.interactions.cancel(slow.id).status == "cancelled"
    told = {one.event["data"]["id"]: one for one in listener.wait_for("/status/200", 2)}
    assert told[failed.id].event["type"] == "interaction.failed"
    assert set(told[failed.id].event["data"]) == {"id", "error_code", "error_message"}
    assert told[slow.id].event["type"] == "interaction.cancelled"
    keys = jwt.PyJWKClient(f"{loopback_gateway.url}/.well-known/jwks.json")
    for one in told.values():
        assert one.event["user_metadata"] == {"order": 7}
        token = one.headers["webhook-signature"]
        key = keys.get_signing_key_from_jwt(token).key
        jwt.decode(token, key, algorithms=["RS256"], audience=uri)
    assert listener.received("/ok") == []


def test_steps_contents_and_a_schema(callers: Callable[..., GenaiCaller], model: str) -> None:
    caller = callers()
    pixel = "iVBORw0KGgo="
    contents = [
        {"type": "text", "text": "What is this?"},
        {"type": "image", "data": pixel, "mime_type": "image/png"},
    ]
    steps = [
        {"type": "user_input", "content": [{"type": "text", "text": "one"}]},
        {"type": "model_output", "content": [{"type": "text", "text": "two"}]},
        {"type": "user_input", "content": [{"type": "text", "text": "three"}]},
    ]
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    form = {"type": "text", "mime_type": "application/json", "schema": schema}
    seen = begin(caller, model=model, input=contents)
    went = begin(caller, model=model, input=steps)
    shaped = begin(caller, model=model, input="x", response_format=form)
    assert "What is this?" in caller.ended_interaction(seen.id).output_text
    assert "three" in caller.ended_interaction(went.id).output_text
    assert '"n"' in caller.ended_interaction(shaped.id).output_text


def test_a_response_in_the_background_is_told_of_to_nobody(
    callers: Callable[..., GenaiCaller], listener: Listener, model: str
) -> None:
    """OpenAI's words have no webhooks of this kind; yet what was begun in them is read in Google's."""
    caller = callers()
    caller.add_webhook(f"{listener.url}/ok")
    with openai.OpenAI(base_url=f"{caller.gateway.url}/v1", api_key=caller.key) as client:
        made = client.responses.create(model=model, input="x", background=True)
    assert caller.ended_interaction(made.id).status == "completed"
    holds_for(lambda: listener.count() == 0, "nobody is told", for_s=1.0, every_s=0.1)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({}, "model is required"),
        ({"background": None}, "background"),
        ({"store": False}, "store must be true"),
        ({"stream": True}, "stream must be false"),
        ({"input": []}, "input must not be empty"),
        ({"input": [{"type": "audio", "data": ""}]}, "input[0].type must be text"),
        ({"input": [{"type": "google_search_call"}]}, "input[0].type must be user_input"),
        ({"tools": [{"type": "google_search"}]}, "tools[0]"),
        ({"agent": "deep-research"}, "agent is not a field"),
        ({"generation_config": {"seed": 1}}, "generation_config.seed is not a field"),
        ({"webhook_config": {"uris": ["ftp://203.0.113.7/"]}}, "webhook_config.uris[0]"),
    ],
)
def test_what_there_is_no_word_for_is_refused(
    callers: Callable[..., GenaiCaller], sent: dict[str, Any], said: str
) -> None:
    body = {"model": "a/b", "input": "x", "background": True, **sent} if sent else {}
    answer = callers().plain.post("/v1beta/interactions", json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["status"]) == (400, "INVALID_ARGUMENT"), answer.text
    assert said in error["message"].replace("generationConfig", "generation_config")


def test_an_interaction_without_background_is_answered_at_its_end(
    callers: Callable[..., GenaiCaller], model: str
) -> None:
    """It is stored, and the next one continues it."""
    caller = callers()
    made = caller.genai.interactions.create(model=model, input="hello there")
    assert made.status == "completed"
    assert "hello there" in made.output_text
    assert caller.genai.interactions.get(made.id).status == "completed"
    after = caller.genai.interactions.create(
        model=model, input="and then", previous_interaction_id=made.id
    )
    assert after.status == "completed"
