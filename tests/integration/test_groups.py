"""Groups of keys at running gateways: money and access at three levels, across moves, kills and restarts."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from email import message_from_bytes
from typing import Any

import httpx
import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import Envelope

from tests.support.chat import CHAT
from tests.support.listener import Listener
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane, expect
from tests.support.upstream import Upstream

# 1,000 USD for a million output tokens.
PRICES = {"m": {"input": 0, "output": 1000}}
TOKENS_OUT = 3
COST_USD_MICROS = TOKENS_OUT * 1000
LEVELS = ("firm", "area", "team")


@pytest.fixture
def priced(gateway: Gateway, upstream: Upstream) -> Lane:
    return priced_lane(gateway, upstream)


def priced_lane(gateway: Gateway, upstream: Upstream) -> Lane:
    lane = gateway.add_lane(upstream, connections=0)
    lane.connections.append(
        gateway.add_connection(
            lane.node["id"], "sk-upstream-canary-groups", providerSpecificData={"prices": PRICES}
        )
    )
    return lane


def make_groups(gateway: Gateway, **fields: dict[str, Any]) -> dict[str, str]:
    """The ids of a firm, an area in it and a team in that; `fields` are those of a level by its name."""
    ids: dict[str, str] = {}
    parent = None
    for name in LEVELS:
        body = {"name": name, "parentId": parent, **fields.get(name, {})}
        ids[name] = parent = expect(gateway.admin.post("/api/groups", json=body), 201)["id"]
    return ids


def call(gateway: Gateway, lane: Lane, key: dict[str, Any], **fields: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key['key']}"}
    body = lane.body(max_tokens=TOKENS_OUT, **fields)
    return gateway.caller.post(CHAT, json=body, headers=headers)


def refusal(answer: httpx.Response) -> tuple[int, str, str]:
    error = answer.json()["error"]
    return answer.status_code, error["code"], error["param"]


def left_of(gateway: Gateway, group_id: str, level: str) -> float:
    shown = expect(gateway.admin.get(f"/api/groups/{group_id}/spending"), 200)
    (found,) = [each["limits"][0]["left"] for each in shown["levels"] if each["name"] == level]
    return float(found)


def test_fifty_at_once_spend_what_a_middle_level_has_and_no_more(
    gateway: Gateway, priced: Lane
) -> None:
    """Room for seven calls in the area; keys of the team and of the area ask together."""
    room = 7 * COST_USD_MICROS / 1e6
    ids = make_groups(
        gateway,
        firm={"monthlyUsageLimitUsd": 1000},
        area={"monthlyUsageLimitUsd": room},
        team={"monthlyUsageLimitUsd": 1000},
    )
    keys = [gateway.create_key(groupId=ids[name]) for name in ("team", "area")]
    start = threading.Barrier(50)

    def ask(number: int) -> int:
        start.wait(20)
        while True:
            answer = call(gateway, priced, keys[number % 2])
            # Room that others hold for now may come back: whoever is told so asks again.
            if answer.status_code == 429 and "in progress" in answer.text:
                continue
            if answer.status_code == 429:
                assert refusal(answer)[2] == f"groups.{ids['area']}.monthlyUsageLimitUsd"
                assert "of the group `area`" in answer.json()["error"]["message"]
            return answer.status_code

    with ThreadPoolExecutor(50) as pool:
        found = Counter(pool.map(ask, range(50)))
    assert found == {200: 7, 429: 43}
    eventually(lambda: left_of(gateway, ids["team"], "area") == 0, "it is all spent", within_s=10)
    eventually(
        lambda: left_of(gateway, ids["team"], "firm") == pytest.approx(1000 - room),
        "of the firm's, too",
        within_s=gateway.shown_within_s,
    )


def test_access_holds_at_every_level(gateway: Gateway, upstream: Upstream) -> None:
    lane = gateway.add_lane(upstream, connections=2)
    ids = make_groups(
        gateway,
        firm={"blockedModels": [f"{lane.prefix}/dear"]},
        area={
            "connectionAccessMode": "restricted",
            "allowedConnections": [lane.connections[1]["id"]],
        },
        team={"modelAccessMode": "restricted", "allowedModels": [f"{lane.prefix}/*"]},
    )
    key = gateway.create_key(groupId=ids["team"])
    assert call(gateway, lane, key).status_code == 200
    assert upstream.last.bearer == lane.secrets[1]
    refused = call(gateway, lane, key, model=f"{lane.prefix}/dear")
    assert refusal(refused) == (403, "forbidden", "model")
    assert "group `firm`" in refused.json()["error"]["message"]
    other = gateway.add_lane(upstream)
    refused = call(gateway, other, key)
    assert "group `team`" in refused.json()["error"]["message"]
    headers = {"Authorization": f"Bearer {key['key']}"}
    listed = gateway.caller.get("/v1/models", headers=headers).json()["data"]
    assert not [each["id"] for each in listed if each["id"].startswith(f"{other.prefix}/")]
    expect(gateway.admin.patch(f"/api/groups/{ids['area']}", json={"isActive": False}), 200)
    refused = call(gateway, lane, key)
    assert (refused.status_code, "group `area`" in refused.text) == (403, True)
    expect(gateway.admin.patch(f"/api/keys/{key['id']}", json={"groupId": None}), 200)
    assert call(gateway, lane, key, model=f"{lane.prefix}/dear").status_code == 200


def test_a_guardrail_of_a_group_is_no_key_s_to_switch_off(gateway: Gateway, lane: Lane) -> None:
    ids = make_groups(gateway, firm={"guardrails": {"request": {"piiMasker": "block"}}})
    key = gateway.create_key(groupId=ids["team"], disabledGuardrails=["pii-masker"])
    said = [{"role": "user", "content": "write to ann@example.com"}]
    headers = {
        "Authorization": f"Bearer {key['key']}",
        "X-Gateway-Disabled-Guardrails": "pii-masker",
    }
    answer = gateway.caller.post(CHAT, json=lane.body(messages=said), headers=headers)
    assert answer.json()["error"]["code"] == "guardrail_blocked"
    free = gateway.create_key(disabledGuardrails=["pii-masker"])
    headers["Authorization"] = f"Bearer {free['key']}"
    assert (
        gateway.caller.post(CHAT, json=lane.body(messages=said), headers=headers).status_code == 200
    )


def test_requests_and_tokens_of_a_group_are_those_of_all_its_keys(
    gateway: Gateway, lane: Lane
) -> None:
    ids = make_groups(gateway, firm={"rateLimits": [{"limit": 3, "window": 31_536_000}]})
    keys = [gateway.create_key(groupId=ids[name]) for name in LEVELS]
    assert [call(gateway, lane, key).status_code for key in keys] == [200, 200, 200]
    for key in keys:
        assert refusal(call(gateway, lane, key)) == (
            *(429, "rate_limited", f"groups.{ids['firm']}.rateLimits"),
        )
    expect(
        gateway.admin.patch(
            f"/api/groups/{ids['firm']}",
            json={"rateLimits": None, "tokenLimits": [{"limit": 31, "interval": "monthly"}]},
        ),
        200,
    )
    # Three answers of ten tokens were before the limit, and one token is left.
    assert refusal(call(gateway, lane, keys[0]))[1:] == (
        *("token_limit_exceeded", f"groups.{ids['firm']}.tokenLimits"),
    )


def test_what_is_spent_stays_where_it_was_spent(gateway: Gateway, priced: Lane) -> None:
    ids = make_groups(gateway, area={"dailyUsageLimitUsd": 1}, team={"dailyUsageLimitUsd": 1})
    other = expect(
        gateway.admin.post("/api/groups", json={"name": "other", "dailyUsageLimitUsd": 1}), 201
    )
    key = gateway.create_key(groupId=ids["team"], tags=["laptop"])
    cost = COST_USD_MICROS / 1e6
    answers = [call(gateway, priced, key)]
    expect(gateway.admin.patch(f"/api/keys/{key['id']}", json={"groupId": other["id"]}), 200)
    answers += [call(gateway, priced, key) for _ in range(2)]
    for answer in answers:
        assert answer.status_code == 200
        gateway.shown_record(answer.headers["x-gateway-request-id"])

    def spent(group_id: str, level: str) -> float:
        return round(1 - left_of(gateway, group_id, level), 6)

    assert spent(other["id"], "other") == 2 * cost
    assert (spent(ids["team"], "team"), spent(ids["team"], "area")) == (cost, cost)

    def history(**query: str) -> dict[str | None, int]:
        shown = expect(
            gateway.admin.get("/api/usage/history", params={"groupBy": "group", **query}), 200
        )
        return {row["groupId"]: row["requests"] for row in shown["history"]}

    assert history(keyId=key["id"]) == {ids["team"]: 1, other["id"]: 2}
    assert history(groupId=ids["firm"]) == {ids["team"]: 1}, "a group is its part of the tree"
    assert history(tag="laptop") == {ids["team"]: 1, other["id"]: 2}
    logs = expect(
        gateway.admin.get("/api/usage/request-logs", params={"groupId": ids["area"]}), 200
    )
    (record,) = logs["logs"]
    assert record["groupPath"] == "/".join(ids[name] for name in LEVELS)
    assert record["tags"] == ["laptop"]


def test_alerts_of_groups_are_events(
    gateways: Callable[..., Gateway], upstream: Upstream, listener: Listener
) -> None:
    """By webhook and by mail; after everything died at once, a level knows what was spent and nothing is told twice."""
    gateway = gateways(FAIRLEAD_ALLOW_PRIVATE_FETCH="127.0.0.0/8")
    lane = priced_lane(gateway, upstream)
    body = {"url": f"{listener.url}/ok", "events": ["budget.reached"]}
    made = expect(gateway.admin.post("/api/webhooks", json=body), 201)
    gateway.canaries.append(made["secret"])
    limit = 3 * COST_USD_MICROS / 1e6
    ids = make_groups(gateway, area={"dailyUsageLimitUsd": limit})
    key = gateway.create_key(groupId=ids["team"])
    with serving_mail() as inbox:
        server = {
            "host": "127.0.0.1",
            "port": inbox.port,
            "tls": "none",
            "sender": "fairlead@example.com",
            "recipients": ["ops@example.com"],
        }
        expect(gateway.admin.put("/api/settings/mail", json=server), 200)
        for _ in range(2):
            assert call(gateway, lane, key).status_code == 200
        eventually(lambda: told(listener, ids["area"]) == [50], "half is told", within_s=20)
        eventually(lambda: len(inbox.subjects) == 1, "a mail", within_s=20)

        gateway.kill_all()
        gateway.start()
        known = call_when_known(gateway, lane, key)
        assert known.status_code == 200, known.text
        refused = call(gateway, lane, key)
        assert refusal(refused)[2] == f"groups.{ids['area']}.dailyUsageLimitUsd"
        eventually(lambda: told(listener, ids["area"]) == [50, 80, 100], "the rest", within_s=20)
        # One that was sent when everything died may be sent once more: it was not noted that the server took it.
        eventually(lambda: len(set(inbox.subjects)) == 3, "three mails", within_s=20)
    assert min(inbox.subjects) == ("The group area has spent 100 % of its daily limit of 0.009 USD")


def told(listener: Listener, owner_id: str) -> list[int]:
    """The percents that were told of an owner's budgets, each message once."""
    found = {each.message_id: each.event["data"] for each in listener.received()}
    return sorted(data["percent"] for data in found.values() if data["id"] == owner_id)


