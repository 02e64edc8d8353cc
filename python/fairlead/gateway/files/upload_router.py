"""`/v1/uploads`, in OpenAI's API: a file that is uploaded in parts of at most 64 MiB, within an hour."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

from fastapi import APIRouter, Body
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr
from starlette.requests import ClientDisconnect, Request

from fairlead.calls.form import read_form
from fairlead.errors import ClientGone, InvalidRequest, TooLarge
from fairlead.gateway.files.contents import Contents, contents_of, new_id
from fairlead.gateway.files.expiry import ExpiresAfter
from fairlead.gateway.files.form import BATCH_EXPIRES_S, Purpose
from fairlead.gateway.files.router import file_view
from fairlead.gateway.files.table import StoredFile, find_file, insert_file
from fairlead.gateway.files.upload_table import (
    LIVES_MS,
    PART_MAX_BYTES,
    PARTS_MAX,
    Part,
    PartedUpload,
    chosen_parts,
    end_upload,
    find_pending,
    find_upload,
    insert_part,
    insert_upload,
    shown_status,
)
from fairlead.gateway.owner import OwnerDep
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep

router = APIRouter(prefix="/v1/uploads", tags=["files"])

FILE_MAX_BYTES: Final = 8 * 1024**3


class UploadFields(BaseModel):
    """A file to be uploaded in parts."""

    model_config = ConfigDict(extra="forbid")

    bytes: Annotated[StrictInt, Field(ge=1, le=FILE_MAX_BYTES)]
    filename: Annotated[StrictStr, Field(min_length=1, max_length=255)]
    mime_type: Annotated[StrictStr, Field(min_length=1, max_length=255)]
    purpose: Purpose
    expires_after: ExpiresAfter | None = None


class Completion(BaseModel):
    """The parts of the file, in their order."""

    model_config = ConfigDict(extra="forbid")

    part_ids: Annotated[list[StrictStr], Field(min_length=1, max_length=PARTS_MAX)]
    md5: Annotated[StrictStr, Field(pattern=r"^[0-9a-fA-F]{32}$")] | None = Field(
        None, description="The hash of the whole file, in hexadecimal."
    )


@router.post("", summary="Start a file that is uploaded in parts")
async def create(fields: UploadFields, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """`bytes` is the size of the whole file. It is complete within an hour, or it expires."""
    created_at_ms = now_ms()
    expires_after_s = fields.expires_after.seconds if fields.expires_after else None
    if expires_after_s is None and fields.purpose == "batch":
        expires_after_s = BATCH_EXPIRES_S
    upload = PartedUpload(
        id=new_id("upload_"),
        owner=owner,
        purpose=fields.purpose,
        file_name=fields.filename,
        mime_type=fields.mime_type,
        bytes=fields.bytes,
        file_expires_after_s=expires_after_s,
        status="pending",
        file_id=None,
        created_at_ms=created_at_ms,
        expires_at_ms=created_at_ms + LIVES_MS,
    )
    await services.state.record(lambda con: insert_upload(con, upload))
    return _view(upload)


@router.post("/{upload_id}/parts", summary="Upload a part of a file")
async def add_part(
    upload_id: str, request: Request, services: ServicesDep, owner: OwnerDep
) -> dict[str, Any]:
    """A form with the part as the file `data`. Parts may be sent at once, in any order."""
    form = read_form(request)
    if form.bytes > PART_MAX_BYTES:
        raise TooLarge(f"A part has at most {PART_MAX_BYTES // 1024**2} MiB.")
    await services.state.read(lambda con: find_pending(con, upload_id, owner, now_ms()))
    contents = contents_of(services)
    part = Part(new_id("part_"), upload_id, owner, form.bytes, now_ms())
    try:
        await contents.write(part.id, request.stream(), form.bytes)
    except ClientDisconnect:
        raise ClientGone("The caller left before the part was complete.") from None
    try:
        await services.state.record(lambda con: insert_part(con, part))
    except BaseException:
        await contents.remove(part.id)
        raise
    return {
        "id": part.id,
        "object": "upload.part",
        "created_at": part.created_at_ms // 1000,
        "upload_id": upload_id,
    }


@router.post("/{upload_id}/complete", summary="Make a file of the parts")
async def complete(
    upload_id: str, fields: Completion, services: ServicesDep, owner: OwnerDep
) -> dict[str, Any]:
    """`part_ids` gives the order; together they have as many bytes as the upload was begun for."""

    def read(con: Connection) -> tuple[PartedUpload, list[Part]]:
        upload = find_pending(con, upload_id, owner, now_ms())
        return upload, chosen_parts(con, upload, fields.part_ids)

    upload, parts = await services.state.read(read)
    contents = contents_of(services)
    file_id = new_id("file-")
    joined = _Joined(contents, parts)
    try:
        await contents.write(file_id, joined.chunks(), upload.bytes)
    except FileNotFoundError:
        raise InvalidRequest("A part of the upload is not there any more.") from None
    if fields.md5 is not None and joined.md5.hexdigest() != fields.md5.lower():
        await contents.remove(file_id)
        raise InvalidRequest("md5 is not that of the parts together.", param="md5")
    created_at_ms = now_ms()
    lives_s = upload.file_expires_after_s
    file = StoredFile(
        id=file_id,
        owner=owner,
        purpose=upload.purpose,
        file_name=upload.file_name,
        bytes=upload.bytes,
        created_at_ms=created_at_ms,
        expires_at_ms=None if lives_s is None else created_at_ms + lives_s * 1000,
        mime_type=upload.mime_type,
    )

    def store(con: Connection) -> list[str]:
        gone = end_upload(con, upload, "completed", file_id)
        insert_file(con, file, created_at_ms)
        return gone

    try:
        gone = await services.state.record(store)
    except BaseException:
        await contents.remove(file_id)
        raise
    await contents.remove(*gone)
    return _view(upload, "completed", file)


@router.post("/{upload_id}/cancel", summary="Give up a file and delete its parts")
async def cancel(
    upload_id: str,
    services: ServicesDep,
    owner: OwnerDep,
    _body: Annotated[dict[str, Any] | None, Body()] = None,
) -> dict[str, Any]:
    """One that has ended is shown as it is."""

    def end(con: Connection) -> tuple[PartedUpload, str, list[str], StoredFile | None]:
        upload = find_upload(con, upload_id, owner)
        status = shown_status(upload, now_ms())
        if status == "pending":
            return upload, "cancelled", end_upload(con, upload, "cancelled"), None
        file = None if upload.file_id is None else find_file(con, upload.file_id, owner, now_ms())
        return upload, status, [], file

    upload, status, gone, file = await services.state.record(end)
    await contents_of(services).remove(*gone)
    return _view(upload, status, file)


class _Joined:
    """The contents of parts as one, with their digest."""

    def __init__(self, contents: Contents, parts: list[Part]) -> None:
        self._contents = contents
        self._parts = parts
        self.md5 = hashlib.md5(usedforsecurity=False)

    async def chunks(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            async for chunk in self._contents.read(part.id):
                self.md5.update(chunk)
                yield chunk


def _view(
    upload: PartedUpload, status: str = "pending", file: StoredFile | None = None
) -> dict[str, Any]:
    return {
        "id": upload.id,
        "object": "upload",
        "bytes": upload.bytes,
        "created_at": upload.created_at_ms // 1000,
        "expires_at": upload.expires_at_ms // 1000,
        "filename": upload.file_name,
        "purpose": upload.purpose,
        "status": status,
        "file": None if file is None else file_view(file),
    }
