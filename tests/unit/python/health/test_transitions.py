"""Listeners are told once when a connection begins to fail and once when it serves again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fairlead.gateway.health.transitions import HealthTransitions
from fairlead.moment import now_ms
from fairlead.records.webhook_endpoints import insert_endpoint, new_endpoint
from fairlead.store.file import Connection
from fairlead.store.services import Services, WorkerReport
from tests.support.management import Management

pytestmark = pytest.mark.anyio


WORKERS = ("one", "two")


def report(connection_id: str, worker: str, said: tuple[str | None, int, int], live: bool) -> Any:
    error, failed_at_ms, served_at_ms = said
    connection = {
        "id": connection_id,
        "last_error": error,
        "failed_at_ms": failed_at_ms or None,
        "served_at_ms": served_at_ms or None,
    }
    return WorkerReport(worker, 1, live, 1, 1, {"connections": [connection]})


class Control:
    """A control of an instance whose workers say what a test wants."""

    def __init__(self, services: Services, connection_id: str) -> None:
        # Those of control itself are told by its own task.
        self.services = replace(services)
        self.transitions = HealthTransitions(self.services)
        self.connection_id = connection_id

    async def hears(self, *said: tuple[str | None, int, int], live: bool = True) -> list[str]:
        """The events that are told for what the workers say: last error, when it failed, when it served."""
        reports = [
            report(self.connection_id, worker, one, live)
            for worker, one in zip(WORKERS, said, strict=False)
        ]
        self.services.workers = lambda: reports
        await self.transitions.check()
        return await self.told()

    async def told(self) -> list[str]:
        """Events that were not told of before."""

        def take(con: Connection) -> list[str]:
            rows = con.execute("SELECT event, body FROM webhook_messages ORDER BY id").fetchall()
            assert all(self.connection_id in body for _, body in rows)
            con.execute("DELETE FROM webhook_messages")
            return [event for event, _ in rows]

        return await self.services.state.record(take)


@pytest.fixture
async def connection_id(management: Management) -> str:
    """A connection, with a listener to its events."""
    body = {"provider": "openai", "name": "main", "apiKey": "sk-canary-0123456789"}
    made = await management.ask("POST", "/api/providers", body, expect=201)
    # The address is one that is never dialled, so what is told waits in the outbox.
    endpoint = new_endpoint(
        "gateway", "http://10.0.0.1/", ["provider.error", "provider.recovered"], now_ms()
    )
    secret = "whsec_" + "bmV3" * 8
    state = management.services.state
    await state.record(lambda con: insert_endpoint(con, state.sealer, endpoint, secret))
    return str(made["connection"]["id"])


async def test_turns_are_told_once_each(management: Management, connection_id: str) -> None:
    control = Control(management.services, connection_id)
    # Before anything was served, and of workers that are gone, nothing is known.
    assert await control.hears((None, 0, 0)) == []
    assert await control.hears(("upstream_reset", 5, 0), live=False) == []
    assert await control.hears(("upstream_reset", 5, 0)) == ["provider.error"]
    assert await control.hears(("upstream_timeout", 6, 0)) == []
    # A relay that was started anew says nothing of how the provider is.
    assert await control.hears((None, 0, 0)) == []
    assert await control.hears((None, 0, 8)) == ["provider.recovered"]
    assert await control.hears((None, 0, 9)) == []
    assert await control.hears(("upstream_auth", 10, 9)) == ["provider.error"]
    await management.ask("DELETE", f"/api/providers/{connection_id}")
    assert await control.hears((None, 10, 12)) == []


async def test_what_one_worker_serves_counts_for_what_another_failed(
    management: Management, connection_id: str
) -> None:
    control = Control(management.services, connection_id)
    assert await control.hears(("upstream_reset", 5, 0), (None, 0, 3)) == ["provider.error"]
    assert await control.hears(("upstream_reset", 5, 0), (None, 0, 7)) == ["provider.recovered"]
    assert await control.hears(("upstream_reset", 9, 0), (None, 0, 7)) == ["provider.error"]
    # It served and failed again before anything of it was told.
    assert await control.hears(("upstream_reset", 9, 0), ("upstream_reset", 12, 11)) == []
    assert await control.hears(("upstream_reset", 9, 0), (None, 12, 13)) == ["provider.recovered"]


async def test_controls_of_one_database_tell_together(
    management: Management, connection_id: str
) -> None:
    first, second = (Control(management.services, connection_id) for _ in range(2))
    assert await first.hears(("upstream_reset", 5, 0)) == ["provider.error"]
    assert await second.hears(("upstream_reset", 6, 0)) == []
    assert await second.hears((None, 6, 8)) == ["provider.recovered"]
    assert await first.hears((None, 5, 9)) == []
    # One at which it goes on failing does not begin again because it serves at the other.
    assert await first.hears(("upstream_reset", 10, 9)) == ["provider.error"]
    assert await second.hears((None, 6, 12)) == ["provider.recovered"]
    assert await first.hears(("upstream_reset", 14, 9)) == []


async def test_a_control_that_begins_knows_what_was_told(
    management: Management, connection_id: str
) -> None:
    assert await Control(management.services, connection_id).hears(("upstream_reset", 5, 0)) == [
        "provider.error"
    ]
    assert await Control(management.services, connection_id).hears(("upstream_reset", 6, 0)) == []
    assert await Control(management.services, connection_id).hears((None, 6, 8)) == [
        "provider.recovered"
    ]
