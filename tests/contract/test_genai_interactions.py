"""The official `google-genai` client begins, reads, cancels and deletes interactions in the background."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import openai
import pytest
import standardwebhooks
from google import genai
from google.genai import types

from tests.support.dialects import standin_in_each_dialect
from tests.support.listener import Listener, Received
from tests.support.polling import eventually, holds_for
from tests.support.processes import Gateway, start_gateway

OPEN = {"FAIRLEAD_ALLOW_PRIVATE_FETCH": "127.0.0.0/8"}
WORKING = {"queued", "in_progress"}


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that may call this machine."""
    with start_gateway(tmp_path_factory.mktemp("gateway"), **OPEN) as running:
        yield running
        running.assert_keeps_secrets()


@pytest.fixture(scope="module")
def prefixes(serving: Gateway) -> Iterator[dict[str, str]]:
    with standin_in_each_dialect(serving) as found:
        yield found


@pytest.fixture(params=["gemini", "openai"])
def model(request: pytest.FixtureRequest, prefixes: dict[str, str]) -> str:
    return f"{prefixes[request.param]}/standin"


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[Listener]:
    with Listener(tmp_path) as running:
        yield running


class Caller:
    """One key, with the official client and a plain one."""

    def __init__(self, gateway: Gateway, version: str | None = None) -> None:
        self.key = gateway.create_key(name="interactions")["key"]
        options = types.HttpOptions(base_url=gateway.url, timeout=15_000, api_version=version)
        self.genai: Any = genai.Client(api_key=self.key, http_options=options, vertexai=False)
        self.plain: httpx.Client = gateway.client(headers={"x-goog-api-key": self.key})
        self.gateway = gateway

    @property
    def interactions(self) -> Any:
        return self.genai.interactions

    def begin(self, **ask: Any) -> Any:
        return self.interactions.create(background=True, **ask)

    def ended(self, made: Any) -> Any:
        def look() -> Any:
            found = self.interactions.get(made.id)
            return found if found.status not in WORKING else None

        return eventually(look, "the interaction ends", within_s=30, every_s=0.1)

    def webhook(self, url: str) -> Any:
        made = self.genai.webhooks.create(uri=url, subscribed_events=["*"])
        self.gateway.canaries.append(made.new_signing_secret)
        return made

    def close(self) -> None:
        self.genai.close()
        self.plain.close()


@pytest.fixture
def callers(serving: Gateway) -> Iterator[Callable[..., Caller]]:
    made: list[Caller] = []

    def make(version: str | None = None) -> Caller:
        made.append(Caller(serving, version))
        return made[-1]

    yield make
    for each in made:
        each.close()


def received(listener: Listener, path: str = "/ok", count: int = 1) -> list[Received]:
    def look() -> list[Received] | None:
        found = listener.received(path)
        return found if len(found) >= count else None

    return eventually(look, f"{count} deliveries to {path}", within_s=30, every_s=0.1)


@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_an_interaction_is_answered_and_told_of(
    callers: Callable[..., Caller], listener: Listener, model: str, version: str
) -> None:
    caller, stranger = callers(version), callers(version)
    webhook = caller.webhook(f"{listener.url}/ok")
    made = caller.begin(
        model=model,
        input="Say hello.",
        system_instruction="Be brief.",
        generation_config={"temperature": 0.2, "thinking_level": "low"},
        labels={"a": "b"},
    )
    assert made.status in WORKING
    done = caller.ended(made)
    assert (done.status, done.model, done.labels) == ("completed", model, {"a": "b"})
    assert "Say hello." in done.output_text
    assert done.usage.total_tokens == done.usage.total_input_tokens + done.usage.total_output_tokens
    (told,) = received(listener)
    assert (told.event["type"], told.event["data"]) == ("interaction.completed", {"id": made.id})
    standardwebhooks.Webhook(webhook.new_signing_secret).verify(told.body, told.headers)
    with pytest.raises(Exception, match="no response"):
        stranger.interactions.get(made.id)
    # It stays as it is.
    assert caller.interactions.cancel(made.id).status == "completed"
    caller.interactions.delete(made.id)
    with pytest.raises(Exception, match="no response"):
        caller.interactions.get(made.id)


