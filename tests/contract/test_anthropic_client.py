"""The official `anthropic` client works through the gateway, whichever dialect the provider speaks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.dialects import DIALECTS
from tests.support.polling import eventually
from tests.support.processes import Gateway, expect
from tests.support.sdk_clients import anthropic_client
from tests.support.sdks import anthropic, openai
from tests.support.upstream import (
    CLOSE,
    SSE_HEAD,
    Upstream,
    chunk,
    delta,
    finish,
    reply,
    stream,
    usage_event,
)

MESSAGES: Any = [{"role": "user", "content": "Say hello."}]
WEATHER: Any = {
    "name": "weather",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}


def said(message: Any) -> list[dict[str, Any]]:
    """The blocks, without what the client adds to them."""
    return [block.model_dump(exclude={"parsed_output"}) for block in message.content]


def event(name: str, data: str) -> bytes:
    """One event as Anthropic's streams have it."""
    return f"event: {name}\ndata: {data}\n\n".encode()


@pytest.fixture
def client(gateway: Gateway) -> Iterator[anthropic.Anthropic]:
    with anthropic_client(gateway) as made:
        yield made


@pytest.fixture(params=DIALECTS)
def model(request: pytest.FixtureRequest, standin: dict[str, str]) -> str:
    return f"{standin[request.param]}/standin"


def test_a_message(client: anthropic.Anthropic, model: str) -> None:
    """Text, stop reason, usage and the gateway's headers are where the client looks for them."""
    raw = client.messages.with_raw_response.create(
        model=f"{model}@tokens_cached=3", max_tokens=100, system="Be brief.", messages=MESSAGES
    )
    answer = raw.parse()
    assert answer.content[0].type == "text"
    assert "Say hello." in answer.content[0].text
    assert answer.stop_reason == "end_turn"
    assert answer.usage.cache_read_input_tokens == 3
    assert str(answer.usage.input_tokens + 3) == raw.headers["x-gateway-tokens-in"]
    assert str(answer.usage.output_tokens) == raw.headers["x-gateway-tokens-out"]


def test_a_cut_answer(client: anthropic.Anthropic, model: str) -> None:
    answer = client.messages.create(model=model, max_tokens=2, messages=MESSAGES)
    assert answer.stop_reason == "max_tokens"
    assert answer.usage.output_tokens == 2


def test_the_stream_helper(client: anthropic.Anthropic, model: str) -> None:
    """The pieces, joined, are the plain answer; the final message has stop reason and usage."""
    plain = client.messages.create(model=model, max_tokens=100, messages=MESSAGES)
    with client.messages.stream(model=model, max_tokens=100, messages=MESSAGES) as pieces:
        text = "".join(pieces.text_stream)
        final = pieces.get_final_message()
    assert plain.content[0].type == "text"
    assert text == plain.content[0].text
    assert said(final) == said(plain)
    assert final.stop_reason == "end_turn"
    assert (final.usage.input_tokens, final.usage.output_tokens) == (
        plain.usage.input_tokens,
        plain.usage.output_tokens,
    )


@pytest.mark.parametrize("streamed", (False, True), ids=("plain", "streamed"))
@pytest.mark.parametrize("failed", (False, True), ids=("result", "failure"))
def test_tools(client: anthropic.Anthropic, model: str, streamed: bool, failed: bool) -> None:
    """A tool is called, its result or its failure is taken, and the ids stay what they were."""
    asked: Any = {"model": model, "max_tokens": 100, "tools": [WEATHER]}
    if streamed:
        with client.messages.stream(messages=MESSAGES, **asked) as pieces:
            answer = pieces.get_final_message()
    else:
        answer = client.messages.create(messages=MESSAGES, **asked)
    assert answer.stop_reason == "tool_use"
    (call,) = [block for block in answer.content if block.type == "tool_use"]
    assert call.name == "weather"
    assert "city" in call.input
    result: Any = {
        "type": "tool_result",
        "tool_use_id": call.id,
        "content": [{"type": "text", "text": "21 degrees"}],
        "is_error": failed,
    }
    turns: Any = [
        *MESSAGES,
        {"role": "assistant", "content": answer.content},
        {"role": "user", "content": [result]},
    ]
    last = client.messages.create(messages=turns, **asked)
    assert last.content[0].type == "text"
    assert "21 degrees" in last.content[0].text


