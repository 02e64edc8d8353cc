"""`python -m fairlead.store.prepare`: exit 0 and a line of JSON, or exit 2 and one sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from fairlead.identity.users import ensure_owner, set_password_hash


def prepare(data_dir: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fairlead.store.prepare", str(data_dir)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )


NOBODY = {"password_stored": False, "has_owner": False}


def test_a_fresh_directory_is_made_private(tmp_path: Path) -> None:
    data_dir = tmp_path / "deep" / "data"
    for _ in range(2):
        done = prepare(data_dir)
        assert (done.returncode, json.loads(done.stdout)) == (0, NOBODY)
        assert done.stderr == ""
    assert data_dir.stat().st_mode & 0o777 == 0o700
    assert {p.name: p.stat().st_mode & 0o777 for p in data_dir.iterdir()} == {
        "state.duckdb": 0o600,
        "usage.duckdb": 0o600,
    }


def test_a_stored_password_is_told(tmp_path: Path) -> None:
    prepare(tmp_path)
    with duckdb.connect(str(tmp_path / "state.duckdb")) as connection:
        set_password_hash(connection, ensure_owner(connection).id, "x")
    assert json.loads(prepare(tmp_path).stdout) == {"password_stored": True, "has_owner": True}


@pytest.mark.parametrize("name", ["state.duckdb", "usage.duckdb"])
def test_a_damaged_file_is_one_sentence_and_exit_2(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"garbage" * 100)
    done = prepare(tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert str(tmp_path / name) in done.stderr
    assert (tmp_path / name).read_bytes() == b"garbage" * 100


def test_a_damaged_block_within_a_table_shows(tmp_path: Path) -> None:
    prepare(tmp_path)
    path = tmp_path / "state.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("INSERT INTO meta SELECT n, sha256(n::VARCHAR) FROM range(100000) t(n)")
        connection.execute("CHECKPOINT")
    whole = path.read_bytes()
    middle = len(whole) // 2
    path.write_bytes(
        whole[:middle] + bytes(b ^ 0x55 for b in whole[middle : middle + 64]) + whole[middle + 64 :]
    )
    done = prepare(tmp_path)
    assert done.returncode == 2
    assert str(path) in done.stderr


def test_another_key_than_the_one_that_sealed_is_refused(tmp_path: Path) -> None:
    def config() -> str:
        return json.dumps(
            {"data_dir": str(tmp_path), "link_token": "t" * 32, "control_socket": "control.sock"}
        )

    assert prepare(tmp_path, FAIRLEAD_CONTROL_CONFIG=config()).returncode == 0
    (tmp_path / "secret.key").unlink()
    done = prepare(tmp_path, FAIRLEAD_CONTROL_CONFIG=config())
    assert done.returncode == 2
    assert "another key" in done.stderr


def test_a_data_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    done = prepare(file)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_the_issuers_file_is_checked_where_the_gateway_runs_the_issuer(tmp_path: Path) -> None:
    config = {"data_dir": str(tmp_path), "link_token": "t" * 32, "control_socket": "control.sock"}
    assert prepare(tmp_path, FAIRLEAD_CONTROL_CONFIG=json.dumps(config)).returncode == 0
    path = tmp_path / "issuer.duckdb"
    assert not path.exists()
    config |= {"issuer_enabled": True}  # type: ignore[dict-item]
    assert prepare(tmp_path, FAIRLEAD_CONTROL_CONFIG=json.dumps(config)).returncode == 0
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(b"garbage" * 100)
    done = prepare(tmp_path, FAIRLEAD_CONTROL_CONFIG=json.dumps(config))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert str(path) in done.stderr
