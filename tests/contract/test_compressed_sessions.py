"""Sessions with tools, by the official clients, over each mode that makes conversations shorter.

The short form is a few turns of one mode; the slow one is thirty turns of each mode in each dialect.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.processes import Gateway, Lane, expect
from tests.support.sdk_clients import anthropic_client, genai_client, openai_client
from tests.support.sdks import genai
from tests.support.upstream import completion, reply

MODES = ("lite", "standard", "aggressive", "ultra", "rtk", "stacked")
CALLERS = ("chat", "responses", "messages", "gemini")
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
TOOL = {"name": "shell", "description": "Runs a command.", "parameters": SCHEMA}


def question(turn: int) -> str:
    return f"Could you please run the tests once more in order to see what fails now? Turn {turn}."


def output(turn: int) -> str:
    """The output of a command, with what an answer needs first."""
    lines = [f"result {turn}: 1 failed"] + [
        f"tests/test_{n}.py ..... [ {n}%]   " for n in range(40)
    ]
    return "\n".join([*lines, f"E   AssertionError: turn {turn}"])


def chat_session(gateway: Gateway, model: str, headers: dict[str, str], turns: int) -> list[str]:
    said, messages = [], [{"role": "system", "content": "You help."}]
    with openai_client(gateway) as client:

        def ask() -> Any:
            wanted: Any = {"messages": messages, "tools": [{"type": "function", "function": TOOL}]}
            answer = client.chat.completions.create(model=model, extra_headers=headers, **wanted)
            messages.append(answer.choices[0].message.model_dump(exclude_none=True))
            return answer.choices[0].message

        for turn in range(turns):
            messages.append({"role": "user", "content": question(turn)})
            (call,) = ask().tool_calls
            messages.append({"role": "tool", "tool_call_id": call.id, "content": output(turn)})
            said.append(ask().content)
    return said


def responses_session(
    gateway: Gateway, model: str, headers: dict[str, str], turns: int
) -> list[str]:
    said: list[str] = []
    items: list[Any] = []
    with openai_client(gateway) as client:

        def ask() -> Any:
            wanted: Any = {"input": items, "tools": [{"type": "function", **TOOL}], "store": False}
            answer = client.responses.create(model=model, extra_headers=headers, **wanted)
            items.extend(item.model_dump(exclude_none=True) for item in answer.output)
            return answer

        for turn in range(turns):
            items.append({"role": "user", "content": question(turn)})
            (call,) = [item for item in ask().output if item.type == "function_call"]
            given = {
                "type": "function_call_output",
                "call_id": call.call_id,
                "output": output(turn),
            }
            items.append(given)
            said.append(ask().output_text)
    return said


def messages_session(
    gateway: Gateway, model: str, headers: dict[str, str], turns: int
) -> list[str]:
    said: list[str] = []
    messages: list[Any] = []
    tool = {"name": "shell", "input_schema": SCHEMA}
    with anthropic_client(gateway) as client:

        def ask() -> Any:
            wanted: Any = {"messages": messages, "tools": [tool], "system": "You help."}
            answer = client.messages.create(
                model=model, max_tokens=1000, extra_headers=headers, **wanted
            )
            blocks = [block.model_dump(exclude_none=True) for block in answer.content]
            messages.append({"role": "assistant", "content": blocks})
            return answer.content

        for turn in range(turns):
            messages.append({"role": "user", "content": question(turn)})
            (call,) = [block for block in ask() if block.type == "tool_use"]
            given = {"type": "tool_result", "tool_use_id": call.id, "content": output(turn)}
            messages.append({"role": "user", "content": [given]})
            said.append("".join(block.text for block in ask() if block.type == "text"))
    return said


def gemini_session(gateway: Gateway, model: str, headers: dict[str, str], turns: int) -> list[str]:
    said: list[str] = []
    contents: list[Any] = []
    declared = genai.types.FunctionDeclaration(name="shell", parameters_json_schema=SCHEMA)
    config = genai.types.GenerateContentConfig(
        tools=[genai.types.Tool(function_declarations=[declared])],
        automatic_function_calling=genai.types.AutomaticFunctionCallingConfig(disable=True),
        http_options=genai.types.HttpOptions(headers=headers),
    )
    client = genai_client(gateway)

    def ask() -> Any:
        answer = client.models.generate_content(model=model, contents=contents, config=config)
        assert answer.candidates
        assert answer.candidates[0].content
        contents.append(answer.candidates[0].content)
        return answer

    for turn in range(turns):
        contents.append(
            genai.types.Content(role="user", parts=[genai.types.Part(text=question(turn))])
        )
        (call,) = [
            part.function_call for part in ask().candidates[0].content.parts if part.function_call
        ]
        given = genai.types.FunctionResponse(
            id=call.id, name="shell", response={"output": output(turn)}
        )
        contents.append(
            genai.types.Content(role="user", parts=[genai.types.Part(function_response=given)])
        )
        said.append(ask().text)
    client.close()
    return said


SESSIONS = {
    "chat": (chat_session, "openai"),
    "responses": (responses_session, "openai-responses"),
    "messages": (messages_session, "anthropic"),
    "gemini": (gemini_session, "gemini"),
}


def hold_session(
    gateway: Gateway, standin: dict[str, str], caller: str, mode: str, turns: int
) -> None:
    session, dialect = SESSIONS[caller]
    headers = {"X-Gateway-Compression": mode, "X-Session-Id": f"{caller}-{mode}-{turns}"}
    said = session(gateway, f"{standin[dialect]}/standin", headers, turns)
    # The stand-in quotes the beginning of what the tool answered: it got each result under its call.
    assert [f"result {turn}: 1 failed" in text for turn, text in enumerate(said)] == [True] * turns


@pytest.mark.parametrize("caller", CALLERS)
def test_a_session_goes_on(gateway: Gateway, standin: dict[str, str], caller: str) -> None:
    hold_session(gateway, standin, caller, "standard", turns=3)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("caller", CALLERS)
def test_thirty_turns(gateway: Gateway, standin: dict[str, str], caller: str, mode: str) -> None:
    hold_session(gateway, standin, caller, mode, turns=30)


def cached_tokens(before: list[Any], now: list[Any]) -> int:
    """About how many tokens a provider with a prompt cache has already: those of the messages that both begin with."""
    common = 0
    for ours, theirs in zip(before, now, strict=False):
        if ours != theirs:
            break
        common += 1
    return len(json.dumps(now[:common])) // 4


@pytest.mark.parametrize("mode", MODES)
def test_a_prompt_cache_stays_as_warm_as_without(lane: Lane, mode: str) -> None:
    """In each turn the provider has everything of the turn before, with compression as without."""
    headers = {"X-Gateway-Compression": mode, "X-Session-Id": f"{lane.prefix}-{mode}"}
    messages: list[Any] = [{"role": "system", "content": "You help."}]
    sent: list[Any] = []
    for turn in range(6):
        call = {"name": "shell", "arguments": json.dumps({"command": "pytest -q"})}
        calls = [{"id": f"call_{turn}", "type": "function", "function": call}]
        messages += [
            {"role": "user", "content": question(turn) * 3},
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": f"call_{turn}", "content": output(turn)},
        ]
        lane.upstream.script(reply(completion("It is basically done, as I may say." * 4)))
        body = lane.body(messages=messages)
        expect(lane.gateway.caller.post("/v1/chat/completions", json=body, headers=headers), 200)
        before, sent = sent, lane.upstream.last.json()["messages"]
        assert cached_tokens(before, sent) == len(json.dumps(before)) // 4
        assert len(json.dumps(sent)) < len(json.dumps(messages))
        messages.append({"role": "assistant", "content": "It is basically done, as I may say." * 4})