def test_thinking(client: anthropic.Anthropic, standin: dict[str, str]) -> None:
    """Thinking and its signature come through, plain and streamed, and may be sent back."""
    asked: Any = {
        "model": f"{standin['anthropic']}/standin",
        "max_tokens": 2000,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
    }
    plain = client.messages.create(messages=MESSAGES, **asked)
    with client.messages.stream(messages=MESSAGES, **asked) as pieces:
        streamed = pieces.get_final_message()
    assert said(streamed) == said(plain)
    assert plain.content[0].type == "thinking"
    assert plain.content[0].signature.startswith("sig_")
    turns: Any = [*MESSAGES, {"role": "assistant", "content": plain.content}, *MESSAGES]
    assert client.messages.create(messages=turns, **asked).stop_reason == "end_turn"


def test_thinking_at_a_provider_of_the_other_dialect(
    client: anthropic.Anthropic, gateway: Gateway, upstream: Upstream
) -> None:
    """`reasoning_content` is thinking; what was thought before is not sent back."""
    lane = gateway.add_lane(upstream)
    message = {"role": "assistant", "content": "42", "reasoning_content": "Hm."}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    upstream.script(reply({"id": "c", "model": "m", "choices": [choice]}))
    asked: Any = {"model": lane.model, "max_tokens": 9000}
    asked["thinking"] = {"type": "enabled", "budget_tokens": 8000}
    answer = client.messages.create(messages=MESSAGES, **asked)
    assert [block.type for block in answer.content] == ["thinking", "text"]
    assert upstream.last.json()["reasoning_effort"] == "medium"
    turns: Any = [*MESSAGES, {"role": "assistant", "content": answer.content}, *MESSAGES]
    client.messages.create(messages=turns, **asked)
    assert upstream.last.json()["messages"][1] == {"role": "assistant", "content": "42"}


def test_counting_tokens(client: anthropic.Anthropic, model: str) -> None:
    few = client.messages.count_tokens(model=model, messages=MESSAGES).input_tokens
    more: Any = [{"role": "user", "content": "Say hello. " * 100}]
    many = client.messages.count_tokens(model=model, messages=more).input_tokens
    assert 0 < few < many


def test_errors_of_the_gateway(
    client: anthropic.Anthropic, gateway: Gateway, standin: dict[str, str]
) -> None:
    """What the gateway refuses is raised as the exception that the client has for it."""
    with pytest.raises(anthropic.NotFoundError) as unknown:
        client.messages.create(model="nobody/m", max_tokens=1, messages=MESSAGES)
    assert isinstance(unknown.value.body, dict)
    assert unknown.value.body["error"]["type"] == "not_found_error"
    with pytest.raises(anthropic.AuthenticationError):
        client.with_options(api_key="sk-fl-wrong").messages.create(
            model="nobody/m", max_tokens=1, messages=MESSAGES
        )
    with pytest.raises(anthropic.BadRequestError, match="mcp_servers"):
        client.messages.create(
            model=f"{standin['openai']}/standin",
            max_tokens=1,
            extra_body={"mcp_servers": [{"type": "url", "url": "https://a.example", "name": "a"}]},
            messages=MESSAGES,
        )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_errors_of_the_provider(
    client: anthropic.Anthropic, gateway: Gateway, upstream: Upstream, dialect: str
) -> None:
    """A provider's failure is raised as one exception class; what the caller can mend, in its words."""
    node = gateway.add_node(f"failing-{dialect}", upstream.url, dialect=dialect)
    gateway.add_connection(node["id"], f"sk-failing-{dialect}-canary")
    told = {"type": "error", "error": {"type": "invalid_request_error", "message": "too long"}}
    upstream.script(reply(told, 400), reply({}, 529), reply({}, 429, [("Retry-After", "9")]))
    ask: Any = {"model": f"failing-{dialect}/m", "max_tokens": 9, "messages": MESSAGES}
    with pytest.raises(anthropic.BadRequestError, match="too long"):
        client.messages.create(**ask)
    with pytest.raises(anthropic.APIStatusError) as overloaded:
        client.messages.create(**ask)
    assert overloaded.value.status_code == 503
    with pytest.raises(anthropic.RateLimitError) as limited:
        client.messages.create(**ask)
    assert limited.value.response.headers["retry-after"] == "9"


@pytest.mark.parametrize("directive", ("cut_after=2", "error_after=2"))
def test_a_broken_stream_is_raised(client: anthropic.Anthropic, model: str, directive: str) -> None:
    """The pieces that came are handed out, then the client raises: it never ends as if all were well."""
    got: list[str] = []
    with (
        pytest.raises(anthropic.APIStatusError),
        client.messages.stream(
            model=f"{model}@{directive}", max_tokens=100, messages=MESSAGES
        ) as pieces,
    ):
        got.extend(pieces.text_stream)
    assert len(got) == 2


