"""The official `google-genai` client runs batches, over the same machinery as OpenAI's."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jwt
import pytest

from tests.support.listener import Listener
from tests.support.polling import eventually
from tests.support.processes import Gateway
from tests.support.sdk_clients import GenaiCaller
from tests.support.sdks import genai


@pytest.fixture
def model(loopback_standin: dict[str, str]) -> str:
    return f"models/{loopback_standin['gemini']}/standin"


def upload(caller: GenaiCaller, *lines: dict[str, Any], purpose: Any = "batch") -> str:
    """The name, in Google's words, of a file with these lines."""
    content = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    made = caller.openai.files.create(file=("in.jsonl", content), purpose=purpose)
    return f"files/{made.id}"


def ask(text: str, **more: Any) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": [{"text": text}]}], **more}


@pytest.mark.parametrize("dialect", ["gemini", "openai"])
def test_answers_come_in_the_order_of_their_requests(
    callers: Callable[..., GenaiCaller], loopback_standin: dict[str, str], dialect: str
) -> None:
    """With what stood beside each request, whatever its provider speaks; a refused one is an error of its own."""
    caller, model = callers(), f"models/{loopback_standin[dialect]}/standin"
    nobody = genai.types.Content(role="nobody", parts=[genai.types.Part(text="second thing")])
    config = genai.types.GenerateContentConfig(system_instruction="Be brief.", max_output_tokens=2)
    requests = [
        genai.types.InlinedRequest(contents="first thing", metadata={"order": "1"}),
        genai.types.InlinedRequest(contents=nobody, metadata={"order": "2"}),
        genai.types.InlinedRequest(contents="third thing", config=config),
    ]
    made = caller.genai.batches.create(
        model=model, src=requests, config={"display_name": "three things"}
    )
    assert made.name.startswith("batches/batch_")
    assert (made.display_name, made.model) == ("three things", model)
    assert made.state.name in ("JOB_STATE_PENDING", "JOB_STATE_RUNNING")
    job = caller.ended_batch(made.name)
    assert job.state.name == "JOB_STATE_SUCCEEDED"
    assert made.create_time <= job.end_time == job.update_time
    first, second, third = job.dest.inlined_responses
    assert "first thing" in first.response.text
    assert first.metadata == {"order": "1"}
    assert (second.response, second.metadata) == (None, {"order": "2"})
    assert second.error.code == 3
    assert second.error.message
    assert third.response.candidates[0].finish_reason == genai.types.FinishReason.MAX_TOKENS
    assert third.metadata is None
    shown = caller.plain.get(f"/v1beta/{made.name}").json()
    assert shown["done"] is True
    assert shown["metadata"]["batchStats"] == {
        "requestCount": "3",
        "successfulRequestCount": "2",
        "failedRequestCount": "1",
        "pendingRequestCount": "0",
    }
    assert shown["response"]["inlinedResponses"] == shown["metadata"]["output"]["inlinedResponses"]


def test_a_file_of_requests_comes_to_a_file_of_answers(
    callers: Callable[..., GenaiCaller], model: str
) -> None:
    caller = callers()
    source = upload(
        caller,
        {"key": "a", "request": ask("one", generation_config={"temperature": 0.3})},
        {"key": "b", "request": {"contents": []}},
        {"key": "c", "request": ask("two", model=model)},
    )
    made = caller.genai.batches.create(model=model, src=source)
    job = caller.ended_batch(made.name)
    assert job.state.name == "JOB_STATE_SUCCEEDED"
    assert job.dest.inlined_responses is None
    content = caller.genai.files.download(file=job.dest.file_name)
    lines = [json.loads(line) for line in content.splitlines()]
    assert [line["key"] for line in lines] == ["a", "b", "c"]
    assert [sorted(line.keys() - {"key"}) for line in lines] == [
        ["response"],
        ["error"],
        ["response"],
    ]
    answer = genai.types.GenerateContentResponse.model_validate(lines[2]["response"])
    assert "two" in (answer.text or "")
    shown = caller.openai.files.retrieve(job.dest.file_name.removeprefix("files/"))
    assert shown.purpose == "batch_output"
    # It outlives the batch that left it.
    caller.genai.batches.delete(name=made.name)
    assert caller.genai.files.download(file=job.dest.file_name) == content


