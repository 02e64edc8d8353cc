"""The edge that is ours alone: what the engine's own listener does with connections (`--front native`)."""

from __future__ import annotations

import contextlib
import ctypes
import datetime as dt
import os
import signal
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.chat import CHAT, chat_bytes, send_chat
from tests.support.polling import eventually
from tests.support.process import free_port
from tests.support.processes import DEFAULTS, Gateway, Lane, start_gateway
from tests.support.raw import Closed, RawClient
from tests.support.upstream import Upstream

NATIVE = {"FAIRLEAD_FRONT": "native"}
Gateways = Callable[..., Gateway]
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with the engine's own listener, on two threads."""
    folder = tmp_path_factory.mktemp("native")
    with start_gateway(folder, FAIRLEAD_THREADS="2", **NATIVE) as running:
        yield running
        running.assert_keeps_secrets()


@pytest.fixture
def wide(native: Gateway, upstream: Upstream) -> Lane:
    return native.add_lane(upstream)


# ----------------------------------------------------------------------------- no Python on the way


def test_the_relay_is_one_process(native: Gateway) -> None:
    """There is no worker below the plane: the process that was started is the one that relays."""
    names = {(task / "comm").read_text().strip() for task in tasks_of(native)}
    # The kernel keeps fifteen characters of a name.
    assert {"fairlead-work-1", "fairlead-work-2", "fairlead-engine", "fairlead-watch"} <= names


def test_both_threads_serve(native: Gateway, wide: Lane) -> None:
    """Connections go to the thread that has the fewest, and what is counted is counted over both."""
    with contextlib.ExitStack() as held:
        clients = [held.enter_context(RawClient(native.port)) for _ in range(8)]
        for client in clients:
            send_chat(client, wide)
        for client in clients:
            assert client.response().status == 200
    assert len(wide.upstream.requests) == 8


def test_a_key_s_limit_is_one_over_the_threads(native: Gateway, wide: Lane) -> None:
    """Two threads together let through what one would."""
    key = native.create_key()
    body = {"apiKeyId": key["id"], "tokenLimit": 100}
    made = native.admin.post("/api/usage/token-limits", json=body)
    assert made.is_success, made.text
    auth = ("Authorization", f"Bearer {key['key']}")
    statuses = []
    for _ in range(12):
        with RawClient(native.port) as client:
            client.request("POST", CHAT, [auth], chat_bytes(wide, max_tokens=1))
            statuses.append(client.response().status)
    # Each spends ten, and asks for some more beforehand.
    assert statuses == sorted(statuses)
    assert {200, 429} == set(statuses)
    assert statuses.count(200) <= 10


def tasks_of(gateway: Gateway) -> list[Path]:
    """The threads of the relay."""
    return list(Path(f"/proc/{gateway.relay.pid}/task").iterdir())


# -------------------------------------------------------------------------------- H7: whose host


@pytest.mark.parametrize("target", ("http://evil.example/healthz", "http://user@localhost/healthz"))
def test_a_target_of_another_host_is_refused(native: Gateway, target: str) -> None:
    """H7: the target and `Host` name one host, or nothing is routed and the connection ends."""
    with RawClient(native.port) as client:
        client.send(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() + HEALTH)
        answer = client.response()
        assert (answer.status, answer.json()["error"]["code"]) == (400, "invalid_request")
        assert client.until_closed().rest == b""


