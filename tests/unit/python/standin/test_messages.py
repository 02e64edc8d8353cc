"""The stand-in's `/v1/messages`, by hand and through the official client."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.support.tls import NO_AUTHORITIES

HELLO: Any = [{"role": "user", "content": "hello you"}]
VERSION = {"anthropic-version": "2023-06-01"}


def post(url: str, path: str = "/v1/messages", **body: Any) -> httpx.Response:
    asked = {"model": "standin", "max_tokens": 50, "messages": HELLO} | body
    return httpx.post(url + path, json=asked, headers=VERSION, verify=NO_AUTHORITIES)


@pytest.mark.parametrize("stream", (False, True), ids=("plain", "streamed"))
def test_the_same_request_has_the_same_bytes(standin_url: str, stream: bool) -> None:
    first = post(standin_url, stream=stream, thinking={"type": "adaptive"})
    assert first.status_code == 200
    assert post(standin_url, stream=stream, thinking={"type": "adaptive"}).content == first.content


def test_the_official_client_reads_it(standin_url: str) -> None:
    import anthropic

    with anthropic.Anthropic(base_url=standin_url, api_key="any", max_retries=0) as client:
        with client.messages.stream(model="standin", max_tokens=50, messages=HELLO) as pieces:
            text = "".join(pieces.text_stream)
        assert "hello you" in text
        assert pieces.get_final_message().stop_reason == "end_turn"
        assert client.messages.count_tokens(model="standin", messages=HELLO).input_tokens > 0


def test_what_anthropic_requires_is_required(standin_url: str) -> None:
    body = {"model": "standin", "messages": HELLO}
    without = httpx.post(
        f"{standin_url}/v1/messages", json=body, headers=VERSION, verify=NO_AUTHORITIES
    )
    assert (without.status_code, without.json()["error"]["type"]) == (400, "invalid_request_error")
    assert "max_tokens" in without.json()["error"]["message"]
    unversioned = httpx.post(
        f"{standin_url}/v1/messages", json=body | {"max_tokens": 1}, verify=NO_AUTHORITIES
    )
    assert unversioned.status_code == 400


def test_faults_have_their_shape(standin_url: str) -> None:
    overloaded = post(standin_url, model="standin@status=529")
    assert (overloaded.status_code, overloaded.json()["error"]["type"]) == (529, "overloaded_error")
    failing = post(standin_url, model="standin@error_after=1", stream=True)
    assert failing.text.count("event: error\n") == 1
    cut = post(standin_url, model="standin@cut_after=1", stream=True)
    assert "message_stop" not in cut.text
