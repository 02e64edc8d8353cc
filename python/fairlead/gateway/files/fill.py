"""`POST /internal/files/fill`: puts the files, cached contents and items of stored responses that a request names into
it, so that every provider can read them.

The relay calls it (docs/explanation/contracts.md).

A file that is not the caller's is left unchanged. The relay then refuses the request, unless the key may name
objects in the account at the provider.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from fairlead.errors import FairleadError, InvalidRequest, TooLarge
from fairlead.gateway.cached_contents.expand import expand, named_cached
from fairlead.gateway.cached_contents.table import find_some_cached
from fairlead.gateway.files.anthropic_view import media_type
from fairlead.gateway.files.contents import Contents, contents_of
from fairlead.gateway.files.references import Reference, references
from fairlead.gateway.files.table import StoredFile, find_files
from fairlead.gateway.responses.item_references import fill_items
from fairlead.moment import now_ms
from fairlead.store.services import Services
from fairlead.text.json_values import VALUES_MAX, has_too_many_values

FILL_PATH: Final = "/internal/files/fill"
MAX_BYTES: Final = 32 * 1024 * 1024
"""The most bytes of a request, which is as much as the relay takes of its caller."""
_READ_MAX_BYTES: Final = MAX_BYTES + 64 * 1024
FILES_MAX: Final = 500


class FillQuery(BaseModel):
    """A request of an owner, in one of the dialects."""

    model_config = ConfigDict(extra="forbid")

    owner: str
    dialect: str
    body: dict[str, Any]


class Fill:
    """The handler of the path."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def fill(self, request: Request) -> Response:
        """200 with the body, 204 where it names no file of the owner's, or the error for the caller."""
        try:
            query = await asyncio.to_thread(_parse, await _read(request))
            filled = await self._filled(query)
        except FairleadError as error:
            refusal = {"kind": error.kind, "message": error.message, "param": error.param}
            return Response(orjson.dumps(refusal), error.status, media_type="application/json")
        if filled is None:
            return Response(status_code=204)
        return Response(filled, media_type="application/json")

    async def _filled(self, query: FillQuery) -> bytes | None:
        owner = query.owner.removeprefix("key:")
        is_expanded = query.dialect == "gemini" and await self._expanded(query.body, owner)
        if query.dialect == "responses":
            is_expanded = await fill_items(self._services, query.body, query.owner)
        filled = await self._with_files(query, owner)
        if filled is None and is_expanded:
            filled = await asyncio.to_thread(orjson.dumps, query.body)
        if filled is not None and len(filled) > MAX_BYTES:
            raise _too_large()
        return filled

    async def _expanded(self, body: dict[str, Any], owner: str) -> bool:
        """Puts the cached content that the request names in front of it; one that is not the owner's stays named."""
        cached_id = named_cached(body)
        if cached_id is None:
            return False
        found = await self._services.state.read(
            lambda con: find_some_cached(con, [cached_id], owner, now_ms())
        )
        if found:
            await asyncio.to_thread(expand, body, found[0])
        return bool(found)

    async def _with_files(self, query: FillQuery, owner: str) -> bytes | None:
        found = await asyncio.to_thread(lambda: list(references(query.dialect, query.body)))
        ids = list(dict.fromkeys(reference.file_id for reference in found))
        if not ids:
            return None
        if len(ids) > FILES_MAX:
            raise InvalidRequest(f"A request names at most {FILES_MAX} files.")
        files = await self._services.state.read(lambda con: find_files(con, ids, owner, now_ms()))
        if not files:
            return None
        # In base64 four bytes are written for three.
        if sum(file.bytes for file in files) * 4 // 3 > MAX_BYTES:
            raise _too_large()
        contents = contents_of(self._services)
        read = {file.id: (file, await _content(contents, file)) for file in files}
        return await asyncio.to_thread(_written, query.body, found, read)


async def _content(contents: Contents, file: StoredFile) -> bytes:
    try:
        return b"".join([chunk async for chunk in contents.read(file.id)])
    except FileNotFoundError:
        # It was deleted a moment ago.
        raise InvalidRequest(f"The file {file.id} is not there any more.") from None


def _written(
    body: dict[str, Any], found: list[Reference], read: dict[str, tuple[StoredFile, bytes]]
) -> bytes:
    for reference in found:
        if reference.file_id in read:
            file, content = read[reference.file_id]
            reference.fill(file.file_name, media_type(file), content)
    return orjson.dumps(body)


def _too_large() -> TooLarge:
    return TooLarge(
        f"The request with the files that it names is larger than {MAX_BYTES // 1024**2} MiB."
    )


def _parse(raw: bytes) -> FillQuery:
    if has_too_many_values(raw):
        raise TooLarge(f"The body holds more than {VALUES_MAX} values.")
    try:
        return FillQuery.model_validate(orjson.loads(raw))
    except (orjson.JSONDecodeError, ValidationError):
        raise InvalidRequest("The body cannot be read.") from None


async def _read(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _READ_MAX_BYTES:
            raise _too_large()
    return bytes(body)