def test_a_file_with_a_fault_fails_its_batch(
    callers: Callable[..., GenaiCaller], model: str
) -> None:
    caller = callers()
    source = upload(
        caller,
        {"key": "a", "request": ask("one")},
        {"key": "b", "request": ask("x", model="models/other")},
    )
    made = caller.genai.batches.create(model=model, src=source)
    assert caller.ended_batch(made.name).state.name == "JOB_STATE_FAILED"
    error = caller.plain.get(f"/v1beta/{made.name}").json()["error"]
    assert error == {
        "code": 3,
        "message": f"Line 2: request.model must be the batch's own, `{model}`, or left out.",
    }


@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_a_batch_is_cancelled_and_deleted(
    callers: Callable[..., GenaiCaller], model: str, version: str
) -> None:
    """What was not run says so in its place; one that is under way cannot be deleted."""
    caller = callers(version)
    requests: Any = [genai.types.InlinedRequest(contents=f"thing {number}") for number in range(20)]
    made = caller.genai.batches.create(model=f"{model}@latency_ms=1500", src=requests)
    with pytest.raises(genai.errors.ClientError, match="cancel it, or wait for its end"):
        caller.genai.batches.delete(name=made.name)
    caller.genai.batches.cancel(name=made.name)
    job = caller.ended_batch(made.name)
    assert job.state.name == "JOB_STATE_CANCELLED"
    answers = job.dest.inlined_responses
    assert len(answers) == 20
    assert answers[-1].error.code == 1
    shown = caller.plain.get(f"/v1beta/{made.name}").json()
    assert shown["error"]["code"] == 1
    assert "response" not in shown
    with pytest.raises(genai.errors.ClientError, match="cannot be cancelled"):
        caller.genai.batches.cancel(name=made.name)
    caller.genai.batches.delete(name=made.name)
    with pytest.raises(genai.errors.ClientError, match="No such batch"):
        caller.genai.batches.get(name=made.name)
    assert list(caller.openai.files.list()) == []


@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_batches_are_listed_page_by_page(
    callers: Callable[..., GenaiCaller], model: str, version: str
) -> None:
    """Each maker's client lists its own kind, where both have one address, too; a stranger none."""
    caller, stranger = callers(version), callers(version)
    made = [
        caller.genai.batches.create(
            model=model, src=[genai.types.InlinedRequest(contents="x")]
        ).name
        for _ in range(3)
    ]
    line = {"custom_id": "a", "method": "POST", "url": "/v1/embeddings", "body": {"input": "x"}}
    theirs = caller.openai.batches.create(
        input_file_id=upload(caller, line).removeprefix("files/"),
        completion_window="24h",
        endpoint="/v1/embeddings",
    )
    pager = caller.genai.batches.list(config={"page_size": 2})
    assert len(pager) == 2
    assert [job.name for job in pager] == made[::-1]
    assert [each.id for each in caller.openai.batches.list()] == [theirs.id]
    assert list(stranger.genai.batches.list()) == []
    for act in (
        stranger.genai.batches.get,
        stranger.genai.batches.cancel,
        stranger.genai.batches.delete,
    ):
        with pytest.raises(genai.errors.ClientError, match="No such batch"):
            act(name=made[0])
    assert caller.plain.get(f"/v1beta/batches/{theirs.id}").status_code == 404
    refused = caller.plain.get(f"/{version}/batches", params={"pageToken": "nonsense"})
    assert refused.status_code == 400
    assert refused.json()["error"]["message"].startswith("pageToken must be")


def test_a_batch_tells_its_own_listeners(
    callers: Callable[..., GenaiCaller], loopback_gateway: Gateway, listener: Listener, model: str
) -> None:
    """Whether its answers are inline, which has no file to speak of, or a file."""
    caller = callers()
    hooks = {"uris": [f"{listener.url}/ok"], "user_metadata": {"order": 7}}
    config: Any = {"webhook_config": hooks}
    inline = caller.genai.batches.create(
        model=model, src=[genai.types.InlinedRequest(contents="x")], config=config
    )
    source = upload(caller, {"key": "a", "request": ask("one")})
    filed = caller.genai.batches.create(model=model, src=source, config=config)
    eventually(lambda: listener.count() >= 2, "both are told of", within_s=30, every_s=0.1)
    told = {one.event["data"]["id"]: one for one in listener.received("/ok")}
    assert {f"batches/{batch_id}" for batch_id in told} == {inline.name, filed.name}
    keys = jwt.PyJWKClient(f"{loopback_gateway.url}/.well-known/jwks.json")
    for one in told.values():
        assert one.event["type"] == "batch.succeeded"
        assert one.event["user_metadata"] == {"order": 7}
        token = one.headers["webhook-signature"]
        key = keys.get_signing_key_from_jwt(token).key
        jwt.decode(token, key, algorithms=["RS256"], audience=f"{listener.url}/ok")
    assert "output_file_uri" not in told[inline.name.removeprefix("batches/")].event["data"]
    uri = told[filed.name.removeprefix("batches/")].event["data"]["output_file_uri"]
    assert caller.plain.get(uri).json()["key"] == "a"


