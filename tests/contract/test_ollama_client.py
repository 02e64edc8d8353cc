"""The official `ollama` client works through the gateway, whichever dialect the provider speaks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.support.dialects import DIALECTS
from tests.support.processes import Gateway, Lane, expect
from tests.support.sdks import ollama
from tests.support.upstream import Upstream, completion, reply

TIDE: Any = {
    "type": "function",
    "function": {
        "name": "tide",
        "description": "The tide at a place.",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string"}},
            "required": ["place"],
        },
    },
}
PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00"
    b"\x1f\x15\xc4\x89"
)


@contextmanager
def ollama_client(gateway: Gateway, key: str | None = None) -> Iterator[ollama.Client]:
    headers = {"Authorization": f"Bearer {key or gateway.key}"}
    with ollama.Client(host=f"{gateway.url}/ollama", headers=headers, timeout=30) as made:
        yield made


@pytest.fixture
def client(gateway: Gateway) -> Iterator[ollama.Client]:
    with ollama_client(gateway) as made:
        yield made


@pytest.fixture
def plain(gateway: Gateway) -> Iterator[httpx.Client]:
    with gateway.client(headers={"Authorization": f"Bearer {gateway.key}"}) as made:
        yield made


@pytest.fixture(params=DIALECTS)
def model(request: pytest.FixtureRequest, standin: dict[str, str]) -> str:
    return f"{standin[request.param]}/standin"


def test_a_chat(client: ollama.Client, model: str) -> None:
    """Text, reason and counts are where the client looks for them, whole and streamed."""
    asked: Any = [{"role": "user", "content": "Say hello."}]
    answer = client.chat(model=model, messages=asked, options={"temperature": 0.2, "num_ctx": 4096})
    assert "Say hello." in (answer.message.content or "")
    assert (answer.model, answer.done, answer.done_reason) == (model, True, "stop")
    assert answer.prompt_eval_count
    assert answer.eval_count
    assert answer.total_duration
    assert answer.created_at
    pieces = list(client.chat(model=model, messages=asked, stream=True))
    assert "".join(piece.message.content or "" for piece in pieces) == answer.message.content
    assert [piece.done for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    assert (pieces[-1].eval_count, pieces[-1].done_reason) == (answer.eval_count, "stop")


def test_a_cut_chat(client: ollama.Client, model: str) -> None:
    asked: Any = [{"role": "user", "content": "Say hello."}]
    answer = client.chat(model=model, messages=asked, options={"num_predict": 2})
    assert answer.done_reason == "length"


def test_a_prompt(client: ollama.Client, model: str) -> None:
    answer = client.generate(model=model, prompt="Say hello.", system="Be brief.")
    assert "Say hello." in answer.response
    pieces = list(client.generate(model=model, prompt="Say hello.", stream=True))
    assert "Say hello." in "".join(piece.response for piece in pieces)
    assert pieces[-1].done
    assert pieces[-1].eval_count


@pytest.mark.parametrize("streamed", (False, True), ids=("plain", "streamed"))
def test_tools(client: ollama.Client, model: str, streamed: bool) -> None:
    """A tool is called with an object, and its result, sent back by the tool's name, is taken."""
    asked: list[Any] = [{"role": "user", "content": "The tide?"}]
    if streamed:
        pieces = client.chat(model=model, messages=asked, tools=[TIDE], stream=True)
        messages = [piece.message for piece in pieces]
    else:
        messages = [client.chat(model=model, messages=asked, tools=[TIDE]).message]
    (call,) = [call for message in messages for call in message.tool_calls or []]
    assert (call.function.name, call.function.arguments) == ("tide", {"place": "example"})
    said = {"role": "assistant", "content": "", "tool_calls": [call.model_dump()]}
    result = {"role": "tool", "tool_name": "tide", "content": "high water"}
    answer = client.chat(model=model, messages=[*asked, said, result], tools=[TIDE])
    assert "high water" in (answer.message.content or "")


