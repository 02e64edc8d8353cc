"""A file that is damaged, locked, newer or too old is refused with a sentence and not changed."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from fairlead.store.file import (
    DamagedFile,
    LockedFile,
    NewerSchema,
    OlderSchema,
    backup_path,
    open_file,
    read_migrations,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "d.duckdb"


def make(path: Path, migrations: Path) -> None:
    connection = open_file(path, migrations)
    connection.execute("INSERT INTO numbers SELECT * FROM range(5000)")
    connection.execute("CHECKPOINT")
    connection.close()


def refused(path: Path, migrations: Path, kind: type[Exception] = DamagedFile) -> str:
    """The refusal's sentence, after holding that nothing in the folder changed."""
    before = {p.name: p.read_bytes() for p in path.parent.glob("d.duckdb*") if p.is_file()}
    with pytest.raises(kind) as caught:
        open_file(path, migrations)
    assert {p.name: p.read_bytes() for p in path.parent.glob("d.duckdb*") if p.is_file()} == before
    sentence = str(caught.value)
    assert str(path) in sentence
    assert "\n" not in sentence
    return sentence


def test_a_new_file_is_private_and_whole(path: Path, migrations: Path) -> None:
    make(path, migrations)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in path.parent.glob("d.duckdb*")] == ["d.duckdb"]


def test_what_a_start_that_was_cut_short_left_is_no_obstacle(path: Path, migrations: Path) -> None:
    path.with_name("d.duckdb.new").write_bytes(b"half")
    make(path, migrations)
    assert not path.with_name("d.duckdb.new").exists()


@pytest.mark.parametrize("content", [b"", b"garbage" * 1000])
def test_a_file_that_is_no_database_is_refused(
    path: Path, migrations: Path, content: bytes
) -> None:
    path.write_bytes(content)
    assert "no backup" in refused(path, migrations)


def test_a_truncated_file_is_refused(path: Path, migrations: Path) -> None:
    make(path, migrations)
    path.write_bytes(path.read_bytes()[:5000])
    refused(path, migrations)


def test_an_empty_file_with_a_log_is_refused(path: Path, migrations: Path) -> None:
    path.write_bytes(b"")
    path.with_name("d.duckdb.wal").write_bytes(b"log")
    assert "is empty" in refused(path, migrations)


def test_a_missing_file_whose_log_is_there_is_refused(path: Path, migrations: Path) -> None:
    path.with_name("d.duckdb.wal").write_bytes(b"log")
    assert "is missing while its log" in refused(path, migrations)


def test_a_missing_file_whose_backup_is_there_is_refused(path: Path, migrations: Path) -> None:
    backup = backup_path(path, 1)
    backup.write_bytes(b"copy")
    assert str(backup) in refused(path, migrations)


def test_a_broken_log_is_refused(path: Path, migrations: Path) -> None:
    make(path, migrations)
    connection = duckdb.connect(str(path))
    connection.execute("INSERT INTO numbers SELECT * FROM range(5000)")
    log = path.with_name("d.duckdb.wal").read_bytes()
    connection.close()
    path.with_name("d.duckdb.wal").write_bytes(log[:200] + bytes(b ^ 0x55 for b in log[200:]))
    refused(path, migrations)


def test_the_newest_backup_is_named(path: Path, migrations: Path) -> None:
    path.write_bytes(b"garbage")
    for version in (2, 10, 9):
        backup_path(path, version).write_bytes(b"copy")
    assert str(backup_path(path, 10)) in refused(path, migrations)


def test_a_folder_or_a_dead_link_in_its_place_is_refused(path: Path, migrations: Path) -> None:
    path.mkdir()
    assert "is not a file" in refused(path, migrations)
    path.rmdir()
    path.symlink_to(path.with_name("nowhere"))
    assert "link" in refused(path, migrations)


def test_a_file_that_another_process_has_open_is_refused(path: Path, migrations: Path) -> None:
    make(path, migrations)
    holder = (
        "import duckdb, sys; c = duckdb.connect(sys.argv[1]); "
        "print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert "another process" in refused(path, migrations, LockedFile)
        assert process.stdin is not None
        process.stdin.close()


def test_an_older_schema_is_copied_then_migrated(path: Path, migrations: Path) -> None:
    make(path, migrations)
    (migrations / "0002_squares.sql").write_text(
        "ALTER TABLE numbers ADD COLUMN square BIGINT; UPDATE numbers SET square = n * n;"
    )
    connection = open_file(path, migrations)
    assert connection.execute("SELECT max(square) FROM numbers").fetchone() == (4999**2,)
    assert connection.execute("SELECT version, name FROM schema_version ORDER BY 1").fetchall() == [
        (1, "numbers"),
        (2, "squares"),
    ]
    connection.close()
    backup = backup_path(path, 1)
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    with duckdb.connect(str(backup), read_only=True) as copy:
        assert copy.execute("SELECT count(*) FROM numbers").fetchone() == (5000,)


def test_a_migration_that_fails_leaves_the_schema_before_it(path: Path, migrations: Path) -> None:
    make(path, migrations)
    broken = migrations / "0002_broken.sql"
    broken.write_text("CREATE TABLE half (n INTEGER); SELECT * FROM nope;")
    with pytest.raises(duckdb.Error):
        open_file(path, migrations)
    broken.unlink()
    connection = open_file(path, migrations)
    tables = connection.execute("SELECT table_name FROM information_schema.tables").fetchall()
    connection.close()
    assert sorted(tables) == [("numbers",), ("schema_version",)]


def test_a_newer_schema_is_refused(path: Path, migrations: Path) -> None:
    later = migrations / "0002_later.sql"
    later.write_text("CREATE TABLE later (n INTEGER);")
    make(path, migrations)
    later.unlink()
    assert "schema 2" in refused(path, migrations, NewerSchema)


def test_a_schema_older_than_the_base_is_refused(path: Path, migrations: Path) -> None:
    make(path, migrations)
    (migrations / "0001_numbers.sql").rename(migrations / "0005_base.sql")
    sentence = refused(path, migrations, OlderSchema)
    assert "schema 1," in sentence
    assert "upgrades schema 5 and later. Start with an empty data directory" in sentence


def test_a_new_file_begins_at_the_base_and_goes_on_from_there(path: Path, migrations: Path) -> None:
    (migrations / "0001_numbers.sql").rename(migrations / "0005_base.sql")
    make(path, migrations)
    (migrations / "0006_later.sql").write_text("CREATE TABLE later (n INTEGER);")
    connection = open_file(path, migrations)
    versions = connection.execute("SELECT version, name FROM schema_version ORDER BY 1").fetchall()
    connection.close()
    assert versions == [(5, "base"), (6, "later")]
    assert backup_path(path, 5).exists()


def test_migrations_are_numbered_without_a_gap(migrations: Path) -> None:
    (migrations / "0003_gap.sql").write_text("")
    with pytest.raises(ValueError, match="not numbered"):
        read_migrations(migrations)


def test_a_database_without_a_schema_of_ours_gets_it_after_a_copy(
    path: Path, migrations: Path
) -> None:
    with duckdb.connect(str(path)) as other:
        other.execute("CREATE TABLE others (n INTEGER)")
    connection = open_file(path, migrations)
    assert connection.execute("SELECT version FROM schema_version").fetchall() == [(1,)]
    assert connection.execute("SELECT count(*) FROM others").fetchone() == (0,)
    connection.close()
    assert backup_path(path, 0).exists()
