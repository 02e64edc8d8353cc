"""The official `openai` client works through the gateway as it does at the provider itself."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pydantic import BaseModel

from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane
from tests.support.sdks import openai
from tests.support.upstream import (
    CLOSE,
    DONE,
    RESET,
    SSE_HEAD,
    STALL,
    ClosedPort,
    Script,
    Upstream,
    chunk,
    completion,
    delta,
    event,
    reply,
    stream,
)

MESSAGES: Any = [{"role": "user", "content": "Say hello."}]
WEATHER_TOOL: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


# --------------------------------------------------------------------------- against the stand-in


def test_a_plain_completion(client: openai.OpenAI, model: str) -> None:
    """Text, usage and the gateway's headers are where the client looks for them."""
    raw = client.chat.completions.with_raw_response.create(model=model, messages=MESSAGES)
    answer = raw.parse()
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert str(answer.usage.prompt_tokens) == raw.headers["x-gateway-tokens-in"]
    assert str(answer.usage.completion_tokens) == raw.headers["x-gateway-tokens-out"]


def test_a_stream_says_what_the_plain_answer_says(client: openai.OpenAI, model: str) -> None:
    """The pieces of the stream, joined, are the plain answer; no piece is without choices."""
    plain = (
        client.chat.completions.create(model=model, messages=MESSAGES).choices[0].message.content
    )
    with client.chat.completions.create(model=model, messages=MESSAGES, stream=True) as pieces:
        got = list(pieces)
    assert "".join(piece.choices[0].delta.content or "" for piece in got) == plain
    assert got[-1].choices[0].finish_reason == "stop"


def test_a_stream_with_usage(client: openai.OpenAI, model: str) -> None:
    """Asked for, usage comes as the last piece."""
    options: Any = {"include_usage": True}
    with client.chat.completions.create(
        model=model, messages=MESSAGES, stream=True, stream_options=options
    ) as pieces:
        *_, last = pieces
    assert last.choices == []
    assert last.usage is not None
    assert last.usage.completion_tokens > 0


def test_the_async_client(gateway: Gateway, model: str) -> None:
    """Twenty plain and twenty streamed calls at once on one asynchronous client."""

    async def run() -> list[str | BaseException]:
        async with openai.AsyncOpenAI(
            base_url=f"{gateway.url}/v1", api_key=gateway.key, max_retries=0
        ) as client:

            async def plain() -> str:
                answer = await client.chat.completions.create(
                    model=f"{model.removesuffix('standin')}echo", messages=MESSAGES
                )
                return answer.choices[0].message.content or ""

            async def streamed() -> str:
                text = ""
                async with await client.chat.completions.create(
                    model=f"{model.removesuffix('standin')}echo", messages=MESSAGES, stream=True
                ) as pieces:
                    async for piece in pieces:
                        text += piece.choices[0].delta.content or ""
                return text

            calls = [work() for work in [plain, streamed] * 20]
            return await asyncio.gather(*calls, return_exceptions=True)

    assert [one for one in asyncio.run(run()) if one != "Say hello."] == []


@pytest.mark.parametrize("streamed", (False, True), ids=("plain", "streamed"))
def test_tools(client: openai.OpenAI, model: str, streamed: bool) -> None:
    """A tool is called with arguments that are JSON, and its result is taken."""
    if streamed:
        with client.chat.completions.stream(
            model=model, messages=MESSAGES, tools=[WEATHER_TOOL]
        ) as pieces:
            message = pieces.get_final_completion().choices[0].message
    else:
        message = (
            client.chat.completions.create(model=model, messages=MESSAGES, tools=[WEATHER_TOOL])
            .choices[0]
            .message
        )
    assert message.tool_calls
    (call,) = message.tool_calls
    assert call.type == "function"
    assert call.function.name == "weather"
    assert "city" in json.loads(call.function.arguments)
    result: Any = {"role": "tool", "tool_call_id": call.id, "content": "21 degrees"}
    asked: Any = message.model_dump(exclude_none=True, exclude={"parsed"})
    for one in asked["tool_calls"]:
        one["function"].pop("parsed_arguments", None)
    last = client.chat.completions.create(
        model=model, messages=[*MESSAGES, asked, result], tools=[WEATHER_TOOL]
    )
    assert "21 degrees" in (last.choices[0].message.content or "")


class Person(BaseModel):
    name: str
    age: int


def test_response_format(client: openai.OpenAI, model: str) -> None:
    """A schema goes to the provider and comes back as an object of the class."""
    answer = client.chat.completions.parse(model=model, messages=MESSAGES, response_format=Person)
    assert isinstance(answer.choices[0].message.parsed, Person)
    loose = client.chat.completions.create(
        model=model, messages=MESSAGES, response_format={"type": "json_object"}
    )
    assert isinstance(json.loads(loose.choices[0].message.content or ""), dict)


def test_models(client: openai.OpenAI, gateway: Gateway, upstream: Upstream) -> None:
    """The list has the models of active connections, and each of them can be asked for by its name."""
    specific = {"baseUrl": upstream.url}
    connection = gateway.add_connection("openai", "sk-openai-canary", providerSpecificData=specific)
    try:
        listed = {model.id for model in client.models.list()}
        assert "openai/gpt-4o" in listed
        one = client.models.retrieve("openai/gpt-4o")
        assert one.id == "openai/gpt-4o"
        answer = client.chat.completions.create(model=one.id, messages=MESSAGES)
        assert answer.choices[0].message.content == "hello"
        assert upstream.last.json()["model"] == "gpt-4o"
    finally:
        gateway.admin.delete(f"/api/providers/{connection['id']}")
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("openai/no-such-model")


# ----------------------------------------------------------------------- errors, by what they are


