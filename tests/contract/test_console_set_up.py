"""Pages of the console that set the gateway up, and a request's way: what their forms do and refuse; two tabs."""

from __future__ import annotations

import html
from typing import Any

import pytest

from tests.contract.test_console import MARKUP, fill_log, make_connection, make_key, post
from tests.contract.test_console_routing import admin, seen_in, shown  # noqa: F401 - a fixture
from tests.contract.test_mail import PASSWORD, Inbox, serving

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

MAIL = "/dashboard/settings/mail"


async def test_mail_is_set_tried_and_taken_back(control, admin) -> None:  # noqa: F811
    assert "No mail server is set" in await shown(control, admin, MAIL)
    inbox = Inbox()
    async with serving(inbox) as port:
        typed = {
            "act": "change",
            "host": "127.0.0.1",
            "port": str(port),
            "tls": "none",
            "sender": "fairlead@example.com",
            "recipients": "ops@example.com\r\ndev@example.com",
            "events:budget.reached": "on",
            "seen": seen_in(await shown(control, admin, MAIL)),
        }
        answer = await post(control, admin, MAIL, **typed | {"sender": "nobody"})
        assert answer.status_code == 400
        text = html.unescape(answer.text)
        assert "must be a mail address" in text
        assert 'value="nobody"' in text, "what was typed is still there"
        assert (await post(control, admin, MAIL, **typed)).status_code == 303
        answer = await post(control, admin, MAIL, **typed | {"host": "127.0.0.2"})
        assert answer.status_code == 409
        assert "Somebody has changed the mail server" in answer.text
        told = (await control.client.get("/api/settings/mail")).json()["server"]
        assert (told["host"], told["events"]) == ("127.0.0.1", ["budget.reached"])
        assert told["recipients"] == ["ops@example.com", "dev@example.com"]
        answer = await post(control, admin, MAIL, act="test")
        assert "A test mail was accepted by 127.0.0.1" in answer.text
        assert len(inbox.mails) == 1
    answer = await post(control, admin, MAIL, act="test")
    assert "The test mail was not accepted" in answer.text
    answer = await post(control, admin, MAIL, act="delete")
    assert "The server 127.0.0.1 and its password." in answer.text
    assert (await post(control, admin, MAIL, act="delete", confirmed="yes")).status_code == 303
    assert (await control.client.get("/api/settings/mail")).json()["server"] is None


async def test_the_password_of_the_mail_server_stays_where_none_is_typed(
    control,
    admin,  # noqa: F811
) -> None:
    server = {
        "host": "mail.example.com",
        "username": "fairlead",
        "password": PASSWORD,
        "sender": "fairlead@example.com",
        "recipients": ["ops@example.com"],
    }
    assert (await control.client.put("/api/settings/mail", json=server)).status_code == 200
    text = await shown(control, admin, MAIL)
    assert PASSWORD not in text
    typed = {
        "act": "change",
        "host": "mail.example.com",
        "port": "587",
        "tls": "starttls",
        "username": "fairlead",
        "password": "",
        "sender": "other@example.com",
        "recipients": "ops@example.com",
        "events:budget.forecast": "on",
        "seen": seen_in(text),
    }
    assert (await post(control, admin, MAIL, **typed)).status_code == 303
    told = (await control.client.get("/api/settings/mail")).json()["server"]
    assert (told["sender"], told["password"]) == ("other@example.com", "***")


