"""Storage quotas: one account per owner and place, and one for all owners.

Code that stores something for a key claims its bytes first, in the same transaction. Deletions are not
subtracted one by one: an account that seems full is recounted from the rows, and every account is recounted
each minute. So no deletion can be forgotten, and a claim changes a single row.

    claim_bytes(con, DATABASE, owner, len(document))

A part of the disk stays free of callers' data, for records, keys and the database's log.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb
from pydantic.alias_generators import to_camel

from fairlead.errors import OwnerStorageFull, StorageFull
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.operator_settings import OperatorSettings
from fairlead.store.table import read_number

MIB: Final = 1024 * 1024
FREE_BYTES_KEPT: Final = 256 * MIB
# The least time between two recounts of a full account, so that repeated claims do not keep the writer busy.
RECOUNT_AFTER_MS: Final = 2_000

_EVERYBODY: Final = ""


@dataclass(frozen=True, slots=True)
class StorageKind:
    """A kind of storage. The limits are settings in MiB; `sources` are queries for rows of `owner` and `bytes`."""

    name: str
    what: str
    owner_setting: str
    total_setting: str
    sources: tuple[str, ...]


DATABASE: Final = StorageKind(
    "database",
    "responses, conversations, cached contents, jobs, their pages and saved calls",
    "storage_owner_mb",
    "storage_mb",
    (
        "SELECT regexp_replace(owner, '^key:', '') AS owner, size_bytes AS bytes FROM responses",
        "SELECT regexp_replace(owner, '^key:', ''), size_bytes FROM conversation_items",
        "SELECT owner, size_bytes FROM cached_contents",
        "SELECT j.owner, p.size_bytes FROM scrape_pages p JOIN scrape_jobs j ON j.id = p.job_id",
        "SELECT j.owner, strlen(f.url) FROM scrape_frontier f JOIN scrape_jobs j ON j.id = f.job_id",
        "SELECT owner, strlen(options) FROM scrape_jobs",
        "SELECT owner, strlen(definition) FROM scrape_endpoints",
    ),
)
FILES: Final = StorageKind(
    "files",
    "files",
    "file_storage_owner_mb",
    "file_storage_mb",
    (
        "SELECT owner, bytes FROM files",
        "SELECT owner, bytes FROM upload_parts",
        "SELECT owner, received_bytes FROM google_uploads",
    ),
)
STORAGE_KINDS: Final = (DATABASE, FILES)


def claim_bytes(con: Connection, storage: StorageKind, owner: str, size: int) -> None:
    """Counts bytes that are about to be stored for an owner, in the writer. Raises `OwnerStorageFull` or
    `StorageFull`.
    """
    owner = owner.removeprefix("key:")
    # A file is on the disk already when it is counted.
    check_disk(_folder_of(con), size if storage is DATABASE else 0)
    accounts = _accounts(con, storage, owner)
    limits = _limits_mb(con, storage)
    for account, setting in ((owner, storage.owner_setting), (_EVERYBODY, storage.total_setting)):
        limit_mb = limits[setting]
        used = _used_bytes(con, storage, account, accounts.get(account), limit_mb * MIB - size)
        if used > limit_mb * MIB - size:
            name = to_camel(setting)
            if account == _EVERYBODY:
                raise StorageFull(
                    f"The gateway keeps as much as it may: {limit_mb} MiB of {storage.what} for all keys "
                    f"together. An operator can raise the setting {name}.",
                    retry_after_s=60,
                )
            raise OwnerStorageFull(
                f"This key keeps as much as it may: {limit_mb} MiB of {storage.what}. Delete some, wait until "
                f"they expire, or have an operator raise the setting {name}."
            )
    con.execute(
        "UPDATE owner_bytes SET bytes = bytes + ? WHERE place = ? AND owner IN (?, ?)",
        [size, storage.name, owner, _EVERYBODY],
    )


def add_bytes(con: Connection, storage: StorageKind, sizes: Mapping[str, int]) -> None:
    """Counts bytes that are stored for owners whatever their limits say, in the writer."""
    sums = [(owner.removeprefix("key:"), size) for owner, size in sizes.items()]
    for account, size in [*sums, (_EVERYBODY, sum(sizes.values()))]:
        # An account without a row is counted from the rows of the table when it is needed.
        con.execute(
            "UPDATE owner_bytes SET bytes = bytes + ? WHERE place = ? AND owner = ?",
            [size, storage.name, account],
        )


def free_bytes(con: Connection, storage: StorageKind, owner: str) -> tuple[int, int]:
    """The bytes that the owner, and all owners together, may still store, after a claim in the same transaction."""
    owner = owner.removeprefix("key:")
    accounts = _accounts(con, storage, owner)
    limits = _limits_mb(con, storage)
    own, everybody = (
        limits[setting] * MIB - accounts.get(account, (0, 0))[0]
        for account, setting in (
            (owner, storage.owner_setting),
            (_EVERYBODY, storage.total_setting),
        )
    )
    return max(own, 0), max(everybody, 0)


def count_bytes(con: Connection) -> None:
    """Recounts every account, in the writer."""
    con.execute("DELETE FROM owner_bytes")
    for storage in STORAGE_KINDS:
        con.execute(
            "INSERT INTO owner_bytes SELECT ?, owner, sum(bytes)::BIGINT, ? "
            f"FROM ({_rows(storage)}) AS kept GROUP BY owner",
            [storage.name, now_ms()],
        )
        con.execute(
            "INSERT INTO owner_bytes SELECT ?, ?, coalesce(sum(bytes), 0)::BIGINT, ? "
            "FROM owner_bytes WHERE place = ?",
            [storage.name, _EVERYBODY, now_ms(), storage.name],
        )


def kept_bytes(con: Connection, storage: StorageKind, owner: str) -> int:
    """The bytes on an owner's account."""
    query = "SELECT bytes FROM owner_bytes WHERE place = ? AND owner = ?"
    return read_number(con, query, [storage.name, owner.removeprefix("key:")])


