"""Tool loops of the official SDKs, streamed, whose model changes in mid-session: no referee refuses."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from tests.support.gateway_pool import GatewayPool
from tests.support.processes import Gateway
from tests.support.referees.connected import connected_gateway
from tests.support.referees.plan import Plan
from tests.support.referees.upstream import Referee
from tests.support.sdk_clients import anthropic_client, genai_client, openai_client
from tests.support.sdks import genai

pytestmark = pytest.mark.one_node(reason="connections to providers are made for this file alone")

FAMILIES: Final = (
    "openai/gpt-5.6-sol",
    "anthropic/claude-opus-5-5",
    "gemini/gemini-3.1-pro-preview",
    "mistral/mistral-medium-latest",
    "deepseek/deepseek-v4-pro",
    "moonshot/kimi-k2.6",
    "dashscope/qwen3-30b-a3b",
    "groq/openai/gpt-oss-120b",
)
PAIRS: Final = list(itertools.permutations(FAMILIES, 2))
NEIGHBOURS: Final = [(each, FAMILIES[(at + 1) % len(FAMILIES)]) for at, each in enumerate(FAMILIES)]
SCHEMA: Final = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
ABOUT: Final = {"name": "weather", "description": "The weather of a city."}
ASKED: Final = "How is the weather?"
RESULT: Final = "sunny"


@pytest.fixture(scope="module")
def referee() -> Iterator[Referee]:
    with Referee() as running:
        running.judge.plan = Plan(calls=2)
        yield running


@pytest.fixture(scope="module")
def gateway(gateway_pool: GatewayPool, referee: Referee) -> Iterator[Gateway]:
    with connected_gateway(gateway_pool, referee) as running:
        yield running


def talk_chat(client: Any, models: tuple[str, ...]) -> int:
    turns: list[Any] = [{"role": "user", "content": ASKED}]
    tools: Any = [{"type": "function", "function": {**ABOUT, "parameters": SCHEMA}}]
    called = 0
    for model in models:
        with client.chat.completions.stream(model=model, messages=turns, tools=tools) as heard:
            message = heard.get_final_completion().choices[0].message
        turns.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
        for call in message.tool_calls or []:
            called += 1
            turns.append({"role": "tool", "tool_call_id": call.id, "content": RESULT})
    return called


def talk_responses(client: Any, models: tuple[str, ...]) -> int:
    items: list[Any] = [{"role": "user", "content": ASKED}]
    tools: Any = [{"type": "function", **ABOUT, "parameters": SCHEMA, "strict": False}]
    called = 0
    for model in models:
        with client.responses.stream(
            model=model,
            input=items,
            tools=tools,
            store=False,
            include=["reasoning.encrypted_content"],
        ) as heard:
            output = heard.get_final_response().output
        for item in output:
            items.append(item.model_dump(exclude_none=True, exclude={"parsed_arguments"}))
            if item.type == "function_call":
                assert json.loads(item.arguments)
                called += 1
        for item in output:
            if item.type == "function_call":
                result = {"type": "function_call_output", "call_id": item.call_id}
                items.append({**result, "output": RESULT})
    return called


def talk_messages(client: Any, models: tuple[str, ...]) -> int:
    turns: list[Any] = [{"role": "user", "content": ASKED}]
    tools: Any = [{**ABOUT, "input_schema": SCHEMA}]
    called = 0
    for model in models:
        with client.messages.stream(
            model=model, max_tokens=2_000, messages=turns, tools=tools
        ) as heard:
            message = heard.get_final_message()
        turns.append({"role": "assistant", "content": message.content})
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": RESULT}
            for block in message.content
            if block.type == "tool_use"
        ]
        called += len(results)
        turns.append({"role": "user", "content": results})
    return called


def talk_gemini(client: Any, models: tuple[str, ...]) -> int:
    types = genai.types
    tool = types.Tool(
        function_declarations=[
            types.FunctionDeclaration(**ABOUT, parameters_json_schema=SCHEMA),
        ]
    )
    config = types.GenerateContentConfig(
        tools=[tool],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    contents: list[Any] = [types.Content(role="user", parts=[types.Part(text=ASKED)])]
    called = 0
    for model in models:
        heard = client.models.generate_content_stream(model=model, contents=contents, config=config)
        parts = [
            part
            for chunk in heard
            for candidate in chunk.candidates or []
            for part in (candidate.content.parts if candidate.content else None) or []
        ]
        contents.append(types.Content(role="model", parts=parts))
        calls = [part.function_call for part in parts if part.function_call]
        called += len(calls)
        results = [
            types.Part(
                function_response=types.FunctionResponse(
                    id=call.id, name=call.name, response={"output": RESULT}
                )
            )
            for call in calls
        ]
        contents.append(types.Content(role="user", parts=results))
    return called


# The client of each SDK, and its tool loop, which returns the number of calls.
Loop = Callable[[Any, tuple[str, ...]], int]
TALKS: Final[dict[str, tuple[Callable[[Gateway], Any], Loop]]] = {
    "chat": (openai_client, talk_chat),
    "responses": (openai_client, talk_responses),
    "messages": (anthropic_client, talk_messages),
    "gemini": (genai_client, talk_gemini),
}


def run_loops(gateway: Gateway, referee: Referee, sdk: str, pairs: list[tuple[str, str]]) -> None:
    connect, talk = TALKS[sdk]
    with contextlib.closing(connect(gateway)) as client:
        for first, second in pairs:
            referee.refused.clear()
            try:
                called = talk(client, (first, second, first))
            except Exception as fault:
                told = "\n".join(map(str, referee.refused))
                raise AssertionError(f"{first} to {second}: {fault}\n{told}") from fault
            assert not referee.refused, f"{first} to {second}: {referee.refused[0]}"
            assert called >= 3, (first, second, called)


@pytest.mark.parametrize("sdk", TALKS)
def test_a_tool_loop_is_continued_by_the_next_family(
    gateway: Gateway, referee: Referee, sdk: str
) -> None:
    run_loops(gateway, referee, sdk, NEIGHBOURS)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("sdk", TALKS)
def test_a_tool_loop_is_continued_by_every_other_family(
    gateway: Gateway, referee: Referee, sdk: str
) -> None:
    run_loops(gateway, referee, sdk, PAIRS)
