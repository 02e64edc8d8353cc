"""The official `openai` client beside chat: completions, embeddings, images, audio, moderations."""

from __future__ import annotations

import base64
import io
import struct
from typing import Any

import pytest

from tests.support.processes import Gateway
from tests.support.raw import RawClient
from tests.support.sdks import openai


def record_of(gateway: Gateway, raw: Any) -> dict[str, Any]:
    return gateway.record(raw.headers["x-gateway-request-id"])


def test_a_completion_plain_and_streamed(
    client: openai.OpenAI, model: str, gateway: Gateway
) -> None:
    raw = client.completions.with_raw_response.create(model=model, prompt="Once upon a time")
    plain = raw.parse()
    assert "Once upon a time" in plain.choices[0].text
    assert plain.usage is not None
    assert str(plain.usage.prompt_tokens) == raw.headers["x-gateway-tokens-in"]
    record = record_of(gateway, raw)
    assert (record["endpoint"], record["path"]) == ("chat", "/v1/completions")
    assert record["tokensOutput"] == plain.usage.completion_tokens

    with client.completions.create(model=model, prompt="Once upon a time", stream=True) as pieces:
        text = "".join(piece.choices[0].text for piece in pieces if piece.choices)
    assert text == plain.choices[0].text


@pytest.mark.parametrize("fault", ["cut_after=1", "error_after=1"])
def test_a_completion_that_breaks_is_raised(client: openai.OpenAI, model: str, fault: str) -> None:
    """The first pieces are handed out, then the client raises."""
    got: list[str] = []
    with (
        pytest.raises(openai.APIError),
        client.completions.create(model=f"{model}@{fault}", prompt="a b c", stream=True) as pieces,
    ):
        got.extend(piece.choices[0].text for piece in pieces)
    assert len(got) == 1


@pytest.mark.parametrize(
    "asked", ["a text", ["a text", "another one"], [1, 2, 3], [[1, 2], [3, 4]]], ids=repr
)
def test_embeddings_of_each_kind_of_input(
    client: openai.OpenAI, model: str, gateway: Gateway, asked: Any
) -> None:
    raw = client.embeddings.with_raw_response.create(
        model=model, input=asked, dimensions=16, encoding_format="float"
    )
    answer = raw.parse()
    expected = 1 if isinstance(asked, str) or isinstance(asked[0], int) else len(asked)
    assert [len(one.embedding) for one in answer.data] == [16] * expected
    record = record_of(gateway, raw)
    assert record["endpoint"] == "embeddings"
    assert record["tokensInput"] == answer.usage.prompt_tokens > 0
    assert record["tokensOutput"] == 0


def test_base64_embeddings_are_the_same_numbers(client: openai.OpenAI, model: str) -> None:
    numbers = client.embeddings.create(
        model=model, input="x", dimensions=8, encoding_format="float"
    )
    packed = client.embeddings.create(
        model=model, input="x", dimensions=8, encoding_format="base64"
    )
    coded: Any = packed.data[0].embedding
    assert struct.unpack("<8f", base64.b64decode(coded)) == pytest.approx(numbers.data[0].embedding)
    # Without a format the client asks for base64 and unpacks it itself.
    assert client.embeddings.create(model=model, input="x", dimensions=8).data[
        0
    ].embedding == pytest.approx(numbers.data[0].embedding)


def test_the_price_of_embeddings_counts(
    gateway: Gateway, model: str, client: openai.OpenAI
) -> None:
    """Cost follows from the tokens that the provider tells, at the price of the snapshot."""
    raw = client.embeddings.with_raw_response.create(model=f"{model}@tokens_in=1000", input="x")
    assert raw.headers["x-gateway-tokens-in"] == "1000"
    assert raw.headers["x-gateway-response-cost"] == "0.0000000000"
    assert record_of(gateway, raw)["tokensInput"] == 1000


def test_images(client: openai.OpenAI, model: str, gateway: Gateway) -> None:
    raw = client.images.with_raw_response.generate(model=model, prompt="a lighthouse", n=2)
    answer = raw.parse()
    assert answer.data is not None
    pictures = [base64.b64decode(one.b64_json or "") for one in answer.data]
    assert len(pictures) == 2
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)
    assert record_of(gateway, raw)["tokensOutput"] == 2 * 272