def check_disk(folder: Path | None, size: int) -> None:
    """Raises `StorageFull` when `size` more bytes would use the part of the disk that is kept free; blocking."""
    if folder is None:
        return
    disk = os.statvfs(folder)
    if disk.f_bavail * disk.f_frsize < size + FREE_BYTES_KEPT:
        raise StorageFull(
            f"There is no room on the gateway's disk: {FREE_BYTES_KEPT // MIB} MiB of it are kept free.",
            retry_after_s=60,
        )


def _accounts(con: Connection, storage: StorageKind, owner: str) -> dict[str, tuple[int, int]]:
    """Bytes of the owner and of all owners, each with the time of its last count."""
    rows = con.execute(
        "SELECT owner, bytes, counted_at_ms FROM owner_bytes WHERE place = ? AND owner IN (?, ?)",
        [storage.name, owner, _EVERYBODY],
    ).fetchall()
    return {account: (used, counted_at_ms) for account, used, counted_at_ms in rows}


def _limits_mb(con: Connection, storage: StorageKind) -> dict[str, int]:
    # Reads these two rows only, because a crawl asks for them with each page.
    names = [storage.owner_setting, storage.total_setting]
    stored = con.execute(
        "SELECT name, value FROM operator_settings WHERE name IN (?, ?)", names
    ).fetchall()
    fields = OperatorSettings.model_fields
    return {name: int(fields[name].default) for name in names} | {
        name: int(value) for name, value in stored
    }


def _used_bytes(
    con: Connection,
    storage: StorageKind,
    owner: str,
    known: tuple[int, int] | None,
    room_bytes: int,
) -> int:
    """The bytes in use, recounted where they are unknown or seem too many."""
    at_ms = now_ms()
    if known is not None:
        used, counted_at_ms = known
        # A clock that was set back must not postpone the next count.
        is_recent = 0 <= at_ms - counted_at_ms < RECOUNT_AFTER_MS
        if used <= room_bytes or is_recent:
            return used
    where = "" if owner == _EVERYBODY else "WHERE owner = $owner"
    bound = {} if owner == _EVERYBODY else {"owner": owner}
    query = f"SELECT coalesce(sum(bytes), 0) FROM ({_rows(storage)}) AS kept {where}"
    used = read_number(con, query, bound)
    con.execute("DELETE FROM owner_bytes WHERE place = ? AND owner = ?", [storage.name, owner])
    con.execute("INSERT INTO owner_bytes VALUES (?, ?, ?, ?)", [storage.name, owner, used, at_ms])
    return used


def _rows(storage: StorageKind) -> str:
    # Built from the constants above.
    return " UNION ALL ".join(storage.sources)


def _folder_of(con: Connection) -> Path | None:
    if not isinstance(con, duckdb.DuckDBPyConnection):
        # PostgreSQL's disk is its operator's.
        return None
    row = con.execute(
        "SELECT path FROM duckdb_databases() WHERE database_name = current_database()"
    ).fetchone()
    return None if row is None or row[0] is None else Path(row[0]).parent
