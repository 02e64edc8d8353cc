"""Listeners are told once when a connection begins to fail and once when it serves again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fairlead.gateway.health.transitions import HealthTransitions
from fairlead.moment import now_ms
from fairlead.store.services import WorkerReport
from fairlead.store.webhook_endpoints import insert_endpoint, new_endpoint
from tests.support.management import Management

pytestmark = pytest.mark.anyio


def report(connection_id: str, error: str | None, successes: int, live: bool = True) -> Any:
    said = {
        "id": connection_id,
        "state": "active",
        "cooling_ms": 0,
        "last_error": error,
        "successes": successes,
        "failures": 0,
        "latency_ms": None,
    }
    return WorkerReport("w", 1, live, 1, 1, {"connections": [said]})


async def test_turns_are_told_once_each(management: Management) -> None:
    services = management.services
    body = {"provider": "openai", "name": "main", "apiKey": "sk-canary-0123456789"}
    made = await management.ask("POST", "/api/providers", body, expect=201)
    connection_id = made["connection"]["id"]
    # The address is one that is never dialled, so what is told waits in the outbox.
    endpoint = new_endpoint(
        "gateway", "http://10.0.0.1/", ["provider.error", "provider.recovered"], now_ms()
    )
    secret = "whsec_" + "bmV3" * 8
    await services.state.record(
        lambda con: insert_endpoint(con, services.state.sealer, endpoint, secret)
    )
    # Those of control itself are told by its own task.
    services = replace(services)
    turns = HealthTransitions(services)

    async def told(*reports: Any) -> list[str]:
        services.workers = lambda: list(reports)
        await turns.check()
        rows = await services.state.read(
            lambda con: con.execute(
                "SELECT event, body FROM webhook_messages ORDER BY id"
            ).fetchall()
        )
        assert all(connection_id in body for _, body in rows)
        return sorted(event for event, _ in rows)

    # Before anything was served, and of workers that are gone, nothing is known.
    assert await told(report(connection_id, None, 0)) == []
    assert await told(report(connection_id, "upstream_reset", 0, live=False)) == []
    assert await told(report(connection_id, "upstream_reset", 0)) == ["provider.error"]
    assert await told(report(connection_id, "upstream_timeout", 0)) == ["provider.error"]
    # A relay that was started anew says nothing of how the provider is.
    assert await told(report(connection_id, None, 0)) == ["provider.error"]
    assert await told(report(connection_id, None, 1)) == ["provider.error", "provider.recovered"]
    assert await told(report(connection_id, None, 2)) == ["provider.error", "provider.recovered"]
    assert await told(report(connection_id, "upstream_auth", 2)) == [
        "provider.error",
        "provider.error",
        "provider.recovered",
    ]
    await management.ask("DELETE", f"/api/providers/{connection_id}")
    assert len(await told(report(connection_id, None, 3))) == 3
