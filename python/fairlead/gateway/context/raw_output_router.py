"""`/api/context/rtk/raw-output/{id}`: outputs of commands as they were before a filter made them shorter.

The relay writes them, one sealed file for each (`rust/engine/src/context/raw_outputs.rs`); a key reads its
own, and every read is in the audit log.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from datetime import datetime
from pathlib import Path
from typing import Final

import orjson
from fastapi import APIRouter
from pydantic import Field

from fairlead.calls.caller import CallerDep
from fairlead.errors import Internal, NotFound
from fairlead.moment import Time, moment_of, now_ms
from fairlead.store.audit_log import insert_read
from fairlead.store.operator_settings import read_operator_settings
from fairlead.store.sealer import Sealer
from fairlead.store.services import ServicesDep
from fairlead.wire import Wire

router = APIRouter(prefix="/api/context/rtk/raw-output", tags=["context"])

ROUTE: Final = "/api/context/rtk/raw-output/{id}"
FOLDER: Final = "raw-outputs"
_ID: Final = re.compile(r"[0-9a-f]{32}")
_MS_PER_HOUR: Final = 3_600_000


class RawOutput(Wire):
    """An output of a command as it came, without credentials and personal data."""

    id: str
    command: str = Field(description="The command; empty if unknown.")
    text: str
    bytes: int = Field(description="Size of the unshortened output.")
    is_cut: bool = Field(description="Only the beginning was kept.")
    redacted: list[str] = Field(description="Replaced findings, by kind.")
    last_sent_at: Time = Field(description="When it was sent last; it is kept from then on.")


@router.get(
    "/{output_id}", summary="An output of the calling key's as it was before it was shortened"
)
async def read(output_id: str, caller: CallerDep, services: ServicesDep) -> RawOutput:
    """404 if it belongs to another key, is too old, or was not stored. Each read is in the audit log."""
    settings = await services.state.read(read_operator_settings)
    not_before_ms = now_ms() - settings.compression_raw_output_hours * _MS_PER_HOUR
    key_id = caller.principal.id
    found = None
    if key_id is not None and _ID.fullmatch(output_id) and settings.compression_raw_output_bytes:
        folder = services.data_dir / FOLDER
        sealer = services.state.sealer
        found = await asyncio.to_thread(_open, folder, sealer, key_id, output_id, not_before_ms)
    if found is None:
        raise NotFound(
            "This key has no output with that id: it was never kept, or is too old "
            "(`rawOutputHours` of /api/context/rtk/config)."
        )
    # Nothing is shown that is not in the audit log.
    await services.state.database.write(lambda con: insert_read(con, caller, ROUTE, id=output_id))
    return found


def _open(
    folder: Path, sealer: Sealer, key_id: str, output_id: str, not_before_ms: int
) -> RawOutput | None:
    path = folder / hashlib.sha256(f"{key_id}\n{output_id}".encode()).hexdigest()
    try:
        sent_ms = path.stat().st_mtime_ns // 1_000_000
        sealed = path.read_bytes()
    except FileNotFoundError:
        return None
    if sent_ms < not_before_ms:
        return None
    try:
        plain = sealer.unseal(f"raw-output:{key_id}:{output_id}", sealed)
    except Internal:
        # A damaged file, or one of another key of secrets, is none: the relay deletes it when it is old.
        return None
    head, _, text = plain.decode().partition("\n")
    header = orjson.loads(head)
    sent_at: datetime = moment_of(sent_ms)
    return RawOutput.model_construct(
        id=output_id,
        command=header["command"],
        text=text,
        bytes=header["bytes"],
        is_cut=header["isCut"],
        redacted=header["redacted"],
        last_sent_at=sent_at,
    )
