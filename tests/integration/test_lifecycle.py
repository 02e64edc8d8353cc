"""How an instance starts, refuses to start, is stopped, and comes back after `kill -9`."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.support.chat import send_chat
from tests.support.polling import eventually
from tests.support.processes import Gateway, Process, expect, free_port, start_gateway
from tests.support.raw import RawClient
from tests.support.tls import NO_AUTHORITIES
from tests.support.upstream import SSE_HEAD, STALL, Upstream, chunk, delta

Gateways = Callable[..., Gateway]


# ------------------------------------------------------------------------------------ refusals


def refused(data_dir: Path, *flags: str, port: int | None = None, **environment: str) -> str:
    """The one sentence with which a start is refused; asserts that it is one, with exit code 2."""
    attempt = Gateway(data_dir, port or free_port(), environment, *flags)
    attempt.launch()
    try:
        assert attempt.wait(within_s=20) == 2, attempt.log
    finally:
        attempt.stop()
    (sentence,) = attempt.log.splitlines()
    assert sentence.startswith("fairlead: ")
    assert sentence.endswith(".")
    return sentence


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "lock"
    }


def test_a_second_instance_on_the_directory_is_refused(gateway: Gateway) -> None:
    sentence = refused(gateway.data_dir)
    assert f"process id {gateway.popen.pid}" in sentence
    assert httpx.get(f"{gateway.url}/healthz", trust_env=False, verify=NO_AUTHORITIES).is_success


@pytest.mark.parametrize("reuse", (False, True))
def test_a_busy_port_is_refused(tmp_path: Path, reuse: bool) -> None:
    """Even if the other program would share it."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, reuse)
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert f"Port {port}" in refused(tmp_path / "data", port=port)
    assert not (tmp_path / "data" / "state.duckdb").exists()


def test_the_port_of_another_instance_is_refused(gateway: Gateway, tmp_path: Path) -> None:
    assert "in use" in refused(tmp_path / "data", port=gateway.port)


@pytest.mark.parametrize("host", ("no-such-host.invalid", "192.0.2.1"))
def test_a_host_that_is_not_here_is_refused(tmp_path: Path, host: str) -> None:
    sentence = refused(tmp_path / "data", "--host", host, "--allow-unauthenticated-bind")
    assert host in sentence


@pytest.mark.parametrize("name", ("state.duckdb", "usage.duckdb"))
def test_a_damaged_file_is_refused_and_left_as_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"this is no database" * 1000)
    (tmp_path / "secret.key").write_text("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n")
    before = contents(tmp_path)

    assert name in refused(tmp_path)

    after = contents(tmp_path)
    assert {path: after[path] for path in before} == before
    assert not [path for path in after if path.startswith("state.") and path not in before]


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state.duckdb").mkdir()
    assert "state.duckdb" in refused(tmp_path)


