"""Streamed answers under guardrails, as the official clients hear them: each text once, in order, and in the end as it
was told; what is stored is what was streamed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.dialects import DIALECTS
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane, expect
from tests.support.sdk_clients import anthropic_client
from tests.support.sdks import anthropic, genai, openai
from tests.support.upstream import DONE, delta, event, finish, stream, usage_event

MAIL = "ada@example.org"
SAID = f"Bonjour\u00a0! Écrivez à\u202f{MAIL}\u3000ou à 我的卡号是4111111111111111。" + "mot " * 60
TOLD = SAID.replace(MAIL, "[REDACTED:email]").replace("4111111111111111", "[REDACTED:card]")
ARGUMENTS = json.dumps({"to": [MAIL], "text": f"one\n{MAIL}\n", "card": 4111111111111111})
CALLED = {
    "to": ["[REDACTED:email]"],
    "text": "one\n[REDACTED:email]\n",
    "card": "[REDACTED:card]",
}
BOTH = ("guardrailAnswerPiiMasker", "guardrailAnswerCredentialMasker")


@pytest.fixture(params=["warn", "redact"])
def action(request: pytest.FixtureRequest, gateway: Gateway) -> Iterator[str]:
    """What guardrails do with answers; nothing afterwards."""
    expect(gateway.admin.patch("/api/settings", json=dict.fromkeys(BOTH, request.param)), 200)
    yield request.param
    expect(gateway.admin.patch("/api/settings", json=dict.fromkeys(BOTH, "off")), 200)


@pytest.fixture
def told(action: str) -> str:
    return SAID if action == "warn" else TOLD


@pytest.fixture
def called(action: str) -> Any:
    return json.loads(ARGUMENTS) if action == "warn" else CALLED


def pieces(text: str, size: int = 5) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def call(piece: str, first: bool) -> bytes:
    head = {"id": "call_1", "type": "function"} if first else {}
    function = {"name": "write", "arguments": piece} if first else {"arguments": piece}
    calls = [{"index": 0, **head, "function": function}]
    return event({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]})


@pytest.fixture
def saying(lane: Lane) -> Lane:
    """Says the text, in small pieces."""
    said = [delta(piece) for piece in pieces(SAID)]
    lane.upstream.script(stream(*said, finish(), usage_event(), DONE))
    return lane


@pytest.fixture
def calling(lane: Lane) -> Lane:
    """Calls a tool, in small pieces."""
    said = [call(piece, at == 0) for at, piece in enumerate(pieces(ARGUMENTS, 3))]
    lane.upstream.script(stream(*said, finish("tool_calls"), usage_event(), DONE))
    return lane


@pytest.fixture
def claude(gateway: Gateway) -> Iterator[anthropic.Anthropic]:
    with anthropic_client(gateway) as made:
        yield made


def test_a_chat_stream(client: openai.OpenAI, saying: Lane, told: str) -> None:
    messages: Any = [{"role": "user", "content": "who?"}]
    with client.chat.completions.stream(model=saying.model, messages=messages) as heard:
        said = "".join(each.delta for each in heard if each.type == "content.delta")
        final = heard.get_final_completion().choices[0]
    assert said == told
    assert (final.message.content, final.finish_reason) == (told, "stop")


def test_a_chat_stream_that_calls(client: openai.OpenAI, calling: Lane, called: Any) -> None:
    messages: Any = [{"role": "user", "content": "who?"}]
    answer = client.chat.completions.create(model=calling.model, messages=messages, stream=True)
    heard = [each.choices[0] for each in answer if each.choices]
    calls = [tool for choice in heard for tool in choice.delta.tool_calls or []]
    functions = [tool.function for tool in calls if tool.function]
    assert [tool.id for tool in calls if tool.id] == ["call_1"]
    assert [function.name for function in functions if function.name] == ["write"]
    assert json.loads("".join(function.arguments or "" for function in functions)) == called
    assert heard[-1].finish_reason == "tool_calls"


def test_a_responses_stream_and_what_is_stored(
    client: openai.OpenAI, saying: Lane, told: str
) -> None:
    with client.responses.stream(model=saying.model, input="who?") as heard:
        events = list(heard)
        final = heard.get_final_response()
    kinds = [each.type for each in events]
    assert kinds.count("response.completed") == 1
    assert kinds[-1] == "response.completed"
    assert kinds.count("response.output_text.done") == 1
    deltas = [each.delta for each in events if each.type == "response.output_text.delta"]
    assert "".join(deltas) == told
    (done,) = [each.text for each in events if each.type == "response.output_text.done"]
    assert (done, final.output_text) == (told, told)
    last = max(at for at, kind in enumerate(kinds) if kind == "response.output_text.delta")
    assert last < kinds.index("response.output_text.done")
    numbers = [each.sequence_number for each in events]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert client.responses.retrieve(final.id).output_text == told


def test_a_responses_stream_that_calls(client: openai.OpenAI, calling: Lane, called: Any) -> None:
    with client.responses.stream(model=calling.model, input="who?") as heard:
        events = list(heard)
        final = heard.get_final_response()
    (tool,) = [each for each in final.output if each.type == "function_call"]
    assert json.loads(tool.arguments) == called
    kind = "response.function_call_arguments"
    deltas = [each.delta for each in events if each.type == f"{kind}.delta"]
    (done,) = [each.arguments for each in events if each.type == f"{kind}.done"]
    assert "".join(deltas) == done == tool.arguments
    assert json.loads(client.responses.retrieve(final.id).output[0].arguments) == called  # type: ignore[union-attr]


def test_a_message_stream(claude: anthropic.Anthropic, saying: Lane, told: str) -> None:
    messages: Any = [{"role": "user", "content": "who?"}]
    with claude.messages.stream(model=saying.model, max_tokens=500, messages=messages) as heard:
        said = "".join(heard.text_stream)
        final = heard.get_final_message()
    assert said == told
    assert [getattr(block, "text", None) for block in final.content] == [told]
    assert final.stop_reason == "end_turn"


def test_a_message_stream_that_calls(
    claude: anthropic.Anthropic, calling: Lane, called: Any
) -> None:
    messages: Any = [{"role": "user", "content": "who?"}]
    with claude.messages.stream(model=calling.model, max_tokens=500, messages=messages) as heard:
        (block,) = heard.get_final_message().content
    assert block.type == "tool_use"
    assert block.input == called


def test_a_stream_of_geminis(gateway: Gateway, saying: Lane, told: str) -> None:
    options = genai.types.HttpOptions(base_url=gateway.url, timeout=30_000)
    with genai.Client(api_key=gateway.key, http_options=options) as client:
        chunks = list(client.models.generate_content_stream(model=saying.model, contents="who?"))
    assert "".join(chunk.text or "" for chunk in chunks) == told

    # As one list.
    body = {"contents": [{"role": "user", "parts": [{"text": "who?"}]}]}
    path = f"/v1beta/models/{saying.model}:streamGenerateContent"
    listed = expect(gateway.caller.post(path, json=body), 200)
    parts = [part for each in listed for part in each["candidates"][0]["content"]["parts"]]
    assert "".join(part.get("text", "") for part in parts) == told


def test_a_call_of_geminis(gateway: Gateway, calling: Lane, called: Any) -> None:
    body = {"contents": [{"role": "user", "parts": [{"text": "who?"}]}]}
    path = f"/v1beta/models/{calling.model}:streamGenerateContent"
    listed = expect(gateway.caller.post(path, json=body), 200)
    parts = [part for each in listed for part in each["candidates"][0]["content"].get("parts", [])]
    (told,) = [part["functionCall"] for part in parts if "functionCall" in part]
    card = told["args"].pop("card")
    assert told["args"] == {name: called[name] for name in ("to", "text")}
    assert str(card) in (str(called["card"]), "4111111111111111")


def test_a_response_in_the_background_is_stored_as_streamed(
    client: openai.OpenAI, saying: Lane, told: str
) -> None:
    made = client.responses.create(model=saying.model, input="who?", background=True)

    def look() -> Any:
        now = client.responses.retrieve(made.id)
        return now if now.status not in ("queued", "in_progress") else None

    kept = eventually(look, "the response ends", within_s=30, every_s=0.1)
    assert (kept.status, kept.output_text) == ("completed", told)
    events = list(client.responses.retrieve(made.id, stream=True))
    deltas = [each.delta for each in events if each.type == "response.output_text.delta"]
    assert "".join(deltas) == told
    assert [each.type for each in events].count("response.completed") == 1


def test_an_interaction_is_stored_as_it_was_said(gateway: Gateway, saying: Lane, told: str) -> None:
    body = {"model": saying.model, "input": "who?", "background": True}
    made = expect(gateway.caller.post("/v1beta/interactions", json=body), 200)

    def look() -> Any:
        now = expect(gateway.caller.get(f"/v1beta/interactions/{made['id']}"), 200)
        return now if now["status"] not in ("queued", "in_progress") else None

    kept = eventually(look, "the interaction ends", within_s=30, every_s=0.1)
    assert kept["status"] == "completed"
    assert json.dumps(told)[1:-1] in json.dumps(kept)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_providers_of_every_dialect(
    client: openai.OpenAI, standin: dict[str, str], action: str, dialect: str
) -> None:
    """What the stand-in echoes comes in its dialect's own events."""
    model = f"{standin[dialect]}/standin"
    asked = f"Say {MAIL} to me."
    with client.responses.stream(model=model, input=asked) as heard:
        events = list(heard)
        final = heard.get_final_response().output_text
    deltas = [each.delta for each in events if each.type == "response.output_text.delta"]
    assert "".join(deltas) == final
    assert (MAIL in final) == (action == "warn")
