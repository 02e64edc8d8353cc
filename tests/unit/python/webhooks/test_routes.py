"""`/api/webhooks`: what is taken, what is shown, and what is refused in which words."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest
import standardwebhooks

from fairlead.events import CATALOGUE
from fairlead.net.egress import Egress
from fairlead.webhooks.attempt import ERROR_KINDS, Answer
from fairlead.webhooks.ping import FinishedTest
from tests.support.management import Management

pytestmark = pytest.mark.anyio

URL = "https://203.0.113.7/"  # never dialled: reserved for documentation


@pytest.fixture
def management(shared_management: Management) -> Management:
    shared_management.services.egress._networks = "127.0.0.0/8"
    return shared_management


async def make(management: Management, url: str, **fields: object) -> dict:
    body = {"url": url, "events": ["*"], **fields}
    return await management.ask("POST", "/api/webhooks", body, expect=201)


async def delivered(management: Management, webhook_id: str, count: int = 1) -> list[dict]:
    for _ in range(1000):
        page = await management.ask(
            "GET", f"/api/webhooks/{webhook_id}/deliveries", state="delivered"
        )
        if page["total"] >= count:
            return page["deliveries"]
        await asyncio.sleep(0.01)
    raise AssertionError(page)


async def test_a_webhook_is_made_shown_changed_and_deleted(management, listener) -> None:
    created = await make(management, f"{listener.url}/ok", name="mine", events=["key.created"])
    webhook = created["webhook"]
    assert created["secret"].startswith("whsec_")
    assert webhook["secrets"][0]["preview"] == f"whsec_...{created['secret'][-4:]}"
    assert (webhook["active"], webhook["state"]) == (True, "enabled")
    path = f"/api/webhooks/{webhook['id']}"
    shown = await management.ask("GET", path)
    assert shown == {"webhook": webhook}
    assert created["secret"] not in json.dumps(shown)
    listed = await management.ask("GET", "/api/webhooks")
    assert (listed["webhooks"], listed["total"]) == ([webhook], 1)
    changed = (await management.ask("PUT", path, {"active": False}))["webhook"]
    assert (changed["active"], changed["state"], changed["events"]) == (
        False,
        "disabled",
        ["key.created"],
    )
    await management.ask("DELETE", path)
    assert await management.refused("GET", path, expect=404) == (
        "There is no webhook with this id.",
        "id",
    )


async def test_the_secret_is_sealed(management, listener) -> None:
    created = await make(management, f"{listener.url}/ok")
    for file in management.services.data_dir.iterdir():
        if file.is_file():
            assert created["secret"].encode() not in file.read_bytes()
            assert created["secret"][6:].encode() not in file.read_bytes()


REFUSED = [
    ({"events": ["*"]}, "url"),
    ({"url": URL}, "events"),
    ({"url": URL, "events": []}, "events"),
    ({"url": URL, "events": ["key.created", "key.created"]}, "events"),
    ({"url": URL, "events": "*"}, "events"),
    ({"url": URL, "events": ["key.made"]}, "events"),
    ({"url": URL, "events": [7]}, "events"),
    ({"url": URL, "events": ["*"] * 101}, "events"),
    ({"url": URL, "events": ["*"], "secret": "short"}, "secret"),
    ({"url": URL, "events": ["*"], "secret": "whsec_c2hvcnQ="}, "secret"),
    ({"url": URL, "events": ["*"], "active": 1}, "active"),
    ({"url": URL, "events": ["*"], "name": "\n"}, "name"),
    ({"url": URL, "events": ["*"], "colour": "red"}, "colour"),
]


@pytest.mark.parametrize(("body", "param"), REFUSED)
async def test_a_body_that_breaks_a_rule_names_field_and_rule(management, body, param) -> None:
    message, field = await management.refused("POST", "/api/webhooks", body)
    assert field == param
    assert message.startswith(f"{param} ")


async def test_an_unknown_event_is_refused_with_the_list(management) -> None:
    message, _ = await management.refused(
        "POST", "/api/webhooks", {"url": URL, "events": ["key.made"]}
    )
    for name in CATALOGUE["gateway"]:
        assert name in message
    listed = await management.ask("GET", "/api/webhooks/events")
    assert [one["name"] for one in listed["events"]] == list(CATALOGUE["gateway"])


async def test_a_change_without_a_field_is_refused(management, listener) -> None:
    created = await make(management, f"{listener.url}/ok")
    message, _ = await management.refused("PUT", f"/api/webhooks/{created['webhook']['id']}", {})
    assert message == "No valid fields to update"


async def test_every_management_write_is_told(management, listener) -> None:
    await make(management, f"{listener.url}/ok")
    ask = management.ask
    key = await ask("POST", "/api/keys", {"name": "laptop"}, expect=201)
    await ask("PATCH", f"/api/keys/{key['id']}", {"isActive": False, "noLog": True})
    await ask("DELETE", f"/api/keys/{key['id']}")
    node = (
        await ask(
            "POST",
            "/api/provider-nodes",
            {
                "type": "openai-compatible",
                "name": "box",
                "prefix": "box",
                "baseUrl": "http://127.0.0.1:1/v1",
            },
            expect=201,
        )
    )["node"]
    await ask("PUT", f"/api/provider-nodes/{node['id']}", {"name": "crate"})
    connection = (
        await ask(
            "POST",
            "/api/providers",
            {"provider": node["id"], "name": "main", "apiKey": "sk-canary-of-a-provider"},
            expect=201,
        )
    )["connection"]
    path = f"/api/providers/{connection['id']}"
    await ask("PUT", path, {"name": "other", "apiKey": "sk-canary-of-another"})
    await ask("POST", f"{path}/test", {})
    await ask("DELETE", path)
    await ask("DELETE", f"/api/provider-nodes/{node['id']}")
    await ask("PATCH", "/api/settings", {"usageRetentionDays": 30})
    expected = {
        "key.created": {"id": key["id"], "name": "laptop"},
        "key.updated": {"id": key["id"], "name": "laptop", "changed": ["isActive", "noLog"]},
        "key.deleted": {"id": key["id"], "name": "laptop"},
        "node.created": {"id": node["id"], "name": "box", "prefix": "box"},
        "node.updated": {
            "id": node["id"],
            "name": "crate",
            "prefix": "box",
            "changed": ["name"],
        },
        "node.deleted": {"id": node["id"], "name": "crate", "prefix": "box"},
        "provider.created": {"id": connection["id"], "name": "main", "provider": node["id"]},
        "provider.updated": {
            "id": connection["id"],
            "name": "other",
            "provider": node["id"],
            "changed": ["apiKey", "name"],
        },
        "provider.deleted": {"id": connection["id"], "name": "other", "provider": node["id"]},
        "settings.updated": {"settingsRevision": 1, "changed": ["usageRetentionDays"]},
    }
    webhook = (await ask("GET", "/api/webhooks"))["webhooks"][0]
    await delivered(management, webhook["id"], 11)
    got = {one.event["type"]: one.event["data"] for one in listener.received()}
    tested = got.pop("provider.tested")
    assert got == expected
    assert (tested["valid"], tested["diagnosis"]) == (False, "network")
    documented = CATALOGUE["gateway"]
    for name, data in [*got.items(), ("provider.tested", tested)]:
        assert set(data) == set(documented[name].data), name
    assert b"canary" not in b"".join(one.body for one in listener.received())
    assert key["key"].encode() not in b"".join(one.body for one in listener.received())


async def test_a_write_that_is_refused_is_not_told(management, listener) -> None:
    created = await make(management, f"{listener.url}/ok")
    await management.refused("DELETE", "/api/keys/none", expect=404)
    await management.refused(
        "PATCH", "/api/settings", {"usageRetentionDays": 30, "settingsRevision": 9}, expect=409
    )
    path = f"/api/webhooks/{created['webhook']['id']}/deliveries"
    assert (await management.ask("GET", path))["total"] == 0


async def test_a_test_is_sent_once_and_told_how_it_went(management, listener) -> None:
    created = await make(management, f"{listener.url}/ok", events=["key.created"], active=False)
    path = f"/api/webhooks/{created['webhook']['id']}"
    answer = await management.ask("POST", f"{path}/test", {})
    assert (answer["delivered"], answer["status"], answer["errorKind"]) == (True, 200, None)
    (got,) = listener.received()
    verified = standardwebhooks.Webhook(created["secret"]).verify(got.body, got.headers)
    assert verified["type"] == "test.ping"
    await management.ask("PUT", path, {"url": f"{listener.url}/status/503"})
    answer = await management.ask("POST", f"{path}/test", {})
    assert (answer["delivered"], answer["status"], answer["errorKind"]) == (False, 503, "status")
    page = await management.ask("GET", f"{path}/deliveries")
    assert [one["state"] for one in page["deliveries"]] == ["failed", "delivered"]
    assert page["deliveries"][0]["id"] == answer["deliveryId"]
    assert page["deliveries"][0]["attempts"][0]["errorKind"] == "status"
    assert page["deliveries"][0]["nextAttemptAt"] is None


async def test_deliveries_come_in_pages(management, listener) -> None:
    created = await make(management, f"{listener.url}/ok")
    path = f"/api/webhooks/{created['webhook']['id']}/deliveries"
    for number in range(5):
        await management.ask("POST", "/api/keys", {"name": str(number)}, expect=201)
    await delivered(management, created["webhook"]["id"], 5)
    pages = [await management.ask("GET", path, limit=2, offset=at) for at in (0, 2, 4)]
    assert {page["total"] for page in pages} == {5}
    ids = [one["id"] for page in pages for one in page["deliveries"]]
    assert len(set(ids)) == 5
    assert ids == sorted(ids, reverse=True)
    assert (await management.ask("GET", path, state="failed"))["total"] == 0
    by_key, after = [], None
    while len(by_key) < 6:
        query = {"after": after} if after else {}
        page = await management.ask("GET", path, limit=2, **query)
        by_key += [one["id"] for one in page["deliveries"]]
        after = page["next"]
        if after is None:
            break
        if len(by_key) == 2:
            # What comes meanwhile moves nobody's page.
            await management.ask("POST", "/api/keys", {"name": "newer"}, expect=201)
            await delivered(management, created["webhook"]["id"], 6)
    assert by_key == ids
    for wrong in ("x", "1-", "-a", "1" * 30 + "-a"):
        _, field = await management.refused("GET", path, after=wrong)
        assert field == "after"


async def test_rotation_signs_with_both(management, listener) -> None:
    created = await make(management, f"{listener.url}/ok")
    path = f"/api/webhooks/{created['webhook']['id']}"
    rotated = await management.ask("POST", f"{path}/rotate-secret", {})
    assert rotated["secret"] != created["secret"]
    newest, oldest = rotated["webhook"]["secrets"]
    assert newest["expiresAt"] is None
    assert oldest["expiresAt"] is not None
    await management.ask("POST", f"{path}/test", {})
    got = listener.received()[-1]
    for secret in (created["secret"], rotated["secret"]):
        standardwebhooks.Webhook(secret).verify(got.body, got.headers)
    again = await management.ask("POST", f"{path}/rotate-secret", {"keepPreviousHours": 0})
    assert len(again["webhook"]["secrets"]) == 1
    await management.ask("POST", f"{path}/test", {})
    got = listener.received()[-1]
    standardwebhooks.Webhook(again["secret"]).verify(got.body, got.headers)
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(rotated["secret"]).verify(got.body, got.headers)
    for _ in range(9):
        many = await management.ask("POST", f"{path}/rotate-secret", {})
    assert len(many["webhook"]["secrets"]) == 5


async def test_one_delivery_or_a_range_goes_out_again(management, listener) -> None:
    created = await make(management, f"{listener.url}/ok")
    path = f"/api/webhooks/{created['webhook']['id']}"
    for number in range(3):
        await management.ask("POST", "/api/keys", {"name": str(number)}, expect=201)
    newest, *_, oldest = await delivered(management, created["webhook"]["id"], 3)
    redeliver = f"{path}/redeliver"
    assert await management.ask("POST", redeliver, {"deliveryId": oldest["id"]}) == {"requeued": 1}
    await delivered(management, created["webhook"]["id"], 3)
    everything = {"from": oldest["createdAt"], "state": "any"}
    assert await management.ask("POST", redeliver, everything) == {"requeued": 3}
    for _ in range(1000):
        if len(listener.received()) == 7:
            break
        await asyncio.sleep(0.01)
    ids = [one.message_id for one in listener.received()]
    assert {one: ids.count(one) for one in ids} == {
        oldest["messageId"]: 3,
        newest["messageId"]: 2,
        **dict.fromkeys(set(ids) - {oldest["messageId"], newest["messageId"]}, 2),
    }
    assert await management.ask("POST", redeliver, {"from": oldest["createdAt"]}) == {"requeued": 0}
    for body in ({}, {"deliveryId": "x", "from": oldest["createdAt"]}):
        assert await management.refused("POST", redeliver, body) == (
            "The body must have either deliveryId, or from and perhaps to.",
            None,
        )
    assert (await management.refused("POST", redeliver, {"from": "yesterday"}))[1] == "from"
    await management.refused("POST", redeliver, {"deliveryId": "none"}, expect=404)
    await management.ask("PUT", path, {"active": False})
    await management.refused("POST", redeliver, {"deliveryId": oldest["id"]}, expect=409)


async def test_without_a_named_network_no_private_listener_is_taken(management) -> None:
    management.services.egress._networks = ""
    for url in ("http://127.0.0.1:9/", "http://localhost/", "http://10.0.0.5/"):
        message, param = await management.refused(
            "POST", "/api/webhooks", {"url": url, "events": ["*"]}
        )
        assert param == "url"
        assert "FAIRLEAD_ALLOW_PRIVATE_FETCH" in message


async def test_the_rule_holds_at_the_dial_too(management, listener) -> None:
    created = await make(management, f"{listener.url}/ok")
    management.services.egress._networks = ""
    answer = await management.ask("POST", f"/api/webhooks/{created['webhook']['id']}/test", {})
    assert (answer["delivered"], answer["errorKind"]) == (False, "address_refused")
    assert listener.received() == []


def test_the_list_of_networks_is_checked_at_the_start() -> None:
    with pytest.raises(ValueError, match="network"):
        Egress("10.0.0.1")


async def test_a_failed_test_says_where_and_why(management) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{held.getsockname()[1]}"
        created = await make(management, f"{address}/hooks/secret-path?token=secret")
        path = f"/api/webhooks/{created['webhook']['id']}"
        refused = await management.ask("POST", f"{path}/test", {})
    assert refused["errorKind"] == "connection_failed"
    assert refused["error"] == (
        f"{address}: the connection was refused; check host and port, and that the listener runs."
    )
    await management.ask("PUT", path, {"url": "https://nobody.invalid/secret"})
    unknown = await management.ask("POST", f"{path}/test", {})
    assert unknown["error"] == "https://nobody.invalid: the name does not resolve."


async def test_every_kind_of_error_has_a_sentence() -> None:
    for kind in ERROR_KINDS:
        answer = Answer(0, 1.0, 503, kind, cause="TLS failed (x)")
        sentence = FinishedTest(answer, "d", "m", "https://h").failure
        assert sentence is not None
        assert sentence.startswith("https://h: ")
        assert "{" not in sentence
    assert FinishedTest(Answer(0, 1.0, 200, None), "d", "m", "https://h").failure is None
