"""The key file is made once, whole and private; what is sealed opens for its own record only."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fairlead.errors import Internal, Refusal
from fairlead.store.sealer import Sealer, load_key, make_secret_file


def test_many_makers_agree_on_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: load_key(tmp_path), range(32)))
    assert len(keys) == 1
    assert len(keys.pop()) == 32
    assert [p.name for p in tmp_path.iterdir()] == ["secret.key"]
    assert (tmp_path / "secret.key").stat().st_mode & 0o777 == 0o600


def test_a_given_key_needs_no_file(tmp_path: Path) -> None:
    assert load_key(tmp_path, base64.b64encode(b"k" * 32).decode()) == b"k" * 32
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content", ["", "not base64!", base64.b64encode(b"short").decode(), "\x00"]
)
def test_a_broken_key_file_is_refused_and_kept(tmp_path: Path, content: str) -> None:
    path = tmp_path / "secret.key"
    path.write_text(content)
    with pytest.raises(Refusal, match=r"secret\.key"):
        load_key(tmp_path)
    assert path.read_text() == content


def test_an_unreadable_place_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal):
        make_secret_file(tmp_path / "missing" / "file", "x")


def test_sealed_opens_for_its_record_alone() -> None:
    sealer = Sealer(b"k" * 32)
    sealed = sealer.seal("record-1", b"secret")
    assert b"secret" not in sealed
    assert sealer.unseal("record-1", sealed) == b"secret"
    for other, record in ((sealer, "record-2"), (Sealer(b"x" * 32), "record-1")):
        with pytest.raises(Internal):
            other.unseal(record, sealed)
    assert "k" * 8 not in repr(sealer)
