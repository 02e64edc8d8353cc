"""The official `openai` client's responses work through the gateway, whichever dialect the provider speaks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from tests.support.dialects import DIALECTS
from tests.support.processes import Gateway
from tests.support.sdks import openai
from tests.support.upstream import Upstream, reply

WEATHER: Any = {
    "type": "function",
    "name": "weather",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}


class Place(BaseModel):
    city: str


@pytest.fixture(params=DIALECTS)
def model(request: pytest.FixtureRequest, standin: dict[str, str]) -> str:
    return f"{standin[request.param]}/standin"


def test_a_response(client: openai.OpenAI, model: str) -> None:
    """Text, status, usage and the gateway's headers are where the client looks for them."""
    raw = client.responses.with_raw_response.create(
        model=f"{model}@tokens_cached=3",
        input="Say hello.",
        instructions="Be brief.",
        metadata={"berth": "7"},
    )
    answer = raw.parse()
    assert "Say hello." in answer.output_text
    assert (answer.status, answer.object) == ("completed", "response")
    assert answer.id.startswith("resp_")
    assert answer.metadata == {"berth": "7"}
    assert answer.instructions == "Be brief."
    assert answer.usage is not None
    assert answer.usage.input_tokens_details.cached_tokens == 3
    assert str(answer.usage.input_tokens) == raw.headers["x-gateway-tokens-in"]
    assert str(answer.usage.output_tokens) == raw.headers["x-gateway-tokens-out"]


def test_a_cut_response(client: openai.OpenAI, model: str) -> None:
    answer = client.responses.create(model=model, max_output_tokens=2, input="Say hello.")
    assert answer.status == "incomplete"
    assert answer.incomplete_details is not None
    assert answer.incomplete_details.reason == "max_output_tokens"


def test_the_stream_helper(client: openai.OpenAI, model: str) -> None:
    """The pieces, joined, are the plain answer; events are numbered through and end once."""
    plain = client.responses.create(model=model, input="Say hello.")
    with client.responses.stream(model=model, input="Say hello.") as pieces:
        events = list(pieces)
        final = pieces.get_final_response()
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == plain.output_text == final.output_text
    assert final.usage == plain.usage
    raw = list(client.responses.create(model=model, input="Say hello.", stream=True))
    assert [event.sequence_number for event in raw] == list(range(len(raw)))
    assert (raw[0].type, raw[-1].type) == ("response.created", "response.completed")
    assert sum(event.type == "response.completed" for event in raw) == 1


@pytest.mark.parametrize("streamed", (False, True), ids=("plain", "streamed"))
def test_tools(client: openai.OpenAI, model: str, streamed: bool) -> None:
    """A tool is called, its result is taken, and the ids stay what they were."""
    asked: Any = {"model": model, "tools": [WEATHER]}
    question: Any = [{"role": "user", "content": "Weather?"}]
    if streamed:
        with client.responses.stream(input=question, **asked) as pieces:
            answer: Any = pieces.get_final_response()
    else:
        answer = client.responses.create(input=question, **asked)
    (call,) = [item for item in answer.output if item.type == "function_call"]
    assert (call.name, call.arguments) == ("weather", '{"city":"example"}')
    turns: Any = [
        *question,
        {"type": "function_call", "call_id": call.call_id, "name": call.name}
        | {"arguments": call.arguments},
        {"type": "function_call_output", "call_id": call.call_id, "output": "21 degrees"},
    ]
    assert "21 degrees" in client.responses.create(input=turns, **asked).output_text


def test_structured_output(client: openai.OpenAI, model: str) -> None:
    answer = client.responses.parse(model=model, input="Where?", text_format=Place)
    assert answer.output_parsed == Place(city="example")


