"""What owners keep: counted, bounded, and never counted twice for long."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from fairlead.errors import OwnerStorageFull, StorageFull
from fairlead.store import owner_bytes
from fairlead.store.file import Connection
from fairlead.store.owner_bytes import (
    DATABASE,
    FILES,
    FREE_BYTES_KEPT,
    MIB,
    claim_bytes,
    count_bytes,
    kept_bytes,
)


def limit(con: Connection, name: str, mib: int) -> None:
    con.execute("INSERT INTO operator_settings VALUES (?, ?)", [name, str(mib)])


def store_file(con: Connection, name: str, owner: str, size: int) -> None:
    claim_bytes(con, FILES, owner, size)
    con.execute(
        "INSERT INTO files VALUES (?, ?, 'batch', 'f', ?, 0, NULL, NULL)", [name, owner, size]
    )


def test_an_owner_keeps_so_much_and_all_of_them_so_much(con: Connection) -> None:
    limit(con, "file_storage_owner_mb", 2)
    limit(con, "file_storage_mb", 3)
    store_file(con, "f1", "a", MIB)
    store_file(con, "f2", "a", MIB)
    with pytest.raises(OwnerStorageFull, match=r"2 MiB of files.*fileStorageOwnerMb"):
        store_file(con, "f3", "a", 1)
    store_file(con, "f4", "b", MIB)
    with pytest.raises(StorageFull, match=r"3 MiB of files for all keys.*fileStorageMb"):
        store_file(con, "f5", "b", 1)
    assert kept_bytes(con, FILES, "a") == 2 * MIB
    assert kept_bytes(con, FILES, "b") == MIB
    assert kept_bytes(con, DATABASE, "a") == 0


def test_what_was_deleted_leaves_room_once_it_is_counted_anew(
    con: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(con, "file_storage_owner_mb", 1)
    store_file(con, "f1", "a", MIB)
    con.execute("DELETE FROM files")
    with pytest.raises(OwnerStorageFull):
        store_file(con, "f2", "a", 1)
    monkeypatch.setattr(owner_bytes, "RECOUNT_AFTER_MS", 0)
    store_file(con, "f2", "a", 1)
    assert kept_bytes(con, FILES, "a") == 1


def test_a_clock_that_was_put_back_puts_no_count_off(con: Connection) -> None:
    limit(con, "file_storage_owner_mb", 1)
    store_file(con, "f1", "a", MIB)
    con.execute("DELETE FROM files")
    con.execute("UPDATE owner_bytes SET counted_at_ms = counted_at_ms + 86400000")
    store_file(con, "f2", "a", MIB)


def test_every_account_is_counted_from_its_rows(con: Connection) -> None:
    con.execute("INSERT INTO files VALUES ('f1', 'a', 'batch', 'f', 7, 0, NULL, NULL)")
    con.execute(
        "INSERT INTO responses VALUES ('r', 'key:a', NULL, 'm', '[]', '{}', 11, 0, 0, false)"
    )
    con.execute(
        "INSERT INTO scrape_jobs (id, kind, owner, status, url, options, pages_max, created_at_ms) "
        "VALUES ('j', 'crawl', 'a', 'scraping', 'u', 'opts', 1, 0)"
    )
    con.execute(
        "INSERT INTO scrape_pages (job_id, number, place, url, status, at_ms, size_bytes) "
        "VALUES ('j', 1, 0, 'u', 'completed', 0, 100)"
    )
    con.execute("INSERT INTO scrape_frontier VALUES ('j', 1, 0, 'https://x', 'pending')")
    count_bytes(con)
    assert kept_bytes(con, FILES, "a") == 7
    assert kept_bytes(con, DATABASE, "a") == kept_bytes(con, DATABASE, "") == 11 + 4 + 100 + 9


def test_the_disk_keeps_room(con: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    free = FREE_BYTES_KEPT + 10
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=free, f_frsize=1))
    claim_bytes(con, DATABASE, "a", 10)
    with pytest.raises(StorageFull, match="256 MiB of it are kept free"):
        claim_bytes(con, DATABASE, "a", 11)
    claim_bytes(con, FILES, "a", 11)
