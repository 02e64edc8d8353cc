"""The stored filter, and the section `ip_filter` of the snapshot."""

from __future__ import annotations

from typing import Any, Final

from fairlead.gateway.ip_filter.fields import StoredFilter
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.meta import read_meta, write_meta

FILTER: Final = "ip_filter"


def read_filter(con: Connection) -> StoredFilter:
    """The filter without bans that have ended."""
    stored = read_meta(con, FILTER)
    found = StoredFilter() if stored is None else StoredFilter.model_validate_json(stored)
    at_ms = now_ms()
    return found.model_copy(update={"bans": [ban for ban in found.bans if ban.until_ms > at_ms]})


def write_filter(con: Connection, found: StoredFilter) -> None:
    """Stores the filter, in the writer."""
    write_meta(con, FILTER, found.model_dump_json())


def compile_filter(con: Connection) -> dict[str, Any]:
    """The section `ip_filter` of the snapshot."""
    found = read_filter(con)
    return {
        "mode": found.mode if found.enabled else "off",
        "blacklist": found.blacklist,
        "whitelist": found.whitelist,
        "bans": [{"networks": [ban.ip], "until_ms": ban.until_ms} for ban in found.bans],
    }
