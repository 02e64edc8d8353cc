"""What the processes find in their environment that read what strangers wrote: nothing worth finding."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.chromium import needs_chromium
from tests.support.gateway_pool import GatewayPool
from tests.support.process import command_line, descendants_of
from tests.support.processes import Gateway, expect
from tests.support.site import BRISK, READS_LOOPBACK, Site

PASSWORD = "a canary of a first password"
SECRET_KEY = base64.b64encode(b"a canary of a key, thirty-two by").decode()
CLOUD = "a canary of a cloud's key"
ISSUER = "a canary of an issuer's token"
NEEDED = {
    "PATH",
    "HOME",
    "TMPDIR",
    "TZ",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LD_LIBRARY_PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "VIRTUAL_ENV",
    "POLARS_MAX_THREADS",
}


def environment_of(pid: int) -> dict[str, str]:
    """As the process was given it; empty when it is gone."""
    try:
        text = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return dict(line.partition("=")[::2] for line in text.split("\0") if "=" in line)


@pytest.fixture(scope="module")
def gateway(gateway_pool: GatewayPool) -> Iterator[Gateway]:
    with gateway_pool.lease(
        settings=BRISK,
        **READS_LOOPBACK,
        FAIRLEAD_SECRET_KEY=SECRET_KEY,
        INITIAL_PASSWORD=PASSWORD,
        AWS_SECRET_ACCESS_KEY=CLOUD,
        ISSUER__ADMIN_TOKEN=ISSUER,
    ) as running:
        yield running


def test_the_planes_are_told_only_what_is_theirs(gateway: Gateway) -> None:
    relay, control = environment_of(gateway.relay.pid), environment_of(gateway.control.pid)
    assert [name for name in relay if name.startswith(("FAIRLEAD_", "ISSUER__", "AUTH__"))] in (
        ["FAIRLEAD_RELAY_CONFIG"],
        ["FAIRLEAD_RELAY_CONFIG", "FAIRLEAD_LISTENER_CONFIG"],
    )
    assert PASSWORD not in str(relay)
    assert ISSUER not in str(relay)
    assert "INITIAL_PASSWORD" not in control
    assert [name for name in control if name.startswith(("FAIRLEAD_", "ISSUER__", "AUTH__"))] == [
        "FAIRLEAD_CONTROL_CONFIG"
    ]


def test_readers_of_pages_find_no_secret(gateway: Gateway) -> None:
    caller = gateway.client(headers={"X-API-Key": gateway.key})
    with Site() as site:
        expect(caller.post("/api/scrape", json={"url": site.url("/article")}), 200)
    readers = [
        pid
        for pid in descendants_of(gateway.control.pid)
        if "fairlead.scrape.page.worker" in command_line(pid)
    ]
    assert readers
    for pid in readers:
        found = environment_of(pid)
        assert found["PATH"]
        assert set(found) <= NEEDED | {"MIMALLOC_ARENA_RESERVE"}
    gateway.remember_processes()


@needs_chromium
def test_the_browser_and_its_driver_find_no_secret(gateway: Gateway) -> None:
    pytest.importorskip("playwright")
    caller = gateway.client(headers={"X-API-Key": gateway.key}, timeout=90)
    session = expect(caller.post("/api/browser/sessions", json={}), 201)["session"]["id"]
    gateway.remember_processes()
    children = descendants_of(gateway.control.pid)
    lines = {pid: command_line(pid) for pid in children}
    assert any("playwright" in line and "run-driver" in line for line in lines.values()), lines
    assert any("--type=renderer" in line for line in lines.values()), lines
    for pid in children:
        found = environment_of(pid)
        for name, value in found.items():
            assert not name.startswith(("FAIRLEAD_", "AWS_", "ISSUER__", "INITIAL_")), lines[pid]
            assert not any(canary in value for canary in (PASSWORD, SECRET_KEY, CLOUD, ISSUER))
    expect(caller.delete(f"/api/browser/sessions/{session}"), 200)