def test_thinking(client: ollama.Client, standin: dict[str, str]) -> None:
    """Thoughts are told apart from the answer, unless the caller switches them off."""
    asked: Any = [{"role": "user", "content": "Think."}]
    for dialect in ("openai-responses", "anthropic", "gemini"):
        model = f"{standin[dialect]}/standin"
        answer = client.chat(model=model, messages=asked, think="medium")
        assert answer.message.thinking, dialect
        pieces = list(client.chat(model=model, messages=asked, think="medium", stream=True))
        thought = "".join(piece.message.thinking or "" for piece in pieces)
        assert thought == answer.message.thinking, dialect
        assert not client.chat(model=model, messages=asked, think=False).message.thinking


def test_a_picture_and_a_schema(client: ollama.Client, lane: Lane, upstream: Upstream) -> None:
    """Both reach a provider in its own words, and the model by its own name."""
    upstream.script(reply(completion()))
    schema = {"type": "object", "properties": {"place": {"type": "string"}}}
    asked: Any = [{"role": "user", "content": "Where is it?", "images": [PNG]}]
    client.chat(model=f"{lane.model}", messages=asked, format=schema, options={"seed": 7})
    sent = upstream.requests[-1].json()
    text, picture = sent["messages"][0]["content"]
    assert text == {"type": "text", "text": "Where is it?"}
    assert picture["image_url"]["url"].startswith("data:image/png;base64,iVBORw0KGgo")
    assert sent["response_format"]["json_schema"]["schema"] == schema
    assert (sent["model"], sent["seed"]) == ("m", 7)


def test_lists(client: ollama.Client, gateway: Gateway, plain: httpx.Client) -> None:
    """The list is that of `/v1/models` without what is no model of texts, and each entry can be shown."""
    node = gateway.add_node("tags", "http://127.0.0.1:9/v1")
    gateway.add_connection(node["id"], "sk-upstream-canary-tags")
    expect(
        gateway.admin.post(
            "/api/provider-models",
            json={
                "provider": "tags",
                "modelId": "talker",
                "modelName": "Talker",
            },
        ),
        201,
    )
    named = {entry.model for entry in client.list().models}
    assert "tags/talker" in named
    listed = {entry["id"] for entry in plain.get("/v1/models").json()["data"]}
    assert named <= listed
    shown = client.show("tags/talker")
    assert "completion" in (shown.capabilities or [])
    assert client.show("tags/talker:latest").details == shown.details
    with pytest.raises(ollama.ResponseError, match="not known") as caught:
        client.show("tags/nobody")
    assert caught.value.status_code == 404
    assert plain.get("/ollama/api/version").json()["version"]
    blind_key = gateway.create_key(blockedModels=["tags/*"])["key"]
    with ollama_client(gateway, blind_key) as blind:
        assert "tags/talker" not in {entry.model for entry in blind.list().models}
    # Clients have a model loaded and unloaded by saying nothing to it.
    assert client.generate(model="tags/talker", prompt="").done_reason == "load"
    assert client.chat(model="tags/talker", keep_alive="0s").done_reason == "unload"


@pytest.mark.parametrize(
    ("path", "body", "named"),
    [
        ("/ollama/api/chat", {"messages": []}, "`model`"),
        ("/ollama/api/chat", {"model": "x/y", "messages": [], "mesages": []}, "`mesages`"),
        ("/ollama/api/chat", {"model": "x/y", "messages": "hi"}, "`messages`"),
        (
            "/ollama/api/chat",
            {"model": "x/y", "messages": [], "options": {"temprature": 1}},
            "`options.temprature`",
        ),
        (
            "/ollama/api/chat",
            {"model": "x/y", "messages": [], "top_logprobs": 21},
            "`top_logprobs`",
        ),
        ("/ollama/api/generate", {"model": "x/y", "prompt": 5}, "`prompt`"),
        ("/ollama/api/generate", {"model": "x/y", "messages": []}, "`messages`"),
        ("/ollama/api/show", {"model": "x/y", "full": True}, "`full`"),
    ],
)
def test_bad_input(plain: httpx.Client, path: str, body: Any, named: str) -> None:
    """One shape, Ollama's, that names the member."""
    answer = plain.post(path, json=body)
    assert answer.status_code == 400, answer.text
    assert list(answer.json()) == ["error"]
    assert named in answer.json()["error"]


