"""The table `outbound_proxies`: what each level says, its login sealed.

The most specific level that says something wins: the key's, the combo's, the provider's, then the one
of all. Control's own calls of a provider belong to no key and no combo.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import orjson

from fairlead.store.file import Connection
from fairlead.store.sealer import Sealer
from fairlead.store.table import Table

Level = Literal["global", "provider", "combo", "key"]
Scheme = Literal["http", "socks5", "direct"]
DIRECT: Final = "direct"


@dataclass(frozen=True, slots=True)
class StoredProxy:
    """A row of the table; `target` is empty for the level `global`."""

    level: Level
    target: str
    scheme: Scheme
    host: str
    port: int
    login_sealed: bytes | None = field(default=None, repr=False)

    @property
    def id(self) -> str:
        """Names the row in the snapshot, and binds its login to it."""
        return f"{self.level}:{self.target}"


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy with its login opened. Its printed form does not contain it."""

    scheme: str
    host: str
    port: int
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)


_PROXIES: Final = Table("outbound_proxies", StoredProxy)


def find_proxy(con: Connection, level: Level, target: str) -> StoredProxy | None:
    """The proxy of a level; None if it has none."""
    return _PROXIES.find(con, "level = ? AND target = ?", level, target)


def all_proxies(con: Connection) -> list[StoredProxy]:
    """Every row, the least specific first."""
    by_level = "list_position(ARRAY['global', 'provider', 'combo', 'key'], level)"
    return _PROXIES.select(con, f"ORDER BY {by_level}, target")


def put_proxy(con: Connection, proxy: StoredProxy) -> None:
    """Stores what a level says in place of what it said, in the writer."""
    drop_proxy(con, proxy.level, proxy.target)
    _PROXIES.insert(con, proxy)


def drop_proxy(con: Connection, level: Level, target: str) -> None:
    """Deletes what a level says, in the writer: it was taken back, or its thing is deleted."""
    con.execute("DELETE FROM outbound_proxies WHERE level = ? AND target = ?", [level, target])


def seal_login(sealer: Sealer, record_id: str, username: str, password: str) -> bytes:
    """A login, sealed for the row with this id."""
    return sealer.seal(record_id, orjson.dumps({"username": username, "password": password}))


def open_proxy(sealer: Sealer, stored: StoredProxy) -> Proxy | None:
    """The proxy with its login; None where the level says `direct`. `Internal` when the login cannot be
    opened.
    """
    if stored.scheme == DIRECT:
        return None
    login: dict[str, str] = {}
    if stored.login_sealed is not None:
        login = orjson.loads(sealer.unseal(stored.id, stored.login_sealed))
    return Proxy(stored.scheme, stored.host, stored.port, **login)


def proxy_for(con: Connection, sealer: Sealer, provider: str) -> Proxy | None:
    """The proxy of control's own calls of a provider (catalogue id or node id)."""
    stored = find_proxy(con, "provider", provider) or find_proxy(con, "global", "")
    return None if stored is None else open_proxy(sealer, stored)


def proxy_named(con: Connection, sealer: Sealer, proxy_id: str) -> Proxy | None:
    """The proxy that the relay chose, by its id; None for `direct`. `LookupError` where it is gone."""
    if proxy_id == DIRECT:
        return None
    stored = next((each for each in all_proxies(con) if each.id == proxy_id), None)
    if stored is None:
        raise LookupError(proxy_id)
    return open_proxy(sealer, stored)


def compile_proxies(con: Connection, document: dict[str, Any]) -> None:
    """Adds the section `proxies` to the snapshot, and to keys, combos and connections the member
    `proxy`: an id of the section, or `direct`.
    """
    stored = {(each.level, each.target): each for each in all_proxies(con)}
    document["proxies"] = [_compiled(each) for each in stored.values() if each.scheme != DIRECT]
    everywhere = stored.get(("global", ""))
    for key in document["keys"]:
        _add(key, stored.get(("key", key["id"])))
    for combo in document["combos"]:
        _add(combo, stored.get(("combo", combo["id"])))
    for connection in document["connections"]:
        _add(connection, stored.get(("provider", connection["provider"]), everywhere))


def _add(record: dict[str, Any], proxy: StoredProxy | None) -> None:
    if proxy is not None:
        record["proxy"] = DIRECT if proxy.scheme == DIRECT else proxy.id


def _compiled(proxy: StoredProxy) -> dict[str, Any]:
    login = proxy.login_sealed
    return {
        "id": proxy.id,
        "scheme": proxy.scheme,
        "host": proxy.host,
        "port": proxy.port,
        "credentials_sealed": None if login is None else base64.b64encode(login).decode(),
    }
