"""Pages where people work with the gateway: playground, people, backups, batches, scraping, tools, audit, webhooks.

Each form is filled wrong and right, and hostile text is shown as text.
"""

from __future__ import annotations

import asyncio
import html
import io
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode

import httpx
import orjson
import polars as pl
import pyotp
import pytest

from fairlead.dashboard.figures import change
from fairlead.settings import ControlConfig
from tests.contract.test_console import (
    BIDI,
    FORM,
    MARKUP,
    add_person,
    fill_log,
    make_batch,
    make_crawl,
    make_delivery,
    make_key,
    make_webhook,
    post,
)
from tests.support.management import LOCAL, PASSWORD, run_application

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]


@pytest.fixture
async def admin(control) -> dict[str, str]:
    return await add_person(control, "admin")


@pytest.fixture
async def member(control) -> dict[str, str]:
    return await add_person(control, "member")


async def page(control, who: dict[str, str], path: str) -> str:
    answer = await control.client.get(path, headers=who)
    assert answer.status_code == 200, (path, answer.text[-500:])
    assert "<script>alert" not in answer.text, path
    assert "<img" not in answer.text, path
    return answer.text


def words(text: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", " ", text))


def value_of(text: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', text)
    assert found is not None, name
    return html.unescape(found[1])


ASK = {"act": "ask", "model": "demo/echo", "dialect": "openai", "stream": "on"}


async def test_the_playground_makes_a_request_of_each_dialect_and_its_code(control, admin) -> None:
    turns = orjson.dumps([{"user": "One", "answers": ["Uno", None]}]).decode()
    said = {**ASK, "prompt": MARKUP + BIDI, "system": "Be\r\nbrief.", "maxTokens": "20"}
    for dialect, path in (
        ("openai", "/v1/chat/completions"),
        ("responses", "/v1/responses"),
        ("anthropic", "/v1/messages"),
        ("gemini", "/v1beta/models/demo/echo:streamGenerateContent?alt=sse"),
    ):
        answer = await post(
            control,
            admin,
            "/dashboard/playground",
            **said | {"dialect": dialect, "other": "demo/other", "turns": turns},
        )
        assert answer.status_code == 200, answer.text
        assert "<script>alert" not in answer.text
        assert f'data-path="{html.escape(path)}"' in answer.text
        bodies = re.findall(r'data-body="([^"]*)"', answer.text)
        first, second = (orjson.loads(html.unescape(body)) for body in bodies)
        assert "Uno" in str(first)
        assert "Uno" not in str(second), "the other side never said that"
        assert "brief." in str(first)
        for code in ("curl -N", "import os", "process.env.FAIRLEAD_API_KEY"):
            assert code in words(answer.text)
        kept = re.search(r"<textarea[^>]*data-turns[^>]*>([^<]*)</textarea>", answer.text)
        assert kept is not None
        assert orjson.loads(html.unescape(kept[1])) == [
            {"user": "One", "answers": ["Uno", None]},
            {"user": (MARKUP + BIDI), "answers": [None, None]},
        ]


async def test_the_playground_names_the_field_that_is_wrong_and_keeps_the_rest(
    control, admin, member
) -> None:
    for wrong, field in (
        ({"prompt": " "}, "prompt"),
        ({"model": ""}, "model"),
        ({"maxTokens": "many"}, "maxTokens"),
        ({"maxTokens": "0"}, "maxTokens"),
        ({"temperature": "3"}, "temperature"),
        ({"dialect": "latin"}, "dialect"),
    ):
        typed = {**ASK, "prompt": "Typed", "other": "kept/model"} | wrong
        answer = await post(control, admin, "/dashboard/playground", **typed)
        assert answer.status_code == 400, wrong
        assert 'value="kept/model"' in answer.text
        if field != "dialect":
            assert f'id="f-{field}-error"' in answer.text, field
    for turns in ("{", '[{"user": "x"}]', "5"):
        answer = await post(control, admin, "/dashboard/playground", **ASK, prompt="x", turns=turns)
        assert answer.status_code == 400
        assert "begin a new one" in answer.text
    answer = await post(control, member, "/dashboard/playground", **ASK, prompt="x")
    assert answer.status_code == 403


async def test_the_audit_log_shows_who_changed_what_before_and_after(control, admin) -> None:
    key = await make_key(control, "before")
    answer = await control.client.patch(
        f"/api/keys/{key['id']}", json={"name": MARKUP}, headers=admin
    )
    assert answer.status_code == 200
    text = await page(control, admin, "/dashboard/audit?actor=session&method=PATCH")
    assert "<del><bdi>before</bdi></del>" in text
    assert "admin@example.org" in text
    assert text.count("<tr>") == 2
    assert "No change matches" in await page(control, admin, "/dashboard/audit?outcome=failed")
    wrong = await page(control, admin, "/dashboard/audit?from=yesterday")
    assert 'aria-invalid="true"' in wrong
    for number in range(60):
        assert (await control.client.get("/api/keys", params={"limit": 1})).status_code == 200
        await control.client.patch(f"/api/keys/{key['id']}", json={"throttleDelayMs": number + 1})
    first = await page(control, admin, "/dashboard/audit?route=/api/keys")
    older = re.search(r'href="(\?after=[^"]+)" rel="next"', first)
    assert older is not None
    rest = await page(control, admin, f"/dashboard/audit{html.unescape(older[1])}")
    assert rest.count("<tr>") == 1 + 62 - 50


async def test_people_are_added_changed_and_removed(control, admin) -> None:
    typed = {"act": "create", "name": MARKUP, "email": "no address", "role": "member"}
    answer = await post(
        control, admin, "/dashboard/identity/new", **typed, password="Long enough 1"
    )
    assert answer.status_code == 400
    assert 'id="f-email-error"' in answer.text
    assert "Long enough 1" not in answer.text
    local = control.as_principal("local")
    right = typed | {"email": "new@example.org", "password": "A long password 1"}
    right["currentPassword"] = PASSWORD
    answer = await post(control, local, "/dashboard/identity/new", **right)
    assert answer.status_code == 303, words(answer.text)[-900:]
    place = answer.headers["location"].partition("?")[0]
    text = await page(control, local, place)
    seen = value_of(text, "seen")
    same = {"act": "change", "seen": seen, "name": "Renamed", "email": "new@example.org"}
    same["currentPassword"] = PASSWORD
    answer = await post(control, local, place, **same, role="member", isActive="on")
    assert answer.status_code == 303, words(answer.text)[-900:]
    answer = await post(control, local, place, **same | {"name": "Other tab"}, role="member")
    assert answer.status_code == 409
    assert 'value="Other tab"' in answer.text
    assert "Renamed" in await page(control, admin, "/dashboard/identity?q=RENAMED")
    answer = await post(control, local, place, act="delete")
    assert "Remove Renamed?" in answer.text
    answer = await post(control, local, place, act="delete", confirmed="yes")
    assert answer.status_code == 303
    assert (await control.client.get(place, headers=local)).status_code == 404


async def test_the_second_factor_is_turned_on_and_off_on_a_page(control, member) -> None:
    local = control.as_principal("local")
    assert "/dashboard/account" in await page(control, member, "/dashboard/account")
    place = "/dashboard/account/second-factor"
    assert "It is off" in await page(control, local, place)
    answer = await post(control, local, place, act="begin")
    assert answer.status_code == 400
    assert 'id="f-currentPassword-error"' in answer.text
    answer = await post(control, local, place, act="begin", currentPassword=PASSWORD)
    assert answer.status_code == 200, words(answer.text)
    secret, uri = value_of(answer.text, "secret"), value_of(answer.text, "uri")
    typed = {"act": "confirm", "secret": secret, "uri": uri}
    answer = await post(control, local, place, **typed, code="000000x")
    assert answer.status_code == 400
    assert 'id="f-code-error"' in answer.text
    assert value_of(answer.text, "secret") == secret
    code = pyotp.parse_uri(uri).now()
    answer = await post(control, local, place, **typed, code=code)
    assert "Recovery codes" in answer.text, words(answer.text)
    assert "It is on" in await page(control, local, place)
    answer = await post(control, local, place, act="disable", currentPassword="wrong")
    assert answer.status_code in (400, 401, 403)
    answer = await post(control, local, place, act="renew", currentPassword=PASSWORD)
    assert "Recovery codes" in answer.text
    answer = await post(control, local, place, act="disable", currentPassword=PASSWORD)
    assert answer.status_code == 303, words(answer.text)
    assert "It is off" in await page(control, local, place)


async def test_tokens_are_shown_once_and_revoked(control, admin, member) -> None:
    for who, place, name in (
        (admin, "/dashboard/tokens", "create"),
        (member, "/dashboard/account", "make"),
    ):
        answer = await post(control, who, place, act=name, name="", scope="read")
        assert answer.status_code == 400
        assert 'id="f-name-error"' in answer.text
        answer = await post(control, who, place, act=name, name=MARKUP, scope="write")
        assert answer.status_code == 201, words(answer.text)
        token = re.search(r'id="secret" value="([^"]+)"', answer.text)
        assert token is not None
        text = await page(control, who, place)
        assert token[1] not in text
        answer = await post(control, who, place, act="revoke", id=value_of(text, "id"))
        assert "Revoke the" in answer.text
        answer = await post(
            control, who, place, act="revoke", id=value_of(text, "id"), confirmed="yes"
        )
        assert answer.status_code == 303, words(answer.text)
    answer = await post(control, member, "/dashboard/account", act="end", id="../tokens")
    assert answer.status_code == 403, "a path of another route is none of this form"


@pytest.mark.one_control(False)
async def test_a_backup_is_made_put_back_and_deleted(control, admin) -> None:
    # A restore ends the process half a second later.
    control.app.state.services.state.database.on_fatal = lambda: None
    place = "/dashboard/backups"
    assert "No backup yet" in await page(control, admin, place)
    assert (await post(control, admin, place, act="make")).status_code == 303
    key = await make_key(control, "after the backup")
    text = await page(control, admin, place)
    backup = value_of(text, "backup")
    answer = await post(control, admin, place, act="restore", backup=backup)
    assert "Restore this backup?" in answer.text
    assert (await control.client.get(f"/api/keys/{key['id']}")).status_code == 200
    answer = await post(control, admin, place, act="restore", backup=backup, confirmed="yes")
    assert answer.status_code == 303, words(answer.text)
    assert (await control.client.get(f"/api/keys/{key['id']}")).status_code == 404
    assert "before a restore" in await page(control, admin, place)
    assert (await post(control, admin, place, act="delete", backup="../x")).status_code == 404
    answer = await post(control, admin, place, act="delete", backup=backup, confirmed="yes")
    assert answer.status_code == 303
    settings = (await control.client.get("/api/settings")).json()
    typed = {
        "act": "schedule",
        "backupEveryHours": "12",
        "backupKeepCount": "5",
        "backupKeepDays": "30",
        "settingsRevision": str(settings["settingsRevision"]),
    }
    answer = await post(control, admin, place, **typed | {"backupKeepCount": "0"})
    assert answer.status_code == 400
    assert 'id="f-backupKeepCount-error"' in answer.text
    assert (await post(control, admin, place, **typed)).status_code == 303
    after = (await control.client.get("/api/settings")).json()
    assert (after["backupEveryHours"], after["backupKeepCount"]) == (12, 5)
    answer = await post(control, admin, place, **typed | {"backupKeepDays": "1"})
    assert answer.status_code == 409, "another tab has saved since"
    assert 'name="backupKeepDays" value="1"' in answer.text


async def test_a_file_is_uploaded_run_downloaded_and_deleted(control, admin) -> None:
    key = await make_key(control, MARKUP)
    place = f"/dashboard/batches/new-file?key={key['id']}"
    typed = {"act": "upload", "key": key["id"], "name": MARKUP, "purpose": "batch"}
    answer = await post(control, admin, place, **typed, content=" ")
    assert answer.status_code == 400
    assert 'id="f-content-error"' in answer.text
    line = orjson.dumps({"custom_id": "\u00fc", "method": "POST", "url": "/v1/embeddings"}).decode()
    answer = await post(control, admin, place, **typed, content=line)
    assert answer.status_code == 303, words(answer.text)
    new = answer.headers["location"]
    file_id = re.search(r"file=([\w-]+)", new)
    assert file_id is not None
    assert f'<option value="{file_id[1]}" selected>' in await page(control, admin, new)
    content = await control.client.get(
        f"/dashboard/batches/files/{file_id[1]}?key={key['id']}", headers=admin
    )
    assert content.text == line + "\n"
    assert content.headers["content-disposition"].startswith("attachment")
    assert content.headers["x-content-type-options"] == "nosniff"
    chosen = {"act": "create", "key": key["id"], "input_file_id": file_id[1]}
    answer = await post(control, admin, new, **chosen, endpoint="/v1/none")
    assert answer.status_code == 400
    answer = await post(control, admin, new, **chosen, endpoint="/v1/embeddings", metadata="a = b")
    assert answer.status_code == 303, words(answer.text)
    shown = await page(control, admin, answer.headers["location"])
    assert "/v1/embeddings" in shown.replace("<wbr>", "")
    batch = answer.headers["location"].partition("?")[0]
    assert (
        "Cancel this batch?"
        in (await post(control, admin, batch, act="cancel", key=key["id"])).text
    )
    listed = await page(control, admin, f"/dashboard/batches?key={key['id']}")
    assert "batch_" in listed
    other = await make_key(control, "another")
    text = await page(control, admin, f"/dashboard/batches?key={other['id']}")
    assert file_id[1] not in text, "the file of another key is not there"
    hidden = await control.client.get(
        f"/dashboard/batches/files/{file_id[1]}?key={other['id']}", headers=admin
    )
    assert hidden.status_code == 404


async def test_a_key_that_may_not_is_not_acted_for(control, admin, member) -> None:
    shut = await make_key(control, "chat alone", allowedEndpoints=["chat"])
    banned = await make_key(control, "banned", isBanned=True)
    for place in ("batches", "scraping", "scraping/crawls", "batches/new"):
        for key in (shut, banned):
            answer = await control.client.get(f"/dashboard/{place}?key={key['id']}", headers=admin)
            assert answer.status_code == 403, (place, key["name"])
        missing = await control.client.get(f"/dashboard/{place}?key=nobody", headers=admin)
        assert missing.status_code == 404
        assert "No key may do this yet" in await page(control, admin, f"/dashboard/{place}")
        answer = await control.client.get(f"/dashboard/{place}?key={shut['id']}", headers=member)
        assert answer.status_code == 403
    answer = await post(
        control, admin, "/dashboard/scraping", act="try", key=shut["id"], url="https://x.example"
    )
    assert answer.status_code == 403


async def test_a_key_is_acted_for_in_its_hours_and_from_its_addresses_alone(control, admin) -> None:
    hours = {"enabled": True, "days": list(range(7)), "tz": "UTC"}
    now = datetime.now(UTC)
    begins, ends = now + timedelta(hours=2), now + timedelta(hours=4)
    shut = await make_key(
        control,
        "of other hours",
        accessSchedule={**hours, "from": f"{begins:%H:%M}", "until": f"{ends:%H:%M}"},
    )
    away = await make_key(control, "of another place", ipAllowlist=["203.0.113.0/24"])
    here = await make_key(
        control,
        "of here",
        accessSchedule={
            **hours,
            "from": f"{now - timedelta(hours=2):%H:%M}",
            "until": f"{begins:%H:%M}",
        },
        ipAllowlist=["192.0.2.0/24", "127.0.0.0/8", "::1"],
    )
    idle = await make_key(
        control,
        "of no hours",
        accessSchedule={**hours, "enabled": False, "from": "01:00", "until": "01:01"},
    )
    for place in ("batches", "scraping", "scraping/crawls"):
        for key, words_ in ((shut, "outside its permitted hours"), (away, "ipAllowlist")):
            answer = await control.client.get(f"/dashboard/{place}?key={key['id']}", headers=admin)
            assert answer.status_code == 403, (place, key["name"])
            assert words_ in answer.text
        for key in (here, idle):
            answer = await control.client.get(f"/dashboard/{place}?key={key['id']}", headers=admin)
            assert answer.status_code == 200, (place, key["name"])
    text = await page(control, admin, "/dashboard/batches")
    assert "of other hours" not in text
    answer = await post(
        control, admin, "/dashboard/scraping", act="try", key=away["id"], url="https://x.example"
    )
    assert answer.status_code == 403


async def test_pages_are_tried_crawled_and_cancelled(control, admin) -> None:
    key = await make_key(control, "reader")
    who = {"key": key["id"]}
    answer = await post(
        control, admin, "/dashboard/scraping", **who, act="try", url="http://127.0.0.1/"
    )
    assert answer.status_code == 400
    assert 'value="http://127.0.0.1/"' in answer.text
    answer = await post(
        control,
        admin,
        "/dashboard/scraping/crawls/new",
        **who,
        act="crawl",
        url="https://93.184.215.14/",
        limit="x",
    )
    assert answer.status_code == 400
    assert 'id="f-limit-error"' in answer.text
    job = await make_crawl(control, key["id"])
    place = f"/dashboard/scraping/crawls/{job}"
    assert "93.184.215.14" in await page(control, admin, f"{place}?key={key['id']}")
    assert job in await page(control, admin, f"/dashboard/scraping/crawls?key={key['id']}")
    asked = await post(control, admin, place, **who, act="cancel")
    assert "Cancel this crawl?" in asked.text
    answer = await post(control, admin, place, **who, act="cancel", confirmed="yes")
    assert answer.status_code == 303
    shown = await page(control, admin, answer.headers["location"])
    assert "cancelled" in shown or "failed" in shown


async def test_tools_are_listed_and_their_old_paths_lead_there(control, admin) -> None:
    for old, new in (("cli-tools", "cli-code"), ("agents", "acp-agents")):
        answer = await control.client.get(f"/dashboard/{old}?x=1", headers=admin)
        assert answer.status_code == 308
        assert answer.headers["location"] == f"/dashboard/{new}?x=1"
    tools = (await control.client.get("/api/cli-tools")).json()["tools"]
    code = await page(control, admin, "/dashboard/cli-code")
    agents = await page(control, admin, "/dashboard/cli-agents")
    started = await page(control, admin, "/dashboard/acp-agents")
    for tool in tools:
        shown = agents if tool["category"] == "agent" else code
        assert f'/{tool["id"]}">' in shown, tool["id"]
        assert (f"acp/{tool['id']}" in started) == tool["acpSpawnable"]
    assert "zcode" not in code, "a tool whose address cannot be set is not shown"
    answer = await post(control, admin, "/dashboard/cli-code/codex", act="preview", baseUrl="ftp:x")
    assert answer.status_code == 400
    place = "/dashboard/cli-code/mitm/kiro"
    assert "No traffic of this tool is intercepted" in await page(control, admin, place)
    answer = await post(control, admin, place, act="alias", aliases="no sign")
    assert answer.status_code == 400
    assert 'id="f-aliases-error"' in answer.text


async def test_agents_are_made_changed_and_deleted(control, admin) -> None:
    typed = {"act": "create", "name": MARKUP, "description": MARKUP, "prompt": "Be\r\nkind."}
    answer = await post(control, admin, "/dashboard/agent-skills/new", **typed, temperature="9")
    assert answer.status_code == 400
    assert 'id="f-temperature-error"' in answer.text
    answer = await post(control, admin, "/dashboard/agent-skills/new", **typed)
    assert answer.status_code == 303, words(answer.text)
    place = answer.headers["location"].partition("?")[0]
    (skill,) = (await control.client.get("/api/agent-skills")).json()["skills"]
    assert skill["prompt"] == "Be\nkind."
    seen = value_of(await page(control, admin, place), "seen")
    changed = typed | {"act": "change", "seen": seen, "name": "Kind"}
    assert (await post(control, admin, place, **changed)).status_code == 303
    assert (await post(control, admin, place, **changed)).status_code == 409
    assert "Delete the agent Kind?" in (await post(control, admin, place, act="delete")).text
    answer = await post(control, admin, place, act="delete", confirmed="yes")
    assert answer.status_code == 303


async def test_a_delivery_shows_its_body_and_secrets_rotate(control, admin) -> None:
    hook = await make_webhook(control)
    delivery = await make_delivery(control, hook)
    place = f"/dashboard/webhooks/{hook}"
    text = await page(control, admin, f"{place}/deliveries/{delivery}")
    assert "&lt;script&gt;alert(1)" in text
    assert "connection_failed" in text
    one = await control.client.get(
        f"/api/webhooks/{hook}/deliveries", params={"deliveryId": delivery}
    )
    assert MARKUP in orjson.loads(one.json()["deliveries"][0]["body"])["data"]["error"]
    whole = (await control.client.get(f"/api/webhooks/{hook}/deliveries")).json()
    assert whole["deliveries"][0]["body"] is None
    missing = await control.client.get(
        f"/api/webhooks/{hook}/deliveries", params={"deliveryId": "x"}
    )
    assert missing.status_code == 404
    assert "in this state" in await page(control, admin, f"{place}?state=delivered")
    answer = await post(control, admin, place, act="replay", state="failed")
    assert answer.status_code == 400
    assert 'id="f-from-error"' in answer.text
    typed = {"act": "replay", "state": "failed", "from": "2020-01-01T00:00"}
    answer = await post(control, admin, place, **typed)
    assert answer.status_code == 303, words(answer.text)
    answer = await post(control, admin, f"{place}/secret", act="rotate", keepPreviousHours="999")
    assert answer.status_code == 400
    assert 'id="f-keepPreviousHours-error"' in answer.text
    answer = await post(control, admin, f"{place}/secret", act="rotate", keepPreviousHours="0")
    assert answer.status_code == 201
    secrets = (await control.client.get(f"/api/webhooks/{hook}")).json()["webhook"]["secrets"]
    assert len(secrets) == 1


async def test_a_webhook_is_tried_and_a_delivery_sent_again(control, admin) -> None:
    hook = await make_webhook(control)
    delivery = await make_delivery(control, hook)
    place = f"/dashboard/webhooks/{hook}"
    history = f"/api/webhooks/{hook}/deliveries"
    queued = (await control.client.get(history)).json()["total"]
    assert (await post(control, admin, place, act="test")).status_code == 303
    after = (await control.client.get(history)).json()
    assert after["total"] == queued + 1
    assert after["deliveries"][0]["event"] == "test.ping"
    assert (await post(control, admin, place, act="redeliver", delivery="x")).status_code == 404
    answer = await post(control, admin, place, act="redeliver", delivery=delivery)
    assert answer.status_code == 303, words(answer.text)
    one = (await control.client.get(history, params={"deliveryId": delivery})).json()
    assert len(one["deliveries"][0]["attempts"]) >= 1


@pytest.mark.one_control(False)
async def test_usage_stands_beside_the_period_before(control, admin) -> None:
    records = await fill_log(control)
    older = [dict(each, ts_ms=each["ts_ms"] - 8 * 86_400_000) for each in records[:10]]
    for at, each in enumerate(older):
        each["request_id"] = f"req_before{at}"
    lines = b"".join(orjson.dumps(each) + b"\n" for each in older)
    spool = control.data_dir / "spool"
    (spool / "w-2.part").write_bytes(lines)
    (spool / "w-2.part").rename(spool / "w-2.ndjson")

    async def compared() -> bool:
        text = words(await page(control, admin, "/dashboard/usage?window=7d&by=model"))
        return f"{change(30, 10)} against the period before" in text

    until = time.monotonic() + 20
    while not await compared():
        assert time.monotonic() < until
        await asyncio.sleep(0.1)


async def test_failures_are_forgotten_from_the_health_page(control, admin, member) -> None:
    text = await page(control, admin, "/dashboard/health")
    assert "Reset circuit breakers" in text
    assert (
        await post(control, member, "/dashboard/health", act="reset_all", all="1")
    ).status_code in (403, 404)
    asked = await post(control, admin, "/dashboard/health", act="reset_all", all="1")
    assert asked.status_code == 200, "it asks first"
    done = await post(
        control, admin, "/dashboard/health", act="reset_all", all="1", confirmed="yes"
    )
    assert done.status_code == 303, words(done.text)


@pytest.mark.one_control(False)
async def test_usage_leaves_as_parquet(control, admin) -> None:
    await fill_log(control, upstream_model="=HYPERLINK(1)", model="=HYPERLINK(1)")
    answer = await control.client.get(
        "/dashboard/usage/download.parquet?window=30d&by=model", headers=admin
    )
    assert answer.status_code == 200
    assert ".parquet" in answer.headers["content-disposition"]
    frame = pl.read_parquet(io.BytesIO(answer.content))
    assert frame["model"].to_list() == ["=HYPERLINK(1)"]
    assert frame["requests"].to_list() == [30]
    assert frame.schema["from_utc"] == pl.Datetime("ms", "UTC")
    total = (await control.client.get("/api/usage/history", params={"groupBy": "total"})).json()
    assert frame["cost_usd_micros"].to_list() == [total["history"][0]["costUsdMicros"]]


@pytest.mark.one_control(False)
async def test_the_first_steps_are_led_until_calls_arrive(control, admin) -> None:
    text = await page(control, admin, "/dashboard")
    assert "Start here" in text
    assert "It appears on this page." in text
    await make_batch(control, (await make_key(control, "first"))["id"])
    await fill_log(control)
    assert "Start here" not in await page(control, admin, "/dashboard")


async def test_a_tool_is_pointed_here_and_put_back(config: ControlConfig, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    changed = {"cli_config_home": home, "gateway_allow_container_config_write": True}
    place = "/dashboard/cli-code/codex"
    async with run_application(config.model_copy(update=changed), LOCAL, "192.0.2.1") as (
        _,
        client,
    ):

        async def send(**fields: str) -> httpx.Response:
            return await client.post(place, content=urlencode(fields), headers=FORM)

        typed = {"model": "auto", "apiKey": "sk-fl-typed-on-a-page"}
        shown = await send(**typed, act="preview")
        assert shown.status_code == 200
        assert "This would be written" in shown.text
        assert "sk-fl-typed-on-a-page" not in shown.text
        assert list(home.rglob("*.toml")) == []
        written = await send(**typed, act="apply")
        assert written.status_code == 303, words(written.text)
        (file,) = home.rglob("*.toml")
        text = (await client.get(place)).text
        assert "points here" in text
        backup = value_of(text, "backup")
        assert "Put OpenAI Codex CLI back?" in (await send(act="restore", backup=backup)).text
        restored = await send(act="restore", backup=backup, confirmed="yes")
        assert restored.status_code == 303, words(restored.text)
        assert not file.exists()
