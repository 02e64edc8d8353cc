"""Credentials are tested by the clock: spread, bounded, and only where the operator wants it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairlead.gateway.providers.prober import AT_MOST, MINUTE_MS, due_ms, probe_due
from fairlead.gateway.providers.table import Connection, find_connection, list_connections
from fairlead.store.operator_settings import OperatorSettings
from tests.support.management import Management
from tests.support.upstream import Upstream, reply

pytestmark = pytest.mark.anyio

LATER_MS = 10**13


async def _connections(management: Management, upstream: Upstream, count: int) -> list[str]:
    node = {
        "type": "openai-compatible",
        "name": "Lab",
        "prefix": "lab",
        "baseUrl": upstream.url,
    }
    made = (await management.ask("POST", "/api/provider-nodes", node, expect=201))["node"]
    ids = []
    for number in range(count):
        body = {"provider": made["id"], "name": f"c{number}", "apiKey": "sk-a"}
        answer = await management.ask("POST", "/api/providers", body, expect=201)
        ids.append(answer["connection"]["id"])
    return ids


async def _set(management: Management, **settings: int) -> None:
    await management.ask("PATCH", "/api/settings", settings)


async def test_nothing_is_tested_unless_the_operator_wants_it(
    management: Management, upstream: Upstream
) -> None:
    await _connections(management, upstream, 1)
    assert await probe_due(management.services, LATER_MS) == []
    assert upstream.requests == []


async def test_what_is_due_is_tested_and_its_record_says_so(
    management: Management, upstream: Upstream
) -> None:
    upstream.script(reply({"object": "list", "data": [{"id": "m"}]}))
    ids = await _connections(management, upstream, 3)
    await management.ask("PUT", f"/api/providers/{ids[2]}", {"isActive": False})
    await _set(management, credentialProbeMinutes=60, credentialProbeJitterPercent=0)
    (first, *_) = await management.services.state.read(lambda con: list_connections(con, 9, 0))
    assert await probe_due(management.services, first.created_at_ms + 59 * MINUTE_MS) == []
    due_at_ms = first.created_at_ms + 70 * MINUTE_MS
    assert sorted(await probe_due(management.services, due_at_ms)) == sorted(ids[:2])
    assert len(upstream.requests) == 2
    for connection_id in ids[:2]:
        shown = (await management.ask("GET", f"/api/providers/{connection_id}"))["connection"]
        assert (shown["testStatus"], [model["id"] for model in shown["models"]]) == (
            "active",
            ["m"],
        )
        assert shown["lastTested"] is not None
    kept = await management.services.state.read(lambda con: find_connection(con, ids[0]))
    assert kept is not None
    assert due_ms(kept, OperatorSettings.model_validate({"credentialProbeMinutes": 60})) > (
        kept.last_tested_at_ms or 0
    )

    upstream.script(reply({"error": {"message": "no"}}, status=401))
    assert len(await probe_due(management.services, LATER_MS)) == 2
    shown = (await management.ask("GET", f"/api/providers/{ids[0]}"))["connection"]
    assert shown["testStatus"] == "error"


async def test_one_odd_row_does_not_stop_the_tests_of_others(
    management: Management, upstream: Upstream
) -> None:
    upstream.script(reply({"object": "list", "data": [{"id": "m"}]}))
    odd, healthy = await _connections(management, upstream, 2)
    await _set(management, credentialProbeMinutes=60, credentialProbeJitterPercent=0)
    state = management.services.state
    # Written by a version that knew another kind of credential.
    sealed = state.sealer.seal(odd, b'{"unknown_kind": "x"}')
    await state.record(
        lambda con: con.execute(
            "UPDATE provider_connections SET credentials_sealed = ? WHERE id = ?", [sealed, odd]
        ).fetchall()
    )
    assert sorted(await probe_due(management.services, LATER_MS)) == sorted([odd, healthy])
    assert len(upstream.requests) == 1
    shown = (await management.ask("GET", f"/api/providers/{healthy}"))["connection"]
    assert (shown["testStatus"], shown["lastTested"] is not None) == ("active", True)


async def test_tests_are_spread(management: Management, upstream: Upstream) -> None:
    (connection_id,) = await _connections(management, upstream, 1)
    one = await management.services.state.read(lambda con: find_connection(con, connection_id))
    assert isinstance(one, Connection)
    settings = OperatorSettings.model_validate(
        {"credentialProbeMinutes": 100, "credentialProbeJitterPercent": 20}
    )
    after = [
        (due_ms(replace(one, id=str(number)), settings) - one.created_at_ms) / MINUTE_MS
        for number in range(200)
    ]
    assert min(after) >= 80
    assert max(after) <= 120
    assert max(after) - min(after) > 30
    assert AT_MOST < 200