async def test_an_endpoint_is_changed_and_the_second_tab_is_told(control, admin) -> None:  # noqa: F811
    node = {
        "type": "openai-compatible",
        "name": MARKUP,
        "prefix": "ours",
        "baseUrl": "http://127.0.0.1:9/v1",
        "customHeaders": {"X-Team": "canary-of-a-header"},
    }
    made = await control.client.post("/api/provider-nodes", json=node)
    assert made.status_code == 201, made.text
    node_id = made.json()["node"]["id"]
    place = f"/dashboard/providers/endpoints/{node_id}"
    text = await shown(control, admin, place)
    assert "canary-of-a-header" not in text
    typed = {
        "act": "change",
        "name": "Ours",
        "prefix": "ours",
        "baseUrl": "http://127.0.0.1:9/v1",
        "type": "openai-compatible",
        "apiType": "chat",
        "chatPath": "/chat",
        "modelsPath": "",
        "customHeaders": "x-team = ***\r\nX-More = yes",
        "timeouts.connectMs": "1500",
        "timeouts.idleMs": "",
        "seen": seen_in(text),
    }
    answer = await post(control, admin, place, **typed | {"timeouts.connectMs": "1"})
    assert answer.status_code == 400
    assert 'value="/chat"' in answer.text
    header = "X-Team = ***" if "X-Team" in text else "x-team = ***"
    typed["customHeaders"] = f"{header}\r\nX-More = yes"
    answer = await post(control, admin, place, **typed)
    assert answer.status_code == 303, html.unescape(answer.text)
    found = (await control.client.get(f"/api/provider-nodes/{node_id}")).json()["node"]
    assert (found["name"], found["chatPath"], found["timeouts"]["connectMs"]) == (
        "Ours",
        "/chat",
        1500,
    )
    assert {name.lower() for name in found["customHeaders"]} == {"x-team", "x-more"}
    answer = await post(control, admin, place, **typed | {"name": "Theirs"})
    assert answer.status_code == 409
    assert 'value="Theirs"' in answer.text
    again = typed | {
        "seen": seen_in(await shown(control, admin, place)),
        "customHeaders": "",
        "timeouts.connectMs": "",
    }
    assert (await post(control, admin, place, **again)).status_code == 303
    found = (await control.client.get(f"/api/provider-nodes/{node_id}")).json()["node"]
    assert not found["customHeaders"]
    answer = await post(control, admin, place, act="delete")
    assert "Delete the endpoint Ours?" in answer.text
    assert (await post(control, admin, place, act="delete", confirmed="yes")).status_code == 303
    assert (await control.client.get(f"/api/provider-nodes/{node_id}")).status_code == 404


async def connections(control) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await control.client.get("/api/providers")).json()["connections"]
    return sorted(found, key=lambda each: each["priority"])


async def test_connections_are_put_in_an_order(control, admin) -> None:  # noqa: F811
    first = await make_connection(control)
    provider = (await connections(control))[0]["provider"]
    for name in ("b", "c"):
        body = {"provider": provider, "name": name, "apiKey": f"sk-of-{name}-12345"}
        assert (await control.client.post("/api/providers", json=body)).status_code == 201
    await control.client.put(f"/api/providers/{first}", json={"name": "a"})
    there = {each["name"]: each for each in await connections(control)}

    async def order(**typed: str) -> str:
        answer = await post(control, admin, "/dashboard/providers", act="reorder", **typed)
        assert answer.status_code == 303, answer.text
        found = await connections(control)
        assert [each["priority"] for each in found] == [1, 2, 3]
        return "".join(each["name"] for each in found)

    ids = {name: each["id"] for name, each in there.items()}
    assert await order(id=ids["c"], move="up") == "acb"
    assert await order(id=ids["a"], move="down") == "cab"
    assert await order(order=f"{ids['b']},{ids['a']},{ids['c']}") == "bac"
    answer = await post(control, admin, "/dashboard/providers", act="reorder", id="gone", move="up")
    assert answer.status_code == 404
    form = {"act": "change", "name": "z", "seen": there["a"]["updatedAt"], "isActive": "on"}
    answer = await post(control, admin, f"/dashboard/providers/{ids['a']}", **form)
    assert answer.status_code == 409, "who has an older page open is told of the new order"
    for wrong, param in ((["gone"], "connectionIds.0"), ([ids["a"], ids["a"]], "connectionIds")):
        answer = await control.client.post("/api/providers/reorder", json={"connectionIds": wrong})
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    answer = await control.client.post("/api/providers/reorder", json={"connectionIds": [ids["c"]]})
    assert answer.status_code == 200
    assert [each["name"] for each in await connections(control)] == ["c", "b", "a"]


