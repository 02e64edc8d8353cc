"""A job's end and its telling are one: whatever is killed, its listeners are told, under one id."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import jwt
import pytest

from fairlead.gateway.batches.runner import BatchRunner
from fairlead.gateway.batches.table import Batch, insert_batch
from fairlead.gateway.files.contents import contents_of
from fairlead.gateway.files.table import StoredFile, put_file
from fairlead.records.service_jobs import Subscribers, insert_job
from fairlead.records.signing_keys import ensure_signing_key
from tests.support.listener import Listener
from tests.support.management import hold_keys, run_management
from tests.support.polling import eventually
from tests.support.process import free_port
from tests.support.processes import Gateway, expect


@pytest.fixture(scope="module")
def gateway(loopback_gateway: Gateway) -> Gateway:
    return loopback_gateway


@pytest.fixture(scope="module")
def model(gateway: Gateway, standin_url: str) -> str:
    """A model of the stand-in."""
    assert gateway.key  # made before anything dies
    node = gateway.add_node(f"jobs{secrets.token_hex(4)}", f"{standin_url}/v1")
    gateway.add_connection(node["id"], "sk-standin-canary")
    return f"{node['prefix']}/standin"


def start_batch(gateway: Gateway, model: str, *listeners: str) -> str:
    """The id of a batch of one line that has listeners of its own."""
    body = {"model": model, "messages": [{"role": "user", "content": "hello"}]}
    line = {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": body}
    form = {"file": ("in.jsonl", json.dumps(line).encode() + b"\n")}
    file = expect(gateway.caller.post("/v1/files", files=form, data={"purpose": "batch"}), 200)
    ask = {
        "input_file_id": file["id"],
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
        "webhook_config": {"uris": list(listeners), "user_metadata": {"order": 7}},
    }
    batch_id: str = expect(gateway.caller.post("/v1/batches", json=ask), 200)["id"]
    return batch_id


def test_kill_while_a_batchs_end_is_told_repeats_it_under_the_same_id(
    gateway: Gateway, model: str, listener: Listener, tmp_path: Path
) -> None:
    listener.answer("stall")
    batch_id = start_batch(gateway, model, f"{listener.url}/switch")
    eventually(listener.received, "the first try", within_s=30)
    gateway.control.kill()
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
            token,
            key,
            algorithms=["RS256"],
            audience=f"{listener.url}/switch",
            options={"verify_iat": False},
        )
        assert claims["jti"] == one.message_id
    assert_the_command_verifies(gateway, listener, tmp_path)
    gateway.assert_keeps_secrets()


def assert_the_command_verifies(gateway: Gateway, listener: Listener, folder: Path) -> None:
    """`fairlead webhooks verify` takes the address of the keys, or a file of them."""
    last = listener.received()[-1]
    body, keys = folder / "body", folder / "jwks.json"
    body.write_bytes(last.body)
    with gateway.client() as anybody:
        keys.write_bytes(anybody.get("/.well-known/jwks.json").content)

    def verify(jwks: str, audience: str, *more: str) -> tuple[int, str]:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "fairlead",
                "webhooks",
                "verify",
                "--id",
                last.message_id,
                "--timestamp",
                last.headers["webhook-timestamp"],
                "--signature",
                last.headers["webhook-signature"],
                "--body",
                str(body),
                "--jwks",
                jwks,
                "--audience",
                audience,
                *more,
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.returncode, done.stdout + done.stderr

    own = f"{listener.url}/switch"
    assert verify(f"{gateway.url}/.well-known/jwks.json", own) == (0, "The delivery is genuine.\n")
    assert verify(str(keys), own.replace("http:", "HTTP:"))[0] == 0
    code, said = verify(str(keys), f"{listener.url}/other")
    assert code != 0
    assert "for another listener" in said
    body.write_bytes(last.body + b" ")
    code, said = verify(str(keys), own)
    assert code != 0
    assert "of another body" in said


@pytest.mark.anyio
async def test_a_batch_that_ran_out_of_time_tells_it_with_a_token(
    tmp_path: Path, listener: Listener, anyio_backend: str
) -> None:
    """Control alone, on real files, with nobody to ask: the batch's day is over soon."""
    uri = f"{listener.url}/ok"
    async with run_management(
        tmp_path / "data", port=free_port(), allow_private_fetch="127.0.0.0/8"
    ) as management:
        services = management.services
        await hold_keys(services, "key")
        at_ms = time.time_ns() // 1_000_000
        line = {"custom_id": "a", "method": "POST", "url": "/v1/embeddings", "body": {"model": "m"}}
        content = json.dumps(line).encode() + b"\n"

        async def chunks() -> AsyncIterator[bytes]:
            yield content

        await contents_of(services).write("file-in", chunks(), len(content))
        await ensure_signing_key(services.state)
        file = StoredFile("file-in", "key", "batch", "in", len(content), at_ms, None)
        batch = Batch(
            id="batch_1",
            owner="key",
            endpoint="/v1/embeddings",
            input_file_id="file-in",
            metadata=None,
            output_expires_after_s=None,
            status="validating",
            model=None,
            errors=None,
            output_file_id=None,
            error_file_id=None,
            total=0,
            completed=0,
            failed=0,
            tokens_input=0,
            tokens_output=0,
            tokens_cached=0,
            tokens_reasoning=0,
            created_at_ms=at_ms,
            expires_at_ms=at_ms + 1000,
            in_progress_at_ms=None,
            finalizing_at_ms=None,
            cancelling_at_ms=None,
            ended_at_ms=None,
        )
        await services.state.record(lambda con: put_file(con, file))
        await services.state.record(lambda con: insert_batch(con, batch))
        await services.state.record(
            lambda con: insert_job(con, "key", "batch_1", Subscribers([uri], {"order": 7}), at_ms)
        )
        BatchRunner.of(services).wake()
        with anyio.fail_after(30):
            while not listener.count():
                await anyio.sleep(0.05)
        published = await management.ask("GET", "/.well-known/jwks.json")
    (told,) = listener.received()
    assert told.event["type"] == "batch.expired"
    assert told.event["data"] == {"id": "batch_1"}
    assert told.event["user_metadata"] == {"order": 7}
    token = told.headers["webhook-signature"]
    (key,) = [
        jwt.PyJWK(each)
        for each in published["keys"]
        if each["kid"] == jwt.get_unverified_header(token)["kid"]
    ]
    claims = jwt.decode(token, key, algorithms=["RS256"], audience=uri)
    assert claims["jti"] == told.message_id


