"""Videos in Google's words: begun as its documentation says, followed and read with the official client.

Its `generate_videos` refuses to be sent to anything but Vertex, so the call itself is a plain one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import jwt
import pytest
import standardwebhooks

from tests.support.listener import Listener
from tests.support.polling import holds_for
from tests.support.processes import Gateway, expect
from tests.support.sdk_clients import GenaiCaller
from tests.support.sdks import genai


@pytest.fixture
def model(loopback_standin: dict[str, str]) -> str:
    return f"{loopback_standin['gemini']}/standin"


def ask(caller: GenaiCaller, model: str, prompt: str = "a cat", **more: Any) -> httpx.Response:
    body = {"instances": [{"prompt": prompt}], **more}
    return caller.plain.post(f"/v1beta/models/{model}:predictLongRunning", json=body)


def begin(caller: GenaiCaller, model: str, prompt: str = "a cat", **more: Any) -> Any:
    operation = expect(ask(caller, model, prompt, **more), 200)
    return genai.types.GenerateVideosOperation.from_api_response(operation)


def test_videos_are_made_and_read(callers: Callable[..., GenaiCaller], model: str) -> None:
    """The addresses are the gateway's, so the key reads them; a stranger's key reads nothing."""
    caller, stranger = callers(), callers()
    begun = begin(caller, model, parameters={"sampleCount": 2})
    assert begun.name.startswith(f"models/{model}/operations/")
    assert not begun.done
    done = caller.ended_video(begun)
    assert (done.name, done.error) == (begun.name, None)
    videos = [each.video.uri for each in done.response.generated_videos]
    assert len(set(videos)) == 2
    first = caller.plain.get(videos[0])
    assert first.headers["content-type"] == "video/mp4"
    assert b"ftypmp42" in first.content
    name = videos[1].partition("/v1beta/")[2].partition(":")[0]
    second = caller.genai.files.download(file=name)
    assert second != first.content
    assert len(second) == len(first.content)
    assert stranger.plain.get(videos[0]).status_code == 404
    gone = stranger.plain.get(f"/v1/{begun.name}")
    assert (gone.status_code, gone.json()["error"]["status"]) == (404, "NOT_FOUND")


def test_a_made_video_is_told_of_with_a_token_to_its_own_listeners(
    callers: Callable[..., GenaiCaller], loopback_gateway: Gateway, listener: Listener, model: str
) -> None:
    caller = callers()
    caller.genai.webhooks.create(uri=f"{listener.url}/ok", subscribed_events=["video.generated"])
    hooks = {"uris": [f"{listener.url}/status/200"], "user_metadata": {"order": 7}}
    begun = begin(caller, model, webhook_config=hooks)
    (told,) = listener.wait_for("/status/200")
    data = told.event["data"]
    assert told.event["type"] == "video.generated"
    assert told.event["user_metadata"] == {"order": 7}
    assert begun.name.endswith(data["id"])
    uri = caller.ended_video(begun).response.generated_videos[0].video.uri
    assert data == {
        "id": data["id"],
        "output_file_uri": uri,
        "video_uri": uri,
        "file_name": uri.partition("/v1beta/")[2].partition(":")[0],
    }
    assert b"ftypmp42" in caller.plain.get(data["output_file_uri"]).content
    keys = jwt.PyJWKClient(f"{loopback_gateway.url}/.well-known/jwks.json")
    token = told.headers["webhook-signature"]
    key = keys.get_signing_key_from_jwt(token).key
    claims = jwt.decode(token, key, algorithms=["RS256"], audience=f"{listener.url}/status/200")
    assert claims["jti"] == told.message_id
    assert listener.received("/ok") == []


def test_a_made_video_is_told_of_to_the_keys_webhooks(
    callers: Callable[..., GenaiCaller], loopback_gateway: Gateway, listener: Listener, model: str
) -> None:
    """A video that failed, or that its provider withheld, is not."""
    caller = callers()
    made = caller.genai.webhooks.create(
        uri=f"{listener.url}/ok", subscribed_events=["video.generated"]
    )
    loopback_gateway.canaries.append(made.new_signing_secret)
    failed = caller.ended_video(begin(caller, model, "please fail"))
    assert failed.error == {"code": 3, "message": "The stand-in was asked to fail."}
    assert failed.response is None
    withheld = caller.ended_video(begin(caller, model, "a filtered cat"))
    assert withheld.response.rai_media_filtered_count == 1
    assert withheld.response.rai_media_filtered_reasons == ["A reason."]
    begun = begin(caller, model, webhookConfig={"userMetadata": {"a": 1}})
    (told,) = listener.wait_for()
    assert begun.name.endswith(told.event["data"]["id"])
    assert told.event["user_metadata"] == {"a": 1}
    standardwebhooks.Webhook(made.new_signing_secret).verify(told.body, told.headers)
    holds_for(lambda: listener.count() == 1, "nothing else is told", for_s=1.0, every_s=0.1)


def test_a_key_gets_videos_of_its_models_only(
    callers: Callable[..., GenaiCaller],
    loopback_gateway: Gateway,
    loopback_standin: dict[str, str],
    model: str,
) -> None:
    """And by its connections, and where it may have videos at all."""
    connections = expect(loopback_gateway.admin.get("/api/providers"), 200)["connections"]
    other = connections[0]["id"]
    refused = {
        "restricted": callers(modelAccessMode="restricted", allowedModels=["a/*", "*/other"]),
        "blocked": callers(blockedModels=[f"{model.partition('/')[0]}/st*in"]),
        "connection": callers(connectionAccessMode="restricted", allowedConnections=[other]),
        "endpoint": callers(allowedEndpoints=["chat"]),
    }
    for name, caller in refused.items():
        answer = ask(caller, model)
        assert (answer.status_code, answer.json()["error"]["status"]) == (
            403,
            "PERMISSION_DENIED",
        ), name
    allowed = callers(
        modelAccessMode="restricted",
        allowedModels=[f"{loopback_standin['gemini']}/*"],
        allowedEndpoints=["video"],
    )
    assert allowed.ended_video(begin(allowed, model)).response.generated_videos
    for unknown in ("nobody/model", f"{loopback_standin['openai']}/standin"):
        answer = ask(allowed, unknown)
        assert (answer.status_code, answer.json()["error"]["status"]) == (404, "NOT_FOUND")
        assert "Gemini's dialect" in answer.json()["error"]["message"]
    # As on every other route a key's model takes the place of the caller's.
    forced = ask(callers(forcedModel=f"{loopback_standin['openai']}/standin"), model)
    assert (forced.status_code, forced.json()["error"]["status"]) == (404, "NOT_FOUND")
    own = callers(forcedModel=model)
    assert own.ended_video(
        begin(own, f"{loopback_standin['gemini']}/another")
    ).response.generated_videos
    with loopback_gateway.client() as nobody:
        path = f"/v1beta/models/{model}:predictLongRunning"
        assert nobody.post(path, json={"instances": [{"prompt": "x"}]}).status_code == 401


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({}, "instances is required"),
        ({"instances": []}, "instances"),
        ({"instances": [{"prompt": ""}]}, "prompt is required"),
        ({"instances": [{"prompt": "x"}], "parameters": {"sampleCount": 9}}, "sampleCount must be"),
        ({"instances": [{"prompt": "x"}], "labels": {}}, "labels is not a field"),
        (
            {
                "instances": [{"prompt": "x"}],
                "webhookConfig": {"uris": ["http://169.254.169.254/"]},
            },
            "webhookConfig.uris[0]",
        ),
    ],
)
def test_what_breaks_a_rule_is_refused(
    callers: Callable[..., GenaiCaller], model: str, sent: dict[str, Any], said: str
) -> None:
    """Of the gateway's, or of the provider's, which says so."""
    answer = callers().plain.post(f"/v1beta/models/{model}:predictLongRunning", json=sent)
    error = answer.json()["error"]
    assert (answer.status_code, error["status"]) == (400, "INVALID_ARGUMENT")
    assert said in error["message"]


@pytest.mark.parametrize(("status", "told"), [(429, 429), (503, 502), (401, 502), (404, 404)])
def test_a_providers_refusal_is_told(
    callers: Callable[..., GenaiCaller], model: str, status: int, told: int
) -> None:
    answer = ask(callers(), f"{model}@status={status}")
    assert answer.status_code == told
    assert "standin-canary" not in answer.text


def test_a_connection_that_refuses_leaves_it_to_the_next(
    callers: Callable[..., GenaiCaller],
    loopback_gateway: Gateway,
    loopback_standin: dict[str, str],
    model: str,
) -> None:
    """Nobody listens where the preferred one leads to."""
    connections = expect(loopback_gateway.admin.get("/api/providers"), 200)["connections"]
    nodes = expect(loopback_gateway.admin.get("/api/provider-nodes"), 200)["nodes"]
    (node,) = [each for each in nodes if each["prefix"] == loopback_standin["gemini"]]
    assert any(each["provider"] == node["id"] for each in connections)
    dead = loopback_gateway.add_connection(
        node["id"],
        "sk-dead-canary",
        name="dead",
        priority=1,
        providerSpecificData={"baseUrl": "http://127.0.0.1:9/v1beta"},
    )
    try:
        caller = callers()
        assert caller.ended_video(begin(caller, model)).response.generated_videos
    finally:
        expect(loopback_gateway.admin.delete(f"/api/providers/{dead['id']}"), 200)


def test_a_video_is_paid_by_the_second_and_in_the_log(
    callers: Callable[..., GenaiCaller],
    loopback_gateway: Gateway,
    loopback_standin: dict[str, str],
    model: str,
) -> None:
    nodes = expect(loopback_gateway.admin.get("/api/provider-nodes"), 200)["nodes"]
    (node,) = [each for each in nodes if each["prefix"] == loopback_standin["gemini"]]
    prices = {node["id"]: {"standin": {"perSecond": 0.25}}}
    expect(loopback_gateway.admin.patch("/api/pricing", json=prices), 200)
    answer = ask(callers(), model, parameters={"durationSeconds": "6", "sampleCount": 2})
    assert answer.status_code == 200
    assert "x-fairlead-bill" not in answer.headers
    record = loopback_gateway.record(answer.headers["x-gateway-request-id"])
    assert (record["endpoint"], record["outcome"]) == ("video", "completed")
    assert record["costUsdMicros"] == 3_000_000
    assert json.dumps(record).find("a cat") < 0
