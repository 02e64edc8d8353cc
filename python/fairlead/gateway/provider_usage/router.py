"""`/api/providers/<id>/usage`: the usage that the connection's provider reports, read on request, and the key for
it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter
from pydantic import AfterValidator, Field, SecretStr
from pydantic_core import PydanticCustomError

from fairlead.errors import InvalidRequest
from fairlead.gateway.provider_usage.reader import (
    needs_own_key,
    read_usage,
    seal_usage_key,
    usage_section,
)
from fairlead.gateway.providers.connection_test import found_connection
from fairlead.gateway.providers.creation import event_data
from fairlead.records.provider_usage import (
    ProviderUsage,
    find_provider_usage,
    put_provider_usage,
)
from fairlead.records.provider_usage_view import ProviderUsageView, show_provider_usage
from fairlead.store.file import Connection as Database
from fairlead.store.outbox import Event, emit
from fairlead.store.services import Services, ServicesDep
from fairlead.wire import Wire

router = APIRouter(prefix="/api/providers/{connection_id}/usage", tags=["providers"])


def _of_a_header(key: SecretStr) -> SecretStr:
    if not all("\x21" <= each <= "\x7e" for each in key.get_secret_value()):
        raise PydanticCustomError("credential", "must be printable ASCII without spaces")
    return key


UsageKey = Annotated[
    SecretStr, Field(min_length=1, max_length=10_000), AfterValidator(_of_a_header)
]


class UsageKeyChange(Wire):
    """The key that the provider's usage route asks for, an administrator's. It is sent there only."""

    usage_key: UsageKey | None = Field(
        description="Stored sealed, never shown again; null deletes it."
    )


class ConnectionProviderUsage(Wire):
    """`source` is the provider's documentation of its route, null if none is known. `takesKey` says that a
    separate key gives more figures, `needsKey` that there are none without it, `hasKey` that one is set.
    """

    connection_id: str
    provider: str
    source: str | None
    needs_key: bool
    takes_key: bool
    has_key: bool
    usage: ProviderUsageView


@router.get("", summary="Read a connection's usage from the provider")
async def read(connection_id: str, services: ServicesDep) -> ConnectionProviderUsage:
    """The last known figures; the provider is not called."""
    return await _shown(services, connection_id)


@router.post("", summary="Ask the provider for a connection's usage now")
async def ask(connection_id: str, services: ServicesDep) -> ConnectionProviderUsage:
    """A failure of the provider is in `usage.error`."""
    await read_usage(services, connection_id)
    return await _shown(services, connection_id)


@router.put("", summary="Set the key for the provider's usage route")
async def change_key(
    connection_id: str, body: UsageKeyChange, services: ServicesDep
) -> ConnectionProviderUsage:
    """Figures of an earlier key are deleted."""

    def update(con: Database) -> None:
        connection = found_connection(con, connection_id)
        section = usage_section(con, connection)
        if section is None or not any(each.own_key for each in section.reads):
            raise InvalidRequest(
                "This connection's provider has no documented usage route that needs a separate key.",
                param="usageKey",
            )
        sealed = None
        if body.usage_key is not None:
            key = body.usage_key.get_secret_value()
            sealed = seal_usage_key(services.state.sealer, connection_id, key)
        put_provider_usage(con, replace(ProviderUsage(connection_id), key_sealed=sealed))
        emit(con, Event("provider.updated", {**event_data(connection), "changed": ["usageKey"]}))

    await services.state.record(update)
    return await _shown(services, connection_id)


async def _shown(services: Services, connection_id: str) -> ConnectionProviderUsage:
    def find(con: Database) -> ConnectionProviderUsage:
        connection = found_connection(con, connection_id)
        section, usage = usage_section(con, connection), find_provider_usage(con, connection_id)
        return ConnectionProviderUsage.model_construct(
            connection_id=connection_id,
            provider=connection.provider,
            source=None if section is None else section.source,
            needs_key=section is not None and needs_own_key(section),
            takes_key=section is not None and any(each.own_key for each in section.reads),
            has_key=usage.key_sealed is not None,
            usage=show_provider_usage(usage),
        )

    return await services.state.read(find)
