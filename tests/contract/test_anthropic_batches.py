"""The official `anthropic` client runs message batches, on the engine that runs OpenAI's and Google's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.polling import eventually
from tests.support.processes import Gateway
from tests.support.sdk_clients import anthropic_client, openai_client
from tests.support.sdks import anthropic, openai

BATCH_WITHIN_S = 40.0


@pytest.fixture
def client(gateway: Gateway) -> Iterator[anthropic.Anthropic]:
    """With a key of its own: lists have nothing but this test's batches."""
    with anthropic_client(gateway, gateway.create_key(name="batches")["key"]) as made:
        yield made


@pytest.fixture
def stranger(gateway: Gateway) -> Iterator[anthropic.Anthropic]:
    with anthropic_client(gateway, gateway.create_key(name="stranger")["key"]) as made:
        yield made


def request(custom_id: str, model: str, text: str = "hello", **more: Any) -> Any:
    params = {"model": model, "max_tokens": 50, "messages": [{"role": "user", "content": text}]}
    return {"custom_id": custom_id, "params": params | more}


def ended(client: anthropic.Anthropic, batch_id: str) -> Any:
    def look() -> Any:
        batch = client.messages.batches.retrieve(batch_id)
        return batch if batch.processing_status == "ended" else None

    return eventually(look, "the batch ends", within_s=BATCH_WITHIN_S, every_s=0.1)


@pytest.mark.parametrize("dialect", ["anthropic", "openai"])
def test_results_come_in_the_order_of_their_requests(
    client: anthropic.Anthropic, standin: dict[str, str], dialect: str
) -> None:
    model = f"{standin[dialect]}/standin"
    made = client.messages.batches.create(
        requests=[
            request("first", model, "first thing"),
            request("wrong", "nobody/knows"),
            request("third", model, "third thing", max_tokens=2),
        ]
    )
    assert (made.id[:9], made.type) == ("msgbatch_", "message_batch")
    assert made.processing_status == "in_progress"
    assert made.request_counts.model_dump() == {
        "processing": 3,
        "succeeded": 0,
        "errored": 0,
        "canceled": 0,
        "expired": 0,
    }
    assert (made.results_url, made.ended_at, made.cancel_initiated_at) == (None, None, None)
    assert (made.expires_at - made.created_at).total_seconds() == 86_400
    batch = ended(client, made.id)
    assert batch.request_counts.model_dump() == {
        "processing": 0,
        "succeeded": 2,
        "errored": 1,
        "canceled": 0,
        "expired": 0,
    }
    assert batch.ended_at >= batch.created_at
    first, wrong, third = client.messages.batches.results(made.id)
    assert [each.custom_id for each in (first, wrong, third)] == ["first", "wrong", "third"]
    assert first.result.type == "succeeded"
    assert "first thing" in first.result.message.content[0].text
    assert first.result.message.stop_reason == "end_turn"
    assert wrong.result.type == "errored"
    assert wrong.result.error.error.type == "not_found_error"
    assert "nobody" in wrong.result.error.error.message
    assert wrong.result.error.request_id.startswith("req_")
    assert third.result.message.stop_reason == "max_tokens"
    assert third.result.message.usage.output_tokens == 2


def test_the_beta_client_and_its_features(
    client: anthropic.Anthropic, standin: dict[str, str]
) -> None:
    """`betas` of the batch are sent with each of its requests."""
    model = f"{standin['anthropic']}/standin"
    made = client.beta.messages.batches.create(
        requests=[request("one", model)], betas=["context-1m-2025-08-07"]
    )
    assert ended(client, made.id).request_counts.succeeded == 1
    (result,) = client.beta.messages.batches.results(made.id)
    assert result.result.type == "succeeded"


