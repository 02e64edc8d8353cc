"""Webhooks of a running gateway: over the socket, from the command line, through `kill -9`, against dead listeners."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
import standardwebhooks

from tests.support.chat import CHAT
from tests.support.listener import Listener
from tests.support.polling import eventually, holds_for
from tests.support.processes import Gateway, expect
from tests.support.site import READS_LOOPBACK
from tests.support.upstream import Upstream, reply


@pytest.fixture(autouse=True)
def _subscriptions_end(loopback_gateway: Gateway) -> Iterator[None]:
    """No test leaves a webhook: the next one would count what it is sent."""
    yield
    admin = loopback_gateway.admin
    for webhook in expect(admin.get("/api/webhooks"), 200)["webhooks"]:
        expect(admin.delete(f"/api/webhooks/{webhook['id']}"), 200)


def subscribe(gateway: Gateway, url: str, *events: str) -> tuple[str, str]:
    """The id and the secret of a new webhook."""
    body = {"url": url, "events": list(events) or ["*"]}
    created = expect(gateway.admin.post("/api/webhooks", json=body), 201)
    gateway.canaries.append(created["secret"])
    return created["webhook"]["id"], created["secret"]


def deliveries(gateway: Gateway, webhook_id: str, **query: object) -> dict:
    path = f"/api/webhooks/{webhook_id}/deliveries"
    return expect(gateway.admin.get(path, params={"limit": 500, **query}), 200)


def test_model_calls_and_changes_are_told(
    gateways: Callable[..., Gateway], upstream: Upstream, listener: Listener
) -> None:
    import svix

    # A gateway of its own: an event of an earlier call would be one too many.
    gateway = gateways(**READS_LOOPBACK)
    lane = gateway.add_lane(upstream)
    assert gateway.key
    webhook_id, secret = subscribe(
        gateway, f"{listener.url}/ok", "request.completed", "request.failed", "key.created"
    )
    answer = gateway.caller.post(CHAT, json=lane.body())
    assert answer.status_code == 200
    lost = gateway.caller.post(CHAT, json=lane.body(model="nobody/knows"))
    assert lost.status_code == 404
    unlogged = gateway.create_key(name="quiet", noLog=True)
    quiet = {"Authorization": f"Bearer {unlogged['key']}"}
    assert gateway.caller.post(CHAT, json=lane.body(), headers=quiet).status_code == 200
    got = eventually(
        lambda: found if len(found := listener.received()) >= 3 else None,
        "three events",
        within_s=15,
        every_s=0.05,
    )
    for one in got:
        for verifier in (standardwebhooks.Webhook(secret), svix.Webhook(secret)):
            verifier.verify(one.body, one.headers)
    data = {one.event["type"]: one.event["data"] for one in got}
    assert data["request.completed"]["requestId"] == answer.headers["x-gateway-request-id"]
    assert data["request.completed"]["model"] == lane.model
    assert data["request.failed"]["requestId"] == lost.headers["x-gateway-request-id"]
    assert data["request.failed"]["status"] == 404
    assert data["key.created"] == {"id": unlogged["id"], "name": "quiet"}
    # Nothing comes twice, and the call of the key without log does not come at all.
    holds_for(lambda: len(listener.received()) == 3, "no more events", for_s=2.5, every_s=0.1)
    assert deliveries(gateway, webhook_id)["total"] == 3
    gateway.assert_keeps_secrets()


def test_a_provider_that_fails_and_serves_again_is_told(
    loopback_gateway: Gateway, upstream: Upstream, listener: Listener
) -> None:
    gateway = loopback_gateway
    lane = gateway.add_lane(upstream)
    connection = lane.connections[0]
    subscribe(gateway, f"{listener.url}/ok", "provider.error", "provider.recovered")
    upstream.script(reply({}, 500), model="broken")
    assert (
        gateway.caller.post(CHAT, json=lane.body(model=f"{lane.prefix}/broken")).status_code == 502
    )

    def told(count: int) -> list[dict] | None:
        events = [one.event for one in listener.received()]
        events = [each for each in events if each["data"]["id"] == connection["id"]]
        return events if len(events) >= count else None

    (error,) = eventually(lambda: told(1), "the error", within_s=10)
    expected = {name: connection[name] for name in ("id", "name", "provider")}
    assert error["type"] == "provider.error"
    assert error["data"] == {**expected, "errorKind": "upstream_status"}
    assert gateway.caller.post(CHAT, json=lane.body()).status_code == 200
    _, recovered = eventually(lambda: told(2), "the recovery", within_s=10)
    assert (recovered["type"], recovered["data"]) == ("provider.recovered", expected)


def test_kill_between_commit_and_delivery_loses_nothing(
    loopback_gateway: Gateway, listener: Listener
) -> None:
    """The listener takes the message and says nothing; control dies; the same message comes again."""
    gateway = loopback_gateway
    webhook_id, secret = subscribe(gateway, f"{listener.url}/switch", "key.created")
    listener.answer("stall")
    created = gateway.create_key(name="before the crash")
    eventually(listener.received, "the first try")
    gateway.control.kill()
    listener.answer("204")
    eventually(gateway.manages, "control is back", within_s=20, every_s=0.1)
    gateway.remember_processes()
    page = eventually(
        lambda: (
            page if (page := deliveries(gateway, webhook_id, state="delivered"))["total"] else None
        ),
        "it is delivered",
        within_s=20,
        every_s=0.1,
    )
    first, *_, last = listener.received()
    assert (first.message_id, first.body) == (last.message_id, last.body)
    assert page["deliveries"][0]["messageId"] == last.message_id
    assert last.event["data"] == {"id": created["id"], "name": "before the crash"}
    standardwebhooks.Webhook(secret).verify(last.body, last.headers)


@pytest.mark.slow
def test_kill_again_and_again_repeats_only_with_the_same_id(
    gateways: Callable[..., Gateway], listener: Listener
) -> None:
    gateway = gateways(**READS_LOOPBACK)
    webhook_id, _ = subscribe(gateway, f"{listener.url}/flaky/0", "key.created")
    made = []
    for _ in range(4):
        made += [gateway.create_key(name=str(n))["id"] for n in range(10)]
        gateway.control.kill()
        eventually(gateway.manages, "control is back", within_s=20, every_s=0.05)
        gateway.remember_processes()
    eventually(
        lambda: deliveries(gateway, webhook_id, state="delivered")["total"] == len(made),
        "everything is delivered",
        within_s=60,
        every_s=0.2,
    )
    ids: dict[str, set[str]] = {}
    for one in listener.received():
        ids.setdefault(one.event["data"]["id"], set()).add(one.message_id)
    assert set(ids) == set(made)
    assert {len(each) for each in ids.values()} == {1}


def test_the_command_line(loopback_gateway: Gateway, listener: Listener) -> None:
    gateway = loopback_gateway

    def run(*arguments: str, typed: bytes = b"", **more: str) -> subprocess.CompletedProcess[bytes]:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("FAIRLEAD_")}
        return subprocess.run(
            [sys.executable, "-m", "fairlead", *arguments],
            env=environment | {"FAIRLEAD_DATA_DIR": str(gateway.data_dir)} | more,
            input=typed,
            capture_output=True,
            timeout=30,
        )

    url = f"{listener.url}/ok"
    assert b"There are no webhooks" in run("webhooks", "list").stdout
    created = run("webhooks", "create", url, "--event", "key.created", "--name", "mine")
    secret = created.stdout.decode().strip()
    assert secret.startswith("whsec_")
    assert b"cannot be shown again" in created.stderr
    (listed,) = json.loads(run("webhooks", "list", "--json").stdout)["webhooks"]
    assert (listed["url"], listed["events"]) == (url, ["key.created"])
    assert b"Delivered: 200" in run("webhooks", "test", "mine").stdout
    assert b"test.ping" in run("webhooks", "deliveries", url).stdout
    (got,) = listener.received()
    headers = {
        "--id": got.headers["webhook-id"],
        "--timestamp": got.headers["webhook-timestamp"],
        "--signature": got.headers["webhook-signature"],
    }
    options = [part for pair in headers.items() for part in pair]
    check = ("webhook", "verify", *options, "--body", "-")
    good = run(*check, typed=got.body, FAIRLEAD_WEBHOOK_SECRET=secret)
    assert (good.returncode, good.stdout) == (0, b"The delivery is genuine.\n")
    bad = run(*check, typed=got.body + b" ", FAIRLEAD_WEBHOOK_SECRET=secret)
    assert bad.returncode == 1
    assert b"no signature matches" in bad.stderr
    assert b"set FAIRLEAD_WEBHOOK_SECRET" in run(*check, typed=got.body).stderr
    rotated = run("webhooks", "rotate-secret", "mine", "--keep-hours", "0")
    assert rotated.stdout.startswith(b"whsec_")
    assert rotated.stdout.decode().strip() != secret
    deliveries = json.loads(run("webhooks", "deliveries", "mine", "--json").stdout)["deliveries"]
    again = run("webhooks", "redeliver", "mine", "--delivery", deliveries[0]["id"])
    assert again.stdout == b"1 to be sent again.\n"
    assert b"Changed" in run("webhooks", "edit", "mine", "active=false").stdout
    shown = json.loads(run("webhooks", "show", "mine", "--json").stdout)
    assert shown["active"] is False
    assert b"unknown" not in run("webhooks", "delete", "mine").stdout
    assert b"There are no webhooks" in run("webhooks", "list").stdout
    refused = run("webhooks", "create", url, "--event", "key.made")
    assert refused.returncode == 1
    assert b"key.created" in refused.stderr


def test_webhooks_are_for_people_not_for_keys(gateway: Gateway) -> None:
    key = gateway.create_key(name="manager", scopes=["manage"])["key"]
    headers = {"Authorization": f"Bearer {key}"}
    answer = gateway.client(headers=headers).get("/api/webhooks")
    assert answer.status_code == 403
    assert gateway.client().get("/api/webhooks").status_code == 401


def test_without_a_named_network_a_local_listener_is_refused(
    gateway: Gateway, listener: Listener
) -> None:
    for url in (f"{listener.url}/ok", "http://localhost:9/", "http://169.254.169.254/"):
        answer = gateway.admin.post("/api/webhooks", json={"url": url, "events": ["*"]})
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == "url"
    assert listener.received() == []


@pytest.mark.slow
def test_one_dead_listener_of_ten_delays_nobody(
    gateways: Callable[..., Gateway], listener: Listener
) -> None:
    gateway = gateways(**READS_LOOPBACK)
    listener.answer("stall")
    dead, _ = subscribe(gateway, f"{listener.url}/switch", "settings.updated")
    alive = [
        subscribe(gateway, f"{listener.url}/ok?n={n}", "settings.updated")[0] for n in range(9)
    ]
    changes = 40
    for number in range(changes):
        body = {"usageRetentionDays": 30 + number % 5}
        expect(gateway.admin.patch("/api/settings", json=body), 200)

    each = changes * len(alive)
    eventually(
        lambda: len(listener.received("/ok")) == each,
        "everything is delivered",
        within_s=60,
        every_s=0.2,
    )
    ids = Counter(one.message_id for one in listener.received("/ok"))
    assert len(ids) == changes
    assert deliveries(gateway, dead, state="delivered")["total"] == 0
