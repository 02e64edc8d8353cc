"""`auto` for a key that may call few models: it gets the best of these, however many better ones there are."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.support.chat import CHAT
from tests.support.processes import PROMPT, Gateway, Lane, expect
from tests.support.upstream import Upstream, completion, reply

MODELS = 80
"""More than a channel has room for."""
CHANNELS = ("auto", "auto/cheap", "auto/chatty")


def name(number: int) -> str:
    return f"chatty-{number:02}"


@pytest.fixture
def lane(gateway: Gateway, upstream: Upstream) -> Lane:
    """One provider whose last models are the dearest."""
    upstream.script(reply(completion()))
    lane = gateway.add_lane(upstream, connections=0)
    prices = {name(at): {"input": at + 1, "output": at + 1} for at in range(MODELS)}
    gateway.add_connection(
        lane.node["id"], "sk-upstream-canary-auto", providerSpecificData={"prices": prices}
    )
    for at in range(MODELS):
        body = {"provider": lane.prefix, "modelId": name(at)}
        expect(gateway.admin.post("/api/provider-models", json=body), 201)
    return lane


def ask(caller: httpx.Client, model: str) -> httpx.Response:
    body = {"model": model, "messages": [{"role": "user", "content": PROMPT}]}
    return caller.post(CHAT, json=body)


def candidates(caller: httpx.Client, channel: str) -> list[dict[str, Any]]:
    path = f"/v1/auto-combo/{channel.removeprefix('auto/')}/candidates"
    return list(expect(caller.get(path), 200)["data"])


def test_a_key_gets_the_best_of_what_it_may_call(gateway: Gateway, lane: Lane) -> None:
    served = {f"{lane.prefix}/{name(at)}" for at in range(MODELS)}
    shown = {
        channel: {one["model"] for one in candidates(gateway.caller, channel)}
        for channel in CHANNELS
    }
    left = sorted(served - set.union(*shown.values()))
    assert left, "some models have no place in any of the channels"
    key = gateway.create_key(modelAccessMode="restricted", allowedModels=left[:2])["key"]
    none = gateway.create_key(modelAccessMode="restricted", allowedModels=["nobody/has-it"])["key"]
    with (
        gateway.client(headers={"Authorization": f"Bearer {key}"}) as caller,
        gateway.client(headers={"Authorization": f"Bearer {none}"}) as stranger,
    ):
        for channel in CHANNELS:
            found = candidates(caller, channel)
            assert {one["model"] for one in found} == set(left[:2]), channel
            assert all(one["reachable"] for one in found), channel
            answer = ask(caller, channel)
            assert answer.status_code == 200, answer.text
            assert f"{lane.prefix}/{answer.headers['x-gateway-model']}" in left[:2]
            assert candidates(stranger, channel) == []
            refused = ask(stranger, channel)
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
        # Everybody else still gets the best of all.
        for channel in CHANNELS:
            assert {one["model"] for one in candidates(gateway.caller, channel)} != set(left[:2])
