"""Requests the provider's models over a stored connection, and stores the result in its record."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fairlead.errors import NotFound
from fairlead.gateway.providers.creation import event_data, provider_of
from fairlead.gateway.providers.credentials import open_credentials
from fairlead.gateway.providers.endpoint import Endpoint, reached_endpoint
from fairlead.gateway.providers.obtained_probe import probe_obtained
from fairlead.gateway.providers.probe import TEST_STATUS, Finding
from fairlead.gateway.providers.table import Connection, find_connection, update_connection
from fairlead.gateway.resilience.table import Clear, add_clear, read_persisted_states
from fairlead.moment import now_ms
from fairlead.store.file import Connection as Database
from fairlead.store.outbox import Event, emit
from fairlead.store.services import Services


def found_connection(con: Database, connection_id: str) -> Connection:
    """The connection; `NotFound` when there is none."""
    connection = find_connection(con, connection_id)
    if connection is None:
        raise NotFound("There is no provider connection with this id.", param="id")
    return connection


async def test_connection(
    services: Services, connection_id: str, *, by_operator: bool
) -> tuple[Finding, int]:
    """The finding and its time (UTC milliseconds). A success resets the connection's state if an operator started
    the test; a scheduled probe resets nothing.
    """
    sealer = services.state.sealer

    def find_endpoint(con: Database) -> tuple[Connection, Endpoint]:
        connection = found_connection(con, connection_id)
        provider = provider_of(con, connection)
        specific = connection.provider_specific
        target = reached_endpoint(con, sealer, provider, connection.auth_type, specific)
        return connection, target

    connection, endpoint = await services.state.read(find_endpoint)
    finding = await probe_obtained(
        endpoint,
        open_credentials(sealer, connection),
        connection.auth_type,
        connection.provider_specific,
    )
    tested_at_ms = now_ms()

    def store_result(con: Database) -> None:
        now, endpoint_now = find_endpoint(con)
        # After a change of the connection meanwhile, the finding is not about the stored one.
        if (now.credentials_sealed, endpoint_now) == (connection.credentials_sealed, endpoint):
            update_connection(con, _tested(now, finding, tested_at_ms))
            if finding.valid and by_operator and connection_id in read_persisted_states(con):
                add_clear(con, Clear(connection=connection_id))
            emit(con, Event("provider.tested", event_data(now) | _found_out(finding)))

    await services.state.commit(store_result)
    return finding, tested_at_ms


def _found_out(finding: Finding) -> dict[str, Any]:
    return {
        "valid": finding.valid,
        "diagnosis": finding.diagnosis,
        "statusCode": finding.status_code,
        "latencyMs": finding.latency_ms,
    }


def _tested(connection: Connection, finding: Finding, tested_at_ms: int) -> Connection:
    return replace(
        connection,
        test_status=TEST_STATUS[finding.diagnosis],
        last_error=finding.error,
        last_error_at_ms=connection.last_error_at_ms if finding.valid else tested_at_ms,
        last_tested_at_ms=tested_at_ms,
        # A failed test keeps the models of the one before.
        models=connection.models if finding.models is None else finding.models,
    )
