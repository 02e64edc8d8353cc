"""Renewing credentials: what is due, and what is done when a source fails or changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from fairlead.gateway.cloud_credentials.obtained import Obtained
from fairlead.gateway.cloud_credentials.refresher import TASKS, CredentialRefresher
from fairlead.gateway.cloud_credentials.renewal import RENEW_BEFORE_MS, store_obtained
from fairlead.gateway.cloud_credentials.table import (
    ObtainedCredential,
    due_credentials,
    find_obtained,
    put_obtained,
    want_obtained,
)
from fairlead.gateway.providers.credentials import open_credentials
from fairlead.gateway.providers.table import find_connection
from fairlead.gateway.resilience.table import (
    PersistedState,
    put_persisted_state,
)
from fairlead.moment import now_ms
from tests.support.management import Management
from tests.support.upstream import Upstream, reply

pytestmark = pytest.mark.anyio

FLAVOR = [("Metadata-Flavor", "Google")]


@pytest.fixture
def metadata(monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    with Upstream() as service:
        service.script(granted("first-canary"))
        monkeypatch.setenv("GCE_METADATA_HOST", f"127.0.0.1:{service.port}")
        yield service


def granted(token: str) -> Any:
    return reply({"access_token": token, "expires_in": 3600}, 200, FLAVOR)


async def connect(management: Management) -> str:
    body = {
        "provider": "vertex",
        "name": "machine",
        "authType": "google-metadata",
        "providerSpecificData": {"project": "mine"},
    }
    made = await management.ask("POST", "/api/providers", body, expect=201)
    connection_id: str = made["connection"]["id"]
    return connection_id


async def row_of(management: Management, connection_id: str) -> ObtainedCredential:
    found = await management.services.state.read(lambda con: find_obtained(con, connection_id))
    assert found is not None
    return found


async def token_of(management: Management, connection_id: str) -> str | None:
    state = management.services.state
    connection = await state.read(lambda con: find_connection(con, connection_id))
    assert connection is not None
    return open_credentials(state.sealer, connection).api_key


async def make_due(management: Management, row: ObtainedCredential) -> None:
    due = replace(row, next_at_ms=0)
    await management.services.state.record(lambda con: put_obtained(con, due))


async def test_a_credential_is_obtained_and_renewed_in_time(
    management: Management, metadata: Upstream
) -> None:
    connection_id = await connect(management)
    row = await row_of(management, connection_id)
    assert await token_of(management, connection_id) == "first-canary"
    assert row.expires_at_ms is not None
    assert row.next_at_ms == row.expires_at_ms - RENEW_BEFORE_MS
    assert [each["id"] for each in management.snapshot()["connections"]] == [connection_id]

    metadata.script(granted("second-canary"))
    refresher = CredentialRefresher.of(management.services)
    await refresher.refresh_due()
    assert await token_of(management, connection_id) == "first-canary"
    await make_due(management, row)
    await refresher.refresh_due()
    assert await token_of(management, connection_id) == "second-canary"


async def test_a_refused_credential_is_obtained_before_it_ends(
    management: Management, metadata: Upstream
) -> None:
    connection_id = await connect(management)
    row = await row_of(management, connection_id)
    state = management.services.state
    refused = PersistedState(connection_id, "terminal", "expired", None)
    await state.record(lambda con: put_persisted_state(con, refused))
    assert await state.read(lambda con: due_credentials(con, now_ms())) == []
    old = replace(row, obtained_at_ms=now_ms() - 120_000)
    await state.record(lambda con: put_obtained(con, old))
    metadata.script(granted("second-canary"))
    await CredentialRefresher.of(management.services).refresh_due()
    assert await token_of(management, connection_id) == "second-canary"
    assert len(management.snapshot()["resilience"]["clears"]) == 1


async def test_a_failing_source_leaves_the_credential_in_use(
    management: Management, metadata: Upstream
) -> None:
    connection_id = await connect(management)
    row = await row_of(management, connection_id)
    metadata.script(reply({}, 500, FLAVOR))
    await make_due(management, row)
    await CredentialRefresher.of(management.services).refresh_due()

    failed = await row_of(management, connection_id)
    assert (failed.failures, failed.last_error) == (1, "Google's metadata server answered 500.")
    assert failed.next_at_ms is not None
    assert failed.next_at_ms > now_ms()
    assert await token_of(management, connection_id) == "first-canary"
    shown = await management.ask("GET", f"/api/providers/{connection_id}")
    assert shown["connection"]["lastError"] == failed.last_error
    assert [each["id"] for each in management.snapshot()["connections"]] == [connection_id]


async def test_what_a_former_source_gave_is_not_stored(
    management: Management, metadata: Upstream
) -> None:
    connection_id = await connect(management)
    row = await row_of(management, connection_id)
    state = management.services.state
    await state.record(lambda con: want_obtained(con, connection_id))
    late = Obtained(token="late-canary", expires_at_ms=now_ms() + 60_000)
    is_stored = await state.commit(lambda con: store_obtained(con, state.sealer, row, late))
    assert is_stored is False
    assert await token_of(management, connection_id) == "first-canary"


async def test_nothing_is_left_of_a_connection_with_another_credential(
    management: Management, metadata: Upstream
) -> None:
    connection_id = await connect(management)
    key = {"authType": "apikey", "apiKey": "ya29.own-canary"}
    await management.ask("PUT", f"/api/providers/{connection_id}", key)
    state = management.services.state
    assert await state.read(lambda con: find_obtained(con, connection_id)) is None
    assert await token_of(management, connection_id) == "ya29.own-canary"

    other = await connect(management)
    await management.ask("DELETE", f"/api/providers/{other}")
    assert await state.read(lambda con: find_obtained(con, other)) is None


def test_the_task_has_its_name() -> None:
    assert [task.name for task in TASKS] == ["gateway.cloud-credentials"]
