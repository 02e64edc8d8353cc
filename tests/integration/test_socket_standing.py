"""Connections and streams that last end when their caller may not call any more, over both fronts."""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.sync.server import ServerConnection, serve

from tests.support.gateway_pool import GatewayPool
from tests.support.polling import eventually
from tests.support.processes import Gateway, expect
from tests.support.standin import start_standin

pytestmark = pytest.mark.both_fronts

PASSWORD = "correct horse battery staple"
FILTER = "/api/settings/ip-filter"
HOME, ELSEWHERE = "198.51.100.7", "203.0.113.9"
# A review every two seconds, on a machine that is busy.
WITHIN_S = 15


@pytest.fixture(scope="module")
def gateway(gateway_pool: GatewayPool) -> Iterator[Gateway]:
    """A gateway with an owner, behind a proxy of ours, so that a test can call from anywhere."""
    settings = {"INITIAL_PASSWORD": PASSWORD, "SERVICE_TRUST_PROXY": "true"}
    with gateway_pool.lease(**settings) as running:
        yield running


@pytest.fixture(scope="module")
def model(gateway: Gateway) -> Iterator[str]:
    with start_standin() as url:
        prefix = f"st{secrets.token_hex(3)}"
        node = gateway.add_node(prefix, f"{url}/v1")
        gateway.add_connection(node["id"], "sk-standin-canary")
        yield f"{prefix}/standin"