def body(**batch: Any) -> dict[str, Any]:
    return {"batch": {"inputConfig": {"requests": {"requests": [{"request": ask("x")}]}}, **batch}}


REQUESTS = "batch.inputConfig.requests.requests"
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "batch is required"),
    ({"batch": {"inputConfig": {}}}, "batch.inputConfig must have one of requests and fileName"),
    ({"batch": {"inputConfig": {"requests": {"requests": []}}}}, REQUESTS),
    (
        {
            "batch": {
                "inputConfig": {"requests": {"requests": [{"request": {"model": "models/b"}}]}}
            }
        },
        f"{REQUESTS}[0].request.model must be the batch's own",
    ),
    ({"batch": {"inputConfig": {"fileName": "files/none"}}}, "fileName names no file of yours"),
    (body(model="models/other"), "batch.model must be the model of the address"),
    (body(priority="high"), "batch.priority must be a whole number"),
    (body(priority=2**64), "batch.priority"),
    (body(webhookConfig={"uris": ["http://169.254.169.254/"]}), "batch.webhookConfig.uris[0]"),
    (body(webhook_config={"userMetadata": {"a": "x" * 5000}}), "at most 4096 bytes"),
    (body(dest="x"), "batch.dest is not a field"),
]


@pytest.mark.parametrize(("sent", "said"), REFUSED)
def test_what_breaks_a_rule_is_refused(
    callers: Callable[..., GenaiCaller], model: str, sent: dict[str, Any], said: str
) -> None:
    caller = callers()
    answer = caller.plain.post(f"/v1beta/{model}:batchGenerateContent", json=sent)
    error = answer.json()["error"]
    assert (answer.status_code, error["status"]) == (400, "INVALID_ARGUMENT")
    assert said in error["message"]
    assert list(caller.openai.files.list()) == []


def test_another_purpose_another_key_and_no_key(
    callers: Callable[..., GenaiCaller], loopback_gateway: Gateway, model: str
) -> None:
    caller, stranger = callers(), callers()
    fine_tune = upload(caller, {"key": "a", "request": ask("one")}, purpose="fine-tune")
    with pytest.raises(genai.errors.ClientError, match="upload it as `batch`"):
        caller.genai.batches.create(model=model, src=fine_tune)
    theirs = upload(caller, {"key": "a", "request": ask("one")})
    with pytest.raises(genai.errors.ClientError, match="names no file of yours"):
        stranger.genai.batches.create(model=model, src=theirs)
    with pytest.raises(genai.errors.ClientError, match="No such file"):
        stranger.genai.files.download(file=theirs)
    with loopback_gateway.client() as nobody:
        refused = nobody.post(f"/v1beta/{model}:batchGenerateContent", json=body())
    assert (refused.status_code, refused.json()["error"]["status"]) == (401, "UNAUTHENTICATED")
    narrow = callers(allowedEndpoints=["chat"])
    with pytest.raises(genai.errors.ClientError, match="may not use the endpoint"):
        narrow.genai.batches.create(model=model, src=[genai.types.InlinedRequest(contents="x")])


def test_many_megabytes_of_requests_are_taken(
    callers: Callable[..., GenaiCaller], model: str
) -> None:
    """More than a record has, less than a prompt may have."""
    caller = callers()
    pixels = {"inlineData": {"mimeType": "image/png", "data": "A" * 3_000_000}}
    parts = [{"text": "what is this?"}, pixels]
    requests = [{"request": {"contents": [{"role": "user", "parts": parts}]}}] * 2
    sent = {"batch": {"inputConfig": {"requests": {"requests": requests}}}}
    answer = caller.plain.post(f"/v1beta/{model}:batchGenerateContent", json=sent)
    assert answer.status_code == 200, answer.text
    assert caller.ended_batch(answer.json()["name"]).state.name == "JOB_STATE_SUCCEEDED"
