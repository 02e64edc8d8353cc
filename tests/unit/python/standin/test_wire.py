"""The stand-in over HTTP, by hand and through the official client."""

from __future__ import annotations

import base64
import json
import struct
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.support.tls import NO_AUTHORITIES

if TYPE_CHECKING:
    import openai

SAY_HELLO = [{"role": "user", "content": "hello you"}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 3}},
            "required": ["city", "days"],
        },
    },
}


def post(url: str, path: str = "/v1/chat/completions", **body: Any) -> httpx.Response:
    return httpx.post(
        url + path, json={"model": "standin", "messages": SAY_HELLO} | body, verify=NO_AUTHORITIES
    )


def events(answer: httpx.Response) -> list[Any]:
    """The data of each event; what is not JSON stays text."""
    found = []
    for block in answer.text.split("\n\n"):
        data = block.removeprefix("data: ")
        if data:
            try:
                found.append(json.loads(data))
            except ValueError:
                found.append(data)
    return found


def deltas(answer: httpx.Response) -> list[str]:
    choices = [
        e["choices"][0]["delta"] for e in events(answer) if isinstance(e, dict) and e["choices"]
    ]
    return [delta["content"] for delta in choices if delta.get("content")]


@pytest.fixture
def client(standin_url: str) -> openai.OpenAI:
    import openai

    return openai.OpenAI(api_key="any", base_url=f"{standin_url}/v1", max_retries=0)


@pytest.mark.parametrize(
    "body",
    (
        {},
        {"stream": True},
        {"model": "echo@chunks=40", "stream": True, "stream_options": {"include_usage": True}},
        {"tools": [WEATHER]},
        {"response_format": {"type": "json_object"}},
    ),
)
def test_equal_requests_get_equal_bytes(standin_url: str, body: dict[str, Any]) -> None:
    first, second = (post(standin_url, **body) for _ in range(2))
    assert first.status_code == 200
    assert first.content == second.content


def test_different_requests_get_different_identifiers(standin_url: str) -> None:
    assert post(standin_url, seed=1).json()["id"] != post(standin_url, seed=2).json()["id"]


def test_header_and_model_name_turn_the_same_knobs(standin_url: str) -> None:
    named = post(standin_url, model="standin@tokens_in=9,tokens_out=12")
    headed = httpx.post(
        f"{standin_url}/v1/chat/completions",
        json={"model": "standin", "messages": SAY_HELLO},
        headers={"x-standin": "tokens_in=9,tokens_out=12"},
        verify=NO_AUTHORITIES,
    )
    assert named.content == headed.content
    usage = named.json()["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (
        9,
        12,
        21,
    )


def test_usage_on_a_stream_comes_only_when_asked_for(standin_url: str) -> None:
    silent = events(post(standin_url, stream=True))
    assert silent[-1] == "[DONE]"
    assert all("usage" not in event for event in silent[:-1])

    *chunks, last, done = events(
        post(standin_url, stream=True, stream_options={"include_usage": True})
    )
    assert done == "[DONE]"
    assert all(chunk["usage"] is None and chunk["choices"] for chunk in chunks)
    assert last["choices"] == []
    assert last["usage"]["total_tokens"] > 0


def test_chunks_and_their_size_are_as_asked(standin_url: str) -> None:
    pieces = deltas(post(standin_url, model="standin@chunks=7,chunk_bytes=1000", stream=True))
    assert [len(piece) for piece in pieces] == [1000] * 7


def test_echo_repeats_and_max_tokens_ends_early(standin_url: str) -> None:
    assert post(standin_url, model="echo").json()["choices"][0]["message"]["content"] == "hello you"
    short = post(standin_url, model="echo", max_tokens=1).json()["choices"][0]
    assert (short["message"]["content"], short["finish_reason"]) == ("hello ", "length")


def test_latency_and_gap_are_waited(standin_url: str) -> None:
    started_s = time.monotonic()
    model = "standin@latency_ms=100,first_ms=100,chunks=3,gap_ms=100"
    assert len(deltas(post(standin_url, model=model, stream=True))) == 3
    assert time.monotonic() - started_s >= 0.4


def test_status_and_retry_after(standin_url: str) -> None:
    answer = post(standin_url, model="standin@status=429,retry_after=3")
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "3")
    assert answer.json()["error"]["type"] == "rate_limit_error"
    assert post(standin_url, model="standin@status=503").status_code == 503


def test_a_cut_stream_has_no_end(standin_url: str) -> None:
    cut = post(standin_url, model="standin@cut_after=2", stream=True)
    assert len(deltas(cut)) == 2
    assert "[DONE]" not in cut.text
    assert '"finish_reason":"stop"' not in cut.text


def test_an_error_in_a_stream_is_an_event(standin_url: str) -> None:
    failed = post(standin_url, model="standin@error_after=1", stream=True)
    assert events(failed)[-1]["error"]["code"] == "standin_error"


def test_a_stalled_stream_goes_silent(standin_url: str) -> None:
    body = {"model": "standin@stall_after=1", "messages": SAY_HELLO, "stream": True}
    url = f"{standin_url}/v1/chat/completions"
    with httpx.stream(
        "POST", url, json=body, timeout=httpx.Timeout(5, read=0.5), verify=NO_AUTHORITIES
    ) as answer:
        received = answer.iter_bytes()
        seen = b""
        while seen.count(b"data: ") < 2:  # the role and one piece
            seen += next(received)
        with pytest.raises(httpx.ReadTimeout):
            next(received)
    assert seen.count(b"data: ") == 2


