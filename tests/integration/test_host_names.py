"""Without keys the gateway is called by names that no stranger can give to this machine."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.support.chat import CHAT
from tests.support.processes import Gateway, Lane
from tests.support.tls import NO_AUTHORITIES
from tests.support.upstream import Upstream, completion, reply

PAGE = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture(scope="module")
def open_lane(keyless_gateway: Gateway) -> Iterator[Lane]:
    """A lane of a gateway that asks for no key and has names."""
    with Upstream() as upstream:
        upstream.script(reply(completion()))
        yield keyless_gateway.add_lane(upstream)


def called(
    lane: Lane, host: str, headers: dict[str, str] | None = None, **request: Any
) -> httpx.Response:
    told = {"Host": host, **(headers or {})}
    with httpx.Client(
        base_url=lane.gateway.url, trust_env=False, timeout=20, verify=NO_AUTHORITIES
    ) as client:
        return client.post(CHAT, json=lane.body(), headers=told, **request)


@pytest.mark.parametrize("headers", [{}, PAGE])
def test_a_name_that_can_be_rebound_reaches_no_model(
    open_lane: Lane, headers: dict[str, str]
) -> None:
    asked = len(open_lane.upstream.requests)
    for host in ("evil.example", f"evil.example:{open_lane.gateway.port}", "a.gateway.example"):
        answer = called(open_lane, host, headers)
        assert answer.status_code == 403, answer.text
        error = answer.json()["error"]
        assert error["param"] == "Host"
        assert "SERVICE_PUBLIC_BASE_URL" in error["message"]
    assert len(open_lane.upstream.requests) == asked, "nobody was asked"


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "127.0.0.1:1",
        "192.168.7.1",
        "[::1]",
        "gateway.example",
        "Fairlead:20128",
        "gateway.lan",
    ],
)
def test_names_of_the_gateway_reach_models(open_lane: Lane, host: str) -> None:
    assert called(open_lane, host).status_code == 200


def test_a_key_may_call_by_any_name(open_lane: Lane) -> None:
    key = {"Authorization": f"Bearer {open_lane.gateway.key}"}
    assert called(open_lane, "evil.example", key).status_code == 200


def test_every_route_of_models_is_shut(open_lane: Lane) -> None:
    """In the caller's words; also to sockets, forms, and lists."""
    gateway, named = open_lane.gateway, {"Host": "evil.example"}
    with httpx.Client(
        base_url=gateway.url, trust_env=False, timeout=20, verify=NO_AUTHORITIES
    ) as client:
        told = client.post("/v1/messages", json=open_lane.body(max_tokens=5), headers=named)
        assert (told.status_code, told.json()["error"]["type"]) == (403, "permission_error")
        assert client.get("/v1/models", headers=named).status_code == 403
        form = {"model": open_lane.model}
        file = {"file": ("a.wav", b"abc", "application/octet-stream")}
        told = client.post("/v1/audio/transcriptions", data=form, files=file, headers=named)
        assert told.status_code == 403
        assert client.get("/healthz", headers=named).status_code == 200
    for path in ("/v1/ws", f"/v1/realtime?model={open_lane.model}"):
        with pytest.raises(InvalidStatus) as refused:
            connect(f"ws://evil.example:{gateway.port}{path}", sock=_dialled(gateway), proxy=None)
        assert refused.value.response.status_code == 403


def _dialled(gateway: Gateway) -> socket.socket:
    return socket.create_connection(("127.0.0.1", gateway.port), timeout=20)