def test_a_stream_is_recorded_with_its_usage(
    client: anthropic.Anthropic, gateway: Gateway, upstream: Upstream
) -> None:
    """What a translated stream used is what its one record says, and it goes upstream as a chat request."""
    lane = gateway.add_lane(upstream)
    upstream.script(stream(delta("hello"), finish(), usage_event(11, 5), b"data: [DONE]\n\n"))
    raw = client.messages.with_raw_response.create(
        model=lane.model, max_tokens=9, messages=MESSAGES, stream=True
    )
    events = list(raw.parse())
    assert [event.type for event in events][-2:] == ["message_delta", "message_stop"]
    assert upstream.last.target == "/v1/chat/completions"
    assert upstream.last.json()["stream_options"] == {"include_usage": True}
    record = gateway.record(raw.headers["x-gateway-request-id"])
    assert (record["tokensInput"], record["tokensOutput"]) == (11, 5)
    assert (record["outcome"], record["path"]) == ("completed", "/v1/messages")


def test_the_same_dialect_passes_byte_for_byte(gateway: Gateway, upstream: Upstream) -> None:
    """Odd spacing, unknown members and cache marks reach the provider, and its bytes the caller."""
    node = gateway.add_node("anthropic-bytes", upstream.url, dialect="anthropic")
    gateway.add_connection(node["id"], "sk-anthropic-canary")
    before = (
        b'{"max_tokens": 5,\r\n "x":{"y":1E+2}, "system":[{"type":"text","text":"\\u0041",'
        b'"cache_control":{"type":"ephemeral"}}], "model" : '
    )
    after = b' ,"messages":[{"role":"user","content":"hi"}] }\n'
    said = (
        b'{ "type":"message", "content" : [{"type":"text","text":"\\u00e9"}],\n "more": [1.50],'
        b' "usage":{"input_tokens":7,"output_tokens":3} } '
    )
    upstream.script(reply(said))
    answer = gateway.caller.post(
        "/v1/messages",
        content=before + b'"anthropic-bytes/m"' + after,
        headers={"Content-Type": "application/json", "Anthropic-Beta": "one-2026, two-2026"},
    )
    assert (answer.status_code, answer.content) == (200, said)
    assert upstream.last.header("anthropic-beta") == "one-2026, two-2026"
    seen = upstream.last
    assert seen.target == "/v1/messages"
    assert seen.body == before + b'"m"' + after
    assert (seen.header("x-api-key"), seen.header("authorization")) == ("sk-anthropic-canary", None)
    assert seen.header("anthropic-version") == "2023-06-01"

    first = event(
        "message_start", '{"type":"message_start","message":{"usage":{"input_tokens":4}}}'
    )
    text = event(
        "content_block_delta",
        '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}',
    )
    events = (
        first
        + text
        + event("new_kind", '{ "type" : "new_kind" }')
        + event(
            "message_delta",
            '{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":6}}',
        )
        + event("message_stop", '{"type":"message_stop"}')
    )
    upstream.script([SSE_HEAD, chunk(events[:90]), chunk(events[90:]), b"0\r\n\r\n"])
    body = {"model": "anthropic-bytes/m", "max_tokens": 5, "messages": MESSAGES, "stream": True}
    streamed = gateway.caller.post("/v1/messages", json=body)
    assert streamed.content == events
    record = gateway.record(streamed.headers["x-gateway-request-id"])
    assert (record["tokensInput"], record["tokensOutput"]) == (4, 6)

    upstream.script([SSE_HEAD, chunk(first + text), CLOSE])
    cut = gateway.caller.post("/v1/messages", json=body)
    assert cut.content.count(b"event: error\n") == 1
    assert json.loads(cut.content.rsplit(b"data: ", 1)[1])["type"] == "error"


# ------------------------------------------- the `openai` client at a provider of the other dialect


@pytest.fixture
def chat(gateway: Gateway) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=f"{gateway.url}/v1", api_key=gateway.key, max_retries=0, timeout=15
    ) as made:
        yield made


