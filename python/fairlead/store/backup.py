"""Backup and restore of the state database.

A backup is taken within one read, so it is consistent while writes continue. A restore is one transaction of
the writer: every table becomes as it was in the copy, or nothing changes.

`python -m fairlead.store.backup state|usage <file>` verifies a backup in a separate process, because a damaged
file can crash the process that opens it. It migrates the file to this version's schema, reads it to the end,
prints one JSON line with its row counts and exits 0, or prints one sentence to stderr and exits 2.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import duckdb

from fairlead.errors import Conflict, Internal, InvalidRequest, Refusal
from fairlead.store.file import Connection, FileConnection, file_of, is_file, open_file
from fairlead.store.file_rows import FileTables
from fairlead.store.key_check import KEY_CHECK
from fairlead.store.meta import read_meta, write_meta
from fairlead.store.prepare import MIGRATIONS, read_to_the_end
from fairlead.store.sealer import Sealer

COUNTED = {
    "connectionCount": "provider_connections",
    "nodeCount": "provider_nodes",
    "comboCount": "combos",
    "apiKeyCount": "keys",
    "userCount": "users",
}
# Tables that describe the file itself and are not restored.
_STAYS = frozenset({"schema_version"})
# Rows that a restore adds to and never takes away: nobody erases their traces by putting a backup back.
_GROWS = frozenset({"audit_log"})
_COPY = "fairlead_copy"


def copy_to(con: Connection, target: Path) -> None:
    """Copies the whole database to a file that does not exist yet, in a read. From PostgreSQL it becomes one of the
    embedded store, so that a backup can be restored on either.
    """
    if not is_file(con):
        _copy_tables_to(con, target)
        return
    row = con.execute("SELECT current_database()").fetchone()
    if row is None:
        raise Internal("The database has no name.")
    con.execute(f"ATTACH {_literal(target)} AS {_COPY}")
    try:
        con.execute(f"COPY FROM DATABASE {_name(str(row[0]))} TO {_COPY}")
    finally:
        # The copy is complete once this transaction has ended and the file is detached.
        file = file_of(con)
        file.commit()
        file.execute(f"DETACH {_COPY}")
        file.begin()
    target.chmod(0o600)


def restore_from(con: Connection, source: Path, sealer: Sealer) -> None:
    """Replaces the rows of every table by the copy's, in the writer.

    Raises `Conflict` when the copy's secrets were sealed with another key. The file must have passed `verify_copy`;
    call `detach_copy` afterwards.
    """
    if not is_file(con):
        _restore_tables_from(con, source, sealer)
        return
    con.execute(f"ATTACH {_literal(source)} AS {_COPY} (READ_ONLY)")
    row = con.execute(f"SELECT value FROM {_COPY}.main.meta WHERE name = ?", [KEY_CHECK]).fetchone()
    _check_key(row, sealer)
    version = read_meta(con, "snapshot_version")
    for table in _tables(con):
        target, source_table = f"main.{_name(table)}", f"{_COPY}.main.{_name(table)}"
        rows = f"SELECT * FROM {source_table}"
        if table in _GROWS:
            rows += f" WHERE id NOT IN (SELECT id FROM {target})"
        else:
            con.execute(f"DELETE FROM {target}")
        con.execute(f"INSERT INTO {target} BY NAME {rows}")
    if version is not None:
        # Relays have seen the snapshot version, so it must never decrease.
        con.execute("DELETE FROM meta WHERE name = 'snapshot_version'")
        con.execute("INSERT INTO meta (name, value) VALUES ('snapshot_version', ?)", [version])


def detach_copy(con: Connection) -> None:
    """Detaches the copy's file, in the writer, whether `restore_from` succeeded or not."""
    if not is_file(con):
        return
    attached = con.execute(
        "SELECT 1 FROM duckdb_databases() WHERE database_name = ?", [_COPY]
    ).fetchone()
    if attached is not None:
        con.execute(f"DETACH {_COPY}")


def _copy_tables_to(con: Connection, target: Path) -> None:
    from fairlead.store.postgresql.rows import tables_of  # noqa: PLC0415 - an extra

    source = tables_of(con)
    file = open_file(target, MIGRATIONS / "state")
    try:
        copy = FileTables(file)
        copy.columns()
        for table, columns in source.columns().items():
            with copy.transaction():
                copy.put(table, columns, source.batches(table, columns))
        file.execute("CHECKPOINT")
    finally:
        file.close()
    target.chmod(0o600)


def _restore_tables_from(con: Connection, source: Path, sealer: Sealer) -> None:
    from fairlead.store.postgresql.rows import tables_of  # noqa: PLC0415 - an extra

    file = duckdb.connect(str(source), read_only=True)
    try:
        found = file.execute("SELECT value FROM meta WHERE name = ?", [KEY_CHECK]).fetchone()
        _check_key(found, sealer)
        copy, target = FileTables(file), tables_of(con)
        if copy.columns() != target.columns():
            raise _other_tables()
        version = read_meta(con, "snapshot_version")
        for table, columns in copy.columns().items():
            batches = copy.batches(table, columns)
            if table in _GROWS:
                known = {row[0] for row in con.execute(f"SELECT id FROM {table}").fetchall()}
                at = columns.index("id")
                missing = ([row for row in batch if row[at] not in known] for batch in batches)
                target.add(table, columns, missing)
            else:
                target.put(table, columns, batches)
        if version is not None:
            write_meta(con, "snapshot_version", version)
    except Refusal:
        # A row that this table cannot hold.
        raise _other_tables() from None
    finally:
        file.close()


