"""What videos cost is reserved before a provider is asked, and paid whoever is still listening."""

from __future__ import annotations

import json
import secrets
import socket
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.support.polling import eventually
from tests.support.processes import Gateway, expect, start_gateway
from tests.support.upstream import Gate, Upstream, reply

PER_SECOND_USD = 0.4
SECONDS = 8
COST_USD_MICROS = round(PER_SECOND_USD * SECONDS * 1_000_000)
BEGUN = reply({"name": "models/veo/operations/x"})


class Studio:
    """A connection in Gemini's dialect in front of a scripted provider, whose model `veo` has a price."""

    def __init__(self, gateway: Gateway, upstream: Upstream) -> None:
        self.gateway, self.upstream = gateway, upstream
        self.prefix = f"v{secrets.token_hex(4)}"
        self.node = gateway.add_node(self.prefix, f"{upstream.url}/v1beta", dialect="gemini")
        self.connection = gateway.add_connection(
            self.node["id"],
            "video-money-canary",
            providerSpecificData={"prices": {"veo": {"perSecond": PER_SECOND_USD}}},
        )
        self.model = f"{self.prefix}/veo"

    def begun(self) -> int:
        """How often the provider was asked to begin one."""
        return sum("predictLongRunning" in seen.target for seen in self.upstream.requests)

    def last(self) -> str:
        """Where the last one was asked for; how far one is, is asked beside."""
        return [seen.target for seen in self.upstream.requests if seen.method == "POST"][-1]

    def path(self, model: str | None = None) -> str:
        return f"/v1beta/models/{model or self.model}:predictLongRunning"


BODY = {"instances": [{"prompt": "a boat"}], "parameters": {"durationSeconds": SECONDS}}


@pytest.fixture
def studio(gateway: Gateway, upstream: Upstream) -> Studio:
    upstream.script(BEGUN)
    return Studio(gateway, upstream)


def ask(studio: Studio, key: str, model: str | None = None, **headers: str) -> Any:
    named = {"x-goog-api-key": key, **headers}
    with httpx.Client(base_url=studio.gateway.url, trust_env=False, timeout=30) as client:
        return client.post(studio.path(model), json=BODY, headers=named)


def test_a_budget_for_one_video_makes_one(studio: Studio) -> None:
    """However many are asked for at once."""
    gate = Gate()
    studio.upstream.script([gate, *BEGUN])
    budget = COST_USD_MICROS / 1e6
    key = studio.gateway.create_key(usageLimitEnabled=True, dailyUsageLimitUsd=budget)["key"]
    with ThreadPoolExecutor(50) as pool:
        asked = [pool.submit(ask, studio, key) for _ in range(50)]
        assert gate.reached.wait(20)
        eventually(lambda: sum(each.done() for each in asked) == 49, "the others", within_s=30)
        gate.open()
        answers = [each.result() for each in asked]
    assert sorted(answer.status_code for answer in answers) == [200] + [429] * 49
    assert studio.begun() == 1
    (made,) = [answer for answer in answers if answer.status_code == 200]
    record = studio.gateway.record(made.headers["x-gateway-request-id"])
    assert record["costUsdMicros"] == COST_USD_MICROS
    assert (record["model"], record["provider"]) == (studio.model, studio.node["id"])
    assert record["connectionId"] == studio.connection["id"]

    def is_told_as_used() -> bool:
        spent = ask(studio, key)
        assert spent.status_code == 429
        return "used" in spent.json()["error"]["message"]

    within_s = studio.gateway.told_within_s
    eventually(is_told_as_used, "it is told as used", within_s=within_s, every_s=0.1)


