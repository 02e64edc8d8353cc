"""The console's pages as they are sent: who gets them, what guards them, what their forms do and refuse."""

from __future__ import annotations

import asyncio
import base64
import csv
import html
import io
import re
import time
from datetime import UTC, datetime
from urllib.parse import urlencode

import orjson
import pytest

from fairlead import _core
from fairlead.dashboard.registry import all_pages, find_page
from fairlead.identity.users import insert_user, new_user
from fairlead.moment import now_ms
from fairlead.serve.demo_traffic import APPLICATIONS, NOBODY, demo_records
from fairlead.webhooks.attempt import Answer
from fairlead.webhooks.history import insert_tested

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

FORM = {"content-type": "application/x-www-form-urlencoded"}
MARKUP = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
BIDI = "\u202egnp.exe\u2066 \u0000\u0007".replace("\u0000", "").replace("\u0007", "")
LONG = "w" * 280
# The cache needs a relay worker, which these tests do without; the crawl has read no page.
STATUSES = {
    "cache": 503,
    "logs/{request_id}/bodies": 404,
    "scraping/crawls/{job_id}/pages.zip": 404,
}
# What the address of a page says behind its path, where it shows one thing of many.
QUERIES = {"models/model": "?id=openai%2Fgpt-4o"}


async def add_person(control, role: str, name: str = "") -> dict[str, str]:
    user = new_user(f"{name or role}@example.org", f"{role} {MARKUP}", role, None)
    await control.app.state.services.state.record(lambda con: insert_user(con, user))
    scopes = ["manage"] if role == "admin" else []
    return control.as_principal("session", user.id, scopes)


@pytest.fixture
async def admin(control) -> dict[str, str]:
    return await add_person(control, "admin")


@pytest.fixture
async def member(control) -> dict[str, str]:
    return await add_person(control, "member")


async def post(control, who: dict[str, str], path: str, **fields: str):
    return await control.client.post(path, content=urlencode(fields), headers=who | FORM)


