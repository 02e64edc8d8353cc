"""`/v1/realtime`: a conversation in events, with a WebSocket server of another make as the provider."""

from __future__ import annotations

import contextlib
import json
import secrets
import socket as socket_module
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.sync.server import ServerConnection, serve

from tests.support.polling import eventually
from tests.support.processes import Gateway, expect

USAGE = {"input_tokens": 11, "output_tokens": 7, "input_token_details": {"cached_tokens": 3}}


@dataclass
class Provider:
    """Echoes events and tells usage; `talk` may say otherwise."""

    port: int = 0
    seen: list[tuple[str, str | None]] = field(default_factory=list)
    closed: threading.Event = field(default_factory=threading.Event)
    talk: Callable[[ServerConnection], None] | None = None

    def serve(self, socket: ServerConnection) -> None:
        assert socket.request is not None
        self.seen.append((socket.request.path, socket.request.headers.get("authorization")))
        try:
            if self.talk is not None:
                self.talk(socket)
                return
            socket.send(json.dumps({"type": "session.created"}))
            for text in socket:
                socket.send(json.dumps({"type": "echo", "event": json.loads(text)}))
                socket.send(json.dumps({"type": "response.done", "response": {"usage": USAGE}}))
        except ConnectionClosed:
            pass
        finally:
            self.closed.set()


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()
    with serve(made.serve, "127.0.0.1", 0) as server:
        made.port = server.socket.getsockname()[1]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield made
        server.shutdown()
        thread.join(10)


@pytest.fixture
def prefix(gateway: Gateway, provider: Provider) -> str:
    name = f"rt{secrets.token_hex(3)}"
    node = gateway.add_node(name, f"http://127.0.0.1:{provider.port}/v1")
    gateway.add_connection(node["id"], "sk-realtime-canary")
    return name


def priced(gateway: Gateway, provider: Provider) -> str:
    """The prefix of a connection whose model `m` has a price of output alone."""
    prefix = f"rt{secrets.token_hex(3)}"
    node = gateway.add_node(prefix, f"http://127.0.0.1:{provider.port}/v1")
    prices = {"m": {"input": 0, "output": 1000}}
    gateway.add_connection(
        node["id"], "sk-realtime-canary", providerSpecificData={"prices": prices}
    )
    return prefix


def opened(
    gateway: Gateway, model: str, key: str | None = None, **headers: str
) -> ClientConnection:
    """A conversation, by the key in `Authorization` or in the `headers` that are given."""
    return connect(
        f"ws://127.0.0.1:{gateway.port}/v1/realtime?model={model}",
        additional_headers=headers or {"Authorization": f"Bearer {key or gateway.key}"},
        open_timeout=20,
        proxy=None,
    )


def heard(socket: ClientConnection) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(socket.recv(timeout=20))
    return event


def records(gateway: Gateway, model: str) -> list[dict[str, Any]]:
    return eventually(lambda: gateway.records(model=model), "a record", within_s=8, every_s=0.05)


def test_events_pass_both_ways_and_are_one_record(
    gateway: Gateway, provider: Provider, prefix: str
) -> None:
    model = f"{prefix}/gpt-realtime"
    with opened(gateway, model.replace("/", "%2F")) as socket:
        assert heard(socket) == {"type": "session.created"}
        for text in ("é" * 40_000, "two"):
            socket.send(json.dumps({"type": "input", "text": text}))
            assert heard(socket)["event"]["text"] == text
            assert heard(socket)["type"] == "response.done"
    assert provider.seen == [("/v1/realtime?model=gpt-realtime", "Bearer sk-realtime-canary")]
    assert provider.closed.wait(10)
    [record] = records(gateway, model)
    assert (record["outcome"], record["status"], record["stream"]) == ("completed", 101, True)
    assert (record["tokensInput"], record["tokensOutput"], record["tokensCached"]) == (22, 14, 6)


def test_a_conversation_through_a_combo_is_recorded_under_it(
    gateway: Gateway, provider: Provider, prefix: str
) -> None:
    name = f"c{secrets.token_hex(4)}"
    body = {"name": name, "models": [f"{prefix}/gpt-realtime"]}
    expect(gateway.admin.post("/api/combos", json=body), 201)
    with opened(gateway, name) as socket:
        assert heard(socket) == {"type": "session.created"}
    assert provider.closed.wait(10)
    [record] = records(gateway, name)
    assert (record["combo"], record["strategy"]) == (name, "priority")


