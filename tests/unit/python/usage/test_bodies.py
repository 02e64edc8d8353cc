"""Kept bodies: found by their request, read by who may, each read in the audit log, and gone when they should be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairlead.moment import now_ms
from fairlead.records.kept_bodies import HOUR_MS, BodyName, KeptBodies, parse_name
from fairlead.usage.bodies.body_keeping import body_keeper_of
from fairlead.usage.bodies.local_bodies import LocalBodyKeeper
from tests.support.kept_bodies import HOSTILE, put_body, settle_with_body
from tests.support.management import Management, hold_keys

pytestmark = pytest.mark.anyio

DAY_MS = 86_400_000


def keeper_of(management: Management) -> LocalBodyKeeper:
    keeper = body_keeper_of(management.services)
    assert isinstance(keeper, LocalBodyKeeper)
    return keeper


async def audit(management: Management) -> list[dict[str, Any]]:
    """The reads that the audit log has, newest first."""
    answer = await management.client.get("/api/audit", params={"method": "GET"})
    assert answer.status_code == 200, answer.text
    entries: list[dict[str, Any]] = answer.json()["entries"]
    return entries


async def test_bodies_are_read_and_each_read_is_in_the_audit_log(management: Management) -> None:
    await hold_keys(management.services, "k")
    await settle_with_body(management, "req_a1", now_ms())
    log = (await management.ask("GET", "/api/usage/request-logs", requestId="req_a1"))["logs"]
    assert log[0]["hasBodies"] is True
    assert await audit(management) == []
    path = "/api/usage/logs/req_a1/body"
    for count in (1, 2):
        read = await management.ask("GET", path)
        assert (read["requestId"], read["keyId"]) == ("req_a1", "k")
        assert read["request"]["body"] == HOSTILE
        assert (read["response"]["status"], read["response"]["isWhole"]) == (200, True)
        entries = await audit(management)
        assert [each["path"] for each in entries] == [path] * count
        assert entries[0]["route"] == "/api/usage/logs/{id}/body"
        # Taken in between the two reads: found in either folder.
        await body_keeper_of(management.services).take_in()
    assert HOSTILE not in json.dumps(entries)


@pytest.mark.parametrize("request_id", ["req_none", "..%5Csecret.key", "x" * 300, "%00"])
async def test_what_names_no_bodies_is_answered_404_and_not_noted(
    management: Management, request_id: str
) -> None:
    message, param = await management.refused(
        "GET", f"/api/usage/logs/{request_id}/body", expect=404
    )
    assert (param, "No bodies are kept" in message) == ("requestId", True)
    assert await audit(management) == []


async def test_a_name_that_is_too_long_is_refused(management: Management) -> None:
    message, param = await management.refused("GET", f"/api/usage/logs/{'x' * 301}/body")
    assert param in ("requestId", "request_id"), message


async def test_no_log_wins_over_what_was_kept(management: Management) -> None:
    key = await management.ask(
        "POST", "/api/keys", {"name": "loud", "captureBodies": True}, expect=201
    )
    await settle_with_body(management, "req_b1", now_ms(), key_id=key["id"])
    path = "/api/usage/logs/req_b1/body"
    await management.ask("GET", path)
    await management.ask("PATCH", f"/api/keys/{key['id']}", {"noLog": True})
    await management.refused("GET", path, expect=404)
    keeper = keeper_of(management)
    await keeper.take_in()
    await keeper.sweep()
    assert keeper.bodies.total_bytes() == 0
    # Nor is anything read of a request that was in no log.
    await settle_with_body(management, "req_b2", now_ms(), no_log=True, key_id=None)
    await management.refused("GET", "/api/usage/logs/req_b2/body", expect=404)


async def test_bodies_go_with_their_key_by_age_by_size_and_by_purge(management: Management) -> None:
    await hold_keys(management.services, "k", "other")
    at = now_ms()
    old = await settle_with_body(management, "req_c1", at - 8 * DAY_MS)
    names = [await settle_with_body(management, f"req_d{count}", at - count) for count in range(4)]
    await settle_with_body(management, "req_e1", at, key_id="other")
    keeper = keeper_of(management)
    bodies = keeper.bodies
    await keeper.take_in()
    await keeper.sweep()
    assert not bodies.has(old), "older than captureDays"
    assert all(map(bodies.has, names))
    await management.ask("DELETE", "/api/keys/other")
    await keeper.sweep()
    assert all(map(bodies.has, names))
    assert not bodies.has(BodyName(at, "req_e1", "other"))
    one = bodies.total_bytes() // 4
    assert bodies.delete_surplus(2 * one) == 2
    assert [bodies.has(name) for name in names] == [True, True, False, False], "the oldest go"
    put_body(management.services, BodyName(at - 9, "req_f1", "k"))
    purged = await management.ask("POST", "/api/settings/purge-request-history", {})
    assert purged["deletedBodies"] == 3, "what was not taken in, too"
    assert (bodies.total_bytes(), list(bodies.spool.iterdir())) == (0, [])


async def test_bodies_that_come_after_their_key_went_go_too(management: Management) -> None:
    """As of a stream that outlives its key by more than a sweep."""
    await hold_keys(management.services, "k")
    keeper, at = keeper_of(management), now_ms()
    put_body(management.services, BodyName(at, "req_a1", "k"))
    await keeper.take_in()
    await keeper.sweep()
    late = BodyName(at, "req_a2", "gone")
    put_body(management.services, late)
    await keeper.take_in()
    await keeper.sweep()
    assert keeper.bodies.has(BodyName(at, "req_a1", "k"))
    assert not keeper.bodies.has(late)


@pytest.mark.parametrize(
    ("kind", "scopes", "status"),
    [
        ("token", ["read"], 403),
        ("token", ["read", "write", "admin"], 200),
        ("session", ["manage"], 200),
        ("key", ["read:bodies"], 200),
    ],
)
async def test_who_may_read(
    management: Management, kind: str, scopes: list[str], status: int
) -> None:
    await hold_keys(management.services, "k")
    await settle_with_body(management, "req_a1", now_ms())
    who = json.dumps({"kind": kind, "id": "k", "scopes": scopes})
    answer = await management.client.get(
        "/api/usage/logs/req_a1/body", headers={"x-fairlead-principal": who}
    )
    assert answer.status_code == status, answer.text
    assert len(await audit(management)) == (status == 200)


@pytest.mark.parametrize(
    "change",
    [
        {"captureBodies": "yes"},
        {"captureBodyKb": 0},
        {"captureBodyKb": 8193},
        {"captureMb": 0},
        {"captureMb": 1.5},
        {"captureDays": 366},
        {"captureDays": None},
        {"captureAll": True},
    ],
)
async def test_wrong_settings_change_nothing(
    management: Management, change: dict[str, Any]
) -> None:
    before = await management.ask("GET", "/api/settings")
    _, param = await management.refused("PATCH", "/api/settings", change)
    assert param in change
    assert await management.ask("GET", "/api/settings") == before


@pytest.mark.parametrize("value", ["yes", 1, None, []])
async def test_a_wrong_field_of_a_key_changes_nothing(management: Management, value: Any) -> None:
    key = await management.ask("POST", "/api/keys", {"name": "k"}, expect=201)
    path = f"/api/keys/{key['id']}"
    _, param = await management.refused("PATCH", path, {"captureBodies": value})
    assert param == "captureBodies"
    assert (await management.ask("GET", path))["captureBodies"] is False


def test_names_are_read_as_they_are_written(tmp_path: Path) -> None:
    for name in (BodyName(5, "req_a1b2", None), BodyName(HOUR_MS, "req_0", "3f-k")):
        assert parse_name(name.file) == name
    for other in (
        "x.body",
        "0000000000005_req_a_k.new",
        "5_req_a_k.body",
        "0000000000005_../k_-.body",
    ):
        assert parse_name(other) is None
    bodies = KeptBodies(tmp_path)
    assert (bodies.take_in(), bodies.total_bytes(), bodies.delete_before(2**43)) == (set(), 0, 0)