def test_a_caller_that_leaves_pays_for_its_video(studio: Studio) -> None:
    """The call goes on without it; its room stays held until the bill is there."""
    gate = Gate()
    studio.upstream.script([gate, *BEGUN])
    budget = 1.5 * COST_USD_MICROS / 1e6
    key = studio.gateway.create_key(usageLimitEnabled=True, dailyUsageLimitUsd=budget)
    body = json.dumps(BODY).encode()
    head = (
        f"POST {studio.path()} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"x-goog-api-key: {key['key']}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", studio.gateway.port), timeout=20) as leaving:
        leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        leaving.sendall(head.encode() + body)
        assert gate.reached.wait(20)
        time.sleep(0.4)
    held = ask(studio, key["key"])
    assert held.status_code == 429
    gate.open()

    def settled() -> list[dict[str, Any]]:
        found = studio.gateway.records(model=studio.model)
        return [one for one in found if one["outcome"] == "client_gone"]

    (record,) = eventually(settled, "the record", within_s=20, every_s=0.1)
    assert record["costUsdMicros"] == COST_USD_MICROS
    assert (record["provider"], record["endpoint"]) == (studio.node["id"], "video")
    refused = ask(studio, key["key"])
    assert refused.status_code == 429
    assert studio.begun() == 1


def test_limits_of_the_model_hold(studio: Studio) -> None:
    key = studio.gateway.create_key()
    for scope in (
        {"scopeType": "model", "scopeValue": studio.model},
        {"scopeType": "provider", "scopeValue": studio.node["id"]},
    ):
        key = studio.gateway.create_key()
        limit = {"apiKeyId": key["id"], "tokenLimit": 1, **scope}
        expect(studio.gateway.admin.post("/api/usage/token-limits", json=limit), 201)
        assert ask(studio, key["key"]).status_code == 429, scope
    assert studio.begun() == 0


def test_which_model_is_called_in_the_end(studio: Studio) -> None:
    """`forcedModel` goes before `X-Route-Model`, and that before the address; each is held to the key's rules."""
    routed = {"X-Route-Model": f"{studio.prefix}/routed"}
    assert ask(studio, studio.gateway.key, **routed).status_code == 200
    assert "/routed:predict" in studio.last()
    forced = studio.gateway.create_key(forcedModel=f"{studio.prefix}/forced")["key"]
    assert ask(studio, forced, **routed).status_code == 200
    assert "/forced:predict" in studio.last()
    barred = studio.gateway.create_key(blockedModels=["*/routed"])["key"]
    assert ask(studio, barred, **routed).status_code == 403
    assert studio.begun() == 2


def test_what_no_provider_took_is_not_paid(studio: Studio) -> None:
    studio.upstream.script(reply({"error": {"message": "no"}}, 400))
    answer = ask(studio, studio.gateway.key)
    assert answer.status_code == 400
    record = studio.gateway.record(answer.headers["x-gateway-request-id"])
    assert (record["outcome"], record["costUsdMicros"]) == ("refused", 0)


@pytest.mark.one_node(reason="each worker holds the limits of a connection for itself")
def test_videos_keep_to_the_limits_of_their_connections(studio: Studio) -> None:
    """A full connection leaves the video to the next one; where there is none the caller is told when."""
    path = f"/api/providers/{studio.connection['id']}"
    expect(studio.gateway.admin.put(path, json={"requestsPerMinute": 1}), 200)
    assert ask(studio, studio.gateway.key).status_code == 200
    refused = ask(studio, studio.gateway.key)
    assert (refused.status_code, studio.begun()) == (429, 1), refused.text
    assert 30 <= int(refused.headers["retry-after"]) <= 61
    record = studio.gateway.record(refused.headers["x-gateway-request-id"])
    assert (record["errorKind"], record["costUsdMicros"]) == ("accounts_busy", 0)
    prices = {"prices": {"veo": {"perSecond": PER_SECOND_USD}}}
    other = studio.gateway.add_connection(
        studio.node["id"], "video-money-second", providerSpecificData=prices
    )
    answer = ask(studio, studio.gateway.key)
    assert (answer.status_code, studio.begun()) == (200, 2), answer.text
    record = studio.gateway.record(answer.headers["x-gateway-request-id"])
    assert (record["connectionId"], record["costUsdMicros"]) == (other["id"], COST_USD_MICROS)


@contextmanager
def killed_while_beginning(tmp_path: Any) -> Iterator[tuple[Gateway, Studio]]:
    """A gateway whose control was killed while a provider was asked, and its studio."""
    with Upstream() as upstream, start_gateway(tmp_path) as gateway:
        studio, gate = Studio(gateway, upstream), Gate()
        upstream.script([gate, *BEGUN])
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(ask, studio, gateway.key)
            assert gate.reached.wait(20)
            gateway.control.kill()
            answer = asked.result(30)
        assert answer.status_code == 503
        gate.open()
        eventually(gateway.manages, "control is back", within_s=30, every_s=0.1)
        yield gateway, studio


def test_a_video_is_found_again_after_its_control_was_killed(tmp_path: Any) -> None:
    """Whether the provider began it nobody knows: it is shown as failed, and paid for."""
    with killed_while_beginning(tmp_path) as (gateway, studio):
        [record] = gateway.records(model=studio.model)
        assert (record["outcome"], record["costUsdMicros"]) == ("upstream_failed", COST_USD_MICROS)