async def make_key(control, name: str = "one", **fields) -> dict:
    answer = await control.client.post("/api/keys", json={"name": name, **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def make_connection(control) -> str:
    node = {
        "type": "openai-compatible",
        "name": MARKUP,
        "prefix": "n",
        "baseUrl": "http://127.0.0.1:9/v1",
    }
    made = (await control.client.post("/api/provider-nodes", json=node)).json()["node"]
    body = {"provider": made["id"], "name": MARKUP, "apiKey": "sk-very-secret-1234"}
    return (await control.client.post("/api/providers", json=body)).json()["connection"]["id"]


async def make_webhook(control) -> str:
    body = {
        "name": f"{MARKUP} {BIDI}".replace("\u202e", "").replace("\u2066", ""),
        "url": "https://93.184.215.14/x",
        "events": ["*"],
    }
    answer = await control.client.post("/api/webhooks", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["webhook"]["id"]


async def make_combo(control) -> str:
    body = {"name": "a combo", "description": MARKUP, "models": ["n/one"]}
    answer = await control.client.post("/api/combos", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


async def make_mapping(control) -> str:
    combo = (await control.client.get("/api/combos")).json()["combos"][0]["id"]
    body = {"pattern": "n/t*", "comboId": combo, "description": MARKUP}
    answer = await control.client.post("/api/model-combo-mappings", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


async def make_pipeline(control) -> str:
    body = {"name": "ours", "description": MARKUP, "stages": [{"engine": "lite"}]}
    answer = await control.client.post("/api/context/combos", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


async def fill_log(control, **changed) -> list[dict]:
    """Some requests in the log, with fields of a stranger's choice."""
    records = list(demo_records(NOBODY, datetime.now(UTC)))[-30:]
    for record in records:
        record.update(changed)
    lines = b"\n".join(orjson.dumps(record) for record in records) + b"\n"
    folder = control.data_dir / "spool"
    folder.mkdir(exist_ok=True)
    (folder / "w-1.part").write_bytes(lines)
    (folder / "w-1.part").rename(folder / "w-1.ndjson")
    until = time.monotonic() + 20
    while time.monotonic() < until:
        answer = await control.client.get("/api/usage/logs", params={"limit": 1})
        if answer.json()["total"] >= len(records):
            return records
        await asyncio.sleep(0.05)
    raise AssertionError("the log was not filled")


async def make_batch(control, key_id: str) -> tuple[str, str]:
    """A file of a key with a name of a stranger's choice, and a batch of it: their ids."""
    who = control.as_principal("key", key_id)
    line = {"custom_id": MARKUP, "method": "POST", "url": "/v1/chat/completions", "body": {}}
    content = orjson.dumps(line) + b"\n"
    form = {"fields": {"purpose": "batch"}, "file": {"name": MARKUP, "bytes": len(content)}}
    headers = {
        "x-fairlead-form": base64.b64encode(orjson.dumps(form)).decode(),
        "content-type": "application/octet-stream",
    }
    made = await control.client.post("/v1/files", content=content, headers=who | headers)
    assert made.status_code == 200, made.text
    file_id = made.json()["id"]
    ask = {
        "input_file_id": file_id,
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
        "metadata": {MARKUP[:60]: MARKUP},
    }
    batch = await control.client.post("/v1/batches", json=ask, headers=who)
    assert batch.status_code == 200, batch.text
    return file_id, batch.json()["id"]


async def make_agent(control) -> str:
    body = {"name": MARKUP, "description": MARKUP, "prompt": MARKUP}
    answer = await control.client.post("/api/agent-skills", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


async def make_group(control) -> str:
    answer = await control.client.post("/api/groups", json={"name": MARKUP})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


async def make_delivery(control, webhook_id: str) -> str:
    """A message of a stranger's making in the history of a webhook."""
    body = orjson.dumps({"type": "batch.failed", "data": {"error": MARKUP}}).decode()
    answer = Answer(now_ms(), 1.0, None, "connection_failed")
    return await control.app.state.services.state.database.write(
        lambda con: insert_tested(con, webhook_id, ("msg_1", "test.ping", body), answer, now_ms())
    )


async def make_crawl(control, key_id: str) -> str:
    """A crawl of a site that is not there."""
    who = control.as_principal("key", key_id)
    body = {"url": f"https://93.184.215.14/{LONG}"}
    answer = await control.client.post("/api/crawl", json=body, headers=who)
    assert answer.status_code == 200, answer.text
    return answer.json()["id"]


async def addresses(control) -> dict[str, str]:
    """An address of every page, by its path in the registry."""
    key = await make_key(control, MARKUP)
    file_id, batch_id = await make_batch(control, key["id"])
    webhook_id = await make_webhook(control)
    (user,) = (await control.client.get("/api/users", params={"limit": 1})).json()["users"][:1]
    records = await fill_log(control)
    connection = await make_connection(control)
    node = (await control.client.get("/api/provider-nodes")).json()["nodes"][0]["id"]
    ids = {
        "{key_id}": key["id"],
        "{node_id}": node,
        "{connection_id}": connection,
        "{webhook_id}": webhook_id,
        "{combo_id}": await make_combo(control),
        "{mapping_id}": await make_mapping(control),
        "{pipeline_id}": await make_pipeline(control),
        "{group_id}": await make_group(control),
        "{request_id}": records[0]["request_id"],
        "{provider}": "openai",
        "{file_id}": file_id,
        "{batch_id}": batch_id,
        "{user_id}": user["id"],
        "{skill_id}": await make_agent(control),
        "{job_id}": await make_crawl(control, key["id"]),
        "{delivery_id}": await make_delivery(control, webhook_id),
        "cli-code/mitm/{tool_id}": "cli-code/mitm/kiro",
        "cli-code/{tool_id}": "cli-code/codex",
        "cli-agents/{tool_id}": "cli-agents/goose",
    }
    found = {}
    for page in all_pages():
        path = page.address
        for name, value in ids.items():
            path = path.replace(name, value)
        path += QUERIES.get(page.path, "")
        assert "{" not in path, f"the tests know no address of {page.path}"
        found[page.path] = path
    return found


@pytest.mark.one_control(False)
async def test_every_page_is_for_who_manages_and_is_shut_to_all_others(
    control, admin, member
) -> None:
    key = control.as_principal("key", "k", ["manage"])
    token = control.as_principal("token", "t", ["admin"])
    nobody = control.as_principal("anonymous")
    everybodys = {page.path for page in all_pages() if page.right == "person"}
    assert everybodys == {"my-keys", "account", "account/password", "account/second-factor"}
    for path, address in (await addresses(control)).items():
        for who in (nobody, key, token):
            answer = await control.client.get(address, headers=who)
            assert answer.status_code == 302, address
            assert answer.headers["location"] == f"/login?{urlencode({'return_to': address})}"
        answer = await control.client.get(address, headers=admin)
        assert answer.status_code == STATUSES.get(path, 200), (address, answer.text[-900:])
        answer = await control.client.get(address, headers=member)
        if path == "":
            assert (answer.status_code, answer.headers["location"]) == (302, "/board")
            continue
        if path in everybodys:
            assert answer.status_code == 200, address
            assert 'href="/dashboard/keys"' not in answer.text
            continue
        assert (answer.status_code, "Ask its owner" in answer.text) == (403, True), address
        assert '<nav class="side"' in answer.text
        assert 'href="/dashboard/keys"' not in answer.text, (
            "a member is offered no page that is shut"
        )


@pytest.mark.one_control(False)
async def test_every_form_is_refused_to_who_may_not(control, admin, member) -> None:
    found = await addresses(control)
    nobody = control.as_principal("anonymous")
    before = (await control.client.get("/api/keys")).json()["keys"]
    forms = [(page, name) for page in all_pages() for name in page.actions]
    assert len(forms) >= 15
    for page, name in forms:
        address = found[page.path]
        fields = {"act": name, "confirmed": "yes", "name": "x"}
        assert (await post(control, nobody, address, **fields)).status_code == 303, (address, name)
        if page.right == "manage":
            answer = await post(control, member, address, **fields)
            assert answer.status_code == 403, (address, name)
    assert (await control.client.get("/api/keys")).json()["keys"] == before


async def test_pages_are_shut_to_frames_foreign_sources_and_caches(control, admin) -> None:
    nonces = set()
    for path in ("/dashboard", "/dashboard/keys", "/dashboard/nothing-here"):
        answer = await control.client.get(path, headers=admin)
        policy = answer.headers["content-security-policy"]
        nonce = re.search(r"script-src 'nonce-([\w-]{20,})';", policy)
        assert nonce is not None
        nonces.add(nonce[1])
        assert re.findall(r"<script[^>]*nonce=\"([\w-]+)\"", answer.text) == [nonce[1]]
        for part in (
            "default-src 'none'",
            "style-src 'self'",
            "form-action 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        ):
            assert part in policy
        assert "unsafe" not in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-frame-options"] == "DENY"
        for banned in (r"\son\w+=", r"\sstyle=", r"(?:src|href)=\"(?:https?:)?//"):
            assert re.search(rf"<[a-z][^>]*{banned}", answer.text) is None, banned
    assert len(nonces) == 3
    for name, kind in (
        ("console.css", "text/css"),
        ("console.js", "text/javascript"),
        ("console.svg", "image/svg+xml"),
    ):
        answer = await control.client.get(f"/dashboard/{name}", headers=admin)
        assert answer.headers["content-type"].startswith(kind)
        assert "immutable" in answer.headers["cache-control"]


@pytest.mark.one_control(False)
async def test_what_strangers_wrote_is_shown_as_text(control, admin) -> None:
    records = await fill_log(
        control,
        model=MARKUP + BIDI,
        upstream_model=MARKUP,
        provider=LONG,
        session_tag=f"{MARKUP}{LONG}"[:250],
        error_kind=None,
        combo=MARKUP,
        guardrails=f"{MARKUP.replace(',', '')};found=email;action=warn",
    )
    await make_key(control, MARKUP)
    await make_webhook(control)
    await make_connection(control)
    tag = {"sessionTag": records[0]["session_tag"]}
    paths = (
        "/dashboard",
        "/dashboard/logs",
        f"/dashboard/logs?{urlencode({'model': MARKUP, **tag})}",
        f"/dashboard/logs/{records[0]['request_id']}",
        f"/dashboard/logs/{records[0]['request_id']}?part=request",
        "/dashboard/usage",
        "/dashboard/usage?by=combo&measure=requests",
        "/dashboard/usage?by=tag",
        f"/dashboard/keys?{urlencode({'q': MARKUP})}",
        f"/dashboard/providers/new?{urlencode({'q': MARKUP})}",
        "/dashboard/providers",
        "/dashboard/webhooks",
        "/dashboard/health",
        "/dashboard/combos",
        f"/dashboard/combos/{await make_combo(control)}",
    )
    for path in paths:
        answer = await control.client.get(path, headers=admin)
        assert answer.status_code == 200, path
        assert "<script>alert" not in answer.text, path
        assert "<img" not in answer.text, path
    shown = await control.client.get(f"/dashboard/logs/{records[0]['request_id']}", headers=admin)
    assert html.escape(MARKUP, quote=False).split("<")[0][:6] in shown.text.replace("&#34;", '"')
    assert "&lt;script&gt;alert(1)" in shown.text


async def test_a_key_is_made_seen_once_changed_and_revoked(control, admin) -> None:
    answer = await post(control, admin, "/dashboard/keys/new", act="create", name="  ")
    assert answer.status_code == 400
    assert 'id="f-name-error"' in answer.text
    typed = {"act": "create", "name": "assistant", "isActive": "on", "usageLimitEnabled": "on"}
    wrong = typed | {"dailyUsageLimitUsd": "lots", "rateLimits": "100 / 60"}
    answer = await post(control, admin, "/dashboard/keys/new", **wrong)
    assert answer.status_code == 400
    assert "Daily limit must be a number." in answer.text
    for kept in ('value="assistant"', 'value="lots"', "100 / 60"):
        assert kept in answer.text, "what was typed is still there"
    right = wrong | {"dailyUsageLimitUsd": "2.5", "allowedEndpoints:chat": "on"}
    answer = await post(control, admin, "/dashboard/keys/new", **right)
    assert answer.status_code == 201
    secret = re.search(r'value="(sk-fl-[\w-]+)"', answer.text)
    assert secret is not None
    (key,) = (await control.client.get("/api/keys")).json()["keys"]
    assert key["dailyUsageLimitUsd"] == 2.5
    assert key["rateLimits"] == [{"limit": 100, "window": 60}]
    assert key["allowedEndpoints"] == ["chat"]
    assert key["isActive"] is True
    place = f"/dashboard/keys/{key['id']}"
    page = await control.client.get(place, headers=admin)
    assert secret[1] not in page.text
    seen = re.search(r'name="seen" value="([^"]+)"', page.text)
    assert seen is not None
    same = {
        "act": "change",
        "seen": seen[1],
        "isActive": "on",
        "allowAutoCombos": "on",
        "compressionEnabled": "on",
        "usageLimitEnabled": "on",
    }
    same |= {
        "allowedEndpoints:chat": "on",
        "rateLimits": "100 / 60",
        "dailyUsageLimitUsd": "2.5",
        "usageLimitTz": "UTC",
        "usageAlertPercents": "50\r\n80\r\n100",
        "maxSessions": "0",
    }
    same |= {
        "throttleDelayMs": "0",
        "modelAccessMode": "all",
        "connectionAccessMode": "all",
        "catalogScope": "all",
        "cacheDefaultMode": "legacy",
    }
    answer = await post(
        control, admin, place, **(same | {"name": "k", "usageAlertPercents": "all of it"})
    )
    assert answer.status_code == 400
    assert "`all of it` is no percentage" in answer.text
    answer = await post(control, admin, place, **same, name="renamed")
    assert answer.status_code == 303, answer.text
    assert (await control.client.get(f"/api/keys/{key['id']}")).json()["name"] == "renamed"
    shown = await control.client.get(answer.headers["location"], headers=admin)
    assert "The key was saved." in shown.text
    # The other tab had opened its form before.
    answer = await post(control, admin, place, **same, name="from the other tab")
    assert answer.status_code == 409
    assert "changed this in the meantime" in answer.text
    assert 'value="from the other tab"' in answer.text
    assert (await control.client.get(f"/api/keys/{key['id']}")).json()["name"] == "renamed"
    answer = await post(control, admin, place, act="regenerate")
    assert "Give the key renamed a new secret?" in answer.text
    (before,) = control.snapshot()["keys"]
    answer = await post(control, admin, place, act="regenerate", confirmed="yes")
    assert answer.status_code == 200
    (after,) = control.snapshot()["keys"]
    assert after["hash"] != before["hash"]
    text = re.search(r'id="secret" value="([^"]+)"', answer.text)
    assert text is not None
    assert _core.hash_secret(text[1]) == after["hash"]
    answer = await post(control, admin, place, act="delete")
    assert answer.status_code == 200
    assert "Revoke the key renamed?" in answer.text
    assert (await control.client.get(f"/api/keys/{key['id']}")).status_code == 200
    answer = await post(control, admin, place, act="delete", confirmed="yes")
    assert answer.status_code == 303
    assert (await control.client.get(f"/api/keys/{key['id']}")).status_code == 404


async def test_a_limit_that_is_typed_is_in_force(control, admin) -> None:
    answer = await post(
        control, admin, "/dashboard/keys/new", act="create", name="one", dailyUsageLimitUsd="0.05"
    )
    assert answer.status_code == 201, answer.text
    (key,) = (await control.client.get("/api/keys")).json()["keys"]
    assert (key["dailyUsageLimitUsd"], key["usageLimitEnabled"]) == (0.05, True)


async def test_limits_are_paused_where_there_are_some_and_the_page_says_so(control, admin) -> None:
    page = (await control.client.get("/dashboard/keys/new", headers=admin)).text
    assert "pauseLimits" not in page
    key = await make_key(control, dailyUsageLimitUsd=0.05, usageLimitEnabled=False)
    place = f"/dashboard/keys/{key['id']}"
    page = (await control.client.get(place, headers=admin)).text
    assert re.search(r'name="pauseLimits" value="on" checked', page)
    assert "limits are paused" in page
    form = {"act": "change", "seen": key["updatedAt"], "name": "one", "isActive": "on"}
    wrong = await post(control, admin, place, **form, dailyUsageLimitUsd="0.10", pauseLimits="on")
    assert wrong.status_code == 400
    assert 'id="f-dailyUsageLimitUsd-error"' in wrong.text
    answer = await post(control, admin, place, **form, dailyUsageLimitUsd="0.10")
    assert answer.status_code == 303, answer.text
    stored = (await control.client.get(f"/api/keys/{key['id']}")).json()
    assert (stored["dailyUsageLimitUsd"], stored["usageLimitEnabled"]) == (0.1, True)


@pytest.mark.parametrize(
    ("place", "typed"),
    [
        ("keys", {"allowedModels": "openai/*"}),
        ("keys", {"accessSchedule.from": "08:00"}),
        ("keys", {"chaosRate": "0.5"}),
        ("groups", {"allowedModels": "openai/*"}),
    ],
)
async def test_a_filled_field_is_in_force_or_refused(control, admin, place, typed) -> None:
    form = {"modelAccessMode": "all", "connectionAccessMode": "all", **typed}
    answer = await post(control, admin, f"/dashboard/{place}/new", act="create", name="one", **form)
    assert answer.status_code == 400, answer.text
    (name,) = typed
    assert f'id="f-{name.replace(".", "-")}-error"' in answer.text
    assert (await control.client.get(f"/api/{place}")).json()[place] == []


async def test_a_schedule_goes_in_and_out_of_the_form(control, admin) -> None:
    schedule = {
        "enabled": True,
        "from": "08:00",
        "until": "18:00",
        "days": [1, 2],
        "tz": "Europe/Vienna",
    }
    key = await make_key(control, accessSchedule=schedule)
    page = await control.client.get(f"/dashboard/keys/{key['id']}", headers=admin)
    assert 'name="accessSchedule.from" value="08:00"' in page.text
    assert re.search(r'name="accessSchedule.days:1" value="on" checked', page.text)
    seen = {
        "seen": key["updatedAt"],
        "act": "change",
        "name": "one",
        "isActive": "on",
        "allowAutoCombos": "on",
        "compressionEnabled": "on",
    }
    modes = {
        "modelAccessMode": "all",
        "connectionAccessMode": "all",
        "catalogScope": "all",
        "cacheDefaultMode": "legacy",
    }
    numbers = {"maxSessions": "0", "throttleDelayMs": "0"}
    bad = {
        "accessSchedule.enabled": "on",
        "accessSchedule.from": "25:00",
        "accessSchedule.until": "18:00",
        "accessSchedule.tz": "UTC",
        "accessSchedule.days:1": "on",
    }
    answer = await post(
        control, admin, f"/dashboard/keys/{key['id']}", **seen, **modes, **numbers, **bad
    )
    assert answer.status_code == 400
    assert 'id="f-accessSchedule-from-error"' in answer.text
    answer = await post(control, admin, f"/dashboard/keys/{key['id']}", **seen, **modes, **numbers)
    assert answer.status_code == 303, answer.text
    assert (await control.client.get(f"/api/keys/{key['id']}")).json()["accessSchedule"] is None


async def test_settings_are_changed_over_the_revision_that_was_shown(control, admin) -> None:
    page = await control.client.get("/dashboard/settings", headers=admin)
    fields = dict(re.findall(r'<input[^>]*name="([\w.]+)" value="([^"]*)"', page.text))
    values = (await control.client.get("/api/settings")).json()
    for name, value in values.items():
        if value is True:
            fields[name] = "on"
        elif value is False:
            fields.pop(name, None)
        elif isinstance(value, str):
            fields[name] = value
    fields |= {"act": "change", "settingsRevision": str(values["settingsRevision"])}
    answer = await post(
        control, admin, "/dashboard/settings", **fields | {"usageRetentionDays": "0"}
    )
    assert answer.status_code == 400
    assert 'id="f-usageRetentionDays-error"' in answer.text
    answer = await post(
        control, admin, "/dashboard/settings", **fields | {"usageRetentionDays": "30"}
    )
    assert answer.status_code == 303, html.unescape(re.sub("<[^>]+>", " ", answer.text))[:800]
    after = (await control.client.get("/api/settings")).json()
    assert after["usageRetentionDays"] == 30
    changed = {name for name in values if after[name] != values[name]}
    assert changed == {"usageRetentionDays", "settingsRevision"}
    answer = await post(
        control, admin, "/dashboard/settings", **fields | {"usageRetentionDays": "40"}
    )
    assert answer.status_code == 409
    without_password = {
        **fields,
        "settingsRevision": str(after["settingsRevision"]),
        "usageRetentionDays": "30",
    }
    del without_password["bruteForceProtection"]
    answer = await post(control, admin, "/dashboard/settings", **without_password)
    assert answer.status_code in (400, 401, 403)
    assert (await control.client.get("/api/settings")).json()["bruteForceProtection"] is True


async def test_secrets_are_never_sent_back(control, admin) -> None:
    connection_id = await make_connection(control)
    place = f"/dashboard/providers/{connection_id}"
    page = await control.client.get(place, headers=admin)
    assert "sk-very-secret" not in page.text
    seen = re.search(r'name="seen" value="([^"]+)"', page.text)
    assert seen is not None
    typed = {
        "act": "change",
        "seen": seen[1],
        "name": "x",
        "apiKey": "sk-typed-in-vain",
        "priority": "1000",
    }
    answer = await post(control, admin, place, **typed)
    assert answer.status_code == 400
    assert 'id="f-priority-error"' in answer.text
    assert "sk-typed-in-vain" not in answer.text


@pytest.mark.one_control(False)
async def test_usage_leaves_as_csv_without_formulas(control, admin) -> None:
    await fill_log(control, upstream_model="=HYPERLINK(1)", model="=HYPERLINK(1)")
    answer = await control.client.get(
        "/dashboard/usage/download.csv?window=30d&by=model", headers=admin
    )
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert "attachment" in answer.headers["content-disposition"]
    (row,) = csv.DictReader(io.StringIO(answer.text))
    assert row["Model"] == "'=HYPERLINK(1)"
    assert int(row["requests"]) == 30
    total = (await control.client.get("/api/usage/history", params={"groupBy": "total"})).json()
    assert total["total"] == 1
    assert total["groupBy"] == []
    assert round(total["history"][0]["costUsdMicros"] / 1e6, 6) == float(row["cost_usd"])


@pytest.mark.one_control(False)
async def test_the_log_pages_by_key_and_leads_back(control, admin) -> None:
    await fill_log(control)
    page = await control.client.get("/dashboard/logs", headers=admin)
    assert page.text.count("data-drawer") == 30
    row = re.search(r'href="(/dashboard/logs/req_demo\d+)"', page.text)
    assert row is not None
    part = await control.client.get(f"{row[1]}?part=request", headers=admin)
    assert "<html" not in part.text
    assert "Timeline" in part.text
    newest = (await control.client.get("/api/usage/logs", params={"limit": 10})).json()["next"]
    older = await control.client.get(f"/dashboard/logs?after={newest}", headers=admin)
    assert older.text.count("data-drawer") == 20
    assert "data-live-page" not in older.text
    wrong = await control.client.get("/dashboard/logs?after=x", headers=admin)
    assert wrong.status_code == 200
    assert "after must be the `next` of a page." in wrong.text


async def test_a_theme_is_kept_and_leads_nowhere_else(control, admin) -> None:
    answer = await post(
        control, admin, "/dashboard/theme", theme="dark", back="https://evil.example/dashboard"
    )
    assert answer.headers["location"].startswith("/dashboard")
    cookie = {"cookie": answer.headers["set-cookie"].partition(";")[0]}
    page = await control.client.get("/dashboard", headers=admin | cookie)
    assert '<html lang="en" data-theme="dark">' in page.text
    board = await control.client.get("/board", headers=admin | {"cookie": "fairlead_theme=dark"})
    assert '<html lang="en" data-theme="dark">' in board.text, "the board has the same colours"
    page = await control.client.get(
        "/dashboard", headers=admin | {"cookie": 'fairlead_theme="x onload=y"'}
    )
    assert '<html lang="en">' in page.text


@pytest.mark.parametrize("address", ["//[", "https://[::1/x", f"https://a{chr(0x301) * 5000}/"])
async def test_an_address_of_a_page_that_is_none_is_no_defect(control, admin, address: str) -> None:
    answer = await post(control, admin, "/dashboard/theme", theme="dark", back=address)
    assert (answer.status_code, answer.headers["location"]) == (303, "/dashboard")


async def test_a_form_of_the_console_is_in_the_audit_log_as_the_call_that_it_makes(
    control, admin
) -> None:
    await post(control, admin, "/dashboard/keys/new", act="create", name="audited", isActive="on")
    entries = (await control.client.get("/api/audit")).json()["entries"]
    assert [(each["method"], each["path"]) for each in entries][:1] == [("POST", "/api/keys")]


async def test_an_address_finds_one_page(control) -> None:
    assert len(APPLICATIONS) == 4
    for path, expected in (
        ("keys/new", "keys/new"),
        ("keys/abc-1", "keys/{key_id}"),
        ("", ""),
        ("providers/new/openai", "providers/new/{provider}"),
    ):
        page, _ = find_page(path)
        assert page.path == expected
    for path in ("keys/a/b", "keys/../settings", "keys/ ", "nothing", "keys/%2e"):
        assert find_page(path) is None, path


async def test_a_group_is_made_changed_peopled_and_deleted(control, admin) -> None:
    made = {"act": "create", "name": "research", "isActive": "on", "monthlyUsageLimitUsd": "25"}
    made |= {"tokenLimits": "500000 / week", "rateLimits": "100 / 60", "usageAlertPercents": "80"}
    answer = await post(control, admin, "/dashboard/groups/new", **made)
    assert answer.status_code == 303, answer.text
    (group,) = (await control.client.get("/api/groups")).json()["groups"]
    assert (group["name"], group["monthlyUsageLimitUsd"], group["usageAlertPercents"]) == (
        *("research", 25, [80]),
    )
    assert group["tokenLimits"] == [{"limit": 500_000, "interval": "weekly"}]
    assert group["rateLimits"] == [{"limit": 100, "window": 60}]

    place = f"/dashboard/groups/{group['id']}"
    page = (await control.client.get(place, headers=admin)).text
    assert "monthlyUsageLimitUsd" in page
    assert "$25" in page
    change = {"act": "change", "name": "research", "tokenLimits": "5 / year"}
    refused = await post(control, admin, place, **change, seen=group["updatedAt"])
    assert "is no limit: write 500000 / day" in refused.text
    change = {"act": "change", "name": "renamed", "guardrails.request.piiMasker": "block"}
    answer = await post(control, admin, place, **change, seen=group["updatedAt"])
    assert answer.status_code == 303, answer.text
    shown = (await control.client.get(f"/api/groups/{group['id']}")).json()
    assert (shown["name"], shown["guardrails"]["request"]["piiMasker"]) == ("renamed", "block")
    assert not shown["isActive"], "a switch that is not sent is off"

    key = await make_key(control, "its key", groupId=group["id"])
    page = (await control.client.get(f"/dashboard/keys/{key['id']}", headers=admin)).text
    assert f'value="{group["id"]}" selected' in page
    asked = await post(control, admin, place, act="delete", moveKeysTo="none")
    assert "Delete the group renamed?" in asked.text
    answer = await post(control, admin, place, act="delete", moveKeysTo="none", confirmed="yes")
    assert answer.status_code == 303, answer.text
    assert (await control.client.get("/api/groups")).json()["total"] == 0
    assert (await control.client.get(f"/api/keys/{key['id']}")).json()["groupId"] is None
