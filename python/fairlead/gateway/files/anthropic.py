"""`/v1/files` for callers of Anthropic's API, whose routes have the same addresses. `anthropic-version` tells them
apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, Header, Query

from fairlead.errors import InvalidRequest
from fairlead.gateway.files.anthropic_view import anthropic_page, last_seen
from fairlead.gateway.files.table import StoredFile, find_files, list_files
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.services import Services
from fairlead.store.table import Page

LIMIT: Final = 20
LIMIT_MAX: Final = 1_000
IDS_MAX: Final = 100

_Id = Annotated[str | None, Query(max_length=64)]


async def _is_anthropic(
    anthropic_version: Annotated[
        str | None, Header(alias="anthropic-version", include_in_schema=False)
    ] = None,
) -> bool:
    return anthropic_version is not None


IsAnthropic = Annotated[bool, Depends(_is_anthropic)]
"""Whether the caller's API is Anthropic's."""


@dataclass(frozen=True, slots=True)
class AnthropicQuery:
    """The parameters by which Anthropic's API asks for a list."""

    page: str | None
    after_id: str | None
    before_id: str | None
    ids: tuple[str, ...]


async def _query(
    page: Annotated[str | None, Query(max_length=80)] = None,
    after_id: _Id = None,
    before_id: _Id = None,
    ids: Annotated[list[str] | None, Query(alias="ids[]", max_length=IDS_MAX)] = None,
) -> AnthropicQuery:
    return AnthropicQuery(page, after_id, before_id, tuple(ids or ()))


QueryDep = Annotated[AnthropicQuery, Depends(_query)]


async def list_anthropic(
    services: Services, owner: str, query: AnthropicQuery, limit: int | None
) -> dict[str, Any]:
    """Newest first. `InvalidRequest` for parameters that exclude each other."""
    named = [value for value in (query.page, query.after_id, query.before_id) if value is not None]
    if len(named) > 1:
        raise InvalidRequest("page, after_id and before_id exclude each other.", param="page")
    if query.ids and (named or limit is not None):
        raise InvalidRequest("ids[] excludes limit and page.", param="ids[]")
    most = LIMIT if limit is None else limit
    if most > LIMIT_MAX:
        raise InvalidRequest(f"limit must be at most {LIMIT_MAX}.", param="limit")

    def read(con: Connection) -> tuple[list[StoredFile], bool]:
        if query.ids:
            return find_files(con, query.ids, owner, now_ms()), False
        if query.before_id is not None:
            page = Page(query.before_id, most, "asc")
            found, has_more = list_files(con, owner, page, now_ms())
            return found[::-1], has_more
        after = query.after_id if query.page is None else last_seen(query.page)
        return list_files(con, owner, Page(after, most), now_ms())

    found, has_more = await services.state.read(read)
    return anthropic_page(found, has_more=has_more)