@pytest.fixture(scope="module")
def talk(gateway: Gateway) -> Iterator[str]:
    """A model of realtime conversations whose provider greets and then listens."""

    def greet(socket: ServerConnection) -> None:
        socket.send(json.dumps({"type": "session.created"}))
        with contextlib.suppress(ConnectionClosed):
            for _ in socket:
                pass

    with serve(greet, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        prefix = f"rt{secrets.token_hex(3)}"
        port = server.socket.getsockname()[1]
        node = gateway.add_node(prefix, f"http://127.0.0.1:{port}/v1")
        gateway.add_connection(node["id"], "sk-realtime-canary")
        yield f"{prefix}/m"
        server.shutdown()
        thread.join(10)


@pytest.fixture(params=["ws", "realtime"])
def path(request: pytest.FixtureRequest) -> str:
    if request.param == "ws":
        request.getfixturevalue("model")
        return "/v1/ws"
    return f"/v1/realtime?model={request.getfixturevalue('talk')}"


@contextmanager
def opened(gateway: Gateway, path: str, **headers: str) -> Iterator[ClientConnection]:
    """A connection that has been greeted."""
    with connect(
        f"ws://127.0.0.1:{gateway.port}{path}",
        additional_headers=headers,
        open_timeout=20,
        proxy=None,
    ) as socket:
        assert json.loads(socket.recv(timeout=20))["type"] in {"session.ready", "session.created"}
        yield socket


def closed(socket: ClientConnection) -> tuple[int, str]:
    """With which code and reason the gateway closes."""
    with contextlib.suppress(ConnectionClosed):
        while True:
            socket.recv(timeout=WITHIN_S)
    assert socket.close_code is not None
    return socket.close_code, socket.close_reason or ""


def signed_in(gateway: Gateway, **body: str) -> httpx.Client:
    # Guesses are counted for each address.
    address = f"198.51.100.{secrets.randbelow(200) + 10}"
    client = gateway.client(headers={"x-forwarded-for": address})
    expect(client.post("/api/auth/login", json={"password": PASSWORD, **body}), 200)
    client.headers["origin"] = gateway.url
    return client


def cookie_of(client: httpx.Client) -> dict[str, str]:
    return {"Cookie": f"auth_token={client.cookies['auth_token']}"}


def made_admin(gateway: Gateway, owner: httpx.Client) -> tuple[str, httpx.Client]:
    email = f"a{secrets.token_hex(4)}@example.org"
    body = {
        "email": email,
        "name": "another",
        "role": "admin",
        "password": PASSWORD,
        "currentPassword": PASSWORD,
    }
    user = expect(owner.post("/api/users", json=body), 201)
    return user["id"], signed_in(gateway, email=email)


def test_a_session_that_signs_out_ends_its_sockets(gateway: Gateway, path: str) -> None:
    client = signed_in(gateway)
    with opened(gateway, path, **cookie_of(client)) as socket:
        expect(client.post("/api/auth/logout"), 200)
        assert closed(socket) == (1008, "The session has ended: sign in again.")


def test_all_other_sessions_end_with_their_sockets(gateway: Gateway, path: str) -> None:
    stolen, client = signed_in(gateway), signed_in(gateway)
    with (
        opened(gateway, path, **cookie_of(stolen)) as theirs,
        opened(gateway, path, **cookie_of(client)) as own,
    ):
        answer = client.delete("/api/auth/sessions")
        assert answer.is_success, answer.text
        assert closed(theirs)[0] == 1008
        own.ping().wait(5)


def test_a_person_who_is_switched_off_has_no_sockets(gateway: Gateway, path: str) -> None:
    owner = signed_in(gateway)
    user_id, client = made_admin(gateway, owner)
    with opened(gateway, path, **cookie_of(client)) as socket:
        body = {"isActive": False, "currentPassword": PASSWORD}
        expect(owner.patch(f"/api/users/{user_id}", json=body), 200)
        assert closed(socket)[0] == 1008


ENDS: dict[str, Callable[[Gateway, str], httpx.Response]] = {
    "revoked": lambda gateway, key: gateway.admin.delete(f"/api/keys/{key}"),
    "banned": lambda gateway, key: gateway.admin.patch(f"/api/keys/{key}", json={"isBanned": True}),
    "another text": lambda gateway, key: gateway.admin.post(f"/api/keys/{key}/regenerate"),
    "another address": lambda gateway, key: gateway.admin.patch(
        f"/api/keys/{key}", json={"ipAllowlist": [ELSEWHERE]}
    ),
}


@pytest.mark.parametrize("how", ENDS)
def test_a_key_that_may_not_call_any_more_ends_its_sockets(
    gateway: Gateway, path: str, how: str
) -> None:
    made = gateway.create_key(ipAllowlist=[HOME])
    headers = {"Authorization": f"Bearer {made['key']}", "X-Forwarded-For": HOME}
    with opened(gateway, path, **headers) as socket:
        assert ENDS[how](gateway, made["id"]).is_success
        code, reason = closed(socket)
        assert code == 1008
        assert reason


@pytest.mark.parametrize(
    "change",
    [
        {"enabled": True, "mode": "blacklist", "blacklist": [HOME]},
        {"tempBan": {"ip": HOME, "durationMs": 600_000, "reason": "too loud"}},
    ],
    ids=["filter", "ban"],
)
def test_an_address_that_is_shut_out_ends_its_sockets(
    gateway: Gateway, path: str, change: dict[str, Any]
) -> None:
    key = gateway.create_key()["key"]
    headers = {"Authorization": f"Bearer {key}", "X-Forwarded-For": HOME}
    with opened(gateway, path, **headers) as socket:
        try:
            expect(gateway.admin.put(FILTER, json=change), 200)
            assert closed(socket) == (1008, "This address may not call the gateway.")
        finally:
            after = {"enabled": False, "mode": "blacklist", "blacklist": [], "removeBan": HOME}
            expect(gateway.admin.put(FILTER, json=after), 200)


def test_a_stream_that_runs_over_the_socket_ends_with_it(gateway: Gateway, model: str) -> None:
    client = signed_in(gateway)
    with opened(gateway, "/v1/ws", **cookie_of(client)) as socket:
        payload = {
            "model": f"{model}@chunks=2000,gap_ms=50",
            "stream": True,
            "messages": [{"role": "user", "content": "hello"}],
        }
        socket.send(json.dumps({"type": "request", "id": "a", "payload": payload}))
        start = json.loads(socket.recv(timeout=20))
        expect(client.post("/api/auth/logout"), 200)
        assert closed(socket)[0] == 1008
    assert gateway.record(start["request_id"])["outcome"] == "client_gone"


def test_a_live_page_ends_with_its_session(gateway: Gateway) -> None:
    client = signed_in(gateway)
    with (
        gateway.client(headers=cookie_of(client)) as watching,
        watching.stream("GET", "/dashboard/live?at=/dashboard/logs", timeout=30) as page,
    ):
        assert page.status_code == 200, page.read()
        events = page.iter_bytes()
        next(events)
        expect(client.post("/api/auth/logout"), 200)
        with contextlib.suppress(httpx.RemoteProtocolError):
            # A stream that goes on lasts a minute, and the test's own patience is shorter.
            for _ in events:
                pass


def test_a_socket_has_a_longest_life(gateways: Any) -> None:
    gateway = gateways(FAIRLEAD_SOCKET_LIFE_MS="2000")
    key = gateway.create_key()["key"]
    with opened(gateway, "/v1/ws", Authorization=f"Bearer {key}") as socket:
        assert closed(socket) == (1008, "A connection lasts 2 s at most: open another.")


def test_what_was_never_opened_leaves_nothing(gateway: Gateway, path: str) -> None:
    """Connections that come and go are not counted as open afterwards."""
    key = gateway.create_key()["key"]
    for _ in range(20):
        with opened(gateway, path, Authorization=f"Bearer {key}"):
            pass

    def open_streams() -> int:
        health = expect(gateway.admin.get("/api/monitoring/health"), 200)
        return sum(int(worker["openStreams"]) for worker in health["workers"])

    eventually(lambda: open_streams() == 0, "no stream is open", within_s=WITHIN_S)