# The client itself calls the library in a way that this one no longer likes.
@pytest.mark.filterwarnings("ignore:connect:DeprecationWarning")
def test_the_official_client_converses(gateway: Gateway, provider: Provider, prefix: str) -> None:
    """`openai`'s own realtime connection, whose answer comes in events that it knows."""
    import openai

    def talk(socket: ServerConnection) -> None:
        socket.send(json.dumps({"type": "session.created", "event_id": "e0", "session": {}}))
        for text in socket:
            if json.loads(text)["type"] != "response.create":
                continue
            place = {"response_id": "r", "item_id": "i", "output_index": 0, "content_index": 0}
            for at, piece in enumerate(("one ", "two")):
                event = {"type": "response.output_text.delta", "event_id": f"e{at}", **place}
                socket.send(json.dumps({**event, "delta": piece}))
            done = {"id": "r", "object": "realtime.response", "status": "completed", "usage": USAGE}
            socket.send(json.dumps({"type": "response.done", "event_id": "e9", "response": done}))

    provider.talk = talk
    model = f"{prefix}/gpt-realtime"
    with (
        openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=gateway.key) as client,
        client.realtime.connect(model=model) as connection,
    ):
        said = ""
        for event in connection:
            if event.type == "session.created":
                content = [{"type": "input_text", "text": "hello"}]
                item: Any = {"type": "message", "role": "user", "content": content}
                connection.conversation.item.create(item=item)
                connection.response.create()
            elif event.type == "response.output_text.delta":
                said += event.delta
            elif event.type == "response.done":
                break
    assert said == "one two"
    assert provider.closed.wait(10)
    [record] = records(gateway, model)
    assert (record["tokensInput"], record["tokensOutput"]) == (11, 7)


def test_the_gate_holds(gateway: Gateway, prefix: str) -> None:
    blocked = gateway.create_key(blockedModels=[f"{prefix}/*"])["key"]
    for model, key, status in (
        (f"{prefix}/m", "sk-fl-wrong", 401),
        (f"{prefix}/m", blocked, 403),
        ("", None, 400),
        (f"no-model-{prefix}", None, 404),
    ):
        with pytest.raises(InvalidStatus) as raised:
            opened(gateway, model, key)
        assert raised.value.response.status_code == status