def call_when_known(gateway: Gateway, lane: Lane, key: dict[str, Any]) -> httpx.Response:
    """The first answer of a new worker that knows what was spent."""

    def answered() -> httpx.Response | None:
        try:
            answer = call(gateway, lane, key)
        except httpx.TransportError:
            return None
        # Until it knows, it refuses rather than overspends. What the one before had leased counts as taken until its
        # lease ends, where workers hold limits together.
        is_known = answer.status_code != 503 and "in progress" not in answer.text
        return answer if is_known else None

    return eventually(answered, "the new worker knows", within_s=60, every_s=0.05)


def test_what_a_group_spent_outlives_the_worker(gateway: Gateway, priced: Lane) -> None:
    ids = make_groups(gateway, area={"monthlyUsageLimitUsd": 2 * COST_USD_MICROS / 1e6})
    key, other = (gateway.create_key(groupId=ids[name]) for name in ("team", "area"))
    assert call(gateway, priced, key).status_code == 200
    # The key goes; what it spent in the group stays.
    expect(gateway.admin.delete(f"/api/keys/{key['id']}"), 200)
    gateway.relay.kill()
    assert call_when_known(gateway, priced, other).status_code == 200
    assert refusal(call(gateway, priced, other))[2] == f"groups.{ids['area']}.monthlyUsageLimitUsd"


class Inbox:
    """Keeps the subjects of mails."""

    port = 0

    def __init__(self) -> None:
        self.subjects: list[str] = []

    async def handle_DATA(self, _server: object, _session: object, envelope: Envelope) -> str:  # noqa: N802
        self.subjects.append(str(message_from_bytes(envelope.content or b"")["Subject"]))
        return "250 taken in"


@contextmanager
def serving_mail() -> Iterator[Inbox]:
    """A mail server in a thread of its own."""
    inbox = Inbox()
    with socket.create_server(("127.0.0.1", 0)) as free:
        inbox.port = free.getsockname()[1]
    controller = Controller(inbox, hostname="127.0.0.1", port=inbox.port)
    controller.start()
    try:
        yield inbox
    finally:
        controller.stop()