def test_an_absolute_target_of_the_same_host_is_served(native: Gateway) -> None:
    with RawClient(native.port) as client:
        client.send(b"GET http://LocalHost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert client.response().json() == {"status": "ok"}


# ------------------------------------------------------------------- H5: answers before the body


def test_an_early_answer_reaches_a_caller_that_still_writes(native: Gateway) -> None:
    """H5: 401 before six mebibytes were read: the answer is not lost to a reset."""
    body = b"x" * (6 * 1024 * 1024)
    with RawClient(native.port) as client:
        headers = [("Authorization", "Bearer sk-fl-wrong"), ("Content-Type", "application/json")]
        client.request("POST", CHAT, headers, body)
        assert client.response().status == 401
        assert client.until_closed().kind == "closed"


# -------------------------------------------------------------------- how many, and for how long


def test_a_connection_ends_after_many_requests(native: Gateway) -> None:
    """The last answer says so, so that no request is lost."""
    batch, last = 500, None
    with RawClient(native.port, timeout_s=30) as client:
        for _ in range(20):
            assert last is None
            client.send(HEALTH * batch)
            for _ in range(batch):
                answer = client.response()
                assert answer.status == 200
                last = answer.header("connection")
        assert last == "close"
        assert client.until_closed().kind == "closed"


def held_open(port: int, count: int, held: contextlib.ExitStack) -> list[RawClient]:
    """Connections that have each been answered once, and are kept."""
    clients = []
    for _ in range(count):
        client = held.enter_context(RawClient(port))
        client.send(HEALTH)
        assert client.response().status == 200
        clients.append(client)
    return clients


def test_too_many_connections_are_told_so(gateways: Gateways) -> None:
    """S12: beyond the cap there is a 503 in words at once, and room again when a caller leaves."""
    gateway = gateways(FAIRLEAD_MAX_CONNECTIONS="8", **NATIVE)
    with contextlib.ExitStack() as held:
        clients = held_open(gateway.port, 8, held)
        with RawClient(gateway.port) as refused:
            answer = refused.response()
            assert (answer.status, answer.header("retry-after")) == (503, "1")
            assert answer.json()["error"]["code"] == "overloaded"
        clients.pop().close()
        eventually(lambda: is_served(gateway.port), "there is room again")
    metrics = gateway.client()
    eventually(
        lambda: "fairlead_socket_refused_total 0\n" not in metrics.get("/metrics").text,
        "the refusals are counted",
    )


def is_served(port: int) -> bool:
    try:
        with RawClient(port) as client:
            client.send(HEALTH)
            return client.response().status == 200
    except (ConnectionError, Closed):
        return False


def test_one_address_does_not_take_every_place(gateways: Gateways) -> None:
    gateway = gateways(FAIRLEAD_MAX_CONNECTIONS_PER_ADDRESS="4", **NATIVE)
    with contextlib.ExitStack() as held:
        held_open(gateway.port, 4, held)
        with RawClient(gateway.port) as refused:
            assert refused.response().status == 503
        other = socket.create_connection(("127.0.0.1", gateway.port), 10, ("127.0.0.2", 0))
        with other:
            other.sendall(HEALTH)
            assert other.recv(4096).startswith(b"HTTP/1.1 200 ")


@pytest.mark.slow
def test_a_head_that_never_ends_is_given_up(native: Gateway) -> None:
    """H1: a byte now and then does not keep a connection open; others are served all the while."""
    with RawClient(native.port, timeout_s=30) as client:
        client.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        started = time.monotonic()
        while time.monotonic() - started < 20:
            try:
                client.send(b"y")
                client.socket.settimeout(0.5)
                client.some(1)
            except TimeoutError:
                assert is_served(native.port)
            except (ConnectionError, Closed):
                break
        assert 9 < time.monotonic() - started < 15


# ------------------------------------------------------------------------------ stuck threads


def test_a_stuck_thread_shows(gateways: Gateways) -> None:
    """One of two threads stops: `/readyz` names it, `/metrics` counts it, the other one serves; then all is well."""
    gateway = gateways(FAIRLEAD_THREADS="2", **NATIVE)
    task = next(
        task.name
        for task in tasks_of(gateway)
        if (task / "comm").read_text().strip() == "fairlead-work-1"
    )
    with contextlib.ExitStack() as held:
        clients = held_open(gateway.port, 6, held)  # on both threads
        held.enter_context(stopped_thread(int(task)))
        client = next(client for client in clients if answers(client))

        def told() -> dict[str, object]:
            client.request("GET", "/readyz")
            state: dict[str, object] = client.response().json()
            return state

        eventually(lambda: told()["threads"] == {"stuck": ["worker-1"]}, "it is named", within_s=20)
        assert told()["status"] == "stuck"
        # What comes now goes to the thread that moves on.
        for _ in range(4):
            assert is_served(gateway.port)
        metrics = gateway.client()
        eventually(
            lambda: "fairlead_threads_stuck 1\n" in metrics.get("/metrics").text,
            "it is counted",
            within_s=20,
        )
        eventually(
            lambda: "a thread is stuck" in gateway.log,
            "it is logged",
            within_s=20,
        )
    eventually(
        lambda: gateway.client().get("/readyz").status_code == 200, "it moves on", within_s=20
    )


def answers(client: RawClient) -> bool:
    """Whether the connection's thread moves on."""
    client.socket.settimeout(1)
    try:
        client.send(HEALTH)
        return client.response().status == 200
    except TimeoutError:
        return False
    finally:
        client.socket.settimeout(10)


@contextlib.contextmanager
def stopped_thread(task: int) -> Iterator[None]:
    """Holds one thread of another process, and lets it go again (`ptrace`)."""
    seize, interrupt, detach = 0x4206, 0x4207, 17
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(seize, task, None, None) != 0:
        pytest.skip(f"threads cannot be traced here: {os.strerror(ctypes.get_errno())}")
    assert libc.ptrace(interrupt, task, None, None) == 0
    os.waitpid(task, 0x40000000)  # __WALL
    try:
        yield
    finally:
        assert libc.ptrace(detach, task, None, None) == 0


# ---------------------------------------------------------------------------------------- TLS


def make_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate of its own for localhost, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    paths = (folder / "cert.pem", folder / "key.pem")
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return paths


def shake(port: int, *protocols: str) -> ssl.SSLSocket:
    """An open TLS connection; nobody is verified."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(list(protocols))
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port), 10))


def shown_name(port: int) -> str:
    """Whose certificate is shown."""
    with shake(port) as connection:
        der = connection.getpeercert(binary_form=True)
    assert der is not None
    return str(x509.load_der_x509_certificate(der).subject.rfc4514_string())


def test_a_certificate_is_read_again(tmp_path: Path) -> None:
    """TLS with both protocols; new files are used for new connections, on SIGHUP too, and broken ones for none."""
    certificate, key = make_certificate(tmp_path, "first")
    flags = ("--tls-certificate", str(certificate), "--tls-key", str(key))
    with start_tls_gateway(tmp_path, *flags) as gateway:
        with shake(gateway.port, "h2", "http/1.1") as both:
            assert both.selected_alpn_protocol() == "h2"
        with shake(gateway.port, "http/1.1") as kept:
            assert kept.selected_alpn_protocol() == "http/1.1"
            kept.sendall(HEALTH)
            assert kept.recv(4096).startswith(b"HTTP/1.1 200 ")
            assert shown_name(gateway.port) == "CN=first"
            make_certificate(tmp_path, "second")
            eventually(lambda: shown_name(gateway.port) == "CN=second", "the new one", within_s=10)
            key.write_text("nonsense")
            gateway.relay.signal(signal.SIGHUP)
            eventually(lambda: "stays as it was" in gateway.log, "it is said", within_s=10)
            assert shown_name(gateway.port) == "CN=second"
            make_certificate(tmp_path, "third")
            gateway.relay.signal(signal.SIGHUP)
            eventually(lambda: shown_name(gateway.port) == "CN=third", "the newest", within_s=10)
            kept.sendall(HEALTH)
            assert kept.recv(4096).startswith(b"HTTP/1.1 200 ")
        client = gateway.client(
            base_url=f"https://127.0.0.1:{gateway.port}", verify=False, http2=True
        )
        answer = client.get("/healthz")
        assert (answer.status_code, answer.http_version) == (200, "HTTP/2")


@contextlib.contextmanager
def start_tls_gateway(tmp_path: Path, *flags: str) -> Iterator[Gateway]:
    data_dir = tmp_path / "data"
    data_dir.mkdir(mode=0o700)
    gateway = Gateway(data_dir, free_port(), {**DEFAULTS, **NATIVE}, *flags)
    gateway.url = f"https://127.0.0.1:{gateway.port}"
    try:
        gateway.start()
        yield gateway
    finally:
        gateway.stop()
