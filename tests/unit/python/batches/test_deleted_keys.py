"""What a deleted key has stored is deleted: rows and contents, of every kind, and nothing of another key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from fairlead.control.tasks import TASKS
from fairlead.gateway.batches.runner import BatchRunner
from fairlead.gateway.batches.table import insert_batch
from fairlead.gateway.cached_contents.table import CachedContent, insert_cached
from fairlead.gateway.files.contents import contents_of
from fairlead.gateway.files.google_table import GoogleUpload, hash_of, insert_google_upload
from fairlead.gateway.files.google_table import receive_piece as receive_google_piece
from fairlead.gateway.files.table import StoredFile, insert_file
from fairlead.gateway.files.upload_table import Part, PartedUpload, insert_part, insert_upload
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.owner_bytes import DATABASE, FILES, count_bytes, kept_bytes
from tests.support.batches import make_batch
from tests.support.management import Management, run_management
from tests.support.process import free_port

pytestmark = pytest.mark.anyio

HOUR_MS = 3_600_000
TABLES = ("batches", "files", "uploads", "upload_parts", "google_uploads", "cached_contents")


async def content() -> AsyncIterator[bytes]:
    yield b"secret"


async def make_key(management: Management, name: str) -> str:
    answer = await management.client.post("/api/keys", json={"name": name})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def store_all(management: Management, owner: str, **batch: Any) -> set[str]:
    """One thing of each kind of this key; the ids of the contents."""
    at_ms, services = now_ms(), management.services
    file = StoredFile(f"file-{owner}", owner, "batch", "in", 6, at_ms, None)
    upload = PartedUpload(
        f"upload-{owner}",
        *(owner, "user_data", "a.txt", "text/plain", 6, None, "pending", None),
        *(at_ms, at_ms + HOUR_MS),
    )
    part = Part(f"part-{owner}", upload.id, owner, 6, at_ms)
    google = GoogleUpload(
        f"google-{owner}",
        *(hash_of("token"), owner, f"gfile-{owner}", "b", "text/plain", 6, 0, 0),
        *(at_ms, at_ms + HOUR_MS),
    )
    cached = CachedContent(
        f"cached-{owner}", owner, "a/b", None, "{}", 6, at_ms, at_ms, at_ms + HOUR_MS
    )
    ended = {"status": "completed", "ended_at_ms": at_ms}
    row = make_batch(id=f"batch-{owner}", owner=owner, input_file_id=file.id, **(ended | batch))

    def insert(con: Connection) -> None:
        insert_file(con, file, at_ms)
        insert_upload(con, upload)
        insert_part(con, part)
        insert_google_upload(con, google)
        receive_google_piece(con, google, 6)
        insert_cached(con, cached)
        insert_batch(con, row)

    await services.state.record(insert)
    ids = {file.id, part.id, google.piece_id(0)}
    for each in ids:
        await contents_of(services).write(each, content(), 6)
    return ids


async def owners(management: Management, table: str) -> set[str]:
    rows = await management.services.state.read(
        lambda con: con.execute(f"SELECT owner FROM {table}").fetchall()
    )
    return {row[0] for row in rows}


async def bytes_of(management: Management, owner: str) -> tuple[int, int]:
    """Bytes in the database and of files on a key's account."""

    def count(con: Connection) -> tuple[int, int]:
        count_bytes(con)
        return kept_bytes(con, DATABASE, owner), kept_bytes(con, FILES, owner)

    return await management.services.state.database.write(count)


async def test_everything_of_a_deleted_key_is_deleted(tmp_path: Path) -> None:
    async with run_management(tmp_path, port=free_port()) as management:
        deleted, kept = [await make_key(management, name) for name in ("deleted", "kept")]
        gone, left = [await store_all(management, owner) for owner in (deleted, kept)]
        folder = management.services.data_dir / "files"
        assert {path.name for path in folder.iterdir()} == gone | left
        before = await bytes_of(management, deleted)
        assert (before[0] >= 6, before[1]) == (True, 18)

        answer = await management.client.delete(f"/api/keys/{deleted}")
        assert answer.status_code == 200, answer.text
        await BatchRunner(management.services).sweep()

        for table in TABLES:
            assert await owners(management, table) == {kept}, table
        assert {path.name for path in folder.iterdir()} == left
        assert await bytes_of(management, deleted) == (0, 0)
        assert await bytes_of(management, kept) == before


async def test_the_input_of_a_batch_that_runs_is_deleted_after_its_end(tmp_path: Path) -> None:
    async with run_management(tmp_path, port=free_port()) as management:
        owner = await make_key(management, "deleted")
        await store_all(management, owner, status="in_progress", ended_at_ms=None)
        await management.client.delete(f"/api/keys/{owner}")
        runner = BatchRunner(management.services)
        await runner.sweep()
        folder = management.services.data_dir / "files"
        assert [path.name for path in folder.iterdir()] == [f"file-{owner}"]
        assert await owners(management, "batches") == {owner}
        end = f"UPDATE batches SET status = 'failed', ended_at_ms = {now_ms()}"
        await management.services.state.record(lambda con: con.execute(end))
        await runner.sweep()
        assert list(folder.iterdir()) == []
        for table in TABLES:
            assert await owners(management, table) == set(), table


@pytest.mark.parametrize(
    "module",
    ["files.router", "files.google_files_router", "cached_contents.router", "batches.runner"],
)
def test_the_sweep_begins_with_every_router_that_stores_something(module: str) -> None:
    """Where no batch was ever begun, too."""
    (entry,) = [entry for entry in TASKS if entry.name == "gateway.batches"]
    name = f"fairlead.gateway.{module}"
    assert name in entry.modules
    assert import_module(name)
    assert set(entry.tables) == set(TABLES) - {"upload_parts"}