@pytest.mark.parametrize("dialect", ("openai-responses", "anthropic", "gemini"))
@pytest.mark.parametrize("streamed", (False, True), ids=("plain", "streamed"))
def test_reasoning(
    client: openai.OpenAI, standin: dict[str, str], dialect: str, streamed: bool
) -> None:
    """Reasoning comes as an item with a summary, and may be sent back with what is sealed in it."""
    asked: Any = {"model": f"{standin[dialect]}/standin", "reasoning": {"effort": "medium"}}
    asked["include"] = ["reasoning.encrypted_content"]
    question: Any = [{"role": "user", "content": "Think."}]
    if streamed:
        with client.responses.stream(input=question, **asked) as pieces:
            answer: Any = pieces.get_final_response()
    else:
        answer = client.responses.create(input=question, **asked)
    thought, said = answer.output
    assert (thought.type, said.type) == ("reasoning", "message")
    assert thought.summary[0].text == "The stand-in thinks before it speaks."
    # Gemini signs what it streams after the text, where there is no thinking left to sign.
    assert bool(thought.encrypted_content) == (not streamed or dialect != "gemini")
    items: Any = [item.model_dump(exclude_none=True, exclude={"parsed"}) for item in answer.output]
    for item in items:
        for part in item.get("content") or []:
            part.pop("parsed", None)
    again = client.responses.create(input=[*question, *items, *question], **asked)
    assert again.status == "completed"


def test_errors(client: openai.OpenAI, standin: dict[str, str]) -> None:
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model="nobody/m", input="x")
    with pytest.raises(openai.BadRequestError, match=r"tools\[0\].type") as refused:
        client.responses.create(
            model=f"{standin['anthropic']}/standin",
            input="News?",
            tools=[{"type": "mcp", "server_label": "a", "server_url": "https://a.example"}],
        )
    assert refused.value.param == "tools[0].type"


def test_a_tool_that_openai_runs_is_left_out(
    client: openai.OpenAI, standin: dict[str, str]
) -> None:
    answer = client.responses.with_raw_response.create(
        model=f"{standin['anthropic']}/standin", input="News?", tools=[{"type": "web_search"}]
    )
    assert answer.headers["x-gateway-left-out"] == "web_search"
    assert answer.parse().output_text


PATCH = '*** Begin Patch\n+"a\\b" é\n*** End Patch'
APPLY_PATCH: Any = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Edits files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: /(.|\\n)+/"},
}


def ordered(name: str, arguments: dict[str, Any]) -> str:
    """A prompt by which the stand-in calls a tool."""
    return f"please <call>{json.dumps({'name': name, 'arguments': arguments})}</call>"


@pytest.mark.parametrize("dialect", ("openai", "anthropic", "gemini"))
@pytest.mark.parametrize("streamed", (False, True), ids=("plain", "streamed"))
def test_a_custom_tool_is_called_with_its_text(
    client: openai.OpenAI, standin: dict[str, str], dialect: str, streamed: bool
) -> None:
    asked: Any = {"model": f"{standin[dialect]}/standin", "tools": [APPLY_PATCH], "store": False}
    question: Any = [{"role": "user", "content": ordered("apply_patch", {"input": PATCH})}]
    if streamed:
        with client.responses.stream(input=question, **asked) as pieces:
            events = list(pieces)
            answer: Any = pieces.get_final_response()
        text = [e.delta for e in events if e.type == "response.custom_tool_call_input.delta"]
        assert "".join(text) == PATCH
    else:
        answer = client.responses.create(input=question, **asked)
    call = answer.output[-1]
    assert (call.type, call.name, call.input) == ("custom_tool_call", "apply_patch", PATCH)
    result = {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "Done."}
    history = [*question, call.model_dump(exclude_none=True), result]
    again = client.responses.create(input=history, **asked)
    assert (again.status, again.output_text != "") == ("completed", True)