def test_kill_while_an_interaction_is_worked_on_tells_that_it_failed(
    gateway: Gateway, model: str, listener: Listener
) -> None:
    ask = {
        "model": f"{model}@latency_ms=30000",
        "input": "x",
        "background": True,
        "webhook_config": {"uris": [f"{listener.url}/ok"]},
    }
    made = expect(gateway.caller.post("/v1beta/interactions", json=ask), 200)
    gateway.control.kill()
    eventually(gateway.manages, "control is back", within_s=20, every_s=0.1)
    gateway.remember_processes()
    (told,) = eventually(listener.received, "it is told", within_s=30, every_s=0.1)
    found = expect(gateway.caller.get(f"/v1beta/interactions/{made['id']}"), 200)
    assert told.event["type"] == "interaction.failed"
    assert told.event["data"]["id"] == made["id"]
    assert "restarted" in told.event["data"]["error_message"]
    assert found["status"] == "failed"
    gateway.assert_keeps_secrets()


def test_kill_while_a_video_is_made_follows_it_further(
    gateway: Gateway, standin_url: str, listener: Listener
) -> None:
    """Control is killed between the provider's word that it has begun and its word that it is done."""
    assert gateway.key
    node = gateway.add_node(
        f"films{secrets.token_hex(4)}", f"{standin_url}/v1beta", dialect="gemini"
    )
    gateway.add_connection(node["id"], "sk-standin-canary")
    body = {
        "instances": [{"prompt": "a cat"}],
        "webhookConfig": {"uris": [f"{listener.url}/ok"]},
    }
    path = f"/v1beta/models/{node['prefix']}/standin@first_ms=3000:predictLongRunning"
    begun = expect(gateway.caller.post(path, json=body), 200)
    gateway.control.kill()
    eventually(gateway.manages, "control is back", within_s=20, every_s=0.1)
    gateway.remember_processes()
    (told,) = eventually(listener.received, "it is told", within_s=30, every_s=0.1)
    done = expect(gateway.caller.get(f"/v1beta/{begun['name']}"), 200)
    assert b"ftypmp42" in gateway.caller.get(told.event["data"]["video_uri"]).content
    assert done["done"] is True
    assert begun["name"].endswith(told.event["data"]["id"])
    gateway.assert_keeps_secrets()