def test_a_truncated_file_is_refused_with_its_backup_named(gateways: Gateways) -> None:
    stopped = gateways()
    assert stopped.stop() == 0
    path = stopped.data_dir / "state.duckdb"
    whole = path.read_bytes()
    backup = path.with_name("state.duckdb.bak-1")
    backup.write_bytes(whole)
    path.write_bytes(whole[: len(whole) // 2])

    assert str(backup) in refused(stopped.data_dir)
    assert path.read_bytes() == whole[: len(whole) // 2]

    path.write_bytes(whole)
    stopped.start()


@pytest.mark.parametrize("where", ("a file", "below a file"))
def test_a_data_directory_that_cannot_be_is_refused(tmp_path: Path, where: str) -> None:
    (tmp_path / "file").write_text("mine")
    attempt = tmp_path / "file" if where == "a file" else tmp_path / "file" / "data"
    gateway = Gateway(attempt, free_port(), {}, log_path=tmp_path / "attempt.log")
    gateway.launch()
    try:
        assert gateway.wait() == 2, gateway.log
        assert str(attempt) in gateway.log
    finally:
        gateway.stop()
    assert (tmp_path / "file").read_text() == "mine"


def test_somebody_elses_directory_is_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    tmp_path.chmod(0o755)
    assert str(tmp_path) in refused(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert [path.name for path in tmp_path.iterdir()] == ["photos"]


def test_a_public_bind_that_anybody_may_use_is_refused(tmp_path: Path) -> None:
    host = ("--host", "0.0.0.0")
    assert "REQUIRE_API_KEY=true" in refused(tmp_path, *host)
    keys = {"REQUIRE_API_KEY": "true"}
    assert "INITIAL_PASSWORD" in refused(tmp_path, *host, **keys)
    assert "placeholder" in refused(tmp_path, *host, **keys, INITIAL_PASSWORD="change-me")
    assert list(tmp_path.iterdir()) == []


def test_several_workers_are_refused(tmp_path: Path) -> None:
    assert "FAIRLEAD_SHARED_URL" in refused(tmp_path, "--workers", "2")


def test_half_of_tls_is_refused(tmp_path: Path) -> None:
    assert "--tls-key" in refused(tmp_path, "--tls-certificate", "cert.pem")


# --------------------------------------------------------------------------- starting, stopping


def test_everything_in_the_data_directory_is_for_its_owner_alone(gateway: Gateway) -> None:
    assert stat.S_IMODE(gateway.data_dir.stat().st_mode) == 0o700
    # Sockets need the same care as files, folders need none below 0700.
    for path in gateway.data_dir.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # a segment may be taken in meanwhile
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_secrets_are_on_no_command_line(gateway: Gateway) -> None:
    gateway.remember_processes()
    secrets = [gateway.cli_token, (gateway.data_dir / "secret.key").read_text().strip()]
    for pid in gateway.living_processes():
        # A process that ends here has no command line any more.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            line = Path(f"/proc/{pid}/cmdline").read_bytes().decode()
            assert not any(secret in line for secret in secrets)


def test_a_long_path_moves_the_socket_and_nothing_else(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    with start_gateway(deep) as gateway:
        assert gateway.create_key(name="x")["key"]
        assert not (gateway.data_dir / "run" / "control.sock").exists()


def test_sigterm_ends_everything_with_0_and_gives_the_port_back(gateways: Gateways) -> None:
    gateway = gateways()
    started = time.monotonic()
    assert gateway.stop() == 0
    assert time.monotonic() - started < 10
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", gateway.port))
    assert not list((gateway.data_dir / "run").iterdir())


@pytest.mark.slow
def test_connections_that_were_open_at_the_end_do_not_hinder_the_next_start(
    gateways: Gateways,
) -> None:
    """The side that closes first, here the gateway, is left with the port in TIME_WAIT."""
    gateway = gateways()
    with RawClient(gateway.port) as idle:
        idle.request("GET", "/healthz")
        assert idle.response().status == 200
        gateway.popen.send_signal(signal.SIGTERM)
        assert gateway.wait() == 0
    gateway.start()


@pytest.mark.slow
def test_ctrl_c_is_a_stop_like_sigterm(gateways: Gateways) -> None:
    gateway = gateways()
    gateway.popen.send_signal(signal.SIGINT)
    assert gateway.wait() == 0


def test_a_stop_while_starting_is_quick(tmp_path: Path) -> None:
    """At whatever point of the start it comes."""
    for delay_s in (0.3, 0.8, 1.2):
        attempt = Gateway(tmp_path / "data", free_port(), {})
        attempt.launch()
        # A point in time, not a condition: the test is about any of them.
        with contextlib.suppress(subprocess.TimeoutExpired):
            attempt.popen.wait(delay_s)
        attempt.popen.send_signal(signal.SIGTERM)
        assert attempt.wait(within_s=8) in (0, -signal.SIGTERM), attempt.log
        attempt.stop()


def test_a_second_signal_does_not_wait_for_a_stream(gateways: Gateways, upstream: Upstream) -> None:
    gateway = gateways(FAIRLEAD_DRAIN_MS="20000")
    lane = gateway.add_lane(upstream)
    upstream.script([SSE_HEAD, chunk(delta("a")), STALL])
    gateway.remember_processes()
    family = set(gateway._known)
    with contextlib.ExitStack() as clients:
        client = clients.enter_context(RawClient(gateway.port, timeout_s=20))
        send_chat(client, lane, stream=True)
        client.head()
        client.body_until(delta("a"))
        gateway.popen.send_signal(signal.SIGTERM)
        eventually(lambda: not ready(gateway), "the drain has begun")
        assert gateway.popen.poll() is None
        gateway.popen.send_signal(signal.SIGTERM)
        assert gateway.wait(within_s=2) == 128 + signal.SIGTERM
    eventually(lambda: not any(one.is_alive() for one in family), "all are gone", within_s=2)


def kill_and_time(process: Process, serving: Callable[[], bool], what: str) -> float:
    started = time.monotonic()
    process.kill()
    eventually(serving, what, within_s=10)
    return time.monotonic() - started


# -------------------------------------------------------------------------------------- kill -9


def ready(gateway: Gateway) -> bool:
    try:
        return httpx.get(
            f"{gateway.url}/readyz", timeout=1, trust_env=False, verify=NO_AUTHORITIES
        ).is_success
    except httpx.TransportError:
        return False


def connected(gateway: Gateway) -> bool:
    try:
        state = httpx.get(
            f"{gateway.url}/readyz", timeout=1, trust_env=False, verify=NO_AUTHORITIES
        ).json()
    except httpx.TransportError:
        return False
    return bool(state["control"]["state"] == "connected")


def test_a_killed_relay_is_back_within_two_seconds_twice(gateway: Gateway) -> None:
    """The second time, the supervisor waits a little before it starts another."""
    for _ in range(2):
        killed = gateway.relay
        took_s = kill_and_time(killed, lambda: ready(gateway), "serving again")
        assert took_s < 2
        assert gateway.relay.pid != killed.pid
    gateway.remember_processes()
    assert gateway.create_key(name="after")["key"]


@pytest.mark.slow
def test_while_the_relay_is_away_nobody_takes_its_port(gateways: Gateways) -> None:
    gateway = gateways()
    taken = threading.Event()
    done = threading.Event()

    def grab() -> None:
        while not done.is_set():
            with socket.socket() as thief:
                thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    thief.bind(("127.0.0.1", gateway.port))
                except OSError:
                    continue
                taken.set()

    thread = threading.Thread(target=grab)
    thread.start()
    try:
        kill_and_time(gateway.relay, lambda: ready(gateway), "serving again")
    finally:
        done.set()
        thread.join()
    gateway.remember_processes()
    assert not taken.is_set()


def test_killed_control_is_back_and_linked_again(gateway: Gateway) -> None:
    before = gateway.create_key(name="before")
    gateway.control.kill()
    assert ready(gateway)
    eventually(lambda: gateway.admin.get("/api/keys").is_success, "control answers", within_s=10)
    eventually(lambda: connected(gateway), "the link is back", within_s=10)
    gateway.remember_processes()

    shown = expect(gateway.admin.get(f"/api/keys/{before['id']}"), 200)
    assert shown["name"] == "before"
    # Create a key, use it: the link carries snapshots again.
    key = gateway.create_key(name="after")["key"]
    models = httpx.get(
        f"{gateway.url}/v1/models",
        headers={"authorization": f"Bearer {key}"},
        trust_env=False,
        verify=NO_AUTHORITIES,
    )
    assert models.status_code == 200


def test_a_killed_supervisor_takes_everything_with_it(gateways: Gateways) -> None:
    gateway = gateways("--demo")
    gateway.remember_processes()
    family = set(gateway._known)
    # The supervisor, the stand-in, and the two planes.
    assert len(family) >= 4
    os.kill(gateway.popen.pid, signal.SIGKILL)
    gateway.popen.wait(5)
    eventually(lambda: not any(one.is_alive() for one in family), "all are gone", within_s=5)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", gateway.port))

    gateway.start()
    assert ready(gateway)


@pytest.mark.slow
def test_an_instance_killed_and_started_at_once_is_not_refused(gateways: Gateways) -> None:
    """The lock outlives a killed supervisor until its last child is gone; the next one waits for it."""
    gateway = gateways()
    for _ in range(3):
        os.kill(gateway.popen.pid, signal.SIGKILL)
        gateway.popen.wait(5)
        gateway.start()
