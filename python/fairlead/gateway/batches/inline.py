"""Batches whose requests are in the call that creates them. Their input and output are files of the gateway's own."""

from __future__ import annotations

from collections.abc import AsyncIterator

from fairlead.gateway.batches.table import Batch, delete_batch, insert_batch
from fairlead.gateway.files.contents import contents_of
from fairlead.gateway.files.table import StoredFile, forget_file, insert_file
from fairlead.records.service_jobs import Subscribers, insert_job
from fairlead.store.file import Connection
from fairlead.store.services import Services


async def store_inline(
    services: Services, batch: Batch, content: bytes, subscribers: Subscribers | None = None
) -> None:
    """Stores the batch, its webhooks, and `content` as its input file."""
    file = _input_file(batch, len(content))

    def insert(con: Connection) -> None:
        insert_file(con, file, batch.created_at_ms)
        insert_batch(con, batch)
        if subscribers is not None:
            insert_job(con, batch.owner, batch.id, subscribers, batch.created_at_ms)

    await contents_of(services).write(file.id, _one_chunk(content), len(content))
    try:
        await services.state.record(insert)
    except BaseException:
        await contents_of(services).remove(file.id)
        raise


async def delete_ended(services: Services, batch_id: str, owner: str, dialect: str) -> None:
    """Deletes a batch that has ended, and the files of an inline one. `NotFound`, `Conflict`."""

    def delete_rows(con: Connection) -> list[str]:
        batch = delete_batch(con, batch_id, owner, dialect)
        own = [batch.input_file_id, batch.output_file_id] if batch.is_inline else []
        ids = [file_id for file_id in own if file_id is not None]
        for file_id in ids:
            forget_file(con, file_id, owner)
        return ids

    gone = await services.state.record(delete_rows)
    await contents_of(services).remove(*gone)


def _input_file(batch: Batch, size_bytes: int) -> StoredFile:
    """The file of inline requests. It expires with the batch; while the batch runs, it stays in any case."""
    return StoredFile(
        batch.input_file_id,
        batch.owner,
        "batch",
        f"{batch.id}_input.jsonl",
        size_bytes,
        batch.created_at_ms,
        batch.expires_at_ms,
    )


async def _one_chunk(content: bytes) -> AsyncIterator[bytes]:
    yield content