def _other_tables() -> InvalidRequest:
    return InvalidRequest(
        "The backup cannot be restored: its tables are not those of this version. Nothing was changed."
    )


def _check_key(found: tuple[Any, ...] | None, sealer: Sealer) -> None:
    if found is None:
        return
    try:
        sealer.unseal(KEY_CHECK, bytes.fromhex(str(found[0])))
    except Internal:
        raise Conflict(
            "The secrets in this backup were sealed with another key: start fairlead with the "
            "secret.key or FAIRLEAD_SECRET_KEY that it was made with, then restore."
        ) from None


def verify_copy(path: Path) -> dict[str, int]:
    """Migrates the file and reads it to the end; returns its row counts. `Refusal` if it is no usable backup."""
    _check_tables(path, {"schema_version", "meta", "keys", "sessions"}, "state")
    connection = open_file(path, MIGRATIONS / "state")
    try:
        read_to_the_end(connection)
        counts = {}
        for name, table in COUNTED.items():
            row = connection.execute(f"SELECT count(*) FROM {_name(table)}").fetchone()
            counts[name] = 0 if row is None else int(row[0])
        connection.execute("CHECKPOINT")
    except duckdb.Error:
        raise Refusal("The file is damaged.") from None
    finally:
        connection.close()
    return counts


def verify_usage_copy(path: Path) -> dict[str, int]:
    """Migrates a copy of the usage database, which is put in place as it is; returns its row count. `Refusal` if it is
    no usable backup, or defines anything that ours does not.
    """
    _check_tables(path, {"schema_version", "requests", "segments", "dimensions"}, "usage")
    connection = open_file(path, MIGRATIONS / "usage")
    try:
        with tempfile.TemporaryDirectory() as folder:
            ours = open_file(Path(folder) / "usage.duckdb", MIGRATIONS / "usage")
            try:
                is_same = _definitions(connection) == _definitions(ours)
            finally:
                ours.close()
        if not is_same:
            raise Refusal(
                "The file defines other tables or functions than the usage of this fairlead."
            )
        read_to_the_end(connection)
        row = connection.execute("SELECT count(*) FROM requests").fetchone()
        connection.execute("CHECKPOINT")
    except duckdb.Error:
        raise Refusal("The file is damaged.") from None
    finally:
        connection.close()
    return {"requestCount": 0 if row is None else int(row[0])}


def _definitions(con: FileConnection) -> list[set[tuple[Any, ...]]]:
    """The definitions of tables and functions in a file; functions run when they are used."""
    return [
        set(con.execute(query).fetchall())
        for query in (
            "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal",
            "SELECT table_name, column_name, data_type, column_default FROM duckdb_columns() WHERE NOT internal",
            "SELECT function_name, parameters::VARCHAR, macro_definition FROM duckdb_functions() WHERE NOT internal",
        )
    ]


def _check_tables(path: Path, expected: set[str], what: str) -> None:
    try:
        connection = duckdb.connect(
            str(path),
            read_only=True,
            config={
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
            },
        )
    except duckdb.Error:
        raise Refusal("The file is no database that can be read, or is damaged.") from None
    try:
        tables = {
            str(row[0])
            for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        }
        if not expected <= tables:
            raise Refusal(f"The file is a database, but not the {what} of a fairlead.")
        # Those of usage are compared with ours.
        views = connection.execute("SELECT 1 FROM duckdb_views() WHERE NOT internal").fetchone()
        if views is not None and what == "state":
            # A view in the file could read anything when it is copied.
            raise Refusal(f"The file has views, which no {what} of a fairlead has.")
    except duckdb.Error:
        raise Refusal("The file is damaged.") from None
    finally:
        connection.close()


def _tables(con: Connection) -> list[str]:
    rows = con.execute(
        "SELECT table_name FROM duckdb_tables() "
        "WHERE database_name = current_database() AND schema_name = 'main' ORDER BY 1"
    ).fetchall()
    return [str(row[0]) for row in rows if str(row[0]) not in _STAYS]


def _name(text: str) -> str:
    quoted = text.replace('"', '""')
    return f'"{quoted}"'


def _literal(path: Path) -> str:
    # ATTACH takes no bound parameter; the path comes from this program, not from a caller.
    quoted = str(path).replace("'", "''")
    return f"'{quoted}'"


def main(arguments: list[str]) -> int:
    """The entry point; returns the exit code."""
    verify = (
        {"state": verify_copy, "usage": verify_usage_copy}.get(arguments[0]) if arguments else None
    )
    if verify is None or len(arguments) != 2:
        sys.stderr.write("usage: python -m fairlead.store.backup state|usage <file>\n")
        return 2
    os.umask(0o077)
    try:
        counts = verify(Path(arguments[1]).absolute())
    except Refusal as refusal:
        sys.stderr.write(f"{refusal.sentence}\n")
        return 2
    sys.stdout.write(json.dumps(counts) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