@pytest.mark.parametrize("streamed", (False, True), ids=("plain", "streamed"))
def test_chat_with_tools_at_an_anthropic_provider(
    chat: openai.OpenAI, standin: dict[str, str], streamed: bool
) -> None:
    model = f"{standin['anthropic']}/standin"
    tool: Any = {
        "type": "function",
        "function": {"name": "weather", "parameters": WEATHER["input_schema"]},
    }
    if streamed:
        with chat.chat.completions.stream(model=model, messages=MESSAGES, tools=[tool]) as pieces:
            message: Any = pieces.get_final_completion().choices[0].message
    else:
        made = chat.chat.completions.create(model=model, messages=MESSAGES, tools=[tool])
        message = made.choices[0].message
    assert message.tool_calls
    (call,) = message.tool_calls
    assert call.type == "function"
    assert "city" in json.loads(call.function.arguments)
    asked: Any = {
        "role": "assistant",
        "tool_calls": [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": "weather", "arguments": call.function.arguments},
            }
        ],
    }
    result: Any = {"role": "tool", "tool_call_id": call.id, "content": "21 degrees"}
    last = chat.chat.completions.create(
        model=model, messages=[*MESSAGES, asked, result], tools=[tool]
    )
    assert "21 degrees" in (last.choices[0].message.content or "")


def test_chat_streams_from_an_anthropic_provider(
    chat: openai.OpenAI, standin: dict[str, str]
) -> None:
    model = f"{standin['anthropic']}/standin"
    plain = chat.chat.completions.create(model=model, messages=MESSAGES)
    with chat.chat.completions.create(
        model=model, messages=MESSAGES, stream=True, stream_options={"include_usage": True}
    ) as pieces:
        got = list(pieces)
    text = "".join(piece.choices[0].delta.content or "" for piece in got if piece.choices)
    assert text == plain.choices[0].message.content
    assert got[-1].usage == plain.usage
    assert got[-2].choices[0].finish_reason == "stop"


def test_chat_is_told_what_the_provider_cannot_do(
    chat: openai.OpenAI, standin: dict[str, str]
) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        chat.chat.completions.create(
            model=f"{standin['anthropic']}/standin", messages=MESSAGES, logprobs=True
        )
    assert raised.value.param == "logprobs"
    with (
        pytest.raises(openai.APIError),
        chat.chat.completions.create(
            model=f"{standin['anthropic']}/standin@cut_after=2", messages=MESSAGES, stream=True
        ) as pieces,
    ):
        list(pieces)


def test_the_model_list_is_in_anthropics_form(
    gateway: Gateway, client: anthropic.Anthropic, standin: dict[str, str]
) -> None:
    """Pages forth and back, every model once, and one model by its id."""
    for prefix in standin.values():
        made = {"provider": prefix, "modelId": "standin", "modelName": f"Standin of {prefix}"}
        expect(gateway.admin.post("/api/provider-models", json=made), 201)
    eventually(
        lambda: len(client.models.list().data) >= len(standin), "the relay has the new models"
    )
    pages = list(client.models.list(limit=1).iter_pages())
    forth = [model for page in pages for model in page.data]
    assert [len(page.data) for page in pages] == [1] * len(pages)
    assert [page.has_more for page in pages] == [True] * (len(pages) - 1) + [False]
    ids = [model.id for model in forth]
    assert ids == sorted(set(ids))
    assert len(ids) >= len(standin)
    assert {model.type for model in forth} == {"model"}
    assert all(model.display_name and model.created_at for model in forth)
    names = {model.id: model.display_name for model in forth}
    for prefix in standin.values():
        assert names[f"{prefix}/standin"] == f"Standin of {prefix}"
    back = [page.data[0].id for page in client.models.list(limit=1, before_id=ids[-1]).iter_pages()]
    assert back == ids[-2::-1]
    one = client.models.retrieve(ids[0])
    assert (one.id, one.type, one.display_name) == (ids[0], "model", forth[0].display_name)
    with pytest.raises(anthropic.NotFoundError) as missing:
        client.models.retrieve("nobody/has-it")
    body: Any = missing.value.body
    assert (body["type"], body["error"]["type"]) == ("error", "not_found_error")
    with pytest.raises(anthropic.BadRequestError, match="from 1 to 1000"):
        client.models.list(limit=1001)


