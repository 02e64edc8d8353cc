"""More requests than the gateway takes: those beyond the bound are told so at once, the others do not suffer."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from tests.support.chat import CHAT, ask, error_of, send_chat
from tests.support.gateway_pool import GatewayPool
from tests.support.polling import eventually
from tests.support.processes import Gateway
from tests.support.raw import RawClient
from tests.support.upstream import (
    DONE,
    LAST_CHUNK,
    SSE_HEAD,
    Gate,
    Upstream,
    chunk,
    completion,
    delta,
    finish,
    reply,
)

BOUND = 10


@pytest.fixture(scope="module")
def gateway(gateway_pool: GatewayPool) -> Iterator[Gateway]:
    with gateway_pool.lease(FAIRLEAD_MAX_IN_FLIGHT=str(BOUND)) as running:
        yield running


def test_ten_times_too_many_are_shed(gateway: Gateway, upstream: Upstream) -> None:
    """Of a hundred callers ten are served; ninety get 503 with Retry-After while health and management answer."""
    lane = gateway.add_lane(upstream)
    gate = Gate()
    upstream.script([gate, *reply(completion("in the end"))])
    with contextlib.ExitStack() as clients:
        crowd = [
            clients.enter_context(RawClient(gateway.port, timeout_s=20)) for _ in range(BOUND * 10)
        ]
        for client in crowd:
            send_chat(client, lane)
        eventually(lambda: len(upstream.requests) == BOUND, "the bound is filled")

        started = time.monotonic()
        health = gateway.client(timeout=3)
        assert health.get("/healthz").status_code == 200
        assert health.get("/readyz").status_code == 200
        assert gateway.admin.get("/api/keys").status_code == 200
        assert gateway.admin.get("/api/monitoring/health").status_code == 200
        assert time.monotonic() - started < 2
        refused = ask(lane)
        assert error_of(refused) == (503, "overloaded")
        assert int(refused.header("retry-after") or "0") >= 1

        assert len(upstream.requests) == BOUND
        gate.open()
        answers = [client.response() for client in crowd]
    statuses = Counter(answer.status for answer in answers)
    assert statuses == {200: BOUND, 503: BOUND * 9}
    assert all(answer.header("retry-after") for answer in answers if answer.status == 503)
    assert ask(lane).status == 200, "not recovered"


def test_open_streams_have_a_bound_of_their_own(
    gateways: Callable[..., Gateway], upstream: Upstream
) -> None:
    """With all streams taken a further one is told 503; a plain request is still served, and room is given back."""
    gateway = gateways(FAIRLEAD_MAX_OPEN_STREAMS=str(BOUND))
    lane = gateway.add_lane(upstream)
    gate = Gate()
    upstream.script([SSE_HEAD, chunk(delta("a")), gate, chunk(finish() + DONE), LAST_CHUNK])
    with contextlib.ExitStack() as clients:
        crowd = [clients.enter_context(RawClient(gateway.port)) for _ in range(BOUND)]
        for client in crowd:
            send_chat(client, lane, stream=True)
        for client in crowd:
            client.head()
        refused = ask(lane, stream=True)
        assert error_of(refused) == (503, "overloaded")
        assert refused.header("retry-after")
        upstream.script(reply(completion()))
        assert ask(lane).status == 200
        gate.open()
        for client in crowd:
            client.body_until(DONE)
    upstream.script([SSE_HEAD, chunk(delta("a") + finish() + DONE), LAST_CHUNK])
    eventually(lambda: ask(lane, stream=True).status == 200, "streams are taken again")


def test_room_is_given_back_by_callers_who_leave(gateway: Gateway, upstream: Upstream) -> None:
    """A bound that is filled by callers who then vanish is free again within a second or two."""
    lane = gateway.add_lane(upstream)
    gate = Gate()
    upstream.script([gate, *reply(completion())])
    for _ in range(3):
        before = len(upstream.requests)
        crowd = [RawClient(gateway.port) for _ in range(BOUND)]
        for client in crowd:
            send_chat(client, lane)
        eventually(
            lambda so_far=before: len(upstream.requests) == so_far + BOUND, "the bound is filled"
        )
        for client in crowd:
            client.reset()
        eventually(
            lambda: (
                gateway.admin.get("/healthz").status_code == 200 and upstream.open_connections == 0
            ),
            "the provider's sockets are closed",
        )
    gate.open()
    assert gateway.caller.post(CHAT, json=lane.body()).status_code == 200