@pytest.mark.parametrize("dialect", ("openai", "anthropic", "gemini"))
@pytest.mark.parametrize("streamed", (False, True), ids=("plain", "streamed"))
def test_the_function_of_a_namespace_is_called_by_its_own_name(
    client: openai.OpenAI, standin: dict[str, str], dialect: str, streamed: bool
) -> None:
    function = {"type": "function", "name": "spawn", "parameters": {"type": "object"}}
    group: Any = {"type": "namespace", "name": "agents", "description": "A", "tools": [function]}
    shell: Any = {"type": "shell", "environment": {"type": "local"}}
    asked: Any = {"model": f"{standin[dialect]}/standin", "tools": [group, shell], "store": False}
    for order, kind in (
        (ordered("agents__spawn", {"a": 1}), "function_call"),
        (ordered("shell", {"commands": ["ls"]}), "shell_call"),
    ):
        if streamed:
            with client.responses.stream(input=order, **asked) as pieces:
                answer: Any = pieces.get_final_response()
        else:
            answer = client.responses.create(input=order, **asked)
        call = answer.output[-1]
        assert call.type == kind
        if kind == "function_call":
            assert (call.namespace, call.name, call.arguments) == ("agents", "spawn", '{"a":1}')
        else:
            assert call.action.commands == ["ls"]


@pytest.mark.parametrize("directive", ("cut_after=2", "error_after=2"))
def test_a_broken_stream_is_told_as_failed(
    client: openai.OpenAI, model: str, directive: str
) -> None:
    """S1, S4: one terminal event, and not that of a whole answer."""
    stream = client.responses.create(model=f"{model}@{directive}", input="Say hello.", stream=True)
    ends: list[str] = []
    try:
        ends = [event.type for event in stream]
    except openai.APIError:
        # The provider's own error event, which the client raises.
        ends.append("error")
    assert ends[-1] in ("response.failed", "error")
    assert not {"response.completed", "response.incomplete"} & set(ends)


# ------------------------------------------------------------------------------------ kept responses


@pytest.mark.parametrize("streamed", (False, True), ids=("plain", "streamed"))
def test_a_response_is_kept_and_gone_on_from(
    client: openai.OpenAI, model: str, streamed: bool
) -> None:
    """`store` and `previous_response_id` work whoever answers: the provider sees the whole conversation."""
    asked: Any = {"model": f"{model}", "tools": [WEATHER]}
    if streamed:
        with client.responses.stream(input="Weather?", **asked) as pieces:
            first: Any = pieces.get_final_response()
    else:
        first = client.responses.create(input="Weather?", **asked)
    (call,) = [item for item in first.output if item.type == "function_call"]
    kept = client.responses.retrieve(first.id)
    assert kept.output[-1].model_dump() == call.model_dump(exclude={"parsed_arguments"})
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "21 degrees"}
    second = client.responses.create(input=[result], previous_response_id=first.id, **asked)
    assert "21 degrees" in second.output_text
    third = client.responses.create(
        model=model, input="Again.", previous_response_id=second.id, store=False
    )
    assert third.status == "completed"
    items = client.responses.input_items.list(first.id).data
    assert [item.type for item in items] == ["message"]
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(third.id)
    with pytest.raises(openai.BadRequestError, match="completed"):
        client.responses.cancel(first.id)
    client.responses.delete(second.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model=model, input="x", previous_response_id=second.id)


def test_a_kept_response_is_its_owners(
    client: openai.OpenAI, gateway: Gateway, standin: dict[str, str]
) -> None:
    """Another key's response is the same 404 as one that never was, on every route."""
    mine = client.responses.create(model=f"{standin['openai']}/standin", input="Say hello.")
    other = gateway.create_key()["key"]
    stranger = client.with_options(api_key=other)
    told: list[str] = []
    for response_id in (mine.id, "resp_" + "0" * 32):
        for attempt in (
            lambda name=response_id: stranger.responses.retrieve(name),
            lambda name=response_id: stranger.responses.delete(name),
            lambda name=response_id: stranger.responses.cancel(name),
            lambda name=response_id: stranger.responses.input_items.list(name),
            lambda name=response_id: stranger.responses.create(
                model=f"{standin['openai']}/standin", input="x", previous_response_id=name
            ),
        ):
            with pytest.raises(openai.NotFoundError) as refused:
                attempt()
            told.append(refused.value.message.replace(response_id, "ID"))
    assert [text.split("requestId")[0] for text in told[:5]] == [
        text.split("requestId")[0] for text in told[5:]
    ]
    assert client.responses.retrieve(mine.id).output_text == mine.output_text