async def test_a_connection_keeps_back_a_part_of_its_quota(control, admin) -> None:  # noqa: F811
    place = f"/dashboard/providers/{await make_connection(control)}"
    typed = {
        "act": "change",
        "name": "one",
        "priority": "50",
        "weight": "1",
        "isActive": "on",
        "maxConcurrent": "7",
        "quotaWindowThresholds": "five_hour = 10\r\nweekly = 2.5 %",
        "seen": seen_in(await shown(control, admin, place)),
    }
    wrong = typed | {"quotaWindowThresholds": "five_hour = some"}
    answer = await post(control, admin, place, **wrong)
    assert answer.status_code == 400
    assert "window = percent" in answer.text
    answer = await post(control, admin, place, **typed)
    assert answer.status_code == 303, html.unescape(answer.text)
    (found,) = await connections(control)
    assert found["quotaWindowThresholds"] == {"five_hour": 10, "weekly": 2.5}
    assert found["maxConcurrent"] == 7
    text = await shown(control, admin, place)
    assert "five_hour = 10\nweekly = 2.5" in text
    again = typed | {"seen": seen_in(text), "quotaWindowThresholds": "", "maxConcurrent": ""}
    assert (await post(control, admin, place, **again)).status_code == 303
    (found,) = await connections(control)
    assert (found["quotaWindowThresholds"], found["maxConcurrent"]) == (None, None)


async def test_a_key_says_what_it_may_call_and_what_is_left(control, admin) -> None:  # noqa: F811
    connection = await make_connection(control)
    key = await make_key(
        control,
        "support",
        allowedModels=["n/*"],
        modelAccessMode="restricted",
        blockedModels=["<b>bold</b>"],
        allowedConnections=[connection],
        connectionAccessMode="restricted",
        allowedEndpoints=["chat"],
        rateLimits=[{"limit": 100, "window": 60}],
        usageLimitEnabled=True,
        dailyUsageLimitUsd=4,
        scopes=["self:usage"],
    )
    limit = {"apiKeyId": key["id"], "tokenLimit": 50_000, "resetInterval": "daily"}
    assert (await control.client.post("/api/usage/token-limits", json=limit)).status_code == 201
    place = f"/dashboard/keys/{key['id']}"
    answer = await control.client.get(place, headers=admin)
    assert "<b>bold" not in answer.text
    text = html.unescape(answer.text)
    assert "only n/*, never <b>bold</b>" in text
    assert "$0 of $4.00, $4.00 left" in text
    assert "0 of 50.0k, 50.0k left" in text
    typed = {
        "act": "change",
        "name": "support",
        "isActive": "on",
        f"allowedConnections:{connection}": "on",
        "scopes:self:usage": "on",
        "scopes:read:combos": "on",
        "seen": seen_in(text),
    }
    answer = await post(control, admin, place, **typed)
    assert answer.status_code == 303, html.unescape(answer.text)
    found = (await control.client.get(f"/api/keys/{key['id']}")).json()
    assert sorted(found["scopes"]) == ["read:combos", "self:usage"]


@pytest.mark.one_control(False)
async def test_a_request_shows_its_way(control, admin) -> None:  # noqa: F811
    connection = await make_connection(control)
    records = await fill_log(
        control,
        chosen_ms=1.5,
        ttft_ms=900.0,
        latency_ms=1400.0,
        attempts=2,
        outcome="completed",
        cache=None,
        combo="support",
        strategy="priority",
        stream=True,
        tokens_output=50,
        failed_attempts=f"{connection};upstream_rate_limited;120.5;big%3Bmodel",
    )
    request_id = records[0]["request_id"]
    asked = {"requestId": request_id}
    (row,) = (await control.client.get("/api/usage/request-logs", params=asked)).json()["logs"]
    assert row["chosenMs"] == 1.5
    assert row["failedAttempts"] == [
        {
            "connectionId": connection,
            "model": "big;model",
            "errorKind": "upstream_rate_limited",
            "endedMs": 120.5,
            "providerStatus": None,
            "providerCode": None,
            "providerType": None,
            "providerRequestId": None,
            "providerMessage": None,
            "rejectionReason": None,
            "rejectedMember": None,
        }
    ]
    text = await shown(control, admin, f"/dashboard/logs/{request_id}")
    steps = [
        text.index(f"</i>{name}</b>") for name in ("Chosen", "Attempt failed", "First byte", "End")
    ]
    assert steps == sorted(steps), "they stand in the order in which they happened"
    assert "after 1.5 ms" in text
    assert "upstream rate limited, until 120 ms" in text
    assert "100 tokens/s" in text
    assert "The combo support put its targets in order" in text
    assert "(big;model)" in text
