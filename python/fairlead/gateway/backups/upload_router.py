"""`/api/db-backups/uploads`: exports that come back in parts, of the state alone or of everything.

A restore works on while its caller asks how far it is. The state is put back in one transaction; usage and files
are put in place when control starts again after it.
"""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from pydantic import Field, StrictBool, StrictInt

from fairlead.calls.caller import CallerDep
from fairlead.errors import InvalidRequest, TooLarge, UnsupportedMediaType
from fairlead.gateway.backups.owner import check_owner
from fairlead.gateway.backups.uploads import PART_MAX_BYTES, Progress, Upload, Work, uploads_of
from fairlead.store.services import ServicesDep
from fairlead.wire import NamedWire, Success

router = APIRouter(prefix="/api/db-backups/uploads", tags=["backups"])

OCTETS: Final = "application/octet-stream"


class NewUpload(NamedWire):
    size: StrictInt = Field(ge=1, le=2**50, description="Bytes of the whole export.")


class StartRestore(NamedWire):
    dry_run: StrictBool = Field(False, description="Check it, and change nothing.")


class UploadView(NamedWire):
    """An upload, and what became of it. After a restore `size` and `received` are null."""

    id: str
    size: int | None
    received: int | None = Field(description="Received bytes: the position of the next part.")
    part_max_bytes: int = Field(description="The most that one part may have.")
    state: Work
    counts: dict[str, int] | None = Field(description="Rows and files that the export has.")
    replaced_backup_id: str | None = Field(description="The backup of the state before.")
    error: str | None = Field(description="Why it is refused.")


@router.post("", status_code=201, summary="Start to upload an export")
async def begin(body: NewUpload, services: ServicesDep) -> UploadView:
    """An export may be as large as the setting `backupUploadMb` says. Parts are added one after the other."""
    upload = await uploads_of(services).begin(body.size)
    return _view(upload.id, upload, Progress("receiving"))


@router.get("/{upload_id}", summary="How far an upload, its check or its restore is")
async def show(upload_id: str, services: ServicesDep) -> UploadView:
    """After a restart of control an upload that was being checked waits to be started again."""
    return _view(upload_id, *await uploads_of(services).progress(upload_id))


@router.put("/{upload_id}", summary="Add the next part to an upload")
async def add(
    upload_id: str,
    request: Request,
    services: ServicesDep,
    offset: Annotated[
        int, Query(ge=0, le=2**50, description="The position of this part in the export.")
    ],
) -> UploadView:
    """Bytes as `application/octet-stream`. A part whose answer was lost may be found with GET."""
    if request.headers.get("content-type", "").strip().lower() != OCTETS:
        raise UnsupportedMediaType(f"Send the part with `Content-Type: {OCTETS}`.")
    part = await request.body()
    if not part:
        raise InvalidRequest("The body is empty: send a part of the export.")
    if len(part) > PART_MAX_BYTES:
        raise TooLarge(f"A part has at most {PART_MAX_BYTES} bytes.")
    uploads = uploads_of(services)
    await uploads.add(upload_id, offset, part)
    return _view(upload_id, *await uploads.progress(upload_id))


@router.delete("/{upload_id}", summary="Delete an upload")
async def delete(upload_id: str, services: ServicesDep) -> Success:
    """An upload without new parts is deleted after a day."""
    await uploads_of(services).delete(upload_id)
    return Success()


@router.post("/{upload_id}/restore", status_code=202, summary="Restore an uploaded export")
async def restore(
    upload_id: str, services: ServicesDep, caller: CallerDep, body: StartRestore | None = None
) -> UploadView:
    """Checks the export and, without `dryRun`, restores it. GET shows the progress. A damaged file, or one that is
    not an export, changes nothing. Only the owner restores; an admin may ask for a dry run.
    """
    is_dry = body.dry_run if body else False
    if not is_dry:
        await check_owner(services, caller)
    uploads = uploads_of(services)
    await uploads.start(upload_id, is_dry=is_dry)
    return _view(upload_id, *await uploads.progress(upload_id))


def _view(upload_id: str, upload: Upload | None, progress: Progress) -> UploadView:
    return UploadView.model_construct(
        id=upload_id,
        size=upload.size if upload else None,
        received=upload.received if upload else None,
        part_max_bytes=PART_MAX_BYTES,
        state=progress.state,
        counts=progress.counts,
        replaced_backup_id=progress.replaced_backup_id,
        error=progress.error,
    )
