"""A batch's end and its telling are one: whatever is killed, its listeners are told, under one id."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import jwt
import pytest

from tests.support.listener import Listener
from tests.support.polling import eventually
from tests.support.processes import Gateway, expect
from tests.support.standin import start_standin

OPEN = {"FAIRLEAD_ALLOW_PRIVATE_FETCH": "127.0.0.0/8"}


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[Listener]:
    with Listener(tmp_path) as running:
        yield running


def start_batch(gateway: Gateway, *listeners: str) -> str:
    """The id of a batch of one line that has listeners of its own."""
    body = {"model": "jobs/standin", "messages": [{"role": "user", "content": "hello"}]}
    line = {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": body}
    form = {"file": ("in.jsonl", json.dumps(line).encode() + b"\n")}
    file = expect(gateway.caller.post("/v1/files", files=form, data={"purpose": "batch"}), 200)
    ask = {
        "input_file_id": file["id"], "endpoint": "/v1/chat/completions", "completion_window": "24h",
        "webhook_config": {"uris": list(listeners), "user_metadata": {"order": 7}},
    }  # fmt: skip
    batch_id: str = expect(gateway.caller.post("/v1/batches", json=ask), 200)["id"]
    return batch_id


def test_kill_while_a_batchs_end_is_told_repeats_it_under_the_same_id(
    gateways: Callable[..., Gateway], listener: Listener
) -> None:
    gateway = gateways(**OPEN)
    assert gateway.key
    with start_standin() as url:
        node = gateway.add_node("jobs", f"{url}/v1")
        gateway.add_connection(node["id"], "sk-standin-canary")
        listener.answer("stall")
        batch_id = start_batch(gateway, f"{listener.url}/switch")
        eventually(listener.received, "the first try", within_s=30)
        gateway.control_worker.kill()
        listener.answer("204")
        eventually(gateway.manages, "control is back", within_s=20, every_s=0.1)
        gateway.remember_processes()
        eventually(lambda: listener.count() >= 2, "it is told again", within_s=30, every_s=0.1)
    first, *_, last = listener.received()
    assert (first.message_id, first.body) == (last.message_id, last.body)
    assert last.event["data"]["id"] == batch_id
    assert last.event["user_metadata"] == {"order": 7}
    # The key outlived the crash: both tokens verify with what is published now.
    keys = jwt.PyJWKClient(f"{gateway.url}/.well-known/jwks.json")
    for one in (first, last):
        token = one.headers["webhook-signature"]
        key = keys.get_signing_key_from_jwt(token).key
        claims = jwt.decode(
            token, key, algorithms=["RS256"], audience=f"{listener.url}/switch",
            options={"verify_iat": False},
        )  # fmt: skip
        assert claims["jti"] == one.message_id
    gateway.assert_keeps_secrets()
