"""The official `google-genai` client works through the gateway, whichever dialect the provider speaks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.dialects import DIALECTS
from tests.support.processes import Gateway
from tests.support.sdk_clients import genai_client
from tests.support.sdks import genai


@pytest.fixture
def client(gateway: Gateway) -> Iterator[genai.Client]:
    made = genai_client(gateway)
    yield made
    made.close()


@pytest.fixture(params=DIALECTS)
def model(request: pytest.FixtureRequest, standin: dict[str, str]) -> str:
    # The client takes a name with a slash for one with a folder.
    return f"models/{standin[request.param]}/standin"


def weather(city: str) -> str:
    """The weather of a city."""
    return f"21 degrees in {city}"


def test_an_answer(client: genai.Client, model: str) -> None:
    """Text, finish reason and usage are where the client looks for them."""
    config = genai.types.GenerateContentConfig(system_instruction="Be brief.", temperature=0.3)
    answer = client.models.generate_content(
        model=f"{model}@tokens_cached=3", contents="Say hello.", config=config
    )
    assert answer.text is not None
    assert "Say hello." in answer.text
    assert answer.candidates is not None
    assert answer.candidates[0].finish_reason == genai.types.FinishReason.STOP
    assert answer.usage_metadata is not None
    assert answer.usage_metadata.cached_content_token_count == 3
    assert answer.model_version
    assert answer.response_id


def test_embeddings(client: genai.Client, gateway: Gateway, standin: dict[str, str]) -> None:
    """One text and several, the same numbers from a provider of either dialect; where there are none, it is said."""
    asked = genai.types.EmbedContentConfig(output_dimensionality=8, task_type="RETRIEVAL_QUERY")
    numbers = {}
    for dialect in ("openai", "openai-responses", "gemini"):
        model = f"models/{standin[dialect]}/standin"
        answer = client.models.embed_content(model=model, contents=["a b", "c"], config=asked)
        assert answer.embeddings is not None
        assert [len(one.values or []) for one in answer.embeddings] == [8, 8]
        numbers[dialect] = [value for one in answer.embeddings for value in one.values or []]
        one = client.models.embed_content(model=model, contents="a b", config=asked)
        assert one.embeddings is not None
        assert one.embeddings[0].values == pytest.approx(numbers[dialect][:8], abs=1e-6)
    assert numbers["openai"] == pytest.approx(numbers["gemini"], abs=1e-6)
    assert numbers["openai-responses"] == numbers["openai"]
    with pytest.raises(genai.errors.ClientError, match="embeddings"):
        client.models.embed_content(model=f"models/{standin['anthropic']}/standin", contents="a")


def test_a_cut_answer(client: genai.Client, model: str) -> None:
    config = genai.types.GenerateContentConfig(max_output_tokens=2)
    answer = client.models.generate_content(model=model, contents="Say hello.", config=config)
    assert answer.candidates is not None
    assert answer.candidates[0].finish_reason == genai.types.FinishReason.MAX_TOKENS


def test_a_stream(client: genai.Client, model: str) -> None:
    """The pieces, joined, are the plain answer; the last chunk has reason and usage, and none before it."""
    plain = client.models.generate_content(model=model, contents="Say hello.")
    chunks = list(client.models.generate_content_stream(model=model, contents="Say hello."))
    assert "".join(chunk.text or "" for chunk in chunks) == plain.text
    reasons = [chunk.candidates[0].finish_reason for chunk in chunks if chunk.candidates]
    assert reasons[-1] == genai.types.FinishReason.STOP
    assert not any(reasons[:-1])
    assert chunks[-1].usage_metadata == plain.usage_metadata


@pytest.mark.parametrize("streamed", (False, True), ids=("plain", "streamed"))
def test_functions(client: genai.Client, model: str, streamed: bool) -> None:
    """A function is called, and its result, sent back as the client keeps it, is taken."""
    schema = genai.types.Schema(
        type=genai.types.Type.OBJECT,
        properties={"city": genai.types.Schema(type=genai.types.Type.STRING)},
        required=["city"],
    )
    declared = genai.types.FunctionDeclaration(name="weather", parameters=schema)
    config = genai.types.GenerateContentConfig(
        tools=[genai.types.Tool(function_declarations=[declared])],
        automatic_function_calling=genai.types.AutomaticFunctionCallingConfig(disable=True),
    )
    asked: Any = [genai.types.Content(role="user", parts=[genai.types.Part(text="Weather?")])]
    ask: Any = {"model": model, "config": config}
    if streamed:
        parts: list[genai.types.Part] = []
        for chunk in client.models.generate_content_stream(contents=asked, **ask):
            for candidate in chunk.candidates or []:
                parts += (candidate.content.parts if candidate.content else None) or []
        said = genai.types.Content(role="model", parts=[part for part in parts if part.text != ""])
    else:
        answer = client.models.generate_content(contents=asked, **ask)
        assert answer.candidates is not None
        assert answer.candidates[0].content is not None
        said = answer.candidates[0].content
    (call,) = [part.function_call for part in said.parts or [] if part.function_call]
    assert (call.name, call.args) == ("weather", {"city": "example"})
    response = genai.types.FunctionResponse(
        id=call.id, name="weather", response={"output": "21 degrees"}
    )
    result = genai.types.Content(role="user", parts=[genai.types.Part(function_response=response)])
    last = client.models.generate_content(contents=[*asked, said, result], **ask)
    assert last.text is not None
    assert "21 degrees" in last.text


def test_automatic_function_calling(client: genai.Client, model: str) -> None:
    """The client runs the function itself and sends the result by its own rules."""
    config = genai.types.GenerateContentConfig(tools=[weather])
    answer = client.models.generate_content(model=model, contents="Weather?", config=config)
    assert answer.text is not None
    assert "21 degrees in example" in answer.text


def test_a_schema(client: genai.Client, model: str) -> None:
    config = genai.types.GenerateContentConfig(
        response_mime_type="application/json",
        response_schema={"type": "OBJECT", "properties": {"city": {"type": "STRING"}}},
    )
    answer = client.models.generate_content(model=model, contents="Where?", config=config)
    assert answer.parsed == {"city": "example"}


@pytest.mark.parametrize("dialect", ("openai-responses", "anthropic", "gemini"))
@pytest.mark.parametrize("streamed", (False, True), ids=("plain", "streamed"))
def test_thoughts(
    client: genai.Client, standin: dict[str, str], dialect: str, streamed: bool
) -> None:
    """Thoughts come as parts that say so, and their signature may be sent back."""
    thinking = genai.types.ThinkingConfig(thinking_budget=4096, include_thoughts=True)
    config = genai.types.GenerateContentConfig(thinking_config=thinking)
    ask: Any = {"model": f"models/{standin[dialect]}/standin", "config": config}
    parts: list[genai.types.Part] = []
    if streamed:
        for chunk in client.models.generate_content_stream(contents="Think.", **ask):
            for candidate in chunk.candidates or []:
                parts += (candidate.content.parts if candidate.content else None) or []
    else:
        answer = client.models.generate_content(contents="Think.", **ask)
        assert answer.candidates is not None
        assert answer.candidates[0].content is not None
        parts = answer.candidates[0].content.parts or []
    thoughts = "".join(part.text or "" for part in parts if part.thought)
    assert thoughts == "The stand-in thinks before it speaks."
    assert sum(part.thought_signature is not None for part in parts) == 1
    turns: Any = [
        genai.types.Content(role="user", parts=[genai.types.Part(text="Think.")]),
        genai.types.Content(role="model", parts=parts),
        genai.types.Content(role="user", parts=[genai.types.Part(text="Again.")]),
    ]
    assert client.models.generate_content(contents=turns, **ask).text


def test_counting_tokens(client: genai.Client, model: str) -> None:
    few = client.models.count_tokens(model=model, contents="Say hello.").total_tokens
    many = client.models.count_tokens(model=model, contents="Say hello. " * 100).total_tokens
    assert few is not None
    assert many is not None
    assert 0 < few < many


def test_models(gateway: Gateway, standin: dict[str, str]) -> None:
    """The list, and one of it, by its name with or without its slashes encoded; `v1beta` works as `v1`."""
    gateway.add_connection(standin["openai"], "sk-listed-canary", defaultModel="standin")
    wanted = f"models/{standin['openai']}/standin"
    for version in (None, "v1", "v1beta"):
        client = genai_client(gateway, version=version)
        names = [model.name for model in client.models.list()]
        assert wanted in names
        assert [model.name for model in client.models.list(config={"page_size": 2})] == names
        for asked in (wanted, wanted.removeprefix("models/")):
            found = client.models.get(model=asked)
            assert (found.name, found.supported_actions) == (
                wanted,
                ["generateContent", "streamGenerateContent", "countTokens"],
            )
        with pytest.raises(genai.errors.ClientError) as missing:
            client.models.get(model="nobody/m")
        assert (missing.value.code, missing.value.status) == (404, "NOT_FOUND")
    assert client.models.get(model=wanted).name == wanted
    name = wanted.removeprefix("models/").replace("/", "%2F")
    assert gateway.caller.get(f"/v1beta/models/{name}").json()["name"] == wanted
    assert client.models.generate_content(model=wanted, contents="Hello").text
    body = {"contents": [{"parts": [{"text": "Hello"}]}]}
    encoded = gateway.caller.post(f"/v1beta/models/{name}:generateContent", json=body)
    assert encoded.json()["candidates"][0]["finishReason"] == "STOP"
    client.close()
    assert gateway.caller.get("/v1beta/models/nobody").json()["error"]["status"] == "NOT_FOUND"


@pytest.mark.parametrize("path", ("/v1/models", "/v1/models/{model}", "/models"))
def test_a_list_is_in_the_form_of_its_client(
    gateway: Gateway, standin: dict[str, str], path: str
) -> None:
    """Three forms of one address, and caches are told what they differ by."""
    model = f"{standin['openai']}/standin"
    gateway.add_connection(standin["openai"], "sk-forms-canary", defaultModel="standin")
    path = path.format(model=model)
    bearer = {"authorization": f"Bearer {gateway.key}"}
    forms = {
        "openai": bearer,
        "anthropic": bearer | {"anthropic-version": "2023-06-01"},
        "google by its client": bearer | {"x-goog-api-client": "google-genai-sdk/3.6.1"},
        "google by its key": {"x-goog-api-key": gateway.key},
    }
    found = {}
    for name, headers in forms.items():
        answer = gateway.client().get(path, headers=headers)
        assert answer.status_code == 200, answer.text
        varies = {each.strip().lower() for each in answer.headers["vary"].split(",")}
        assert {"anthropic-version", "x-goog-api-client", "x-goog-api-key"} <= varies
        found[name] = answer.json()
    assert found["google by its client"] == found["google by its key"]
    google = found["google by its key"]
    if model in path:
        assert (found["openai"]["object"], found["anthropic"]["type"]) == ("model", "model")
        assert google["name"] == f"models/{model}"
    else:
        assert found["openai"]["object"] == "list"
        assert "first_id" in found["anthropic"]
        assert all(one["name"].startswith("models/") for one in google["models"])
    both = bearer | {"anthropic-version": "2023-06-01", "x-goog-api-client": "x"}
    assert gateway.client().get(path, headers=both).json() == found["anthropic"]


def test_errors(client: genai.Client, standin: dict[str, str], gateway: Gateway) -> None:
    with pytest.raises(genai.errors.ClientError) as unknown:
        client.models.generate_content(model="models/nobody/m", contents="x")
    assert (unknown.value.code, unknown.value.status) == (404, "NOT_FOUND")
    config = genai.types.GenerateContentConfig(candidate_count=2)
    with pytest.raises(genai.errors.ClientError, match=r"generationConfig\.candidateCount"):
        client.models.generate_content(
            model=f"models/{standin['openai']}/standin", contents="x", config=config
        )
    wrong = gateway.caller.post(
        "/v1beta/models/nobody%2Fm:generateContent",
        json={"contents": []},
        headers={"authorization": "", "x-goog-api-key": "sk-fl-wrong"},
    )
    assert wrong.json()["error"]["status"] == "UNAUTHENTICATED"


@pytest.mark.parametrize("directive", ("cut_after=2", "error_after=2"))
def test_a_broken_stream_is_raised(client: genai.Client, model: str, directive: str) -> None:
    """S1, S4: the pieces that came are handed out, then the client raises."""
    stream = client.models.generate_content_stream(
        model=f"{model}@{directive}", contents="Say hello."
    )
    got = [next(stream).text, next(stream).text]
    assert all(got)
    with pytest.raises(genai.errors.APIError):
        next(stream)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("directive", ("", "@cut_after=2", "@error_after=2"))
def test_a_stream_without_events_is_one_list(
    gateway: Gateway, standin: dict[str, str], dialect: str, directive: str
) -> None:
    """Without `alt=sse` the stream is a JSON list, whole even where the provider broke off."""
    path = f"/v1beta/models/{standin[dialect]}/standin{directive}:streamGenerateContent"
    body = {"contents": [{"role": "user", "parts": [{"text": "Say hello."}]}]}
    answer = gateway.caller.post(path, json=body)
    assert answer.headers["content-type"] == "application/json"
    chunks = answer.json()
    if directive:
        assert chunks[-1]["error"]["code"] >= 500
    else:
        assert chunks[-1]["candidates"][0]["finishReason"] == "STOP"
