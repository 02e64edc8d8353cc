"""`/api/audit`: each change through the management API with who asked, what was sent and what was there; no secrets."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from fairlead import _core
from fairlead.calls.caller import SCOPE_KEY, Caller, Principal
from fairlead.control import audit
from fairlead.gateway.audit.retention import sweep
from fairlead.moment import now_ms
from tests.contract.conftest import Control
from tests.support.management import PASSWORD

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

DAY_MS = 86_400_000


async def entries(control: Control, **query: Any) -> list[dict[str, Any]]:
    answer = await control.client.get("/api/audit", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()["entries"]


async def make_key(control: Control, **fields: Any) -> str:
    answer = await control.client.post("/api/keys", json={"name": "worker", **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


async def test_a_change_is_shown_with_what_was_there_before(control: Control) -> None:
    key_id = await make_key(control)
    changed = await control.client.patch(
        f"/api/keys/{key_id}", json={"name": "night worker", "noLog": False}
    )
    assert changed.status_code == 200
    newest, made = await entries(control, route="/api/keys")
    assert (newest["method"], newest["route"]) == ("PATCH", "/api/keys/{id}")
    assert newest["path"] == f"/api/keys/{key_id}"
    assert newest["actor"] == {"kind": "local", "id": None, "name": None}
    assert newest["peer"] == "192.0.2.1"
    assert newest["outcome"] == "done"
    assert newest["sent"] == {"name": "night worker", "noLog": False}
    assert newest["before"]["name"] == "worker"
    # `noLog` was false before: it was sent, and it is no change.
    assert newest["changes"] == [{"field": "name", "before": "worker", "after": "night worker"}]
    assert (made["method"], made["sent"], made["before"]) == ("POST", {"name": "worker"}, None)
    deleted = await control.client.delete(f"/api/keys/{key_id}")
    assert deleted.status_code == 200
    (gone, *_) = await entries(control)
    assert (gone["method"], gone["sent"]) == ("DELETE", None)
    assert gone["before"]["name"] == "night worker"


async def test_an_entry_names_who_asked_even_after_they_are_gone(control: Control) -> None:
    key_id = await make_key(control, name="deploy", scopes=["manage"])
    as_key = control.as_principal("key", key_id, ["manage"])
    node = {
        "type": "openai-compatible",
        "name": "Own",
        "prefix": "own",
        "baseUrl": "https://models.example/v1",
    }
    made = await control.client.post("/api/provider-nodes", json=node, headers=as_key)
    assert made.status_code == 201
    await control.client.delete(f"/api/keys/{key_id}")
    (entry,) = await entries(control, actor="key", actorId=key_id)
    assert entry["actor"] == {"kind": "key", "id": key_id, "name": "deploy"}
    assert entry["route"] == "/api/provider-nodes"


async def test_no_secret_is_in_the_log(control: Control) -> None:
    canary = "sk-canary-0123456789abcdef"
    node = {
        "type": "openai-compatible",
        "name": "Own",
        "prefix": "own",
        "baseUrl": "https://models.example/v1",
        "customHeaders": {"x-internal": canary},
    }
    made = await control.client.post("/api/provider-nodes", json=node)
    assert made.status_code == 201, made.text
    connection = {"provider": made.json()["node"]["id"], "name": "one", "apiKey": canary}
    assert (await control.client.post("/api/providers", json=connection)).status_code == 201
    rows = {
        "provider": made.json()["node"]["id"],
        "entries": [{"name": "two", "apiKey": canary + "2"}],
    }
    assert (await control.client.post("/api/providers/bulk", json=rows)).status_code in (200, 201)
    hook = {"url": "https://listener.example/", "events": ["*"], "secret": "whsec_" + "QUJD" * 8}
    answer = await control.client.post("/api/webhooks", json=hook)
    changed = await control.client.patch(
        "/api/settings", json={"currentPassword": PASSWORD, "newPassword": canary}
    )
    signed_in = await control.client.post("/api/auth/login", json={"password": canary})
    text = (await control.client.get("/api/audit")).text
    assert answer.status_code in (201, 400)
    assert changed.status_code in (200, 400, 403), changed.text
    assert signed_in.status_code in (200, 401)
    assert canary not in text
    assert "QUJDQUJD" not in text
    assert PASSWORD not in text
    assert '"apiKey":"***"' in text
    assert '"x-internal":"***"' in text


async def test_a_change_that_is_refused_leaves_no_entry(control: Control) -> None:
    before = await entries(control)
    assert (await control.client.post("/api/keys", json={"nmae": "x"})).status_code == 400
    assert (await control.client.patch("/api/keys/none", json={"name": "x"})).status_code == 404
    assert await entries(control) == before


async def test_who_is_turned_away_is_in_the_log(control: Control) -> None:
    anonymous = control.as_principal("anonymous")
    answer = await control.client.post(
        "/api/auth/login",
        json={"email": "who@example.com", "password": "not the password"},
        headers=anonymous,
    )
    assert answer.status_code == 401
    (entry,) = await entries(control, outcome="refused")
    assert (entry["route"], entry["status"]) == ("/api/auth/login", 401)
    assert entry["sent"] == {"email": "who@example.com", "password": "***"}
    assert entry["actor"]["kind"] == "anonymous"


async def test_a_change_outside_of_the_state_is_in_the_log(control: Control) -> None:
    answer = await control.client.delete("/api/cache/entries")
    newest = (await entries(control, route="/api/cache"))[:1]
    if answer.status_code == 200:
        assert newest[0]["outcome"] == "done"
    else:
        # Without a relay worker nothing was emptied, so nothing happened.
        assert answer.status_code == 503
        assert newest == []


async def test_pages_follow_each_other_by_id(control: Control) -> None:
    for number in range(5):
        await make_key(control, name=f"key {number}")
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 2, "route": "/api/keys"}
    while True:
        page = (await control.client.get("/api/audit", params=query)).json()
        seen += [entry["sent"]["name"] for entry in page["entries"]]
        if page["next"] is None:
            break
        # What comes meanwhile does not shift the pages.
        await make_key(control, name="later")
        query["after"] = page["next"]
    assert seen == [f"key {number}" for number in (4, 3, 2, 1, 0)]


async def test_filters_narrow_the_log(control: Control) -> None:
    key_id = await make_key(control)
    await control.client.patch(f"/api/keys/{key_id}", json={"name": "other"})
    (entry,) = await entries(control, method="PATCH")
    assert (await entries(control, requestId=entry["requestId"]))[0]["id"] == entry["id"]
    assert await entries(control, until=entry["at"], method="PATCH") == []
    assert [each["id"] for each in await entries(control, **{"from": entry["at"]}, method="PATCH")]
    for bad in ({"limit": 0}, {"method": "HEAD"}, {"from": "yesterday"}, {"outcome": "fine"}):
        answer = await control.client.get("/api/audit", params=bad)
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == next(iter(bad))


async def test_old_entries_are_deleted(control: Control) -> None:
    await make_key(control)
    services = control.app.state.services
    later_ms = now_ms() + 401 * DAY_MS
    kept = await services.state.database.write(lambda con: sweep(con, now_ms()))
    assert kept == 0
    gone = await services.state.database.write(lambda con: sweep(con, later_ms))
    assert gone >= 1
    assert await entries(control) == []


def test_every_management_write_is_audited_or_named_as_none() -> None:
    writes = {
        (route["method"], route["path"])
        for route in _core.routes()
        if route["surface"] == "management"
        and route["answered_by"] == "control"
        and route["method"] in audit.CHANGING
        and route["tier"] != "delegated"
    }
    audited = {(each.method, each.path) for each in audit.ROUTES}
    left = {path for _, path in writes - audited}
    assert {path for path in left if audit.NOT_AUDITED.fullmatch(path) is None} == set()
    assert len(audited) > 60


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ({"apiKey": "x"}, {"apiKey": "***"}),
        ({"api_key": "x", "API-KEY": "y"}, {"api_key": "***", "API-KEY": "***"}),
        ({"apiKeyId": "k1", "maxTokens": 5}, {"apiKeyId": "k1", "maxTokens": 5}),
        ({"customHeaders": {"a": {"b": "c"}}}, {"customHeaders": {"a": {"b": "***"}}}),
        ({"keys": ["a", {"n": "b"}]}, {"keys": ["***", {"n": "***"}]}),
        ({"code": 123456}, {"code": "***"}),
        ({"url": "https://me:pass@host/x"}, {"url": "https://***@host/x"}),
        ({"secret": None, "token": ""}, {"secret": None, "token": ""}),
        (["plain", 1, True, None], ["plain", 1, True, None]),
    ],
)
def test_texts_that_may_be_secrets_are_masked(sent: object, shown: object) -> None:
    assert audit.masked(sent) == shown


def test_of_a_long_body_the_names_are_kept() -> None:
    shown = audit.shown_body(b'{"note": "' + b"x" * 20_000 + b'", "name": "a"}', "application/json")
    assert shown == '{"truncated":true,"bytes":20025,"names":["note","name"]}'


async def test_every_write_leaves_an_entry(control: Control) -> None:
    """Each audited route, answered by a stand-in for what is behind the trail: an entry names who, from where, what."""
    answered: list[str] = []

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        answered.append(scope["method"])
        body = b'{"name": "before", "token": "sk-canary-there"}'
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send(
            {"type": "http.response.body", "body": body if scope["method"] == "GET" else b"{}"}
        )

    async def receive() -> Message:
        sent = b'{"name": "after", "password": "sk-canary-sent"}'
        return {"type": "http.request", "body": sent, "more_body": False}

    async def send(_: Message) -> None:
        return None

    trail = audit.AuditTrail(inner)
    who = Caller(Principal("token", "t-1"), "192.0.2.7", "req-9", "https")
    for route in audit.ROUTES:
        scope: Scope = {
            "type": "http",
            "method": route.method,
            "path": route.path.replace("{", "").replace("}", ""),
            "headers": [(b"content-type", b"application/json")],
            "app": control.app,
            SCOPE_KEY: who,
        }
        await trail(scope, receive, send)
    found = await control.client.get("/api/audit", params={"actor": "token", "limit": 500})
    shown = {(each["method"], each["route"]): each for each in found.json()["entries"]}
    assert set(shown) == {(route.method, route.path) for route in audit.ROUTES}
    for route in audit.ROUTES:
        entry = shown[route.method, route.path]
        assert entry["actor"]["id"] == "t-1"
        assert (entry["peer"], entry["requestId"]) == ("192.0.2.7", "req-9")
        assert entry["sent"] == {"name": "after", "password": "***"}
        assert (entry["before"] is not None) == route.is_read
        if route.is_read:
            assert entry["before"] == {"name": "before", "token": "***"}
            assert {"field": "name", "before": "before", "after": "after"} in entry["changes"]
    assert "sk-canary" not in found.text
    assert answered.count("GET") == sum(route.is_read for route in audit.ROUTES)
