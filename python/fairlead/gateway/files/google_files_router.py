"""`/upload/v1beta/files` and `/v1beta/files`, in Google's API: files that requests name by their `uri`.

An upload begins with a key. Its answer has a secret address, to which the pieces are sent without one, as Google's
clients do.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Query
from pydantic import Field, StrictStr
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from fairlead.calls.origin import public_base
from fairlead.errors import InvalidRequest
from fairlead.gateway.files.contents import Contents, contents_of, new_id
from fairlead.gateway.files.google_table import (
    LIVES_MS,
    PIECES_MAX,
    GoogleUpload,
    find_google_upload,
    forget_google_upload,
    hash_of,
    insert_google_upload,
    receive_piece,
)
from fairlead.gateway.files.google_view import google_file, google_files
from fairlead.gateway.files.removal import remove_file
from fairlead.gateway.files.table import (
    StoredFile,
    find_file,
    insert_file,
    list_files,
)
from fairlead.gateway.google import GoogleWire
from fairlead.gateway.owner import OwnerDep
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.services import Services, ServicesDep
from fairlead.store.table import Page

router = APIRouter(tags=["files"])

FILE_MAX_BYTES: Final = 2 * 1024**3
FILE_LIVES_MS: Final = 48 * 3_600_000
PAGE: Final = 10
PAGE_MAX: Final = 100

PageSize = Annotated[int | None, Query(alias="pageSize", ge=1)]
PageToken = Annotated[str | None, Query(alias="pageToken", max_length=64)]


class FileFields(GoogleWire):
    """The fields of a file; the gateway chooses its name."""

    name: StrictStr | None = None
    display_name: Annotated[StrictStr, Field(max_length=512)] | None = None
    mime_type: Annotated[StrictStr, Field(max_length=255)] | None = None
    size_bytes: StrictStr | int | None = None


class UploadFields(GoogleWire):
    """The body of the beginning of an upload."""

    file: FileFields = FileFields()


async def begin(
    request: Request,
    services: ServicesDep,
    owner: OwnerDep,
    fields: UploadFields | None = None,
    protocol: Annotated[str, Header(alias="x-goog-upload-protocol")] = "",
    size: Annotated[
        int, Header(alias="x-goog-upload-header-content-length", ge=0, le=FILE_MAX_BYTES)
    ] = 0,
    mime_type: Annotated[
        str, Header(alias="x-goog-upload-header-content-type", max_length=255)
    ] = "",
    file_name: Annotated[str, Header(alias="x-goog-upload-file-name", max_length=255)] = "",
) -> Response:
    """With `X-Goog-Upload-Protocol: resumable` and the size of the file. `X-Goog-Upload-Url` of the answer is the
    address of its pieces, for an hour.
    """
    file = (fields or UploadFields()).file
    if protocol.lower() != "resumable":
        raise InvalidRequest("X-Goog-Upload-Protocol must be `resumable`.")
    if file.name is not None:
        raise InvalidRequest("file.name is chosen by the gateway: leave it out.", param="file.name")
    token, created_at_ms = secrets.token_hex(24), now_ms()
    upload = GoogleUpload(
        id=new_id("gup_"),
        token_hash=hash_of(token),
        owner=owner,
        file_id=new_id("file-"),
        display_name=file.display_name or file_name or "file",
        mime_type=file.mime_type or mime_type or "application/octet-stream",
        bytes=size,
        received_bytes=0,
        pieces=0,
        created_at_ms=created_at_ms,
        expires_at_ms=created_at_ms + LIVES_MS,
    )
    await services.state.record(lambda con: insert_google_upload(con, upload))
    address = f"{public_base(services.config, request)}/upload/v1beta/sessions/{upload.id}.{token}"
    return JSONResponse({}, headers=_headers("active") | {"x-goog-upload-url": address})


async def piece(
    session: str,
    request: Request,
    services: ServicesDep,
    command: Annotated[str, Header(alias="x-goog-upload-command")] = "",
    offset: Annotated[int, Header(alias="x-goog-upload-offset", ge=0)] = 0,
) -> Response:
    """`X-Goog-Upload-Command` is `upload`, `upload, finalize`, `finalize`, `query` or `cancel`."""
    upload = await services.state.read(lambda con: find_google_upload(con, session, now_ms()))
    commands = {each.strip() for each in command.lower().split(",")}
    if commands == {"query"}:
        received = {"x-goog-upload-size-received": str(upload.received_bytes)}
        return JSONResponse({}, headers=_headers("active") | received)
    if commands == {"cancel"}:
        await services.state.record(lambda con: forget_google_upload(con, upload.id))
        await contents_of(services).remove(*upload.piece_ids())
        return JSONResponse({}, headers=_headers("cancelled"))
    if not commands or not commands <= {"upload", "finalize"}:
        raise InvalidRequest(
            "X-Goog-Upload-Command must be upload, finalize, query or cancel.",
        )
    if "upload" in commands and (content := await request.body()):
        upload = await _receive(services, upload, offset, content)
    if "finalize" not in commands:
        return JSONResponse({}, headers=_headers("active"))
    file = await _finish(services, upload)
    shown = google_file(file, public_base(services.config, request))
    return JSONResponse({"file": shown}, headers=_headers("final"))


async def list_google_files(
    request: Request,
    services: ServicesDep,
    owner: OwnerDep,
    page_size: PageSize = None,
    page_token: PageToken = None,
) -> dict[str, Any]:
    """Newest first."""
    page = Page(page_token or None, min(page_size or PAGE, PAGE_MAX))
    try:
        found, has_more = await services.state.read(
            lambda con: list_files(con, owner, page, now_ms())
        )
    except InvalidRequest:
        raise InvalidRequest(
            "pageToken must be the nextPageToken of the page before.", param="pageToken"
        ) from None
    return google_files(found, public_base(services.config, request), has_more=has_more)


async def read_google_file(
    file_id: str, request: Request, services: ServicesDep, owner: OwnerDep
) -> dict[str, Any]:
    """The file's metadata; `:download` has its content."""
    found = await services.state.read(lambda con: find_file(con, file_id, owner, now_ms()))
    return google_file(found, public_base(services.config, request))


