"""The official `google-genai` client begins, reads, cancels and deletes interactions."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jwt
import pytest
import standardwebhooks

from tests.support.listener import Listener
from tests.support.polling import holds_for
from tests.support.processes import Gateway
from tests.support.sdk_clients import GenaiCaller
from tests.support.sdks import openai


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


def stream(caller: GenaiCaller, **ask: Any) -> list[Any]:
    events = list(caller.genai.interactions.create(stream=True, **ask))
    assert not [event for event in events if getattr(event, "is_unknown", False)]
    return events


@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_an_interaction_is_streamed(
    callers: Callable[..., GenaiCaller], model: str, version: str
) -> None:
    caller = callers(version)
    events = stream(caller, model=model, input="hello there")
    kinds = [event.event_type for event in events]
    assert (kinds[0], kinds[-1]) == ("interaction.created", "interaction.completed")
    assert kinds.index("step.start") < kinds.index("step.delta") < kinds.index("step.stop")
    assert kinds.count("step.start") == kinds.count("step.stop")
    deltas = [event.delta for event in events if event.event_type == "step.delta"]
    text = "".join(delta.text for delta in deltas if delta.type == "text")
    assert "hello there" in text
    done = events[-1].interaction
    assert (done.id, done.status, done.model) == (events[0].interaction.id, "completed", model)
    assert done.usage.total_tokens > 0
    # It is stored, and the next one continues it.
    stored = caller.genai.interactions.get(done.id)
    assert stored.output_text == text
    after = stream(caller, model=model, input="and then", previous_interaction_id=done.id)
    assert after[-1].interaction.status == "completed"


@pytest.mark.anyio
async def test_an_interaction_is_streamed_to_the_asynchronous_client(
    callers: Callable[..., GenaiCaller], model: str
) -> None:
    caller = callers()
    events = [
        event.event_type
        async for event in await caller.genai.aio.interactions.create(
            model=model, input="hello there", stream=True
        )
    ]
    assert (events[0], events[-1]) == ("interaction.created", "interaction.completed")


def test_a_call_of_a_function_is_streamed(callers: Callable[..., GenaiCaller], model: str) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tools = [{"type": "function", "name": "weather", "parameters": schema}]
    events = stream(callers(), model=model, input="Weather?", tools=tools)
    (start,) = [
        event
        for event in events
        if event.event_type == "step.start" and event.step.type == "function_call"
    ]
    assert (start.step.name, start.step.arguments) == ("weather", {})
    pieces = [
        event.delta.arguments
        for event in events
        if event.event_type == "step.delta" and event.index == start.index
    ]
    assert set(json.loads("".join(pieces))) == {"city"}
    done = events[-1].interaction
    assert done.status == "requires_action"
    (call,) = [step for step in done.steps if step.type == "function_call"]
    assert (call.id, set(call.arguments)) == (start.step.id, {"city"})


# What docs/how-to/grow.md says of several nodes.
@pytest.mark.one_node(
    reason="a background response is streamed while it lasts by the node that works on it"
)
def test_a_stream_is_resumed_after_an_event(
    callers: Callable[..., GenaiCaller], model: str
) -> None:
    """While it runs in the background, and when it has ended."""
    caller, stranger = callers(), callers()
    first = caller.genai.interactions.create(
        model=f"{model}@latency_ms=1000", input="one two three", stream=True, background=True
    )
    created = next(iter(first))
    first.close()
    interaction_id = created.interaction.id
    resume = caller.genai.interactions.get

    def read(**how: Any) -> list[Any]:
        return list(resume(interaction_id, stream=True, **how))

    running = read(last_event_id=created.event_id)
    assert running[0].event_type != "interaction.created"
    assert running[-1].interaction.status == "completed"
    whole = read()
    assert [event.event_id for event in whole[1:]] == [event.event_id for event in running]
    middle = len(whole) // 2
    rest = read(last_event_id=whole[middle].event_id)
    assert [event.event_id for event in rest] == [event.event_id for event in whole[middle + 1 :]]
    with pytest.raises(Exception, match="no response"):
        list(stranger.genai.interactions.get(interaction_id, stream=True))
    with pytest.raises(Exception, match="last_event_id"):
        read(last_event_id="x")


def test_a_stream_ends_with_the_error_and_with_a_cancellation(
    callers: Callable[..., GenaiCaller], model: str
) -> None:
    caller = callers()
    failed = stream(caller, model=f"{model}@status=400", input="x")
    assert [event.event_type for event in failed[-2:]] == ["error", "interaction.completed"]
    assert failed[-2].error.message
    assert failed[-1].interaction.status == "failed"
    slow = caller.genai.interactions.create(
        model=f"{model}@latency_ms=20000", input="x", stream=True, background=True
    )
    events = iter(slow)
    interaction_id = next(events).interaction.id
    assert caller.genai.interactions.cancel(interaction_id).status == "cancelled"
    last = list(events)[-1]
    assert (last.event_type, last.interaction.status) == ("interaction.completed", "cancelled")