def test_wrong_type_and_malformed_bodies(standin_url: str) -> None:
    odd = post(standin_url, model="standin@content_type=text/html")
    assert odd.headers["content-type"] == "text/html"
    streamed = post(standin_url, model="standin@content_type=text/html", stream=True)
    assert streamed.headers["content-type"] == "text/html"
    with pytest.raises(json.JSONDecodeError):
        post(standin_url, model="standin@malformed=1").json()
    broken = events(post(standin_url, model="standin@malformed=1", stream=True))
    assert sum(isinstance(event, str) for event in broken) == 2  # the broken one and [DONE]


@pytest.mark.parametrize(
    ("body", "param"),
    (
        ({"messages": []}, "messages"),
        ({"model": ""}, "model"),
        ({"model": "standin@chunk=1"}, "model"),
        ({"model": "standin@cut_after=1"}, "stream"),
        ({"n": 99}, "n"),
        ({"tools": [WEATHER], "tool_choice": {"function": {"name": "no"}}}, "tool_choice"),
    ),
)
def test_bad_requests_are_told_what_is_wrong(
    standin_url: str, body: dict[str, Any], param: str
) -> None:
    answer = post(standin_url, **body)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param


def test_a_body_above_a_megabyte_is_taken(standin_url: str) -> None:
    text = "x" * 3_000_000
    answer = post(standin_url, model="echo", messages=[{"role": "user", "content": text}])
    assert answer.json()["choices"][0]["message"]["content"] == text


def test_the_documentation_pages_of_robyn_are_off(standin_url: str) -> None:
    assert httpx.get(f"{standin_url}/docs", verify=NO_AUTHORITIES).status_code == 404


def test_the_official_client_streams_a_tool_call(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model="standin", messages=SAY_HELLO, tools=[WEATHER], stream=True
    )
    name, arguments, reason = "", "", None
    for chunk in stream:
        choice = chunk.choices[0]
        reason = choice.finish_reason or reason
        for call in choice.delta.tool_calls or []:
            name += call.function.name or ""
            arguments += call.function.arguments or ""
    assert (name, json.loads(arguments)) == ("get_weather", {"city": "example", "days": 3})
    assert reason == "tool_calls"


def test_an_answered_tool_call_ends_the_turn(client: openai.OpenAI) -> None:
    asked = client.chat.completions.create(model="standin", messages=SAY_HELLO, tools=[WEATHER])
    message = asked.choices[0].message
    assert message.tool_calls
    answered = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "sunny"}
    final = client.chat.completions.create(
        model="standin", messages=[*SAY_HELLO, message, answered], tools=[WEATHER]
    )
    assert final.choices[0].message.content == "The tool answered: sunny"


def test_the_official_client_gets_json_that_fits(client: openai.OpenAI) -> None:
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    answer = client.chat.completions.create(
        model="standin",
        messages=SAY_HELLO,
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
    )
    assert json.loads(answer.choices[0].message.content or "") == {"ok": True}


def test_the_official_client_reads_completions_and_models(client: openai.OpenAI) -> None:
    answer = client.completions.create(model="echo", prompt="once upon a time")
    assert answer.choices[0].text == "once upon a time"
    pieces = client.completions.create(model="echo", prompt="once upon a time", stream=True)
    assert "".join(piece.choices[0].text for piece in pieces) == "once upon a time"
    assert {model.id for model in client.models.list()} == {"standin", "echo", "standin-embedding"}


def test_embeddings_are_unit_vectors_in_both_encodings(standin_url: str) -> None:
    def embed(**body: Any) -> Any:
        return post(standin_url, "/v1/embeddings", model="standin-embedding", **body).json()

    plain = embed(input=["a cat", "a dog", "red lorry"], dimensions=64)
    vectors = [entry["embedding"] for entry in plain["data"]]
    assert [len(vector) for vector in vectors] == [64] * 3
    assert all(abs(sum(x * x for x in vector) - 1) < 1e-5 for vector in vectors)
    near, far = (
        sum(a * b for a, b in zip(vectors[0], other, strict=True)) for other in vectors[1:]
    )
    assert near > far

    packed = embed(input="a cat", dimensions=64, encoding_format="base64")
    raw = base64.b64decode(packed["data"][0]["embedding"])
    assert list(struct.unpack("<64f", raw)) == vectors[0]
    assert plain["usage"] == {"prompt_tokens": 6, "total_tokens": 6}


def test_a_message_may_order_a_call_and_an_answer(standin_url: str) -> None:
    """So that whole tools can be driven: the call of any function offered, once, and any text."""
    called = {**WEATHER, "function": {**WEATHER["function"], "name": "write"}}
    order = 'go <call>{"name": "write", "arguments": {"city": "Oslo"}}</call>'
    asked = [{"role": "user", "content": order}]
    (choice,) = post(standin_url, messages=asked, tools=[WEATHER, called]).json()["choices"]
    (call,) = choice["message"]["tool_calls"]
    assert call["function"] == {"name": "write", "arguments": '{"city":"Oslo"}'}
    answered = [
        *asked,
        choice["message"],
        {"role": "tool", "content": "ok", "tool_call_id": call["id"]},
    ]
    (choice,) = post(standin_url, messages=answered, tools=[WEATHER, called]).json()["choices"]
    assert choice["message"]["content"] == "The tool answered: ok"
    told = [{"role": "user", "content": "<say>two\nlines</say>"}]
    (choice,) = post(standin_url, messages=told, tools=[WEATHER]).json()["choices"]
    assert choice["message"]["content"] == "two\nlines"
    broken = [{"role": "user", "content": "<call>{</call>"}]
    assert post(standin_url, messages=broken, tools=[WEATHER]).status_code == 400
