"""Which provider a filter of usage means."""

from __future__ import annotations

from fairlead.records.provider_names import find_provider_id, no_provider
from fairlead.store.file import Connection
from fairlead.store.services import Services


async def wanted_provider(services: Services, name: str | None) -> str | None:
    """The provider's name in records, by its id or a node's prefix; None for None. Usage outlives nodes, and
    searches have separate providers: a name in the records is accepted unchanged. Raises `InvalidRequest` for
    any other.
    """
    if name is None:
        return None
    found = await services.state.read(lambda con: find_provider_id(con, name))
    if found is not None:
        return found
    if await services.usage.read(lambda con: _has_usage(con, name)):
        return name
    raise no_provider(name)


def _has_usage(con: Connection, provider: str) -> bool:
    row = con.execute(
        "SELECT 1 FROM dimensions WHERE provider = ? UNION ALL SELECT 1 FROM requests WHERE provider = ? LIMIT 1",
        [provider, provider],
    ).fetchone()
    return row is not None