async def delete_google_file(
    file_id: str, services: ServicesDep, owner: OwnerDep
) -> dict[str, Any]:
    """Deletes the file and its content. A file that a batch reads stays."""
    await remove_file(services, file_id, owner)
    return {}


async def _receive(
    services: Services, upload: GoogleUpload, offset: int, content: bytes
) -> GoogleUpload:
    if offset != upload.received_bytes:
        raise InvalidRequest(
            f"X-Goog-Upload-Offset must be {upload.received_bytes}, which is how much was received."
        )
    if upload.received_bytes + len(content) > upload.bytes:
        raise InvalidRequest(f"The file was announced with {upload.bytes} bytes, and has more.")
    if upload.pieces >= PIECES_MAX:
        raise InvalidRequest(f"A file has at most {PIECES_MAX} pieces: send larger ones.")
    contents, piece_id = contents_of(services), upload.piece_id(upload.pieces)
    await contents.write(piece_id, _one_chunk(content), len(content))
    return await services.state.record(lambda con: receive_piece(con, upload, len(content)))


async def _finish(services: Services, upload: GoogleUpload) -> StoredFile:
    if upload.received_bytes != upload.bytes:
        raise InvalidRequest(
            f"The file was announced with {upload.bytes} bytes, and {upload.received_bytes} were received."
        )
    contents, created_at_ms = contents_of(services), now_ms()
    await contents.write(upload.file_id, _joined(contents, upload.piece_ids()), upload.bytes)
    file = StoredFile(
        id=upload.file_id,
        owner=upload.owner,
        purpose="user_data",
        file_name=upload.display_name,
        bytes=upload.bytes,
        created_at_ms=created_at_ms,
        expires_at_ms=created_at_ms + FILE_LIVES_MS,
        mime_type=upload.mime_type,
    )

    def store(con: Connection) -> None:
        forget_google_upload(con, upload.id)
        insert_file(con, file, created_at_ms)

    try:
        await services.state.record(store)
    except BaseException:
        await contents.remove(upload.file_id)
        raise
    await contents.remove(*upload.piece_ids())
    return file


async def _joined(contents: Contents, ids: list[str]) -> AsyncIterator[bytes]:
    for content_id in ids:
        async for chunk in contents.read(content_id):
            yield chunk


async def _one_chunk(content: bytes) -> AsyncIterator[bytes]:
    yield content


def _headers(status: str) -> dict[str, str]:
    return {"x-goog-upload-status": status, "cache-control": "no-store"}


_ROUTES: Final = (
    ("POST", "/upload/v1beta/files", begin, "Start to upload a file in pieces"),
    ("POST", "/upload/v1/files", begin, "Start to upload a file in pieces"),
    ("POST", "/upload/v1beta/sessions/{session}", piece, "Upload a piece of a file"),
    ("GET", "/v1beta/files", list_google_files, "The caller's files"),
    ("GET", "/v1beta/files/{file_id}", read_google_file, "One file"),
    ("DELETE", "/v1beta/files/{file_id}", delete_google_file, "Delete a file"),
)
for _method, _path, _act, _summary in _ROUTES:
    _name = f"google_{_path.split('/')[2]}_{_act.__name__}"
    router.add_api_route(
        _path, _act, methods=[_method], name=_name, operation_id=_name, summary=_summary
    )
