"""Cohere's chat, version 2, from every dialect. Bodies and events are those of Cohere's API description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
from google import genai

from tests.support.clouds import connect
from tests.support.processes import Gateway, expect
from tests.support.sdk_clients import anthropic_client, genai_client, openai_client
from tests.support.upstream import Step, Upstream, completion, event, reply, stream

KEY = "cohere-key-canary"
MODEL = "command-a-03-2025"
REASONS = "command-a-plus-05-2026"
SAY: list[Any] = [{"role": "user", "content": "hello"}]
USAGE = {
    "billed_units": {"input_tokens": 9, "output_tokens": 2},
    "tokens": {"input_tokens": 70, "output_tokens": 4},
    "cached_tokens": 3,
}
CALL = {
    "id": "f_1",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"place":"Oslo"}'},
}
TOOL = {
    "type": "function",
    "function": {"name": "weather", "description": "Weather", "parameters": {"type": "object"}},
}


@pytest.fixture
def up() -> Iterator[Upstream]:
    with Upstream() as running:
        yield running


@pytest.fixture(autouse=True)
def cohere(gateway: Gateway, up: Upstream) -> None:
    connect(gateway, "cohere", f"http://127.0.0.1:{up.port}", apiKey=KEY)


@pytest.fixture
def openais(gateway: Gateway) -> Iterator[openai.OpenAI]:
    with openai_client(gateway) as made:
        yield made


@pytest.fixture
def anthropics(gateway: Gateway) -> Iterator[anthropic.Anthropic]:
    with anthropic_client(gateway) as made:
        yield made


@pytest.fixture
def gemini(gateway: Gateway) -> Iterator[genai.Client]:
    made = genai_client(gateway)
    yield made
    made.close()


def answered(reason: str = "COMPLETE", **message: Any) -> list[Step]:
    return reply(
        {
            "id": "own-id",
            "finish_reason": reason,
            "message": {"role": "assistant", **message},
            "usage": USAGE,
        }
    )


def texts(*words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": word} for word in words]


def told(kind: str, **members: Any) -> bytes:
    return b"event: " + kind.encode() + b"\n" + event({"type": kind, **members})


def streamed(reason: str = "TOOL_CALL") -> list[Step]:
    def message(**members: Any) -> dict[str, Any]:
        return {"message": members}

    start = {"id": "f_1", "type": "function", "function": {"name": "weather", "arguments": ""}}
    return stream(
        told(
            "message-start", id="own-id", delta=message(role="assistant", content=[], tool_calls=[])
        ),
        told("tool-plan-delta", delta=message(tool_plan="I will look.")),
        told("content-start", index=0, delta=message(content={"type": "text", "text": ""})),
        told("content-delta", index=0, delta=message(content={"text": "hel"})),
        told("content-delta", index=0, delta=message(content={"text": "lo"})),
        told("content-end", index=0),
        told("tool-call-start", index=0, delta=message(tool_calls=start)),
        told(
            "tool-call-delta",
            index=0,
            delta=message(tool_calls={"function": {"arguments": '{"place":'}}),
        ),
        told(
            "tool-call-delta",
            index=0,
            delta=message(tool_calls={"function": {"arguments": '"Oslo"}'}}),
        ),
        told("tool-call-end", index=0),
        told("message-end", delta={"finish_reason": reason, "usage": USAGE}),
    )


def test_a_chat_of_each_dialect(
    up: Upstream, openais: openai.OpenAI, anthropics: anthropic.Anthropic, gemini: genai.Client
) -> None:
    up.script(answered(content=texts("hi")))
    name = f"cohere/{MODEL}"
    chat = openais.chat.completions.create(model=name, messages=SAY)
    assert up.last.target == "/v2/chat"
    assert up.last.bearer == KEY
    assert up.last.header("anthropic-version") is None
    assert up.last.json() == {"model": MODEL, "messages": SAY}
    assert (chat.choices[0].message.content, chat.choices[0].finish_reason) == ("hi", "stop")
    assert chat.usage is not None
    assert (chat.usage.prompt_tokens, chat.usage.completion_tokens) == (9, 2)
    assert chat.usage.prompt_tokens_details is not None
    assert chat.usage.prompt_tokens_details.cached_tokens == 3

    response = openais.responses.create(model=name, input="hello")
    assert (response.output_text, up.last.json()["messages"]) == ("hi", SAY)

    message = anthropics.messages.create(
        model=name, max_tokens=5, messages=SAY, extra_headers={"anthropic-beta": "x-2025-01-01"}
    )
    assert (message.content[0].text, message.usage.input_tokens) == ("hi", 6)
    assert up.last.json() == {"model": MODEL, "messages": SAY, "max_tokens": 5}
    assert up.last.header("anthropic-beta") is None

    generated = gemini.models.generate_content(model=f"models/{name}", contents="hello")
    assert (generated.text, up.last.json()["messages"]) == ("hi", SAY)


def test_a_stream_of_each_dialect(
    up: Upstream, openais: openai.OpenAI, anthropics: anthropic.Anthropic, gemini: genai.Client
) -> None:
    up.script(streamed())
    name = f"cohere/{MODEL}"
    options: Any = {"include_usage": True}
    chunks = list(
        openais.chat.completions.create(
            model=name, messages=SAY, tools=[TOOL], stream=True, stream_options=options
        )
    )
    assert up.last.json()["stream"] is True
    said = "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)
    calls = [c for one in chunks if one.choices for c in one.choices[0].delta.tool_calls or ()]
    arguments = "".join(c.function.arguments or "" for c in calls if c.function)
    assert (said, arguments) == ("hello", '{"place":"Oslo"}')
    assert calls[0].id == "f_1"
    assert [one.choices[0].finish_reason for one in chunks if one.choices][-1] == "tool_calls"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.prompt_tokens == 9

    with anthropics.messages.stream(model=name, max_tokens=5, messages=SAY) as running:
        message = running.get_final_message()
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
    assert (message.id, message.stop_reason) == ("own-id", "tool_use")

    events = list(openais.responses.create(model=name, input="hello", stream=True))
    assert events[-1].type == "response.completed"
    parts = list(gemini.models.generate_content_stream(model=f"models/{name}", contents="hello"))
    assert "".join(one.text or "" for one in parts) == "hello"


def test_a_conversation_with_tools(up: Upstream, openais: openai.OpenAI) -> None:
    up.script(answered("TOOL_CALL", tool_plan="I will look.", tool_calls=[CALL]))
    name = f"cohere/{MODEL}"
    first = openais.chat.completions.create(
        model=name, messages=SAY, tools=[TOOL], tool_choice="required"
    )
    assert up.last.json()["tool_choice"] == "REQUIRED"
    assert up.last.json()["tools"] == [TOOL]
    assert first.choices[0].finish_reason == "tool_calls"

    up.script(answered(content=texts("sunny")))
    turns = [
        *SAY,
        first.choices[0].message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": "f_1", "content": "sun"},
    ]
    second = openais.chat.completions.create(model=name, messages=turns, tools=[TOOL])
    assert second.choices[0].message.content == "sunny"
    assert up.last.json()["messages"][1:] == [
        {"role": "assistant", "tool_plan": "I will look.", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "f_1", "content": "sun"},
    ]


def test_reasoning_comes_and_goes_back(up: Upstream, anthropics: anthropic.Anthropic) -> None:
    thought = {"type": "thinking", "thinking": "hm"}
    up.script(answered(content=[thought, *texts("hi")]))
    name = f"cohere/{REASONS}"
    asked: Any = {"type": "enabled", "budget_tokens": 1024}
    message = anthropics.messages.create(model=name, max_tokens=2048, messages=SAY, thinking=asked)
    assert up.last.json()["thinking"] == {"type": "enabled"}
    assert [block.type for block in message.content] == ["thinking", "text"]

    more: Any = [
        *SAY,
        {"role": "assistant", "content": [block.model_dump() for block in message.content]},
        {"role": "user", "content": "and?"},
    ]
    anthropics.messages.create(model=name, max_tokens=2048, messages=more)
    assert up.last.json()["messages"][1] == {
        "role": "assistant",
        "content": [thought, *texts("hi")],
    }


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("MAX_TOKENS", "length"), ("STOP_SEQUENCE", "stop"), ("COMPLETE", "stop")],
)
def test_reasons_of_an_end(up: Upstream, openais: openai.OpenAI, reason: str, finish: str) -> None:
    up.script(answered(reason, content=texts("hi")))
    answer = openais.chat.completions.create(model=f"cohere/{MODEL}", messages=SAY)
    assert answer.choices[0].finish_reason == finish


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_failed_is_an_error(
    up: Upstream, openais: openai.OpenAI, *, stream: bool
) -> None:
    up.script(streamed("ERROR") if stream else answered("ERROR", content=texts("hi")))
    with pytest.raises(openai.APIError):
        list(openais.chat.completions.create(model=f"cohere/{MODEL}", messages=SAY, stream=stream))


def test_a_stream_that_breaks_off_is_an_error(up: Upstream, openais: openai.OpenAI) -> None:
    steps = streamed()
    up.script([*steps[:4], steps[-1]])
    with pytest.raises(openai.APIError):
        list(openais.chat.completions.create(model=f"cohere/{MODEL}", messages=SAY, stream=True))


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (
            400,
            "too many tokens: total number of tokens in the prompt is too large",
            "context_length_exceeded",
        ),
        (422, "invalid request: tools[0] is wrong", None),
    ],
)
def test_an_error_of_cohere_is_told(
    up: Upstream, openais: openai.OpenAI, status: int, message: str, code: str | None
) -> None:
    up.script(reply({"id": "x", "message": message}, status))
    with pytest.raises(openai.APIStatusError, match=message[:20]) as raised:
        openais.chat.completions.create(model=f"cohere/{MODEL}", messages=SAY)
    assert (raised.value.status_code, raised.value.code) == (status, code)


def test_a_body_that_cohere_calls_invalid_goes_to_the_next_target(
    up: Upstream, upstream: Upstream, gateway: Gateway, anthropics: anthropic.Anthropic
) -> None:
    """The gateway writes every body for Cohere, also for callers of the dialect in which its answers are read."""
    lane = gateway.add_lane(upstream)
    up.script(reply({"message": "invalid request: message must be at least 1 token"}, status=400))
    upstream.script(reply(completion("from the next")))
    combo = {"name": "behind-cohere", "models": [f"cohere/{MODEL}", lane.model]}
    expect(gateway.admin.post("/api/combos", json=combo), 201)
    answer = anthropics.messages.create(
        model="combo/behind-cohere", max_tokens=9, messages=[{"role": "user", "content": "hello"}]
    )
    assert answer.content[0].text == "from the next"


def test_what_cohere_cannot_say_is_refused_or_left_out(
    up: Upstream, openais: openai.OpenAI
) -> None:
    up.script(answered(content=texts("hi")))
    name = f"cohere/{MODEL}"
    raw = openais.chat.completions.with_raw_response.create(
        model=name, messages=SAY, user="u", presence_penalty=-1
    )
    assert raw.headers["x-gateway-left-out"] == "presence_penalty, user"
    with pytest.raises(openai.BadRequestError, match="parallel_tool_calls"):
        openais.chat.completions.create(
            model=name, messages=SAY, tools=[TOOL], parallel_tool_calls=False
        )


def test_other_calls_keep_their_addresses(up: Upstream, gateway: Gateway) -> None:
    up.script(
        reply({"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}]})
    )
    asked = {"model": "cohere/embed-v4.0", "input": "hello"}
    assert gateway.caller.post("/v1/embeddings", json=asked).status_code == 200
    assert up.last.target == "/compatibility/v1/embeddings"
    up.script(reply({"results": [{"index": 0, "relevance_score": 0.5}]}))
    ranked = {"model": "cohere/rerank-v3.5", "query": "q", "documents": ["a"]}
    assert gateway.caller.post("/v1/rerank", json=ranked).status_code == 200
    assert up.last.target == "/v2/rerank"