def test_refusals_and_failures(client: ollama.Client, gateway: Gateway, upstream: Upstream) -> None:
    lane = gateway.add_lane(upstream)
    asked: Any = [{"role": "user", "content": "hi"}]
    with (
        ollama_client(gateway, "sk-fl-" + "x" * 49) as stranger,
        pytest.raises(ollama.ResponseError) as caught,
    ):
        stranger.chat(model=lane.model, messages=asked)
    assert caught.value.status_code == 401
    upstream.script(reply({"error": {"message": "no such thing", "type": "x"}}, 400))
    with pytest.raises(ollama.ResponseError, match="no such thing") as caught:
        client.chat(model=lane.model, messages=asked)
    assert caught.value.status_code == 400


def test_a_call_is_recorded_and_paid_for(gateway: Gateway, standin: dict[str, str]) -> None:
    """Limits of a key hold here as everywhere."""
    key = gateway.create_key(rateLimits=[{"limit": 1, "window": 86_400}])["key"]
    asked: Any = [{"role": "user", "content": "hi"}]
    model = f"{standin['openai']}/standin"
    with ollama_client(gateway, key) as client:
        client.chat(model=model, messages=asked)
        with pytest.raises(ollama.ResponseError) as caught:
            client.chat(model=model, messages=asked)
    assert caught.value.status_code == 429


def test_embeddings(client: ollama.Client, standin: dict[str, str]) -> None:
    """Of one text and of many, in the order of the texts; the older call has those of one prompt."""
    model = f"{standin['openai']}/standin-embedding"
    one = client.embed(model=model, input="a tide", truncate=True, options={"num_ctx": 512})
    assert one.model == model
    assert len(one.embeddings) == 1
    assert one.prompt_eval_count
    assert one.total_duration
    many = client.embed(model=model, input=["another", "a tide"], keep_alive="5m")
    assert len(many.embeddings) == 2
    assert many.embeddings[1] == one.embeddings[0]
    assert many.embeddings[0] != one.embeddings[0]
    older = client.embeddings(model=model, prompt="a tide")
    assert older.embedding == one.embeddings[0]
    latest = client.embed(model=f"{model}:latest", input="a tide")
    assert latest.embeddings == one.embeddings


@pytest.mark.parametrize("dialect", ["openai", "gemini"])
def test_embeddings_of_a_provider(
    client: ollama.Client, standin: dict[str, str], dialect: str, gateway: Gateway
) -> None:
    """Whichever dialect it speaks. It is recorded as a call of embeddings, with its tokens."""
    model = f"{standin[dialect]}/standin-embedding"
    answer = client.embed(model=model, input=["x", "y"], dimensions=8)
    assert [len(embedding) for embedding in answer.embeddings] == [8, 8]
    record = gateway.records(model=model)[0]
    assert record["endpoint"] == "embeddings"
    assert record["tokensInput"] == answer.prompt_eval_count > 0


def test_embeddings_of_no_text(
    client: ollama.Client, gateway: Gateway, standin: dict[str, str]
) -> None:
    """Clients have a model loaded so: there is nothing to load, but the model must be listed."""
    provider = standin["openai"]
    added = {"provider": provider, "modelId": "listed-embedding"}
    expect(gateway.admin.post("/api/provider-models", json=added), 201)
    assert client.embed(model=f"{provider}/listed-embedding", input=[]).embeddings == []
    with pytest.raises(ollama.ResponseError) as unknown:
        client.embed(model="nobody/knows", input=[])
    assert unknown.value.status_code == 404


def test_refused_embeddings(client: ollama.Client, standin: dict[str, str]) -> None:
    with pytest.raises(ollama.ResponseError, match="No provider has the prefix") as unknown:
        client.embed(model="nobody/knows", input="x")
    assert unknown.value.status_code == 404
    with pytest.raises(ollama.ResponseError, match="embeddings"):
        client.embed(model=f"{standin['anthropic']}/standin", input="x")
