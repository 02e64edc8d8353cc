"""`/v1/ws`: requests as frames, with an ordinary WebSocket client."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.support.polling import eventually
from tests.support.processes import Gateway
from tests.support.standin import start_standin

pytestmark = pytest.mark.both_fronts


@pytest.fixture(scope="module")
def model(gateway: Gateway) -> Iterator[str]:
    with start_standin() as url:
        # A fresh one: processes that share tests may begin a file twice on one gateway.
        prefix = f"t{secrets.token_hex(4)}"
        node = gateway.add_node(prefix, f"{url}/v1")
        gateway.add_connection(node["id"], "sk-standin-canary")
        yield f"{prefix}/standin"


def opened(gateway: Gateway, key: str | None, **headers: str) -> ClientConnection:
    given = headers | ({"Authorization": f"Bearer {key}"} if key else {})
    return connect(
        f"ws://127.0.0.1:{gateway.port}/v1/ws",
        additional_headers=given,
        open_timeout=20,
        proxy=None,
    )


@pytest.fixture
def socket(gateway: Gateway, model: str) -> Iterator[ClientConnection]:
    with opened(gateway, gateway.key) as made:
        assert heard(made)["type"] == "session.ready"
        yield made


def heard(socket: ClientConnection) -> dict[str, Any]:
    frame: dict[str, Any] = json.loads(socket.recv(timeout=20))
    return frame


def until(socket: ClientConnection, *kinds: str) -> list[dict[str, Any]]:
    """The frames up to and with the first of one of these kinds."""
    frames = [heard(socket)]
    while frames[-1]["type"] not in kinds:
        frames.append(heard(socket))
    return frames


def ask(socket: ClientConnection, request_id: str, model: str, **fields: Any) -> None:
    payload = {"model": model, "messages": [{"role": "user", "content": "hello"}], **fields}
    socket.send(json.dumps({"type": "request", "id": request_id, "payload": payload}))


def test_a_plain_answer_is_one_frame(
    socket: ClientConnection, model: str, gateway: Gateway
) -> None:
    ask(socket, "a", model)
    start, output, completed = until(socket, "response.completed")
    assert (start["type"], start["status"], start["id"]) == ("response.start", 200, "a")
    assert "hello" in output["body"]["choices"][0]["message"]["content"]
    assert completed["status"] == 200
    record = gateway.record(start["request_id"])
    assert (record["outcome"], record["endpoint"]) == ("completed", "chat")
    assert record["tokensOutput"] == output["body"]["usage"]["completion_tokens"]


def test_a_stream_comes_in_chunks(socket: ClientConnection, model: str) -> None:
    """Joined, they are the stream of events as HTTP would have carried it."""
    ask(socket, "s", f"{model}@chunks=20,gap_ms=5", stream=True)
    frames = until(socket, "response.completed")
    chunks = [frame["chunk"] for frame in frames if frame["type"] == "response.chunk"]
    assert len(chunks) > 1
    text = "".join(chunks)
    assert text.count("data: ") >= 20
    assert text.endswith("data: [DONE]\n\n")


def test_two_answers_share_a_connection(socket: ClientConnection, model: str) -> None:
    ask(socket, "slow", f"{model}@latency_ms=600")
    ask(socket, "quick", model)
    ended = [
        frame["id"]
        for frame in [*until(socket, "response.completed"), *until(socket, "response.completed")]
        if frame["type"] == "response.completed"
    ]
    assert ended == ["quick", "slow"]


def test_a_cancelled_request_ends_and_is_settled(
    socket: ClientConnection, model: str, gateway: Gateway
) -> None:
    ask(socket, "c", f"{model}@chunks=500,gap_ms=50", stream=True)
    start = until(socket, "response.chunk")[0]
    socket.send(json.dumps({"type": "cancel", "id": "c"}))
    assert until(socket, "response.cancelled", "response.completed")[-1]["type"] == (
        "response.cancelled"
    )
    assert gateway.record(start["request_id"])["outcome"] == "client_gone"
    ask(socket, "c", model)
    assert until(socket, "response.completed")[-1]["id"] == "c"


def test_a_closed_connection_ends_what_runs_over_it(gateway: Gateway, model: str) -> None:
    with opened(gateway, gateway.key) as socket:
        ask(socket, "x", f"{model}@chunks=500,gap_ms=50", stream=True)
        start = until(socket, "response.chunk")[1]
    assert gateway.record(start["request_id"])["outcome"] == "client_gone"


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("no json", "invalid_json"),
        ("[]", "invalid_json"),
        ('{"type": "other"}', "unknown_type"),
        ('{"type": "request", "payload": {}}', "invalid_id"),
        ('{"type": "request", "id": "a"}', "no_payload"),
        ('{"type": "cancel", "id": "a"}', "unknown_id"),
        (b"bytes", "not_text"),
    ],
)
def test_a_bad_frame_is_told_and_the_connection_stays(
    socket: ClientConnection, frame: str | bytes, code: str
) -> None:
    socket.send(frame)
    told = heard(socket)
    assert (told["type"], told["error"]["code"]) == ("protocol.error", code)
    socket.send('{"type": "ping", "id": "p"}')
    assert heard(socket) == {"type": "pong", "id": "p"}


def test_the_gate_holds_for_each_request(gateway: Gateway, model: str) -> None:
    """What the key may not do is refused in a frame; once it is revoked, so is everything."""
    made = gateway.create_key(blockedModels=["other/*"])
    with opened(gateway, made["key"]) as socket:
        assert heard(socket)["type"] == "session.ready"
        ask(socket, "blocked", "other/m")
        refused = until(socket, "response.error")[-1]
        assert (refused["status"], refused["error"]["code"]) == (403, "forbidden")
        ask(socket, "missing", "nobody-has-this/m")
        assert until(socket, "response.error")[-1]["status"] == 404
        assert gateway.admin.delete(f"/api/keys/{made['id']}").is_success
        ask(socket, "revoked", model)
        assert until(socket, "response.error")[-1]["status"] == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [({}, 401), ({"Authorization": "Bearer sk-fl-wrong"}, 401)],
    ids=["no key", "a wrong key"],
)
def test_no_key_no_connection(gateway: Gateway, headers: dict[str, str], status: int) -> None:
    with pytest.raises(InvalidStatus) as raised:
        opened(gateway, None, **headers)
    assert raised.value.response.status_code == status
    assert json.loads(raised.value.response.body or b"")["error"]["type"] == "authentication_error"


def test_another_path_has_no_socket(gateway: Gateway) -> None:
    for path, status in (("/v1/nothing", 404), ("/v1/embeddings", 426)):
        with pytest.raises(InvalidStatus) as raised:
            connect(f"ws://127.0.0.1:{gateway.port}{path}", open_timeout=20, proxy=None)
        assert raised.value.response.status_code == status


def test_a_page_of_another_site_needs_a_key(keyless_gateway: Gateway) -> None:
    """Where keys are not asked for, a browser would let any page in."""
    with opened(keyless_gateway, None) as socket:
        assert heard(socket)["type"] == "session.ready"
    with pytest.raises(InvalidStatus) as raised:
        opened(keyless_gateway, None, Origin="https://evil.example")
    assert raised.value.response.status_code == 403


def test_the_handshake_is_described(gateway: Gateway) -> None:
    told = gateway.caller.get("/v1/ws", params={"handshake": 1}).json()
    assert (told["ok"], told["path"], told["authenticated"]) == (True, "/v1/ws", True)
    assert told["protocol"]["cancel"]["type"] == "cancel"


# `test_slow_reader.py` holds the same buffers to their bounds in a shorter time.
@pytest.mark.slow
def test_a_reader_who_does_not_read_is_sent_away(gateway: Gateway, model: str) -> None:
    """Answers to a flood of small frames do not pile up: the connection is closed."""
    with opened(gateway, gateway.key) as socket:
        heard(socket)
        flood = json.dumps({"type": "cancel", "id": "x" * 128})

        def is_closed() -> bool:
            try:
                for _ in range(500):
                    socket.send(flood)
            except ConnectionClosed:
                return True
            return False

        # The client's own library reads ahead; what it leaves is the gateway's to bound.
        eventually(is_closed, "the connection is closed", within_s=60, every_s=0)
    assert gateway.caller.get("/v1/models").status_code == 200