def test_errors_of_the_gateway(client: openai.OpenAI, gateway: Gateway, lane: Lane) -> None:
    """What the gateway refuses is raised as the exception that the client has for it."""
    create: Any = client.chat.completions.create
    with pytest.raises(openai.AuthenticationError) as unauthenticated:
        client.with_options(api_key="sk-fl-wrong").chat.completions.create(
            model=lane.model, messages=MESSAGES
        )
    assert unauthenticated.value.code == "unauthenticated"
    with pytest.raises(openai.NotFoundError) as unknown:
        create(model="nobody/m", messages=MESSAGES)
    assert unknown.value.code == "model_not_found"
    assert unknown.value.param == "model"
    with pytest.raises(openai.BadRequestError) as invalid:
        create(model=lane.model, messages=[])
    assert invalid.value.param == "messages"
    blocked = gateway.create_key(name="blocked", blockedModels=["*"])
    with pytest.raises(openai.PermissionDeniedError) as forbidden:
        client.with_options(api_key=blocked["key"]).chat.completions.create(
            model=lane.model, messages=MESSAGES
        )
    assert forbidden.value.code == "forbidden"
    assert lane.upstream.requests == []


ERRORS: dict[str, tuple[Script, type[openai.APIStatusError], str]] = {
    "the request is wrong": (
        reply({"error": {"message": "too long", "code": "context_length_exceeded"}}, 400),
        openai.BadRequestError,
        "context_length_exceeded",
    ),
    "it cannot be processed": (
        reply({"error": {"message": "no", "code": "bad_tool"}}, 422),
        openai.UnprocessableEntityError,
        "bad_tool",
    ),
    "rate limit": (
        reply({}, 429, [("Retry-After", "9")]),
        openai.RateLimitError,
        "upstream_rate_limited",
    ),
    "our credential is refused": (reply({}, 401), openai.InternalServerError, "upstream_auth"),
    "failure": (reply({}, 500), openai.InternalServerError, "upstream_status"),
    "overload": (reply({}, 529), openai.InternalServerError, "upstream_overloaded"),
    "HTML": (
        reply(b"<html>", content_type="text/html"),
        openai.InternalServerError,
        "upstream_invalid",
    ),
    "closed": ([CLOSE], openai.InternalServerError, "upstream_reset"),
    "reset": ([RESET], openai.InternalServerError, "upstream_reset"),
}


@pytest.mark.parametrize("streamed", (False, True), ids=("plain", "streamed"))
@pytest.mark.parametrize(("script", "exception", "code"), ERRORS.values(), ids=ERRORS.keys())
def test_errors_of_the_provider(
    client: openai.OpenAI,
    lane: Lane,
    script: Script,
    exception: type[openai.APIStatusError],
    code: str,
    streamed: bool,
) -> None:
    """Each failure of a provider is raised as one exception class, with the code in `error.code`."""
    lane.upstream.script(script)
    with pytest.raises(exception) as raised:
        client.chat.completions.create(model=lane.model, messages=MESSAGES, stream=streamed)
    assert raised.value.code == code
    if exception is openai.RateLimitError:
        assert raised.value.response.headers["retry-after"] == "9"


def test_nobody_listens(client: openai.OpenAI, gateway: Gateway, upstream: Upstream) -> None:
    with ClosedPort() as closed:
        lane = gateway.add_lane(upstream, base_url=f"http://127.0.0.1:{closed.port}/v1")
        with pytest.raises(openai.InternalServerError) as raised:
            client.chat.completions.create(model=lane.model, messages=MESSAGES)
    assert raised.value.code == "upstream_refused"


BROKEN: dict[str, tuple[Script, str]] = {
    "cut off": ([SSE_HEAD, chunk(delta("a")), CLOSE], "upstream_reset"),
    "ended without an end": (stream(delta("a")), "upstream_reset"),
    "half an event": (stream(delta("a"), b'data: {"choi'), "upstream_reset"),
    "no object": (stream(delta("a"), event("42"), DONE), "upstream_invalid"),
}


@pytest.mark.parametrize(("script", "code"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_stream_is_raised(
    client: openai.OpenAI, lane: Lane, script: Script, code: str
) -> None:
    """The pieces that came are handed out, then the client raises: it never ends as if all were well."""
    lane.upstream.script(script)
    got: list[str | None] = []
    with (
        pytest.raises(openai.APIError) as raised,
        client.chat.completions.create(model=lane.model, messages=MESSAGES, stream=True) as pieces,
    ):
        got.extend(piece.choices[0].delta.content for piece in pieces)
    assert got == ["a"]
    assert raised.value.code == code


def test_the_client_s_own_retries_work(gateway: Gateway, upstream: Upstream) -> None:
    """A client that retries by itself is helped by the second attempt: nothing of the first lingers."""
    lane = gateway.add_lane(upstream)
    upstream.script(reply({}, 500), reply(completion("second")))
    with openai.OpenAI(
        base_url=f"{gateway.url}/v1", api_key=gateway.key, max_retries=2, timeout=15
    ) as client:
        answer = client.chat.completions.create(model=lane.model, messages=MESSAGES)
    assert answer.choices[0].message.content == "second"
    assert len(upstream.requests) == 2


def test_a_client_that_stops_reading_stops_the_provider(client: openai.OpenAI, lane: Lane) -> None:
    """Leaving the `with` of a stream closes the provider's socket."""
    lane.upstream.script([SSE_HEAD, *(chunk(delta(str(n))) for n in range(5)), STALL])
    with client.chat.completions.create(model=lane.model, messages=MESSAGES, stream=True) as pieces:
        assert next(iter(pieces)).choices[0].delta.content == "0"
    eventually(lambda: lane.upstream.last.gone_at, "the provider's socket is closed", within_s=2)
