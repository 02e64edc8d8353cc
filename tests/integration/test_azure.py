"""Azure OpenAI: its API without versions, and the one whose URLs contain a version and a deployment. Each call is
compared with that of OpenAI's own client for Azure at one referee.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.support.clouds import connect
from tests.support.processes import Gateway, expect
from tests.support.sdk_clients import openai_client
from tests.support.upstream import (
    DONE,
    Seen,
    Upstream,
    completion,
    delta,
    event,
    finish,
    reply,
    stream,
)

KEY = "azure-key-canary"
VERSION = "2024-10-21"
PREVIEW = "2025-04-01-preview"
DEPLOYMENTS = {
    "gpt-4o": "chat-eu",
    "text-embedding-3-small": "vectors",
    "gpt-image-1": "pictures",
    "tts-1": "voice",
    "whisper-1": "ears",
}
SAY: list[Any] = [{"role": "user", "content": "hello"}]
VECTOR = {"object": "embedding", "index": 0, "embedding": [0.5]}
FILTERS = {"hate": {"filtered": False, "severity": "safe"}}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "gpt-4o",
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


@pytest.fixture
def up() -> Iterator[Upstream]:
    with Upstream() as running:
        yield running


@pytest.fixture
def openais(gateway: Gateway) -> Iterator[openai.OpenAI]:
    with openai_client(gateway) as made:
        yield made


def endpoint(up: Upstream) -> str:
    """The endpoint of a resource as Azure's portal shows it."""
    return f"http://127.0.0.1:{up.port}"


def dated(gateway: Gateway, up: Upstream, version: str = VERSION, **fields: Any) -> Gateway:
    fields = {"apiKey": KEY, "deployments": DEPLOYMENTS, **fields}
    connect(gateway, "azure", endpoint(up), apiVersion=version, **fields)
    return gateway


def directly(up: Upstream, version: str = VERSION) -> openai.AzureOpenAI:
    return openai.AzureOpenAI(
        azure_endpoint=endpoint(up), api_version=version, api_key=KEY, max_retries=0
    )


def same_call(one: Seen, other: Seen) -> None:
    """Both calls have the same address and credential."""
    assert one.target == other.target
    assert one.header("api-key") == other.header("api-key") == KEY
    assert one.header("authorization") is None


def test_a_chat_is_sent_as_openais_client_for_azure_sends_it(
    gateway: Gateway, up: Upstream, openais: openai.OpenAI
) -> None:
    dated(gateway, up)
    with directly(up) as client:
        client.chat.completions.create(model="chat-eu", messages=SAY)
    own = up.last

    answer = openais.chat.completions.create(model="azure/gpt-4o", messages=SAY)

    same_call(up.last, own)
    assert up.last.target == f"/openai/deployments/chat-eu/chat/completions?api-version={VERSION}"
    assert up.last.json() == own.json() == {"model": "chat-eu", "messages": SAY}
    assert answer.choices[0].message.content == "hello"


def test_other_calls_of_deployments_are_sent_as_that_client_sends_them(
    gateway: Gateway, up: Upstream, openais: openai.OpenAI
) -> None:
    dated(gateway, up)

    def ask(client: openai.OpenAI, prefix: str, names: dict[str, str]) -> list[Seen]:
        sound = ("a.wav", io.BytesIO(b"RIFF"), "audio/wav")
        seen = []
        up.script(reply({"object": "list", "data": [VECTOR], "model": "m"}))
        client.embeddings.create(
            model=prefix + names["text-embedding-3-small"], input="hello", encoding_format="float"
        )
        seen.append(up.last)
        up.script(reply({"created": 1, "data": [{"b64_json": "aaaa"}]}))
        client.images.generate(model=prefix + names["gpt-image-1"], prompt="a dog")
        seen.append(up.last)
        up.script(reply(b"sound", content_type="audio/mpeg"))
        client.audio.speech.create(model=prefix + names["tts-1"], input="hello", voice="alloy")
        seen.append(up.last)
        up.script(reply({"text": "hi"}))
        client.audio.transcriptions.create(model=prefix + names["whisper-1"], file=sound)
        seen.append(up.last)
        return seen

    with directly(up) as client:
        own = ask(client, "", DEPLOYMENTS)
    sent = ask(openais, "azure/", {name: name for name in DEPLOYMENTS})

    for one, other in zip(sent, own, strict=True):
        same_call(one, other)
    assert [one.json() for one in sent[:3]] == [one.json() for one in own[:3]]
    assert b"ears" in sent[3].body


def test_responses_need_a_preview(gateway: Gateway, up: Upstream, openais: openai.OpenAI) -> None:
    # The catalogue knows that this model has no other API.
    deployments = {"gpt-5-pro": "thinker"}
    dated(gateway, up, PREVIEW, deployments=deployments)
    up.script(reply(RESPONSE))
    with directly(up, PREVIEW) as client:
        client.responses.create(model="thinker", input="hello")
    own = up.last

    openais.chat.completions.create(model="azure/gpt-5-pro", messages=SAY)
    same_call(up.last, own)
    assert up.last.target == f"/openai/responses?api-version={PREVIEW}"
    assert up.last.json()["model"] == "thinker"

    # This version has only chat completions.
    dated(gateway, up, deployments=deployments)
    up.script(reply(completion()))
    openais.responses.create(model="azure/gpt-5-pro", input="hello")
    assert up.last.target == f"/openai/deployments/thinker/chat/completions?api-version={VERSION}"


