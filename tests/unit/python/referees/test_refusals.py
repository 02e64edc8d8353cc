"""Referees refuse what the vendors refuse, with their status and words, and accept a plain request."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.support.referees.judge import Judge, place_of
from tests.support.referees.refusal import Refusal

USER: Final = {"role": "user", "content": "hi"}
FUNCTION: Final = {
    "name": "f",
    "parameters": {"type": "object", "properties": {"a": {"type": "string"}}},
}
CHAT_TOOL: Final = {"type": "function", "function": FUNCTION}
MESSAGES_TOOL: Final = {"name": "f", "input_schema": {"type": "object"}}
CALLED: Final = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    ],
}
RESULT: Final = {"role": "tool", "tool_call_id": "call_1", "content": "x"}
NINE: Final = [
    USER,
    {**CALLED, "tool_calls": [{**CALLED["tool_calls"][0], "id": "abcdefghi"}]},  # type: ignore[index]
    {**RESULT, "tool_call_id": "abcdefghi"},
]
USE: Final = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
TOOL_RESULT: Final = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
THOUGHT: Final = {"type": "thinking", "thinking": "x", "signature": "forged"}
MARK: Final = {"cache_control": {"type": "ephemeral"}}
G_USER: Final = {"role": "user", "parts": [{"text": "hi"}]}
G_CALL: Final = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
G_RESULT: Final = {
    "role": "user",
    "parts": [{"functionResponse": {"name": "f", "response": {}}}],
}
B_USER: Final = {"role": "user", "content": [{"text": "hi"}]}
BASES: Final[dict[str, dict[str, Any]]] = {
    "messages": {"max_tokens": 3_000, "messages": [USER]},
    "chat": {"messages": [USER]},
    "responses": {"input": "hi"},
    "gemini": {"contents": [G_USER]},
    "converse": {"messages": [B_USER]},
}
FORMS: Final = {"anthropic": "messages", "gemini": "gemini", "bedrock": "converse"}
PATHS: Final = {
    "messages": "/anthropic/v1/messages",
    "gemini": "/gemini/v1beta/models/{model}:generateContent",
    "converse": "/model/{model}/converse",
}


def referee_of(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    """The answer of the referee of `PROVIDER/MODEL`; `openai!` is the Responses API. Raises `Refusal`."""
    provider, model = name.split("/", 1)
    form = FORMS.get(provider, "chat")
    path = PATHS.get(form, f"/{provider}/v1/chat/completions")
    if provider == "openai!":
        form, path = "responses", "/openai/v1/responses"
    path = path.replace("{model}", model)
    body = {**BASES[form], **fields}
    if form not in ("gemini", "converse"):
        body["model"] = model
    provider, model, _ = place_of(path, body)
    return Judge().rule(provider, model, path, body).answer


REFUSED: Final[list[tuple[str, dict[str, Any], str]]] = [
    # Anthropic, by family.
    ("anthropic/claude-opus-5-5", {"seed": 1}, "seed: Extra inputs"),
    ("anthropic/claude-opus-5-5", {"thinking": {"type": "disabled"}}, "thinking.type.disabled"),
    (
        "anthropic/claude-opus-4-8",
        {"thinking": {"type": "enabled", "budget_tokens": 1_024}},
        "thinking.type.enabled",
    ),
    ("anthropic/claude-haiku-4-5", {"thinking": {"type": "adaptive"}}, "adaptive"),
    (
        "anthropic/claude-opus-4-5",
        {"thinking": {"type": "enabled", "budget_tokens": 5_000}},
        "budget_tokens",
    ),
    ("anthropic/claude-haiku-4-5", {"output_config": {"effort": "low"}}, "effort parameter"),
    ("anthropic/claude-opus-4-8", {"temperature": 0.5}, "`temperature` is deprecated"),
    ("anthropic/claude-opus-4-5", {"temperature": 0.5, "top_p": 0.5}, "cannot both be specified"),
    ("anthropic/claude-opus-4-5", {"temperature": 1.2}, "less than or equal to 1"),
    (
        "anthropic/claude-opus-4-5",
        {"temperature": 0.5, "thinking": {"type": "enabled", "budget_tokens": 1_024}},
        "may only be set to 1",
    ),
    (
        "anthropic/claude-opus-5-5",
        {"tools": [MESSAGES_TOOL], "tool_choice": {"type": "any"}},
        "not supported for this model",
    ),
    (
        "anthropic/claude-opus-4-5",
        {
            "tools": [MESSAGES_TOOL],
            "tool_choice": {"type": "any"},
            "thinking": {"type": "enabled", "budget_tokens": 1_024},
        },
        "Thinking may not be enabled",
    ),
    (
        "anthropic/claude-sonnet-5",
        {"messages": [USER, {"role": "assistant", "content": "x"}]},
        "prefill",
    ),
    (
        "anthropic/claude-opus-4-5",
        {"messages": [{"role": "user", "content": [{"type": "text", "text": " "}]}]},
        "non-whitespace",
    ),
    (
        "anthropic/claude-opus-4-5",
        {"messages": [USER, {"role": "assistant", "content": [USE]}, USER]},
        "without `tool_result`",
    ),
    (
        "anthropic/claude-opus-4-5",
        {"messages": [{"role": "user", "content": [TOOL_RESULT]}]},
        "unexpected `tool_use_id`",
    ),
    (
        "anthropic/claude-opus-4-5",
        {"messages": [USER, {"role": "assistant", "content": [THOUGHT]}, USER]},
        "Invalid `signature`",
    ),
    (
        "anthropic/claude-opus-4-5",
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "x", **MARK}] * 5}]},
        "maximum of 4 blocks",
    ),
    ("anthropic/claude-opus-4-5", {"max_tokens": 128_000}, "128000 > 64000"),
    # OpenAI, by family.
    ("openai/gpt-5", {"max_tokens": 5}, "Use 'max_completion_tokens' instead"),
    ("openai/gpt-5.5", {"temperature": 0.2}, "Only the default (1) value"),
    ("openai/gpt-5.1", {"reasoning_effort": "minimal"}, "'minimal' is not supported"),
    ("openai/gpt-4.1", {"reasoning_effort": "low"}, "Unrecognized request argument"),
    ("openai/gpt-5.6", {"tools": [CHAT_TOOL]}, "use /v1/responses"),
    ("openai/gpt-5.4", {"tools": [CHAT_TOOL], "reasoning_effort": "low"}, "use /v1/responses"),
    ("openai/gpt-5-pro", {}, "only supported in v1/responses"),
    ("openai/gpt-4.1", {"top_k": 5}, "Unknown parameter: 'top_k'"),
    ("openai/gpt-4.1", {"user": "u" * 65}, "maximum length 64"),
    ("openai/gpt-4.1", {"stop": ["a"] * 5}, "maximum length 4"),
    ("openai/gpt-4.1", {"messages": [USER, RESULT]}, "must be a response to a preceeding"),
    ("openai/gpt-4.1", {"messages": [USER, CALLED, USER]}, "must be followed by tool messages"),
    ("openai!/gpt-5", {"max_output_tokens": 5}, "Expected a value >= 16"),
    (
        "openai!/gpt-5",
        {"input": [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}]},
        "required following item",
    ),
    (
        "openai!/gpt-5",
        {
            "input": [
                {"type": "reasoning", "summary": [], "encrypted_content": "forged"},
                {"role": "user", "content": "x"},
            ]
        },
        "could not be verified",
    ),
    (
        "openai!/gpt-5",
        {"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}]},
        "No tool output found",
    ),
    # Gemini.
    ("gemini/gemini-3-pro", {"seed": 1}, 'Unknown name \\"seed\\"'),
    (
        "gemini/gemini-3-pro",
        {"contents": [G_USER, G_CALL, G_RESULT]},
        "missing a thought_signature",
    ),
    (
        "gemini/gemini-2.5-pro",
        {"contents": [G_USER, G_CALL, G_USER]},
        "number of function response",
    ),
    (
        "gemini/gemini-2.5-pro",
        {
            "tools": [
                {
                    "functionDeclarations": [
                        {
                            "name": "f",
                            "parameters": {
                                "type": "object",
                                "properties": {"a": {"const": 1}},
                            },
                        }
                    ]
                }
            ]
        },
        'Unknown name \\"const\\"',
    ),
    (
        "gemini/gemini-2.5-pro",
        {"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}}},
        "Thinking level is not supported",
    ),
    (
        "gemini/gemini-3-pro",
        {"generationConfig": {"thinkingConfig": {"thinkingLevel": "MINIMAL"}}},
        "not supported for this model",
    ),
    ("gemini/gemini-2.5-pro", {"generationConfig": {"presencePenalty": 1}}, "Penalty"),
    # Vendors with the protocol of OpenAI.
    ("mistral/mistral-large", {"max_completion_tokens": 5}, "extra_forbidden"),
    ("mistral/mistral-large", {"messages": [USER, CALLED, RESULT]}, "with a length of 9"),
    ("mistral/open-mistral-7b", {"messages": [*NINE, USER]}, "'user' after role 'tool'"),
    ("groq/llama", {"logprobs": True}, "'logprobs' is unsupported"),
    (
        "groq/llama",
        {"messages": [USER, {"role": "assistant", "content": "x", "reasoning_content": "y"}, USER]},
        "reasoning_content' is unsupported",
    ),
    ("cerebras/gpt-oss-120b", {"metadata": {}}, "wrong_api_format"),
    ("fireworks/x", {"store": True}, "Extra inputs are not permitted, field: 'store'"),
    ("nvidia/x", {"prompt_cache_key": "k"}, "extra_forbidden"),
    (
        "deepseek/deepseek-v4-pro",
        {"tools": [CHAT_TOOL], "tool_choice": "required"},
        "does not support this tool_choice",
    ),
    (
        "deepseek/deepseek-v4-pro",
        {"messages": [USER, CALLED, RESULT]},
        "`reasoning_content` in the thinking mode",
    ),
    ("moonshot/kimi-k2.6", {"temperature": 0.3}, "invalid temperature"),
    ("moonshot/kimi-k2.7-code", {"thinking": {"type": "disabled"}}, "invalid thinking"),
    ("moonshot/kimi-k3", {"messages": [USER, CALLED, RESULT]}, "at index 1"),
    ("dashscope/qwen3-30b-a3b", {}, "non-streaming calls"),
    (
        "dashscope/qwen-plus",
        {"enable_thinking": True, "tools": [CHAT_TOOL], "tool_choice": "required"},
        "required or object in thinking mode",
    ),
    # Converse.
    ("bedrock/amazon.nova-pro-v1:0", {"inferenceConfig": {"topK": 5}}, "inferenceConfig.topK"),
    ("bedrock/amazon.nova-pro-v1:0", {"inferenceConfig": {"temperature": 1.4}}, "temperature"),
    ("bedrock/amazon.nova-pro-v1:0", {"toolConfig": {"tools": []}}, "toolConfig.tools"),
    (
        "bedrock/amazon.nova-pro-v1:0",
        {"messages": [{"role": "assistant", "content": [{"text": "x"}]}]},
        "must start with a user message",
    ),
]


@pytest.mark.parametrize(("name", "fields", "words"), REFUSED)
def test_a_referee_refuses(name: str, fields: dict[str, Any], words: str) -> None:
    with pytest.raises(Refusal) as refused:
        referee_of(name, fields)
    assert 400 <= refused.value.status < 500
    assert words in json.dumps(refused.value.body)


@pytest.mark.parametrize("name", sorted({name for name, _, _ in REFUSED} - {"openai/gpt-5-pro"}))
def test_a_referee_accepts_a_plain_request(name: str) -> None:
    is_hybrid = name == "dashscope/qwen3-30b-a3b"
    assert referee_of(name, {"enable_thinking": False} if is_hybrid else {})


def test_a_signature_is_bound_to_the_conversation_that_it_was_issued_for() -> None:
    judge = Judge()
    body = {"model": "claude-opus-5-5", "max_tokens": 100, "messages": [USER]}
    path = "/anthropic/v1/messages"
    answer = judge.rule("anthropic", "claude-opus-5-5", path, body).answer
    assert answer["content"][0]["type"] == "thinking"
    turns = [USER, {"role": "assistant", "content": answer["content"]}, USER]
    judge.rule("anthropic", "claude-opus-5-5", path, {**body, "messages": turns})
    changed = {**body, "messages": turns, "system": "new"}
    with pytest.raises(Refusal, match="bound to a different conversation"):
        judge.rule("anthropic", "claude-opus-5-5", path, changed)
    judge.rule("anthropic", "claude-opus-5", path, changed)
