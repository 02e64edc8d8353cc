"""`/api/settings/proxy`: through which proxies calls of providers go, at four levels.

The most specific level that says something wins: the key's, the combo's, the provider's, then the one
of all.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from typing import Annotated, Any

import httpx
from fastapi import APIRouter, Query
from pydantic import SecretStr

from fairlead.errors import Conflict, InvalidRequest, NotFound
from fairlead.gateway.combos.table import find_combo, find_combo_by_name
from fairlead.gateway.keys.table import find_key
from fairlead.gateway.outbound.fields import (
    MASK,
    ProxyChange,
    ProxyEntry,
    ProxyFields,
    ProxyTest,
    ProxyTested,
    ProxyView,
    TestErrorKind,
)
from fairlead.gateway.outbound.table import (
    DIRECT,
    Level,
    Proxy,
    StoredProxy,
    all_proxies,
    drop_proxy,
    find_proxy,
    open_proxy,
    put_proxy,
    seal_login,
)
from fairlead.gateway.outbound.tunnel import ProxyFailed
from fairlead.gateway.providers.client import fetch, open_client
from fairlead.gateway.providers.endpoint import resolve_provider
from fairlead.gateway.settings.router import REVISION
from fairlead.net.operator_egress import AddressForbidden
from fairlead.store.file import Connection
from fairlead.store.meta import read_meta
from fairlead.store.outbox import Event, emit
from fairlead.store.sealer import Sealer
from fairlead.store.services import ServicesDep

router = APIRouter(prefix="/api/settings/proxy", tags=["settings"])

TEST_DEADLINE_S = 15.0
PROXIES_MAX = 1000


@router.get("", summary="Through which proxies calls of providers go")
async def show(
    services: ServicesDep,
    level: Annotated[Level, Query()] = "global",
    target: Annotated[str | None, Query(alias="id", min_length=1, max_length=300)] = None,
) -> ProxyView:
    def read(con: Connection) -> ProxyView:
        return _view(con, services.state.sealer, level, _target(con, level, target))

    return await services.state.read(read)


@router.put("", summary="Set the proxy of a level, or take it back")
async def change(body: ProxyChange, services: ServicesDep) -> ProxyView:
    """In force for every call that begins after this returns."""
    sealer = services.state.sealer

    def update(con: Connection) -> ProxyView:
        target = _target(con, body.level, body.id)
        before = find_proxy(con, body.level, target)
        if body.proxy is None:
            drop_proxy(con, body.level, target)
        else:
            if before is None and len(all_proxies(con)) >= PROXIES_MAX:
                raise Conflict(f"There are {PROXIES_MAX} proxies already: take one back first.")
            put_proxy(con, _stored(sealer, body.level, target, body.proxy, before))
        revision = int(read_meta(con, REVISION) or 0)
        emit(con, Event("settings.updated", {"settingsRevision": revision, "changed": ["proxy"]}))
        return _view(con, sealer, body.level, target)

    return await services.state.commit(update)


@router.post("/test", summary="Try a proxy, stored or not")
async def test(body: ProxyTest, services: ServicesDep) -> ProxyTested:
    """Stores nothing."""
    sealer = services.state.sealer

    def read(con: Connection) -> tuple[Proxy, str]:
        target = _target(con, body.level, body.id)
        stored = find_proxy(con, body.level, target)
        if body.proxy is not None:
            stored = _stored(sealer, body.level, target, body.proxy, stored)
        if stored is None:
            raise NotFound(
                "This level says nothing: send the proxy that is to be tried.", param="proxy"
            )
        proxy = open_proxy(sealer, stored)
        if proxy is None:
            raise InvalidRequest("proxy is `direct`: there is nothing to try.", param="proxy")
        return proxy, body.url or _address_of(con, body.level, target)

    proxy, url = await services.state.read(read)
    return await _try(proxy, url)


async def _try(proxy: Proxy, url: str) -> ProxyTested:
    started = time.monotonic()
    probe: dict[str, Any] = {"public_ip": None, "status_code": None}
    error_kind: TestErrorKind | None = None
    error = None
    try:
        async with asyncio.timeout(TEST_DEADLINE_S), open_client(proxy) as client:
            probe["status_code"], body = await fetch(client, url, {"accept": "*/*"})
            probe["public_ip"] = _address_in(body)
    except ProxyFailed as failure:
        error_kind, error = "proxy_failed", str(failure)
    except (TimeoutError, httpx.TimeoutException):
        error_kind, error = "upstream_timeout", "Nothing answered through the proxy in time."
    except AddressForbidden:
        error_kind, error = "upstream_refused", "The address is one that is never dialled."
    except httpx.HTTPError:
        error_kind = "upstream_refused"
        error = "The proxy works, and the address behind it cannot be reached or speaks no HTTP."
    host = f"[{proxy.host}]" if ":" in proxy.host else proxy.host
    login = f"{MASK}@" if proxy.username is not None else ""
    return ProxyTested.model_construct(
        success=error is None,
        latency_ms=round((time.monotonic() - started) * 1000),
        proxy_url=f"{proxy.scheme}://{login}{host}:{proxy.port}",
        error_kind=error_kind,
        error=error,
        **probe,
    )


def _address_in(body: bytes) -> str | None:
    try:
        return str(ipaddress.ip_address(body[:64].decode("ascii").strip()))
    except ValueError:
        return None


def _target(con: Connection, level: Level, name: str | None) -> str:
    """The id of what a level's proxy is for; `InvalidRequest` for one that is missing or too much,
    `NotFound` for what is not there.
    """
    if level == "global":
        if name is not None:
            raise InvalidRequest("id must not be sent at the level `global`.", param="id")
        return ""
    if name is None:
        raise InvalidRequest(f"id is required at the level `{level}`.", param="id")
    if level == "provider":
        try:
            return resolve_provider(con, name).id
        except InvalidRequest as error:
            raise NotFound(str(error), param="id") from None
    found = (
        find_key(con, name)
        if level == "key"
        else find_combo(con, name) or find_combo_by_name(con, name)
    )
    if found is None:
        raise NotFound(f"There is no {level} of this id.", param="id")
    return found.id


def _stored(
    sealer: Sealer, level: Level, target: str, fields: ProxyFields, before: StoredProxy | None
) -> StoredProxy:
    new = StoredProxy(level, target, fields.type, fields.host or "", fields.port or 0)
    if fields.username is None:
        return new
    password = fields.password or SecretStr("")
    if password.get_secret_value() == MASK:
        current = None if before is None else open_proxy(sealer, before)
        place = (new.scheme, new.host, new.port, fields.username)
        if (
            current is None
            or (current.scheme, current.host, current.port, current.username) != place
        ):
            raise InvalidRequest(
                "proxy.password is stored for another proxy or username, or not at all: send it again.",
                param="proxy.password",
            )
        password = SecretStr(current.password or "")
    login = seal_login(sealer, new.id, fields.username, password.get_secret_value())
    return StoredProxy(level, target, new.scheme, new.host, new.port, login)


def _address_of(con: Connection, level: Level, target: str) -> str:
    if level != "provider":
        raise InvalidRequest("url is required at this level: what to read.", param="url")
    base_url = resolve_provider(con, target).base_url
    if "{" in base_url:
        raise InvalidRequest(
            "url is required: the provider's own address has parts of yours.", param="url"
        )
    return base_url


def _view(con: Connection, sealer: Sealer, level: Level, target: str) -> ProxyView:
    stored = find_proxy(con, level, target)
    return ProxyView.model_construct(
        level=level,
        id=target or None,
        proxy=None if stored is None else _shown(sealer, stored),
        configured=[
            ProxyEntry.model_construct(
                level=each.level, id=each.target or None, proxy=_shown(sealer, each)
            )
            for each in all_proxies(con)
        ],
    )


def _shown(sealer: Sealer, stored: StoredProxy) -> ProxyFields:
    if stored.scheme == DIRECT:
        return ProxyFields(type="direct")
    opened = open_proxy(sealer, stored)
    has_login = opened is not None and opened.username is not None
    return ProxyFields.model_construct(
        type=stored.scheme,
        host=stored.host,
        port=stored.port,
        username=opened.username if opened is not None else None,
        password=SecretStr(MASK) if has_login else None,
    )