def test_without_a_version_the_body_names_the_deployment(
    gateway: Gateway, up: Upstream, openais: openai.OpenAI
) -> None:
    connect(gateway, "azure", endpoint(up), apiKey=KEY, deployments=DEPLOYMENTS)
    openais.chat.completions.create(model="azure/gpt-4o", messages=SAY)
    assert (up.last.target, up.last.json()["model"]) == ("/openai/v1/chat/completions", "chat-eu")
    up.script(reply({"object": "list", "data": [VECTOR], "model": "m"}))
    openais.embeddings.create(model="azure/text-embedding-3-small", input="hello")
    assert (up.last.target, up.last.json()["model"]) == ("/openai/v1/embeddings", "vectors")


def test_a_deployment_has_the_facts_and_the_price_of_its_model(
    gateway: Gateway, up: Upstream
) -> None:
    dated(gateway, up, deployments={"gpt-5.1": "chat-eu"})
    asked = {"model": "azure/gpt-5.1", "messages": SAY, "max_tokens": 50}
    answer = gateway.caller.post("/v1/messages", json=asked)
    assert answer.status_code == 200, answer.text
    # Models of this family refuse `max_tokens`.
    assert up.last.json()["max_completion_tokens"] == 50
    assert "max_tokens" not in up.last.json()
    assert float(answer.headers["x-gateway-response-cost"]) > 0


def test_two_connections_have_their_own_deployments(
    gateway: Gateway, up: Upstream, openais: openai.OpenAI
) -> None:
    dated(gateway, up, deployments={"gpt-4o": "one"})
    second = {
        "provider": "azure",
        "name": "second",
        "apiKey": KEY,
        "priority": 60,
        "providerSpecificData": {"baseUrl": endpoint(up), "deployments": {"gpt-4o": "two"}},
    }
    made = expect(gateway.admin.post("/api/providers", json=second), 201)["connection"]
    up.script(reply({"error": {"message": "busy"}}, 503), reply(completion()))
    openais.chat.completions.create(model="azure/gpt-4o", messages=SAY)
    first, last = up.requests[-2:]
    assert first.target.startswith("/openai/deployments/one/")
    assert first.json()["model"] == "one"
    assert (last.target, last.json()["model"]) == ("/openai/v1/chat/completions", "two")
    expect(gateway.admin.delete(f"/api/providers/{made['id']}"), 200)


def test_only_deployed_models_are_listed(gateway: Gateway, up: Upstream) -> None:
    dated(gateway, up, deployments={"gpt-4o": "one", "my-own": "two"})
    listed = {one["id"] for one in gateway.caller.get("/v1/models").json()["data"]}
    assert {name for name in listed if name.startswith("azure/")} == {
        "azure/gpt-4o",
        "azure/my-own",
    }


def test_azures_first_chunk_is_no_part_of_the_answer(
    gateway: Gateway, up: Upstream, openais: openai.OpenAI
) -> None:
    dated(gateway, up)
    filtered = {"prompt_index": 0, "content_filter_results": FILTERS}
    first = {"id": "", "object": "", "created": 0, "model": "", "choices": []}
    up.script(
        stream(event({**first, "prompt_filter_results": [filtered]}), delta("hi"), finish(), DONE)
    )
    chunks = openais.chat.completions.create(model="azure/gpt-4o", messages=SAY, stream=True)
    assert "".join(one.choices[0].delta.content or "" for one in chunks if one.choices) == "hi"

    events = list(openais.responses.create(model="azure/gpt-4o", input="hello", stream=True))
    assert events[-1].type == "response.completed"
    assert events[-1].response.output_text == "hi"
    message = gateway.caller.post(
        "/v1/messages",
        json={"model": "azure/gpt-4o", "max_tokens": 9, "messages": SAY, "stream": True},
    )
    assert '"text":"hi"' in message.text
    assert "event: message_stop" in message.text


def test_a_filtered_prompt_is_the_callers_error(
    gateway: Gateway, up: Upstream, openais: openai.OpenAI
) -> None:
    dated(gateway, up)
    error = {
        "message": "The response was filtered due to the prompt triggering a content management policy.",
        "type": None,
        "param": "prompt",
        "code": "content_filter",
        "status": 400,
        "innererror": {
            "code": "ResponsibleAIPolicyViolation",
            "content_filter_result": {"hate": {"filtered": True, "severity": "high"}},
        },
    }
    up.script(reply({"error": error}, 400))
    with pytest.raises(openai.BadRequestError) as told:
        openais.chat.completions.create(model="azure/gpt-4o", messages=SAY)
    assert (told.value.code, told.value.param) == ("content_filter", "prompt")


def test_an_unknown_deployment_is_named(
    gateway: Gateway, up: Upstream, openais: openai.OpenAI
) -> None:
    dated(gateway, up)
    error = {
        "code": "DeploymentNotFound",
        "message": "The API deployment for this resource does not exist.",
    }
    up.script(reply({"error": error}, 404))
    with pytest.raises(openai.APIStatusError, match="deployment for this resource"):
        openais.chat.completions.create(model="azure/gpt-4o", messages=SAY)


@pytest.mark.parametrize(
    ("provider", "specific", "param"),
    [
        ("azure", {"resource": "r", "apiVersion": "v1"}, "providerSpecificData.apiVersion"),
        ("azure", {"apiVersion": VERSION}, "providerSpecificData.resource"),
        (
            "azure",
            {"resource": "r", "deployments": {"m": "a/b"}},
            "providerSpecificData.deployments.m",
        ),
        ("openai", {"apiVersion": VERSION}, "providerSpecificData.apiVersion"),
        ("openai", {"deployments": {"m": "d"}}, "providerSpecificData.deployments"),
    ],
)
def test_what_is_wrong_is_named(
    gateway: Gateway, provider: str, specific: dict[str, Any], param: str
) -> None:
    body = {"provider": provider, "name": "x", "apiKey": KEY, "providerSpecificData": specific}
    answer = gateway.admin.post("/api/providers", json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param), answer.text
