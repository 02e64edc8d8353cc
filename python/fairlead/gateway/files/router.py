"""`/v1/files`, in OpenAI's form, and in Anthropic's for callers of its API.

A file belongs to the key that uploaded it: for every other key it is not there.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from fairlead.calls.origin import public_base
from fairlead.errors import ClientGone
from fairlead.gateway.files.anthropic import IsAnthropic, QueryDep, list_anthropic
from fairlead.gateway.files.anthropic_view import anthropic_file
from fairlead.gateway.files.content_answer import content_answer
from fairlead.gateway.files.contents import contents_of, new_id
from fairlead.gateway.files.form import PURPOSES, read_anthropic_upload, read_upload
from fairlead.gateway.files.google_files_router import PageSize, PageToken, list_google_files
from fairlead.gateway.files.google_view import IsGoogle, google_file
from fairlead.gateway.files.removal import remove_file
from fairlead.gateway.files.table import (
    StoredFile,
    find_file,
    insert_file,
    list_files,
)
from fairlead.gateway.list_ends import list_ends
from fairlead.gateway.owner import OwnerDep
from fairlead.moment import now_ms
from fairlead.store.services import Services, ServicesDep
from fairlead.store.table import Page

router = APIRouter(prefix="/v1/files", tags=["files"])

LIST_MAX: Final = 10_000


@router.post("", summary="Upload a file")
async def upload(
    request: Request, services: ServicesDep, owner: OwnerDep, is_anthropic: IsAnthropic
) -> dict[str, Any]:
    """A form with `file` and `purpose`. To delete the file automatically, add `expires_after[anchor]` (which is
    `created_at`) and `expires_after[seconds]`. Files of the purpose `batch` are deleted after 30 days. With the
    header `anthropic-version` the form has `file` and `expires_in_seconds`, and the answers of all file routes
    have the format of Anthropic's API.
    """
    form = read_anthropic_upload(request) if is_anthropic else read_upload(request)
    contents = contents_of(services)
    file_id = new_id("file_" if is_anthropic else "file-")
    try:
        size = await contents.write(file_id, request.stream(), form.bytes)
    except ClientDisconnect:
        raise ClientGone("The caller left before the file was complete.") from None
    created_at_ms = now_ms()
    ends_ms = created_at_ms + form.expires_after_s * 1000 if form.expires_after_s else None
    file = StoredFile(
        file_id,
        owner,
        form.purpose,
        form.file_name,
        size,
        created_at_ms,
        ends_ms,
        form.mime_type,
    )
    try:
        await services.state.database.write(lambda con: insert_file(con, file, created_at_ms))
    except BaseException:
        await contents.remove(file_id)
        raise
    return anthropic_file(file) if is_anthropic else file_view(file)


@router.get("", summary="The caller's files")
async def files(
    request: Request,
    services: ServicesDep,
    owner: OwnerDep,
    is_anthropic: IsAnthropic,
    is_google: IsGoogle,
    query: QueryDep,
    page_size: PageSize = None,
    page_token: PageToken = None,
    purpose: Annotated[str | None, Query(max_length=64)] = None,
    after: Annotated[str | None, Query(max_length=64)] = None,
    limit: Annotated[int | None, Query(ge=1, le=LIST_MAX)] = None,
    order: Literal["asc", "desc"] = "desc",
) -> dict[str, Any]:
    """Newest first unless `order` is `asc`; `after` is the id of the last one seen. Callers of Anthropic's API page by
    `page`, `after_id` or `before_id`, or name files in `ids[]`; those of Google's by `pageSize` and `pageToken`.
    """
    if is_google:
        return await list_google_files(request, services, owner, page_size, page_token)
    if is_anthropic:
        return await list_anthropic(services, owner, query, limit)
    page = Page(after, limit or LIST_MAX, order)
    found, has_more = await services.state.read(
        lambda con: list_files(con, owner, page, now_ms(), purpose)
    )
    return page_of([file_view(file) for file in found], has_more)


@router.get("/{file_id}", summary="One file")
async def file(
    file_id: str,
    request: Request,
    services: ServicesDep,
    owner: OwnerDep,
    is_anthropic: IsAnthropic,
    is_google: IsGoogle,
) -> dict[str, Any]:
    """The file's metadata, without its content."""
    found = await services.state.read(lambda con: find_file(con, file_id, owner, now_ms()))
    if is_google:
        return google_file(found, public_base(services.config, request))
    return anthropic_file(found) if is_anthropic else file_view(found)


@router.delete("/{file_id}", summary="Delete a file")
async def delete(
    file_id: str,
    services: ServicesDep,
    owner: OwnerDep,
    is_anthropic: IsAnthropic,
    is_google: IsGoogle,
) -> dict[str, Any]:
    """Deletes the file and its content. A file that a batch is reading stays."""
    await remove_file(services, file_id, owner)
    if is_google:
        return {}
    if is_anthropic:
        return {"id": file_id, "type": "file_deleted"}
    return {"id": file_id, "object": "file", "deleted": True}


@router.get("/{file_id}/content", summary="A file's content")
async def content(
    file_id: str, services: ServicesDep, owner: OwnerDep, request: Request
) -> Response:
    """As it was uploaded; `Range` asks for a part of it."""
    return await content_of(services, file_id, owner, request.headers.get("range"))


async def content_of(
    services: Services, file_id: str, owner: str, asked_range: str | None
) -> Response:
    """The content of an owner's file as an answer, or the requested part of it; raises `NotFound`."""
    found = await services.state.read(lambda con: find_file(con, file_id, owner, now_ms()))
    headers = {
        "content-disposition": f"attachment; filename*=UTF-8''{quote(found.file_name, safe='')}",
        "x-content-type-options": "nosniff",
        "cache-control": "private, no-store",
        # The download may take as long as the caller needs to read it.
        "x-fairlead-lasting": "1",
    }
    return await content_answer(contents_of(services), found.id, headers, asked_range)


def file_view(file: StoredFile) -> dict[str, Any]:
    """A file as OpenAI shows it."""
    ends = {} if file.expires_at_ms is None else {"expires_at": file.expires_at_ms // 1000}
    return {
        "id": file.id,
        "object": "file",
        "bytes": file.bytes,
        "created_at": file.created_at_ms // 1000,
        "filename": file.file_name,
        "purpose": file.purpose,
        "status": "processed",
        "status_details": None,
        **ends,
    }


def page_of(data: list[dict[str, Any]], has_more: bool) -> dict[str, Any]:
    """A list as OpenAI shows it."""
    ends = list_ends([each["id"] for each in data])
    return {"object": "list", "data": data, "has_more": has_more, **ends}


__all__ = ["PURPOSES", "file_view", "page_of", "router"]
