"""Kept bodies as relay workers write them, without workers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from fairlead.records.kept_bodies import BodyName, spool_of
from fairlead.store.services import Services
from tests.support.management import Management
from tests.support.records import usage_record

HOSTILE: Final = "</pre><script>alert(1)</script>\u202eevil\x1b[31m"


def document(**changed: Any) -> bytes:
    """What a relay worker seals."""
    side = {"contentType": "application/json", "bytes": 9, "isCut": False, "body": HOSTILE}
    answer = {**side, "text": None, "status": 200, "isWhole": True, **changed}
    return json.dumps({"version": 1, "request": side, "response": answer}).encode()


def put_body(services: Services, name: BodyName, content: bytes | None = None) -> Path:
    """A file in the spool."""
    spool = spool_of(services.data_dir)
    spool.mkdir(parents=True, exist_ok=True)
    path = spool / name.file
    new = path.with_suffix(".new")
    new.write_bytes(services.state.sealer.seal(name.request_id, content or document()))
    new.rename(path)
    return path


async def settle(management: Management, request_id: str, ts_ms: int, **fields: Any) -> BodyName:
    """A settled request, in the log of usage."""
    from fairlead.usage.ingestion.ingest import Ingest
    from fairlead.usage.ingestion.segment_store import SegmentStore

    record = usage_record(request_id, ts_ms=ts_ms, **fields)
    # Not the spool, so that the application's own task leaves it to this round.
    apart = management.services.data_dir / "apart"
    apart.mkdir(exist_ok=True)
    (apart / f"w-{request_id}.ndjson").write_text(json.dumps(record) + "\n", encoding="utf-8")
    store = SegmentStore(management.services.usage, apart)
    await Ingest(store, apart).ingest()
    return BodyName(ts_ms, request_id, record["key_id"])


async def settle_with_body(
    management: Management, request_id: str, ts_ms: int, **fields: Any
) -> BodyName:
    """A settled request with bodies."""
    name = await settle(management, request_id, ts_ms, **fields)
    put_body(management.services, name)
    return name