def test_a_batch_is_cancelled_then_deleted(
    client: anthropic.Anthropic, stranger: anthropic.Anthropic, standin: dict[str, str]
) -> None:
    model = f"{standin['anthropic']}/standin@latency_ms=1500"
    made = client.messages.batches.create(requests=[request(f"r{at}", model) for at in range(20)])
    with pytest.raises(anthropic.ConflictError, match="has not ended"):
        client.messages.batches.delete(made.id)
    with pytest.raises(anthropic.NotFoundError, match="No such batch") as unknown:
        stranger.messages.batches.cancel(made.id)
    assert unknown.value.body["error"]["type"] == "not_found_error"
    marked = client.messages.batches.cancel(made.id)
    assert marked.processing_status == "canceling"
    assert marked.cancel_initiated_at is not None
    batch = ended(client, made.id)
    counts = batch.request_counts
    assert counts.canceled > 0
    assert counts.succeeded + counts.canceled == 20
    kinds = [line.result.type for line in client.messages.batches.results(made.id)]
    assert kinds.count("canceled") == counts.canceled
    for read in (stranger.messages.batches.retrieve, stranger.messages.batches.delete):
        with pytest.raises(anthropic.NotFoundError):
            read(made.id)
    gone = client.messages.batches.delete(made.id)
    assert (gone.id, gone.type) == (made.id, "message_batch_deleted")
    with pytest.raises(anthropic.NotFoundError):
        client.messages.batches.retrieve(made.id)


def test_batches_are_listed_in_both_directions(
    client: anthropic.Anthropic, model: str, gateway: Gateway
) -> None:
    """Newest first. OpenAI's list has none of them, nor does its address show one."""
    ids = [client.messages.batches.create(requests=[request("a", model)]).id for _ in range(5)]
    newest_first = ids[::-1]
    assert [batch.id for batch in client.messages.batches.list(limit=2)] == newest_first
    page = client.messages.batches.list(after_id=newest_first[1], limit=2)
    assert [batch.id for batch in page.data] == newest_first[2:4]
    assert (page.first_id, page.last_id, page.has_more) == (*newest_first[2:4], True)
    back = client.messages.batches.list(before_id=newest_first[3], limit=2)
    assert [batch.id for batch in back.data] == newest_first[1:3]
    assert back.has_more is True
    with pytest.raises(anthropic.BadRequestError, match="after_id must be the id of a batch"):
        client.messages.batches.list(after_id="msgbatch_no")
    with openai_client(gateway, client.api_key) as other:
        assert list(other.batches.list()) == []
        with pytest.raises(openai.NotFoundError):
            other.batches.retrieve(ids[0])
        with pytest.raises(openai.NotFoundError):
            other.batches.cancel(ids[0])


@pytest.mark.parametrize(
    ("requests", "said"),
    [
        ([], "requests"),
        ([{"custom_id": "a b", "params": {}}], "requests[0].custom_id"),
        ([{"custom_id": "a"}], "requests[0].params is required"),
        ([{"custom_id": "a", "params": {}}] * 2, "already used by requests[0]"),
        ([{"custom_id": "a", "params": {"stream": True}}], "requests[0].params.stream"),
    ],
)
def test_what_a_batch_may_not_be(
    client: anthropic.Anthropic, requests: list[Any], said: str
) -> None:
    """Refused at once, in the form that the client reads."""
    with pytest.raises(anthropic.BadRequestError) as refused:
        client.messages.batches.create(requests=requests)
    body: Any = refused.value.body
    assert (body["type"], body["error"]["type"]) == ("error", "invalid_request_error")
    assert said in body["error"]["message"]
    assert body["request_id"].startswith("req_")


def test_results_before_the_end_are_refused(
    client: anthropic.Anthropic, standin: dict[str, str]
) -> None:
    model = f"{standin['anthropic']}/standin@latency_ms=1500"
    made = client.messages.batches.create(requests=[request("a", model)])
    with pytest.raises(anthropic.NotFoundError, match="no results yet"):
        client.get(f"/v1/messages/batches/{made.id}/results", cast_to=object)
    ended(client, made.id)