def test_streamed_images(client: openai.OpenAI, model: str) -> None:
    with client.images.generate(
        model=model, prompt="a lighthouse", stream=True, partial_images=2
    ) as pieces:
        kinds = [piece.type for piece in pieces]
    assert kinds == ["image_generation.partial_image"] * 2 + ["image_generation.completed"]


def test_an_edited_image(client: openai.OpenAI, model: str) -> None:
    picture = base64.b64decode(
        client.images.generate(model=model, prompt="a").data[0].b64_json  # type: ignore[index,arg-type]
    )
    edited = client.images.edit(model=model, prompt="b", image=("a.png", picture, "image/png"))
    assert edited.data is not None
    assert base64.b64decode(edited.data[0].b64_json or "").startswith(b"\x89PNG")


def test_speech_is_heard_again(client: openai.OpenAI, model: str, gateway: Gateway) -> None:
    """A recording streams out and, as a file in a form, goes back in."""
    said = "Every line passes through the fairlead."
    with client.audio.speech.with_streaming_response.create(
        model=model, voice="alloy", input=said
    ) as answer:
        assert answer.headers["content-type"] == "audio/wav"
        recording = b"".join(answer.iter_bytes())
    record = gateway.record(answer.headers["x-gateway-request-id"])
    assert (record["endpoint"], record["outcome"]) == ("audio", "completed")
    assert record["bytesResponse"] == len(recording) > 4096

    file = ("speech.wav", recording, "audio/wav")
    heard = client.audio.transcriptions.create(model=model, file=file)
    assert heard.text == said
    assert (
        client.audio.transcriptions.create(model=model, file=file, response_format="text").strip()
        == said
    )
    assert "WEBVTT" in client.audio.transcriptions.create(
        model=model, file=file, response_format="vtt"
    )
    translated = gateway.caller.post(
        "/v1/audio/translations", data={"model": model}, files={"file": file}
    )
    assert translated.json()["text"] == said
    with client.audio.transcriptions.create(model=model, file=file, stream=True) as pieces:
        last = list(pieces)[-1]
    assert last.type == "transcript.text.done"
    assert last.text == said


def test_a_recording_larger_than_memory_is_for(
    client: openai.OpenAI, model: str, gateway: Gateway
) -> None:
    """Eight megabytes go by way of the disk, and nothing is left there."""
    recording = io.BytesIO(b"\x5a" * 8_000_000)
    recording.name = "long.bin"
    raw = client.audio.transcriptions.with_raw_response.create(model=model, file=recording)
    assert raw.parse().text == "A recording of 8000000 bytes, called long.bin."
    assert record_of(gateway, raw)["bytesRequest"] > 8_000_000
    assert not list((gateway.data_dir / "uploads").iterdir())


def test_moderations(client: openai.OpenAI, model: str) -> None:
    answer = client.moderations.create(model=model, input=["all is well", "I hate this"])
    assert [one.flagged for one in answer.results] == [False, True]
    assert answer.results[1].categories.hate


def test_a_model_that_is_not_named_is_said(client: openai.OpenAI) -> None:
    """Moderations mean a model of OpenAI's where they name none; here is none."""
    with pytest.raises(openai.NotFoundError, match="openai"):
        client.moderations.create(input="x")


def test_rerank_and_ocr(gateway: Gateway, model: str) -> None:
    asked = {"model": model, "query": "red boat", "documents": ["a blue car", "a red boat"]}
    answer = gateway.caller.post("/v1/rerank", json=asked)
    assert answer.status_code == 200, answer.text
    assert [one["index"] for one in answer.json()["results"]] == [1, 0]
    assert gateway.record(answer.headers["x-gateway-request-id"])["tokensInput"] > 0
    document = {"type": "document_url", "document_url": "https://example.com/a.pdf"}
    read = gateway.caller.post("/v1/ocr", json={"model": model, "document": document})
    assert "example.com/a.pdf" in read.json()["pages"][0]["markdown"]


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/v1/completions", {"prompt": "x"}, "model"),
        ("/v1/completions", {"model": "MODEL"}, "prompt"),
        ("/v1/embeddings", {"model": "MODEL"}, "input"),
        ("/v1/images/generations", {"model": "MODEL", "prompt": None}, "prompt"),
        ("/v1/embeddings", {"model": "surfaces", "input": "x"}, "model"),
        ("/v1/audio/speech", {"model": "MODEL", "input": ""}, "input"),
    ],
)
def test_what_is_wrong_is_named(
    gateway: Gateway, model: str, path: str, body: dict[str, Any], param: str
) -> None:
    asked = {name: model if value == "MODEL" else value for name, value in body.items()}
    answer = gateway.caller.post(path, json=asked)
    assert answer.status_code in (400, 404), answer.text
    assert answer.json()["error"]["param"] == param


