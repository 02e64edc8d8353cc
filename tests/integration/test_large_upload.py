"""Half a gigabyte on its way through: it lies on disk, never in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import httpx
import pytest

from tests.support.process import Process
from tests.support.processes import Gateway

pytestmark = pytest.mark.both_fronts

MIB = 1024 * 1024
PIECE = bytes(range(256)) * 1024


def form(size: int) -> Iterator[bytes]:
    """A form with a file of so many bytes, as a slow program would send it."""
    yield (
        b'--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n'
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="large"\r\n\r\n'
    )
    for _ in range(size // len(PIECE)):
        yield PIECE
    yield b"\r\n--b--\r\n"


def uploaded(gateway: Gateway, size: int) -> httpx.Response:
    return gateway.caller.post(
        "/v1/files",
        content=form(size),
        headers={"content-type": "multipart/form-data; boundary=b"},
        timeout=300,
    )


def check(gateway: Gateway, size: int, most: int) -> None:
    """Uploads a file, takes it back, and holds both planes to `most` bytes of growth."""
    before = {name: process.rss_bytes for name, process in planes(gateway)}
    answer = uploaded(gateway, size)
    assert answer.status_code == 200, answer.text
    assert answer.json()["bytes"] == size
    expected, got = hashlib.sha256(PIECE * (size // len(PIECE))), hashlib.sha256()
    with gateway.caller.stream(
        "GET", f"/v1/files/{answer.json()['id']}/content", timeout=300
    ) as content:
        for part in content.iter_bytes():
            got.update(part)
    assert got.digest() == expected.digest()
    for name, process in planes(gateway):
        assert process.rss_bytes - before[name] < most, name
    assert not list((gateway.data_dir / "uploads").iterdir())
    assert gateway.caller.delete(f"/v1/files/{answer.json()['id']}").is_success


def planes(gateway: Gateway) -> tuple[tuple[str, Process], ...]:
    return (("relay", gateway.relay), ("control", gateway.control))


def test_an_upload_is_not_held_in_memory(gateway: Gateway) -> None:
    uploaded(gateway, MIB)  # What every first request brings in is not the upload's.
    check(gateway, 48 * MIB, 24 * MIB)


@pytest.mark.slow
def test_half_a_gigabyte(gateway: Gateway) -> None:
    uploaded(gateway, MIB)
    check(gateway, 511 * MIB, 64 * MIB)
    refused = uploaded(gateway, 513 * MIB)
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "too_large")
