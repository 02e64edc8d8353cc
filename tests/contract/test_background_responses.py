"""Responses in the background, as the official `openai` client asks for them: queued, polled, streamed, taken up again,
cancelled; each is its owner's, and a restart leaves none without an end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane, expect
from tests.support.sdks import openai
from tests.support.upstream import (
    DONE,
    SSE_HEAD,
    STALL,
    Gate,
    Upstream,
    chunk,
    completion,
    delta,
    finish,
    reply,
    stream,
    usage_event,
)

# What docs/how-to/grow.md says of several nodes.
WORKED_ON_BY_ONE = pytest.mark.one_node(
    reason="a background response is shown and streamed while it lasts by the node that works on it"
)
SAID = [delta("one "), delta("two"), finish(), usage_event(), DONE]


def ended(client: openai.OpenAI, response_id: str) -> Any:
    """The response once it has ended."""

    def look() -> Any:
        told = client.responses.retrieve(response_id)
        return told if told.status not in ("queued", "in_progress") else None

    return eventually(look, "the response ends", within_s=30, every_s=0.1)


@WORKED_ON_BY_ONE
def test_a_response_is_queued_polled_and_complete(
    client: openai.OpenAI, gateway: Gateway, lane: Lane
) -> None:
    gate = Gate()
    lane.upstream.script([SSE_HEAD, gate, *stream(*SAID)[1:]])
    made = client.responses.create(model=lane.model, input="hi", background=True)
    assert (made.status, made.background, made.output) == ("queued", True, [])
    assert gate.reached.wait(20)
    assert client.responses.retrieve(made.id).status == "in_progress"
    gate.open()
    told = ended(client, made.id)
    assert (told.id, told.status, told.output_text) == (made.id, "completed", "one two")
    assert told.background is True
    assert told.created_at == made.created_at
    assert told.usage is not None
    items = client.responses.input_items.list(made.id).data
    assert [item.type for item in items] == ["message"]
    # It is paid for by its owner, once.
    mine = [one for one in gateway.records() if one["model"] == lane.model]
    assert [(one["outcome"], one["tokensOutput"]) for one in mine] == [("completed", 3)]
    # And may be gone on from.
    lane.upstream.script(reply(completion("three")))
    more = client.responses.create(model=lane.model, input="more", previous_response_id=made.id)
    assert more.output_text == "three"
    assert [one["content"] for one in lane.upstream.last.json()["messages"]] == [
        "hi",
        "one two",
        "more",
    ]


@WORKED_ON_BY_ONE
def test_a_stream_is_left_and_taken_up_again(client: openai.OpenAI, lane: Lane) -> None:
    """Numbers go on without a gap, for who reads on while it lasts and for who comes when it is over."""
    gate = Gate()
    lane.upstream.script(
        [SSE_HEAD, chunk(SAID[0]), gate, *(chunk(one) for one in SAID[1:]), b"0\r\n\r\n"]
    )
    response_id, seen = "", []
    with client.responses.create(
        model=lane.model, input="hi", background=True, stream=True
    ) as events:
        for event in events:
            seen.append(event)
            if event.type == "response.created":
                response_id = event.response.id
            if event.type == "response.output_text.delta":
                break
    assert [event.type for event in seen[:3]] == [
        "response.created",
        "response.queued",
        "response.in_progress",
    ]
    assert [event.sequence_number for event in seen] == list(range(len(seen)))
    gate.open()
    last = seen[-1].sequence_number
    with client.responses.retrieve(response_id, stream=True, starting_after=last) as events:
        rest = list(events)
    assert [event.sequence_number for event in rest] == list(range(last + 1, last + 1 + len(rest)))
    assert rest[-1].type == "response.completed"
    assert rest[-1].response.output_text == "one two"
    assert rest[-1].response.id == response_id
    ended(client, response_id)
    with client.responses.retrieve(response_id, stream=True) as events:
        whole = list(events)
    assert [(event.type, event.sequence_number) for event in whole] == [
        (event.type, event.sequence_number) for event in [*seen, *rest]
    ]


def test_one_that_was_not_streamed_is_told_as_events(client: openai.OpenAI, lane: Lane) -> None:
    lane.upstream.script(reply(completion("hello")))
    made = client.responses.create(model=lane.model, input="hi")
    with client.responses.retrieve(made.id, stream=True) as events:
        told = list(events)
    kinds = [event.type for event in told]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    text = "".join(event.delta for event in told if event.type == "response.output_text.delta")
    assert text == told[-1].response.output_text == "hello"  # type: ignore[union-attr]
    with client.responses.retrieve(made.id, stream=True, starting_after=len(told) - 2) as events:
        assert [event.type for event in events] == ["response.completed"]


@WORKED_ON_BY_ONE
def test_a_cancelled_response_ends_its_call(client: openai.OpenAI, lane: Lane) -> None:
    gate = Gate()
    lane.upstream.script([SSE_HEAD, chunk(SAID[0]), gate, STALL])
    made = client.responses.create(model=lane.model, input="hi", background=True)
    assert gate.reached.wait(20)
    cancelled = client.responses.cancel(made.id)
    assert cancelled.status == "cancelled"
    assert client.responses.retrieve(made.id).status == "cancelled"
    assert client.responses.cancel(made.id).status == "cancelled", "twice is once"
    gate.open()
    eventually(lambda: lane.upstream.last.gone_at, "the provider's call ends")
    lane.upstream.script(reply(completion()))
    plain = client.responses.create(model=lane.model, input="hi")
    with pytest.raises(openai.BadRequestError, match="background"):
        client.responses.cancel(plain.id)


def test_a_failure_is_the_responses_end(client: openai.OpenAI, lane: Lane) -> None:
    lane.upstream.script(reply({"error": {"message": "no such thing", "code": "bad"}}, 400))
    told = ended(client, client.responses.create(model=lane.model, input="hi", background=True).id)
    assert told.status == "failed"
    assert told.error is not None
    assert "no such thing" in told.error.message


def test_it_is_its_owners_alone(gateway: Gateway, client: openai.OpenAI, lane: Lane) -> None:
    gate = Gate()
    lane.upstream.script([SSE_HEAD, gate, *stream(*SAID)[1:]])
    made = client.responses.create(model=lane.model, input="hi", background=True)
    other = gateway.create_key()["key"]
    path = f"/v1/responses/{made.id}"
    with gateway.client(headers={"Authorization": f"Bearer {other}"}) as stranger:
        asked: dict[str, Callable[[], httpx.Response]] = {
            "read": lambda: stranger.get(path),
            "stream": lambda: stranger.get(path, params={"stream": "true"}),
            "cancel": lambda: stranger.post(f"{path}/cancel"),
            "delete": lambda: stranger.delete(path),
        }
        for name, ask in asked.items():
            assert ask().status_code == 404, name
    gate.open()
    assert ended(client, made.id).status == "completed"
    client.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"store": False}, "store"),
        ({"input": 7}, "input"),
        ({"model": None}, "model"),
        ({"stream": 1}, "stream"),
    ],
)
def test_what_cannot_be_is_named(
    gateway: Gateway, lane: Lane, fields: dict[str, Any], param: str
) -> None:
    body = {"model": lane.model, "input": "hi", "background": True, **fields}
    answer = gateway.caller.post("/v1/responses", json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param), answer.text
    assert lane.upstream.requests == []


def test_a_restart_leaves_none_without_an_end(gateways: Callable[..., Gateway]) -> None:
    gateway = gateways()
    with Upstream() as upstream:
        lane = gateway.add_lane(upstream)
        upstream.script([SSE_HEAD, chunk(SAID[0]), STALL])
        body = {"model": lane.model, "input": "hi", "background": True}
        made = expect(gateway.caller.post("/v1/responses", json=body), 200)
        path = f"/v1/responses/{made['id']}"
        eventually(lambda: upstream.requests, "the provider is asked")
        gateway.control.kill()

        def look() -> Any:
            answer = gateway.caller.get(path)
            if answer.status_code != 200:
                return None
            told = answer.json()
            return told if told["status"] not in ("queued", "in_progress") else None

        told = eventually(look, "the response has ended", within_s=30, every_s=0.1)
        assert told["status"] == "failed"
        assert "restarted" in told["error"]["message"]
        events = gateway.caller.get(path, params={"stream": "true"}).text
        assert "event: response.failed" in events


@pytest.mark.one_node(
    reason="a worker that has not heard of the key's use takes the request, which is refused when it is worked on"
)
def test_a_key_without_room_keeps_nothing(gateway: Gateway, lane: Lane) -> None:
    """Its limits hold before anything is kept, and what is kept counts once."""
    made = gateway.create_key(rateLimits=[{"limit": 1, "window": 3600}])
    with openai.OpenAI(
        base_url=f"{gateway.url}/v1", api_key=made["key"], max_retries=0, timeout=30
    ) as client:
        lane.upstream.script(stream(*SAID))
        first = client.responses.create(model=lane.model, input="hi", background=True)
        assert ended(client, first.id).status == "completed"
        with pytest.raises(openai.RateLimitError, match="1 requests"):
            client.responses.create(model=lane.model, input="hi", background=True)
    mine = [one for one in gateway.records() if one["keyId"] == made["id"]]
    assert sorted(one["outcome"] for one in mine) == ["completed", "refused"]


@pytest.mark.parametrize(
    ("path", "begun"),
    [
        ("/v1/responses", {"input": "hi", "background": True}),
        ("/v1beta/interactions", {"input": "hi", "background": True}),
    ],
    ids=["responses", "interactions"],
)
def test_limits_of_requests_count_what_is_accepted(
    gateway: Gateway, lane: Lane, path: str, begun: dict[str, Any]
) -> None:
    """Before any of it is worked on; and what was accepted is worked on, not refused then."""
    made = gateway.create_key(rateLimits=[{"limit": 2, "window": 3600}])
    gate = Gate()
    lane.upstream.script([gate, *stream(*SAID)])
    body = {"model": lane.model, **begun}
    headers = {"Authorization": f"Bearer {made['key']}"}
    with gateway.client(headers=headers) as caller:
        accepted = [expect(caller.post(path, json=body), 200)["id"] for _ in range(2)]
        refused = caller.post(path, json=body)
        assert refused.status_code == 429, refused.text
        gate.open()
        for each in accepted:
            eventually(
                lambda: caller.get(f"{path}/{each}").json()["status"] == "completed",  # noqa: B023 - called before the next round
                "what was accepted is worked on",
                within_s=30,
                every_s=0.1,
            )
        assert caller.post(path, json=body).status_code == 429
        direct = caller.post("/v1/responses", json={"model": lane.model, "input": "hi"})
        assert direct.status_code == 429


def test_bytes_of_an_owner_are_bounded(gateway: Gateway, lane: Lane) -> None:
    expect(gateway.admin.patch("/api/settings", json={"storageOwnerMb": 1}), 200)
    try:
        made = gateway.create_key()
        body = {"model": lane.model, "input": "x" * 700_000, "background": True}
        headers = {"Authorization": f"Bearer {made['key']}"}
        with gateway.client(headers=headers) as caller:
            lane.upstream.script(stream(*SAID))
            first = expect(caller.post("/v1/responses", json=body), 200)
            refused = caller.post("/v1/responses", json=body)
            assert refused.status_code == 429
            assert "storageOwnerMb" in refused.json()["error"]["message"]
            # What the relay keeps of an answer is told to be kept, or not.
            lane.upstream.script(reply(completion("three")))
            direct = caller.post("/v1/responses", json={**body, "background": False})
            assert (direct.status_code, direct.headers.get("x-gateway-not-stored")) == (
                200,
                "true",
            )
            eventually(
                lambda: caller.get(f"/v1/responses/{first['id']}").json()["status"] == "completed",
                "the response ends",
                within_s=30,
                every_s=0.1,
            )
            expect(caller.delete(f"/v1/responses/{first['id']}"), 200)
            lane.upstream.script(stream(*SAID))
            eventually(
                lambda: caller.post("/v1/responses", json=body).status_code == 200,
                "there is room again",
                within_s=20,
                every_s=0.5,
            )
    finally:
        expect(gateway.admin.patch("/api/settings", json={"storageOwnerMb": 4096}), 200)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"input": [{}] * 300_000}, 413),
        ({"instructions": "x" * (9 * 1024 * 1024)}, 413),
        ({"instructions": "x" * (13 * 1024 * 1024)}, 413),
    ],
    ids=["values", "instructions", "more than events may be"],
)
def test_what_would_weigh_too_much_in_memory_is_refused(
    gateway: Gateway, lane: Lane, change: dict[str, Any], status: int
) -> None:
    body = {"model": lane.model, "input": "hi", "background": True, **change}
    answer = gateway.caller.post("/v1/responses", json=body)
    assert answer.status_code == status, answer.text
    assert "more than" in answer.json()["error"]["message"]


@pytest.mark.parametrize("how", ["deleted", "banned"])
def test_it_ends_with_its_key(gateway: Gateway, lane: Lane, how: str) -> None:
    made = gateway.create_key()
    headers = {"Authorization": f"Bearer {made['key']}"}
    gate = Gate()
    lane.upstream.script([SSE_HEAD, chunk(SAID[0]), gate, STALL])
    body = {"model": lane.model, "input": "hi", "background": True}
    with gateway.client(headers=headers) as caller:
        response_id = expect(caller.post("/v1/responses", json=body), 200)["id"]
        assert gate.reached.wait(20)
        if how == "deleted":
            expect(gateway.admin.delete(f"/api/keys/{made['id']}"), 200)
        else:
            expect(gateway.admin.patch(f"/api/keys/{made['id']}", json={"isBanned": True}), 200)
        gate.open()
        eventually(
            lambda: lane.upstream.last.gone_at, "the provider's call ends", within_s=30, every_s=0.1
        )
        if how == "banned":
            expect(gateway.admin.patch(f"/api/keys/{made['id']}", json={"isBanned": False}), 200)
            told = expect(caller.get(f"/v1/responses/{response_id}"), 200)
            assert told["status"] == "failed"
            assert told["error"]["code"] == "invalid_api_key"
            assert "banned" in told["error"]["message"]


def test_headers_of_the_gateway_hold(gateway: Gateway, upstream: Upstream) -> None:
    """What a caller says in the head goes along with the call that is made later."""
    lane = gateway.add_lane(upstream, dialect="openai-responses")
    upstream.script(reply({"error": {"message": "x"}}, 400))
    with gateway.client(headers={"Authorization": f"Bearer {gateway.key}"}) as caller:
        body = {"model": lane.model, "input": "hi", "background": True}
        wrong = {"X-Gateway-Compression": "no-such-pipeline"}
        made = expect(caller.post("/v1/responses", json=body, headers=wrong), 200)

        def find() -> dict[str, Any] | None:
            told = expect(caller.get(f"/v1/responses/{made['id']}"), 200)
            return told if told["status"] == "failed" else None

        told = eventually(find, "the response fails", within_s=20, every_s=0.1)
    assert "X-Gateway-Compression" in told["error"]["message"]
    assert not upstream.requests


def test_one_idempotency_key_begins_one_response(gateway: Gateway, model: str) -> None:
    key = gateway.create_key()["key"]
    headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": "once"}
    body = {"model": model, "input": "Say hello.", "background": True}
    with gateway.client(headers=headers) as caller:
        first = caller.post("/v1/responses", json=body)
        again = caller.post("/v1/responses", json=body)
        assert first.json()["id"] == again.json()["id"]
        assert "x-gateway-idempotent" not in first.headers
        assert again.headers["x-gateway-idempotent"] == "true"
        other = caller.post("/v1/responses", json={**body, "input": "Something else."})
        assert other.status_code in (400, 409, 422), other.text
        fresh = caller.post("/v1/responses", json=body, headers={"Idempotency-Key": "twice"})
        assert fresh.json()["id"] != first.json()["id"]