@pytest.mark.parametrize("surface", ("models", "beta.models"))
def test_the_model_list_takes_every_parameter_of_its_client(
    gateway: Gateway, client: anthropic.Anthropic, standin: dict[str, str], surface: str
) -> None:
    """Both cursors ask for what is between them; every model is active."""
    prefix = standin["openai"]
    for name in ("between-a", "between-b", "between-c", "between-d"):
        made = {"provider": prefix, "modelId": f"{surface}-{name}"}
        expect(gateway.admin.post("/api/provider-models", json=made), 201)
    models: Any = client.models if surface == "models" else client.beta.models
    more: dict[str, Any] = {} if surface == "models" else {"betas": ["message-batches-2024-09-24"]}
    more |= {"workspace_id": "wrkspc_x", "lifecycle": ["active", "deprecated", "retired"]}
    ids = [f"{prefix}/{surface}-between-{letter}" for letter in "abcd"]
    page = models.list(after_id=ids[0], before_id=ids[3], limit=1, **more)
    assert [model.id for model in page.data] == [ids[1]]
    assert (page.has_more, page.first_id, page.last_id) == (True, ids[1], ids[1])
    assert page.data[0].lifecycle == "active"
    between = models.list(after_id=ids[0], before_id=ids[3], limit=20, **more)
    assert ([model.id for model in between.data], between.has_more) == (ids[1:3], False)
    assert models.list(after_id="after_id", before_id="before_id", limit=1, **more) is not None
    gone = models.list(**{**more, "lifecycle": ["retired"]})
    assert (gone.data, gone.has_more) == ([], False)
    more.pop("lifecycle")
    assert models.retrieve(ids[0], **more).lifecycle == "active"
    with pytest.raises(anthropic.BadRequestError, match="lifecycle"):
        models.list(extra_query={"lifecycle": "gone"})


def test_the_model_list_has_two_forms(gateway: Gateway, client: anthropic.Anthropic) -> None:
    """Without `anthropic-version` it is OpenAI's, and caches are told what it depends on."""
    listed = gateway.caller.get("/v1/models")
    assert listed.json()["object"] == "list"
    raw = client.models.with_raw_response.list(limit=1000)
    for headers in (listed.headers, raw.headers):
        assert "anthropic-version" in headers["vary"]
    assert {each["id"] for each in listed.json()["data"]} == {
        model.id for model in raw.parse().data
    }
    refused = anthropic.Anthropic(base_url=gateway.url, api_key="sk-fl-wrong", max_retries=0)
    with refused, pytest.raises(anthropic.AuthenticationError) as fault:
        refused.models.list()
    body: Any = fault.value.body
    assert body["error"]["type"] == "authentication_error"


@pytest.mark.parametrize("streamed", (False, True), ids=("plain", "streamed"))
def test_the_tool_runner(client: anthropic.Anthropic, model: str, streamed: bool) -> None:
    """It asks for a thread by itself. Where the provider has none it goes on without, and ends with an answer."""
    called = []

    @anthropic.beta_tool
    def weather(city: str) -> str:
        """The weather of a city."""
        called.append(city)
        return "21 degrees"

    asked: Any = {"model": model, "max_tokens": 100, "tools": [weather], "messages": MESSAGES}
    if streamed:
        final = None
        for pieces in client.beta.messages.tool_runner(stream=True, **asked):
            final = pieces.get_final_message()
    else:
        final = client.beta.messages.tool_runner(**asked).until_done()
    assert final is not None
    assert final.stop_reason == "end_turn"
    assert len(called) == 1


def test_a_thread_that_cannot_be_expressed(
    client: anthropic.Anthropic, standin: dict[str, str]
) -> None:
    """The details are those that the clients know."""
    with pytest.raises(anthropic.BadRequestError) as refused:
        client.beta.messages.create(
            model=f"{standin['openai']}/standin",
            max_tokens=10,
            messages=MESSAGES,
            thread={"type": "create"},
        )
    body: Any = refused.value.body
    assert body["error"]["details"] == {
        "error_code": "thread_unsupported_request",
        "unsupported": ["thread"],
    }


def test_what_a_provider_says_of_its_threads(
    client: anthropic.Anthropic, gateway: Gateway, upstream: Upstream
) -> None:
    """A thread is held by one account. A client knows by the code of the refusal that it must send all again."""
    lane = gateway.add_lane(upstream, dialect="anthropic")
    details = {"error_code": "thread_not_found", "hint": "sk-secret"}
    fault = {"type": "not_found_error", "message": "No such thread.", "details": details}
    upstream.script(reply({"type": "error", "error": fault}, status=404))
    with pytest.raises(anthropic.APIStatusError) as refused:
        client.beta.messages.create(
            model=f"{lane.prefix}/m",
            max_tokens=10,
            messages=MESSAGES,
            thread={"type": "continue", "previous_message_id": "msg_1"},
        )
    body: Any = refused.value.body
    assert body["error"]["details"] == {"error_code": "thread_not_found"}
    assert upstream.last.json()["thread"]["previous_message_id"] == "msg_1"