# Fields of a key, and what an opening conversation is told for each.
HELD: dict[str, tuple[dict[str, Any], int]] = {
    "isActive": ({"isActive": False}, 403),
    "isBanned": ({"isBanned": True}, 403),
    "expiresAt": ({"expiresAt": "2020-01-01T00:00:00Z"}, 403),
    "allowedEndpoints": ({"allowedEndpoints": ["embeddings"]}, 403),
    "allowedModels": ({"modelAccessMode": "restricted", "allowedModels": ["other/*"]}, 403),
    "blockedModels": ({"blockedModels": ["*/m"]}, 403),
    "dailyUsageLimitUsd": ({"usageLimitEnabled": True, "dailyUsageLimitUsd": 0}, 429),
    "weeklyUsageLimitUsd": ({"usageLimitEnabled": True, "weeklyUsageLimitUsd": 0}, 429),
    "monthlyUsageLimitUsd": ({"usageLimitEnabled": True, "monthlyUsageLimitUsd": 0}, 429),
}
FORMS: dict[str, Callable[[str], dict[str, str]]] = {
    "Authorization": lambda key: {"Authorization": f"Bearer {key}"},
    "x-api-key": lambda key: {"x-api-key": key},
    "x-goog-api-key": lambda key: {"x-goog-api-key": key},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", HELD)
def test_the_fields_of_a_key_hold_in_every_form_of_credential(
    gateway: Gateway, provider: Provider, name: str, form: str
) -> None:
    prefix = priced(gateway, provider)
    fields, status = HELD[name]
    key = gateway.create_key()
    with opened(gateway, f"{prefix}/m", **FORMS[form](key["key"])) as socket:
        assert heard(socket) == {"type": "session.created"}
    expect(gateway.admin.patch(f"/api/keys/{key['id']}", json=fields), 200)
    assert refused(gateway, f"{prefix}/m", **FORMS[form](key["key"])) == status
    assert len(provider.seen) == 1, "the provider is not asked"


def test_a_forced_model_and_rates_hold_for_conversations(
    gateway: Gateway, provider: Provider, prefix: str
) -> None:
    key = gateway.create_key(
        forcedModel=f"{prefix}/forced", rateLimits=[{"limit": 1, "window": 86_400}]
    )["key"]
    with opened(gateway, f"{prefix}/m", key) as socket:
        assert heard(socket) == {"type": "session.created"}
    assert provider.seen[0][0] == "/v1/realtime?model=forced"
    assert refused(gateway, f"{prefix}/m", key) == 429


def test_the_providers_end_is_the_conversations(
    gateway: Gateway, provider: Provider, prefix: str
) -> None:
    """An orderly close passes; one that breaks is told and recorded as the provider's failure."""
    provider.talk = lambda socket: socket.close(1000)
    with opened(gateway, f"{prefix}/calm") as socket, pytest.raises(ConnectionClosed) as raised:
        heard(socket)
    assert raised.value.rcvd is not None
    assert raised.value.rcvd.code == 1000
    assert records(gateway, f"{prefix}/calm")[0]["outcome"] == "completed"

    provider.talk = lambda socket: socket.socket.close()
    with opened(gateway, f"{prefix}/rough") as socket:
        assert heard(socket)["error"]["code"] == "upstream_reset"
    assert records(gateway, f"{prefix}/rough")[0]["outcome"] == "upstream_failed"


def test_a_provider_that_is_not_there(gateway: Gateway) -> None:
    name = f"rt{secrets.token_hex(3)}"
    node = gateway.add_node(name, "http://127.0.0.1:9/v1")
    gateway.add_connection(node["id"], "sk-realtime-canary")
    with pytest.raises(InvalidStatus) as raised:
        opened(gateway, f"{name}/m")
    assert raised.value.response.status_code == 502
    assert json.loads(raised.value.response.body or b"")["error"]["code"] == "upstream_refused"
    assert records(gateway, f"{name}/m")[0]["status"] == 502


def ended(socket: ClientConnection) -> tuple[str, int]:
    """The code of the error event that comes next, and with which code the gateway closes."""
    event = heard(socket)
    assert event["type"] == "error", event
    with pytest.raises(ConnectionClosed) as raised:
        heard(socket)
    assert raised.value.rcvd is not None
    return event["error"]["code"], raised.value.rcvd.code


def begin(gateway: Gateway, model: str, key: str | None = None, **headers: str) -> Any:
    """A conversation that has begun, or the status of its refusal."""
    try:
        socket = opened(gateway, model, key, **headers)
    except InvalidStatus as refusal:
        return refusal.response.status_code
    with contextlib.ExitStack() as closing:
        closing.enter_context(socket)
        assert heard(socket) == {"type": "session.created"}
        closing.pop_all()
    return socket


def refused(gateway: Gateway, model: str, key: str | None = None, **headers: str) -> int:
    """The status of a refusal."""
    status = begin(gateway, model, key, **headers)
    assert isinstance(status, int)
    return status


def converse(socket: ClientConnection) -> None:
    """One answer of the provider."""
    socket.send(json.dumps({"type": "input"}))
    assert heard(socket)["type"] == "echo"
    assert heard(socket)["type"] == "response.done"


def test_a_conversation_pays_as_it_goes_and_ends_with_its_budget(
    gateway: Gateway, provider: Provider
) -> None:
    """Each answer costs 7,000 micro-dollars, and room is kept for a next one of 4,096 tokens."""
    prefix = priced(gateway, provider)
    key = gateway.create_key(usageLimitEnabled=True, dailyUsageLimitUsd=4.11)["key"]
    with opened(gateway, f"{prefix}/m", key) as socket:
        assert heard(socket) == {"type": "session.created"}
        converse(socket)
        assert refused(gateway, f"{prefix}/m", key) == 429
        converse(socket)
        converse(socket)
        assert ended(socket) == ("budget_exceeded", 1008)
    assert provider.closed.wait(10)
    [record] = [one for one in records(gateway, f"{prefix}/m") if one["status"] == 101]
    assert (record["outcome"], record["costUsdMicros"]) == ("completed", 21_000)
    assert record["errorKind"] == "budget_exceeded"
    # Two answers are not counted twice when the conversation ends.
    with opened(gateway, f"{prefix}/m", gateway.create_key()["key"]) as socket:
        assert heard(socket) == {"type": "session.created"}


@pytest.mark.one_node(reason="each worker holds the limits of a connection for itself")
def test_tokens_of_a_conversation_count_in_its_connections_minute(
    gateway: Gateway, provider: Provider
) -> None:
    prefix = f"rt{secrets.token_hex(3)}"
    node = gateway.add_node(prefix, f"http://127.0.0.1:{provider.port}/v1")
    connection = gateway.add_connection(node["id"], "sk-realtime-canary", tokensPerMinute=100_000)

    def left() -> int | None:
        shown = expect(gateway.admin.get("/api/rate-limits"), 200)["connections"]
        said = next(each for each in shown if each["connectionId"] == connection["id"])
        return said["remaining"] and said["remaining"]["tokens"]

    with opened(gateway, f"{prefix}/m", gateway.create_key()["key"]) as socket:
        assert heard(socket) == {"type": "session.created"}
        converse(socket)
        eventually(lambda: left() not in (None, 100_000), "the first answer is counted")
        after_one = left()
        assert after_one is not None
        converse(socket)
        eventually(lambda: left() == 2 * after_one - 100_000, "the second counts as much")


def test_fifty_that_open_at_once_have_room_for_one(gateway: Gateway, provider: Provider) -> None:
    """The rest of the budget is enough for one answer of 4,096 tokens, so one conversation begins."""
    prefix = priced(gateway, provider)
    key = gateway.create_key(usageLimitEnabled=True, dailyUsageLimitUsd=5)["key"]

    with ThreadPoolExecutor(50) as pool:
        begun = list(pool.map(lambda _: begin(gateway, f"{prefix}/m", key), range(50)))
    [socket] = [each for each in begun if isinstance(each, ClientConnection)]
    assert Counter(each for each in begun if isinstance(each, int)) == {429: 49}
    socket.close()


@pytest.mark.parametrize("change", ["delete", "ban", "block"])
def test_a_key_that_may_no_longer_ends_its_conversation(
    gateway: Gateway, provider: Provider, prefix: str, change: str
) -> None:
    key = gateway.create_key()
    path = f"/api/keys/{key['id']}"
    with opened(gateway, f"{prefix}/m", key["key"]) as socket:
        assert heard(socket) == {"type": "session.created"}
        converse(socket)
        if change == "delete":
            expect(gateway.admin.delete(path), 200)
        else:
            fields = {"isBanned": True} if change == "ban" else {"blockedModels": [f"{prefix}/*"]}
            expect(gateway.admin.patch(path, json=fields), 200)
        code, closed = ended(socket)
        assert code == ("unauthenticated" if change == "delete" else "forbidden")
        assert closed == 1008


@pytest.mark.both_fronts
def test_the_caller_is_accepted_when_the_provider_has_accepted(gateway: Gateway) -> None:
    """A provider that never answers the handshake is an HTTP answer, not an open socket and silence."""
    with contextlib.closing(socket_module.create_server(("127.0.0.1", 0))) as silent:
        name = f"rt{secrets.token_hex(3)}"
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        node = gateway.add_node(name, url, headerMs=1_000)
        gateway.add_connection(node["id"], "sk-realtime-canary")
        with pytest.raises(InvalidStatus) as raised:
            opened(gateway, f"{name}/m")
    answer = raised.value.response
    assert answer.status_code == 504
    assert json.loads(answer.body or b"")["error"]["code"] == "upstream_timeout"
    [record] = records(gateway, f"{name}/m")
    assert (record["status"], record["outcome"]) == (504, "upstream_failed")


@pytest.mark.both_fronts
@pytest.mark.front_only(
    "native", reason="granian tells of no caller before its handshake is decided"
)
def test_a_caller_that_leaves_during_the_handshake_is_let_go(gateway: Gateway) -> None:
    with contextlib.closing(socket_module.create_server(("127.0.0.1", 0))) as silent:
        name = f"rt{secrets.token_hex(3)}"
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        node = gateway.add_node(name, url, headerMs=60_000)
        gateway.add_connection(node["id"], "sk-realtime-canary")
        head = (
            f"GET /v1/realtime?model={name}/m HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {gateway.key}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        with socket_module.create_connection(("127.0.0.1", gateway.port)) as caller:
            caller.sendall(head.encode())
            asked, _ = silent.accept()
        with asked:
            asked.settimeout(20)
            while asked.recv(4096):
                pass
