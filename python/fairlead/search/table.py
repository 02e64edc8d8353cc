"""The table of search providers. Every function runs inside `state.read` or `state.database.write`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from fairlead.errors import Conflict, NotFound
from fairlead.store.file import Connection
from fairlead.store.operator_settings import read_operator_settings
from fairlead.store.table import Table

PROVIDERS_MAX: Final = 50
# The name of the SearXNG instance in the setting `scrapeSearchUrl`, unless a provider has this name.
FROM_SETTING: Final = "searxng"


@dataclass(frozen=True, slots=True)
class SearchProvider:
    """A search provider. `key_sealed` is sealed under the provider's id; None without a key."""

    id: str
    name: str
    kind: str
    base_url: str
    key_sealed: bytes | None
    priority: int
    is_active: bool
    created_at_ms: int
    per_query: int | None = None
    """The price of a search in micro-dollars; None: free."""


_PROVIDERS: Final = Table("search_providers", SearchProvider)


def list_providers(con: Connection) -> list[SearchProvider]:
    """All providers, in the order in which they are tried."""
    return _PROVIDERS.select(con, "ORDER BY priority, created_at_ms, id")


def usable_providers(con: Connection) -> list[SearchProvider]:
    """The enabled providers, and last the instance of the setting."""
    found = [one for one in list_providers(con) if one.is_active]
    base_url = read_operator_settings(con).scrape_search_url
    if base_url is not None and all(one.name != FROM_SETTING for one in found):
        found.append(
            SearchProvider("setting", FROM_SETTING, "searxng", base_url, None, 1000, True, 0)
        )
    return found


def dearest_search(con: Connection) -> int:
    """The highest price of a search, in micro-dollars."""
    return max((one.per_query or 0 for one in usable_providers(con)), default=0)


def find_provider(con: Connection, provider_id: str) -> SearchProvider:
    """The provider with this id; raises `NotFound`."""
    for one in list_providers(con):
        if one.id == provider_id:
            return one
    raise NotFound("No such search provider.", param="id")


def insert_provider(con: Connection, provider: SearchProvider) -> None:
    """Adds a provider. `Conflict` for a name that is taken, or at the limit of providers."""
    others = list_providers(con)
    _check_name(others, provider.id, provider.name)
    if len(others) >= PROVIDERS_MAX:
        raise Conflict(f"There are at most {PROVIDERS_MAX} search providers.")
    _PROVIDERS.insert(con, provider)


def change_provider(con: Connection, provider_id: str, changes: dict[str, Any]) -> SearchProvider:
    """Sets fields of a provider. Raises `NotFound` or `Conflict`."""
    find_provider(con, provider_id)
    if "name" in changes:
        _check_name(list_providers(con), provider_id, changes["name"])
    for column in ("name", "base_url", "key_sealed", "priority", "is_active", "per_query"):
        if column in changes:
            con.execute(
                f"UPDATE search_providers SET {column} = ? WHERE id = ?",
                [changes[column], provider_id],
            )
    return find_provider(con, provider_id)


def delete_provider(con: Connection, provider_id: str) -> None:
    """Deletes a provider; raises `NotFound`."""
    find_provider(con, provider_id)
    con.execute("DELETE FROM search_providers WHERE id = ?", [provider_id])


def _check_name(others: list[SearchProvider], provider_id: str, name: str) -> None:
    if any(one.name == name and one.id != provider_id for one in others):
        raise Conflict(f"There is a search provider of the name {name}.", param="name")
