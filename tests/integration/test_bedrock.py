"""Amazon Bedrock: Claude by `InvokeModel`, the newest models of OpenAI by their own API, and every other model by
`Converse`, over one connection. The address of Claude is compared with that of Anthropic's own client, and signatures
are computed again by the standard's words.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import anthropic
import openai
import pytest

from tests.integration.test_credentials import SECRET, signed_again
from tests.support.clouds import (
    amazon_stream,
    connect,
    converse_event,
    exception,
    host,
    invoke_chunk,
)
from tests.support.processes import Gateway
from tests.support.upstream import Upstream, completion, reply

KEY = "bedrock-api-key-canary"
KEYS = {"accessKeyId": "AKIDEXAMPLE", "secretAccessKey": SECRET}
CLAUDE = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"
NOVA = "eu.amazon.nova-pro-v1:0"
SAY: list[Any] = [{"role": "user", "content": "hello"}]
MESSAGE = {
    "id": "msg_bdrk_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5-20250929",
    "content": [{"type": "text", "text": "hi"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 9, "output_tokens": 2},
}
USAGE = {
    "inputTokens": 9,
    "outputTokens": 2,
    "totalTokens": 16,
    "cacheReadInputTokens": 3,
    "cacheWriteInputTokens": 2,
    "cacheDetails": [{"ttl": "1h", "inputTokens": 2}],
}


@pytest.fixture
def bedrock(gateway: Gateway, up: Upstream) -> Gateway:
    connect(gateway, "bedrock", host(up), apiKey=KEY, region="eu-west-1")
    return gateway


def claude_directly(up: Upstream) -> anthropic.AnthropicBedrock:
    return anthropic.AnthropicBedrock(
        api_key=KEY, aws_region="eu-west-1", base_url=host(up), max_retries=0
    )


def events_of_claude() -> list[dict[str, Any]]:
    return [
        {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 2},
        },
        {"type": "message_stop", "amazon-bedrock-invocationMetrics": {"inputTokenCount": 9}},
    ]


# ------------------------------------------------------------------------------------------ Claude


def test_claude_is_called_as_anthropics_own_client_calls_it(
    bedrock: Gateway, up: Upstream, anthropics: anthropic.Anthropic
) -> None:
    up.script(reply(MESSAGE))
    asked: dict[str, Any] = {
        "max_tokens": 50,
        "messages": SAY,
        "extra_headers": {"anthropic-beta": "context-1m-2025-08-07"},
    }
    with claude_directly(up) as client:
        client.messages.create(model=CLAUDE, **asked)
    directly = up.last

    answer = anthropics.messages.create(model=f"bedrock/{CLAUDE}", **asked)

    assert up.last.target == "/model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke"
    # The client leaves the colon as it is; both spellings are one path.
    assert directly.target == up.last.target.replace("%3A", ":")
    # The client sends a newer version of the API, which only the newest models have.
    newer = {"anthropic_version": directly.json()["anthropic_version"]}
    assert up.last.json() | newer == directly.json()
    assert up.last.json()["anthropic_version"] == "bedrock-2023-05-31"
    assert up.last.json()["anthropic_beta"] == ["context-1m-2025-08-07"]
    assert up.last.header("anthropic-beta") is None
    assert up.last.header("anthropic-version") is None
    assert answer.content[0].text == "hi"


def test_claude_streams_to_anthropics_client(
    bedrock: Gateway, up: Upstream, anthropics: anthropic.Anthropic
) -> None:
    up.script(amazon_stream(*map(invoke_chunk, events_of_claude())))
    with anthropics.messages.stream(model=f"bedrock/{CLAUDE}", max_tokens=5, messages=SAY) as told:
        message = told.get_final_message()

    assert up.last.target.endswith("/invoke-with-response-stream")
    assert "stream" not in up.last.json()
    assert (message.content[0].text, message.stop_reason) == ("hi", "end_turn")
    assert (message.usage.input_tokens, message.usage.output_tokens) == (9, 2)


def test_claude_streams_to_other_dialects(
    bedrock: Gateway, up: Upstream, openais: openai.OpenAI
) -> None:
    up.script(amazon_stream(*map(invoke_chunk, events_of_claude())))
    assert text_of(chat_stream(openais, CLAUDE)) == "hi"

    up.script(amazon_stream(*map(invoke_chunk, events_of_claude())))
    events = list(openais.responses.create(model=f"bedrock/{CLAUDE}", input="hello", stream=True))
    assert events[-1].type == "response.completed"


def test_an_exception_in_a_stream_is_an_error(
    bedrock: Gateway, up: Upstream, openais: openai.OpenAI
) -> None:
    started = [invoke_chunk(each) for each in events_of_claude()[:3]]
    up.script(amazon_stream(*started, exception("modelStreamErrorException", "it broke")))
    with pytest.raises(openai.APIError, match="it broke"):
        text_of(chat_stream(openais, CLAUDE))


def test_an_exception_before_the_first_word_has_its_status(
    bedrock: Gateway, up: Upstream, openais: openai.OpenAI
) -> None:
    up.script(amazon_stream(exception("throttlingException", "slow down")))
    with pytest.raises(openai.APIStatusError) as told:
        text_of(chat_stream(openais, CLAUDE))
    assert told.value.status_code in (429, 502)


def test_a_damaged_stream_is_an_error(
    bedrock: Gateway, up: Upstream, openais: openai.OpenAI
) -> None:
    frames = [invoke_chunk(each) for each in events_of_claude()]
    frames[3] = frames[3][:-1] + bytes([frames[3][-1] ^ 1])
    up.script(amazon_stream(*frames))
    with pytest.raises(openai.APIError, match="checksum"):
        text_of(chat_stream(openais, CLAUDE))


def test_calls_are_signed(gateway: Gateway, up: Upstream, openais: openai.OpenAI) -> None:
    connect(gateway, "bedrock", host(up), awsKeys=KEYS, region="eu-west-1")
    arn = f"arn:aws:bedrock:eu-west-1:123456789012:inference-profile/{CLAUDE}"
    for model in (CLAUDE, arn):
        up.script(reply(MESSAGE))
        openais.chat.completions.create(model=f"bedrock/{model}", messages=SAY)
        # The path is signed after it is encoded a second time.
        again = signed_again(up.last, "eu-west-1", "bedrock", encode_path=True)
        assert up.last.header("authorization") == again
    assert up.last.target.count("/") == 3


def test_the_newest_models_of_openai_have_an_api_of_their_own(
    gateway: Gateway, up: Upstream, openais: openai.OpenAI
) -> None:
    connect(gateway, "bedrock", host(up), awsKeys=KEYS, region="eu-west-1")
    up.script(
        reply(
            {
                "id": "resp_1",
                "object": "response",
                "status": "completed",
                "model": "openai.gpt-6-sol",
                "output": [
                    {
                        "type": "message",
                        "id": "msg_1",
                        "role": "assistant",
                        "status": "completed",
                        "content": [{"type": "output_text", "text": "hi", "annotations": []}],
                    }
                ],
                "usage": {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11},
            }
        )
    )
    answer = openais.chat.completions.create(model="bedrock/openai.gpt-6-sol", messages=SAY)
    assert answer.choices[0].message.content == "hi"
    assert up.last.target == "/openai/v1/responses"
    again = signed_again(up.last, "eu-west-1", "bedrock-mantle")
    assert up.last.header("authorization") == again


def test_models_with_openais_dialect_keep_it(
    bedrock: Gateway, up: Upstream, openais: openai.OpenAI
) -> None:
    up.script(reply(completion("hi")))
    chat(openais, "openai.gpt-oss-120b-1:0")
    assert up.last.target == "/openai/v1/chat/completions"


# ---------------------------------------------------------------------------------------- Converse


def chat(client: openai.OpenAI, model: str, **more: Any) -> Any:
    messages = more.pop("messages", SAY)
    return client.chat.completions.create(model=f"bedrock/{model}", messages=messages, **more)


def chat_stream(client: openai.OpenAI, model: str, **more: Any) -> Any:
    return chat(client, model, stream=True, **more)


def text_of(chunks: Any) -> str:
    return "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)


def conversed(*content: dict[str, Any], reason: str = "end_turn") -> list[Any]:
    message = {"role": "assistant", "content": list(content)}
    return reply(
        {
            "output": {"message": message},
            "stopReason": reason,
            "usage": USAGE,
            "metrics": {"latencyMs": 5},
        }
    )


TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Weather of a place",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    },
}


def test_nova_is_asked_by_converse(bedrock: Gateway, up: Upstream, openais: openai.OpenAI) -> None:
    up.script(conversed({"text": "hi"}))
    messages: list[Any] = [{"role": "system", "content": "Be brief."}, *SAY]
    answer = chat(
        openais, NOVA, messages=messages, max_tokens=20, temperature=0.5, top_p=0.9, stop=["END"]
    )

    assert up.last.target == "/model/eu.amazon.nova-pro-v1%3A0/converse"
    assert up.last.json() == {
        "system": [{"text": "Be brief."}],
        "messages": [{"role": "user", "content": [{"text": "hello"}]}],
        "inferenceConfig": {
            "maxTokens": 20,
            "temperature": 0.5,
            "topP": 0.9,
            "stopSequences": ["END"],
        },
    }
    assert answer.choices[0].message.content == "hi"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.prompt_tokens == 14
    assert answer.usage.prompt_tokens_details.cached_tokens == 3


def test_without_a_limit_converse_gets_none(
    bedrock: Gateway, up: Upstream, openais: openai.OpenAI
) -> None:
    up.script(conversed({"text": "hi"}))
    chat(openais, "meta.llama3-3-70b-instruct-v1:0")
    assert "inferenceConfig" not in up.last.json()


def test_tools_go_there_and_back(bedrock: Gateway, up: Upstream, openais: openai.OpenAI) -> None:
    call = {"toolUseId": "tooluse_1", "name": "weather", "input": {"place": "Oslo"}}
    up.script(conversed({"toolUse": call}, reason="tool_use"))
    asked = chat(openais, NOVA, tools=[TOOL], tool_choice="required")
    assert up.last.json()["toolConfig"] == {
        "tools": [
            {
                "toolSpec": {
                    "name": "weather",
                    "description": "Weather of a place",
                    "inputSchema": {"json": TOOL["function"]["parameters"]},  # type: ignore[index]
                }
            }
        ],
        "toolChoice": {"any": {}},
    }
    made = asked.choices[0].message.tool_calls[0]
    assert (made.id, json.loads(made.function.arguments)) == ("tooluse_1", {"place": "Oslo"})
    assert asked.choices[0].finish_reason == "tool_calls"

    up.script(conversed({"text": "cold"}))
    history = [*SAY, asked.choices[0].message.to_dict()]
    history.append({"role": "tool", "tool_call_id": "tooluse_1", "content": "-5"})
    chat(openais, NOVA, messages=history)  # without tools, as some clients end a loop
    body = up.last.json()
    assert body["messages"][1]["content"] == [{"toolUse": call}]
    result = {"toolUseId": "tooluse_1", "content": [{"text": "-5"}]}
    assert body["messages"][2] == {"role": "user", "content": [{"toolResult": result}]}
    assert [one["toolSpec"]["name"] for one in body["toolConfig"]["tools"]] == ["weather"]


def test_pictures_documents_and_cache_points(
    bedrock: Gateway, up: Upstream, anthropics: anthropic.Anthropic
) -> None:
    up.script(conversed({"text": "hi"}))
    picture, paper = base64.b64encode(b"png").decode(), base64.b64encode(b"%PDF").decode()
    anthropics.messages.create(
        model=f"bedrock/{NOVA}",
        max_tokens=5,
        system=[{"type": "text", "text": "Long.", "cache_control": {"type": "ephemeral"}}],
        messages=[
            {
                "role": "user",
                "content": [
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": picture},
                    },
                    {
                        "type": "document",
                        "title": "Q3_report.pdf",
                        "source": {
                            "type": "base64",
                            "media_type": "application/pdf",
                            "data": paper,
                        },
                    },
                ],
            }
        ],
    )
    body = up.last.json()
    assert body["system"] == [{"text": "Long."}, {"cachePoint": {"type": "default"}}]
    assert body["messages"][0]["content"] == [
        {"text": "See the attached document."},
        {"image": {"format": "png", "source": {"bytes": picture}}},
        {"document": {"name": "Q3 report pdf", "format": "pdf", "source": {"bytes": paper}}},
    ]


def test_reasoning_is_asked_for_and_told(
    bedrock: Gateway, up: Upstream, anthropics: anthropic.Anthropic
) -> None:
    thought = {"reasoningText": {"text": "hm", "signature": "sig"}}
    up.script(conversed({"reasoningContent": thought}, {"text": "hi"}))
    answer = anthropics.messages.create(
        model="bedrock/eu.amazon.nova-2-lite-v1:0",
        max_tokens=5000,
        messages=SAY,
        thinking={"type": "adaptive"},
        output_config={"effort": "low"},
    )
    reasoning = {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"}}
    assert up.last.json()["additionalModelRequestFields"] == reasoning
    assert [block.type for block in answer.content] == ["thinking", "text"]


def converse_stream(*, usage: bool = True) -> list[bytes]:
    call = {"toolUseId": "t1", "name": "weather"}
    frames = [
        converse_event("messageStart", {"role": "assistant", "p": "ab"}),
        converse_event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "he"}}),
        converse_event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "llo"}}),
        converse_event("contentBlockStop", {"contentBlockIndex": 0}),
        converse_event("contentBlockStart", {"contentBlockIndex": 1, "start": {"toolUse": call}}),
        converse_event(
            "contentBlockDelta",
            {"contentBlockIndex": 1, "delta": {"toolUse": {"input": '{"place":"Oslo"}'}}},
        ),
        converse_event("contentBlockStop", {"contentBlockIndex": 1}),
        converse_event("messageStop", {"stopReason": "tool_use"}),
    ]
    metadata = {"usage": USAGE, "metrics": {"latencyMs": 5}}
    return [*frames, converse_event("metadata", metadata)] if usage else frames


def test_converse_streams_to_chat(bedrock: Gateway, up: Upstream, openais: openai.OpenAI) -> None:
    up.script(amazon_stream(*converse_stream()))
    chunks = list(chat_stream(openais, NOVA, tools=[TOOL], stream_options={"include_usage": True}))
    assert up.last.target == "/model/eu.amazon.nova-pro-v1%3A0/converse-stream"
    assert text_of(chunks) == "hello"
    calls = [
        call for one in chunks if one.choices for call in one.choices[0].delta.tool_calls or ()
    ]
    assert calls[0].function.name == "weather"
    assert json.loads("".join(one.function.arguments or "" for one in calls)) == {"place": "Oslo"}
    assert chunks[-1].usage.prompt_tokens == 14


@pytest.mark.parametrize("usage", [True, False])
def test_converse_streams_to_messages(
    bedrock: Gateway, up: Upstream, anthropics: anthropic.Anthropic, *, usage: bool
) -> None:
    up.script(amazon_stream(*converse_stream(usage=usage)))
    with anthropics.messages.stream(model=f"bedrock/{NOVA}", max_tokens=5, messages=SAY) as told:
        message = told.get_final_message()
    assert [block.type for block in message.content] == ["text", "tool_use"]
    assert message.content[1].input == {"place": "Oslo"}
    assert message.stop_reason == "tool_use"
    if usage:
        assert (message.usage.input_tokens, message.usage.cache_read_input_tokens) == (9, 3)


def test_a_stream_that_breaks_off_is_an_error(
    bedrock: Gateway, up: Upstream, openais: openai.OpenAI
) -> None:
    up.script(amazon_stream(*converse_stream()[:3]))
    with pytest.raises(openai.APIError):
        text_of(chat_stream(openais, NOVA))


def test_broken_output_is_an_error(bedrock: Gateway, up: Upstream, openais: openai.OpenAI) -> None:
    up.script(conversed({"text": "hi"}, reason="malformed_tool_use"))
    with pytest.raises(openai.APIStatusError) as told:
        chat(openais, NOVA)
    assert told.value.status_code == 502


@pytest.mark.parametrize(
    ("kind", "message", "code"),
    [
        (
            "ValidationException",
            "Input is too long for requested model.",
            "context_length_exceeded",
        ),
        ("ValidationException", "Malformed input request", None),
    ],
)
def test_an_error_of_the_cloud_is_told(
    bedrock: Gateway,
    up: Upstream,
    kind: str,
    message: str,
    code: str | None,
    openais: openai.OpenAI,
) -> None:
    names = [("x-amzn-ErrorType", f"{kind}:http://internal.amazon.com/coral/x/")]
    up.script(reply({"message": message}, 400, names))
    with pytest.raises(openai.BadRequestError, match=message) as told:
        chat(openais, NOVA)
    assert told.value.code == code
    assert told.value.type == kind


def test_what_converse_cannot_say_is_refused_or_left_out(
    bedrock: Gateway, up: Upstream, openais: openai.OpenAI
) -> None:
    up.script(conversed({"text": "hi"}))
    link = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    with pytest.raises(openai.BadRequestError, match="cannot be expressed"):
        chat(openais, NOVA, messages=[{"role": "user", "content": [link]}])
    raw = openais.chat.completions.with_raw_response.create(
        model=f"bedrock/{NOVA}", messages=SAY, seed=1, frequency_penalty=0.5
    )
    assert raw.headers["x-gateway-left-out"] == "seed, frequency_penalty"


def test_the_models_of_the_region_are_listed(bedrock: Gateway) -> None:
    listed = {one["id"] for one in bedrock.caller.get("/v1/models").json()["data"]}
    assert {f"bedrock/{CLAUDE}", f"bedrock/{NOVA}", "bedrock/openai.gpt-oss-120b-1:0"} <= listed
    assert not [name for name in listed if name.startswith(("bedrock/us.", "bedrock/apac."))]
    # On demand these are called by the names of their inference profiles.
    assert "bedrock/anthropic.claude-opus-4-8" not in listed