def test_a_function_is_called_and_its_result_taken(
    callers: Callable[..., Caller], listener: Listener, model: str
) -> None:
    """It waits for its caller, who goes on with another interaction."""
    caller = callers()
    caller.webhook(f"{listener.url}/ok")
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tools = [{"type": "function", "name": "weather", "parameters": schema}]
    made = caller.begin(model=model, input="Weather?", tools=tools)
    done = caller.ended(made)
    assert done.status == "requires_action"
    (call,) = [step for step in done.steps if step.type == "function_call"]
    assert call.name == "weather"
    assert set(call.arguments) == {"city"}
    result = {"type": "function_result", "call_id": call.id, "result": "21 degrees"}
    following = caller.ended(
        caller.begin(
            model=model,
            input=[result],
            tools=tools,
            previous_interaction_id=made.id,
            generation_config={"tool_choice": "none"},
        )
    )
    assert following.status == "completed"
    assert following.previous_interaction_id == made.id
    types_told = {one.event["data"]["id"]: one.event["type"] for one in received(listener, count=2)}
    assert types_told == {
        made.id: "interaction.requires_action",
        following.id: "interaction.completed",
    }


def test_its_own_listeners_get_a_token(
    callers: Callable[..., Caller], serving: Gateway, listener: Listener, model: str
) -> None:
    """Of a failure and of a cancellation, in the place of the key's webhooks."""
    caller = callers()
    caller.webhook(f"{listener.url}/ok")
    uri = f"{listener.url}/status/200"
    hooks = {"uris": [uri], "user_metadata": {"order": 7}}
    failed = caller.begin(model=f"{model}@status=400", input="x", webhook_config=hooks)
    assert caller.ended(failed).status == "failed"
    slow = caller.begin(model=f"{model}@latency_ms=20000", input="x", webhook_config=hooks)
    assert caller.interactions.cancel(slow.id).status == "cancelled"
    told = {one.event["data"]["id"]: one for one in received(listener, "/status/200", 2)}
    assert told[failed.id].event["type"] == "interaction.failed"
    assert set(told[failed.id].event["data"]) == {"id", "error_code", "error_message"}
    assert told[slow.id].event["type"] == "interaction.cancelled"
    keys = jwt.PyJWKClient(f"{serving.url}/.well-known/jwks.json")
    for one in told.values():
        assert one.event["user_metadata"] == {"order": 7}
        token = one.headers["webhook-signature"]
        key = keys.get_signing_key_from_jwt(token).key
        jwt.decode(token, key, algorithms=["RS256"], audience=uri)
    assert listener.received("/ok") == []


def test_steps_contents_and_a_schema(callers: Callable[..., Caller], model: str) -> None:
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
    seen = caller.begin(model=model, input=contents)
    went = caller.begin(model=model, input=steps)
    shaped = caller.begin(model=model, input="x", response_format=form)
    assert "What is this?" in caller.ended(seen).output_text
    assert "three" in caller.ended(went).output_text
    assert '"n"' in caller.ended(shaped).output_text


def test_a_response_in_the_background_is_told_of_to_nobody(
    callers: Callable[..., Caller], listener: Listener, model: str
) -> None:
    """OpenAI's words have no webhooks of this kind; yet what was begun in them is read in Google's."""
    caller = callers()
    caller.webhook(f"{listener.url}/ok")
    with openai.OpenAI(base_url=f"{caller.gateway.url}/v1", api_key=caller.key) as client:
        made = client.responses.create(model=model, input="x", background=True)
    assert caller.ended(made).status == "completed"
    holds_for(lambda: listener.count() == 0, "nobody is told", for_s=1.0, every_s=0.1)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({}, "model is required"),
        ({"background": None}, "background"),
        ({"background": False}, "background must be true"),
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
    callers: Callable[..., Caller], sent: dict[str, Any], said: str
) -> None:
    body = {"model": "a/b", "input": "x", "background": True, **sent} if sent else {}
    answer = callers().plain.post("/v1beta/interactions", json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["status"]) == (400, "INVALID_ARGUMENT"), answer.text
    assert said in error["message"].replace("generationConfig", "generation_config")