def test_the_gate_holds_on_every_surface(gateway: Gateway, model: str) -> None:
    """Endpoint, model and limits of a key, and the pin, mean here what they mean in chat."""
    narrow = gateway.create_key(allowedEndpoints=["chat"])["key"]
    blocked = gateway.create_key(blockedModels=[model.replace("standin", "*")])["key"]
    asked = {"model": model, "input": "x"}

    def status(key: str | None, **headers: str) -> int:
        given = {"authorization": f"Bearer {key}"} if key else {}
        with gateway.client(headers=given | headers) as caller:
            return caller.post("/v1/embeddings", json=asked).status_code

    assert status(None) == 401
    assert status(narrow) == 403
    assert status(blocked) == 403
    assert status(gateway.key, **{"x-gateway-connection": "nothing"}) == 400
    assert status(gateway.key) == 200


def test_equal_requests_are_one_call(gateway: Gateway, model: str) -> None:
    headers = {"idempotency-key": "embeddings-equal"}
    asked = {"model": model, "input": "twice"}
    first, second = (
        gateway.caller.post("/v1/embeddings", json=asked, headers=headers) for _ in range(2)
    )
    assert (first.status_code, second.status_code) == (200, 200)
    assert second.headers["x-gateway-idempotent"] == "true"
    assert first.content == second.content


def test_a_forms_model_is_held_to_the_key(gateway: Gateway, model: str) -> None:
    """The model of a form is policy: a blocked one is refused, and a form with two is no form."""
    blocked = gateway.create_key(blockedModels=[model.replace("standin", "*")])["key"]
    file = {"file": ("a.wav", b"RIFF", "audio/wav")}
    with gateway.client(headers={"authorization": f"Bearer {blocked}"}) as caller:
        answer = caller.post("/v1/audio/transcriptions", data={"model": model}, files=file)
    assert answer.status_code == 403, answer.text
    twice = {"model": ["other/m", model]}
    answer = gateway.caller.post("/v1/audio/transcriptions", data=twice, files=file)
    assert answer.status_code == 400
    assert "twice" in answer.json()["error"]["message"]


BOUNDARY = "multipart/form-data; boundary=b"
PART = "--b\r\nContent-Disposition: form-data; name=n{}\r\n\r\n\r\n"


@pytest.mark.parametrize(
    ("content_type", "body", "status"),
    [
        ("multipart/form-data", b"--b--", 415),
        ("application/json", b"{}", 415),
        (BOUNDARY, b"", 400),
        (BOUNDARY, b"--b\r\nContent-Disposition: form-data; name=a\r\n\r\nx", 400),
        (BOUNDARY, "".join(PART.format(at) for at in range(10_000)).encode() + b"--b--", 400),
        (BOUNDARY, b'--b\r\nContent-Disposition: form-data; name="a\x00"\r\n\r\n\r\n--b--', 400),
    ],
    ids=["no boundary", "no form", "nothing", "cut off", "10,000 parts", "NUL in a name"],
)
def test_a_bad_form_is_refused(
    gateway: Gateway, content_type: str, body: bytes, status: int
) -> None:
    headers = {"content-type": content_type}
    # A connection whose body was not read to its end is closed, so each case has one of its own.
    with gateway.client(headers={**headers, "authorization": f"Bearer {gateway.key}"}) as caller:
        answer = caller.post("/v1/audio/transcriptions", content=body)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_five_gigabytes_are_refused_by_their_announcement(gateway: Gateway) -> None:
    with RawClient(gateway.port) as client:
        client.send(
            b"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\n"
            + f"Authorization: Bearer {gateway.key}\r\nContent-Type: {BOUNDARY}\r\n".encode()
            + f"Content-Length: {5 * 1024**3}\r\n\r\n--b".encode()
        )
        assert client.head().status == 413