def test_the_second_path_of_a_route_is_the_same_route(
    client: openai.OpenAI, gateway: Gateway, standin: dict[str, str]
) -> None:
    """`/api/v1/...`, whoever answers: the relay itself, or control."""
    second = client.with_options(base_url=f"{gateway.url}/api/v1")
    model = f"{standin['anthropic']}/standin"
    answer = second.responses.create(model=model, input="Say hello.")
    assert second.responses.retrieve(answer.id) == client.responses.retrieve(answer.id)
    messages: Any = [{"role": "user", "content": "Say hello."}]
    chat = second.chat.completions.create(model=model, messages=messages)
    assert chat.choices[0].message.content == answer.output_text
    assert [m.id for m in second.models.list()] == [m.id for m in client.models.list()]
    assert gateway.caller.get("/api/v1/keys").status_code == 404


def test_tokens_are_counted(client: openai.OpenAI, standin: dict[str, str]) -> None:
    """By the provider where its dialect has the call, else by an estimate; what came before counts as well."""
    for dialect in DIALECTS:
        model = f"{standin[dialect]}/standin"
        counted = client.responses.input_tokens.count(model=model, input="Say hello.")
        assert counted.object == "response.input_tokens"
        assert counted.input_tokens > 0
        first = client.responses.create(model=model, input="A long tale of a boat. " * 40)
        more = client.responses.input_tokens.count(
            model=model, input="Go on.", previous_response_id=first.id
        )
        assert more.input_tokens > 100, dialect
    with pytest.raises(openai.NotFoundError):
        client.responses.input_tokens.count(
            model=model, input="Go on.", previous_response_id="resp_none"
        )


def test_tokens_are_estimated_where_the_provider_has_no_such_call(
    client: openai.OpenAI, gateway: Gateway, upstream: Upstream
) -> None:
    lane = gateway.add_lane(upstream, dialect="openai-responses")
    upstream.script(reply({"error": {"message": "Not found."}}, 404))
    counted = client.responses.input_tokens.count(model=lane.model, input="Say hello.")
    assert counted.input_tokens > 0
    assert upstream.requests[-1].target == "/v1/responses/input_tokens"
    upstream.script(reply({"object": "response.input_tokens", "input_tokens": 41}))
    assert client.responses.input_tokens.count(model=lane.model, input="x").input_tokens == 41


def test_a_conversation_is_compacted(client: openai.OpenAI, standin: dict[str, str]) -> None:
    """What comes of it is the input of the next response; what is gone on from is part of it."""
    model = f"{standin['openai-responses']}/standin"
    first = client.responses.create(model=model, input="My boat is called Ida.")
    raw = client.responses.with_raw_response.compact(
        model=model, input="What is it called?", previous_response_id=first.id
    )
    compacted = raw.parse()
    assert compacted.object == "response.compaction"
    assert [item.type for item in compacted.output] == ["message", "message", "compaction"]
    assert raw.headers["x-gateway-tokens-in"] == str(compacted.usage.input_tokens)
    asked: Any = raw.http_response.json()["output"]
    asked.append({"role": "user", "content": "Say hello."})
    assert "Say hello." in client.responses.create(model=model, input=asked).output_text
    with pytest.raises(openai.BadRequestError, match="dialect of OpenAI's responses"):
        client.responses.compact(model=f"{standin['anthropic']}/standin", input="hi")
