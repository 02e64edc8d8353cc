"""`/v1beta/cachedContents`, in Google's API. A cached content belongs to the key that stored it."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

import orjson
from fastapi import Query

from fairlead.errors import InvalidRequest
from fairlead.gateway.cached_contents.fields import TTL_DEFAULT_MS, CachedContentFields, Expiry
from fairlead.gateway.cached_contents.table import (
    CachedContent,
    delete_cached,
    find_cached,
    insert_cached,
    list_cached,
    prolong_cached,
)
from fairlead.gateway.files.contents import new_id
from fairlead.gateway.google import google_router, named_model
from fairlead.gateway.owner import OwnerDep
from fairlead.moment import iso, moment_of, now_ms
from fairlead.store.services import ServicesDep

PAGE: Final = 50
PAGE_MAX: Final = 1_000
CONTENT_MAX_BYTES: Final = 24 * 1024 * 1024
# The size of ordinary text, roughly.
BYTES_PER_TOKEN: Final = 4


async def create(
    fields: CachedContentFields, services: ServicesDep, owner: OwnerDep
) -> dict[str, Any]:
    """Stores `contents`, `systemInstruction`, `tools` and `toolConfig`. The gateway inserts them before each
    request that names the result in `cachedContent`, for any provider. The caller need not send them again, but
    the provider reads them each time, with its prompt caching. The content expires after `ttl`, by default an
    hour.
    """
    content = fields.content()
    if not content:
        raise InvalidRequest("contents is required: there is nothing to store.", param="contents")
    text = await asyncio.to_thread(lambda: orjson.dumps(content))
    if len(text) > CONTENT_MAX_BYTES:
        raise InvalidRequest(
            f"A cached content has at most {CONTENT_MAX_BYTES // 1024**2} MiB.", param="contents"
        )
    created_at_ms = now_ms()
    cached = CachedContent(
        id=new_id(""),
        owner=owner,
        model=named_model(fields.model),
        display_name=fields.display_name,
        content=text.decode(),
        size_bytes=len(text),
        created_at_ms=created_at_ms,
        updated_at_ms=created_at_ms,
        expires_at_ms=fields.at_ms(created_at_ms) or created_at_ms + TTL_DEFAULT_MS,
    )
    await services.state.record(lambda con: insert_cached(con, cached))
    return _view(cached)


async def list_all(
    services: ServicesDep,
    owner: OwnerDep,
    page_size: Annotated[int | None, Query(alias="pageSize", ge=1)] = None,
    page_token: Annotated[str | None, Query(alias="pageToken", max_length=64)] = None,
) -> dict[str, Any]:
    """Newest first."""
    most = min(page_size or PAGE, PAGE_MAX)
    found, has_more = await services.state.read(
        lambda con: list_cached(con, owner, page_token or None, most, now_ms())
    )
    shown: dict[str, Any] = {"cachedContents": [_view(cached) for cached in found]}
    return shown | ({"nextPageToken": found[-1].id} if has_more else {})


async def read(cached_id: str, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """Without what is stored, as in Google's API."""
    return _view(
        await services.state.read(lambda con: find_cached(con, cached_id, owner, now_ms()))
    )


async def prolong(
    cached_id: str,
    fields: Expiry,
    services: ServicesDep,
    owner: OwnerDep,
    _mask: Annotated[str | None, Query(alias="updateMask", max_length=200)] = None,
) -> dict[str, Any]:
    """`ttl` counts from now; nothing else can be changed."""
    at_ms = fields.at_ms(now_ms())
    if at_ms is None:
        raise InvalidRequest("ttl or expireTime is required.", param="ttl")
    return _view(
        await services.state.record(
            lambda con: prolong_cached(con, cached_id, owner, at_ms, now_ms())
        )
    )


async def delete(cached_id: str, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """Requests that name it afterwards are refused."""
    await services.state.record(lambda con: delete_cached(con, cached_id, owner, now_ms()))
    return {}


def _view(cached: CachedContent) -> dict[str, Any]:
    shown = {
        "name": f"cachedContents/{cached.id}",
        "model": f"models/{cached.model}",
        "createTime": iso(moment_of(cached.created_at_ms)),
        "updateTime": iso(moment_of(cached.updated_at_ms)),
        "expireTime": iso(moment_of(cached.expires_at_ms)),
        # An estimate: no provider has read it yet.
        "usageMetadata": {"totalTokenCount": max(1, cached.size_bytes // BYTES_PER_TOKEN)},
    }
    return shown | ({"displayName": cached.display_name} if cached.display_name else {})


_CACHED = "/cachedContents"
_ONE = f"{_CACHED}/{{cached_id}}"
router = google_router(
    "cached contents",
    (
        ("POST", _CACHED, create, "cached_create", "Store the beginning of requests"),
        ("GET", _CACHED, list_all, "cached_list_all", "The caller's cached contents"),
        ("GET", _ONE, read, "cached_read", "One cached content"),
        ("PATCH", _ONE, prolong, "cached_prolong", "Change when a cached content expires"),
        ("DELETE", _ONE, delete, "cached_delete", "Delete a cached content"),
    ),
)
