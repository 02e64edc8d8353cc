"""`deploy/nginx.conf` passes streams, WebSockets, large bodies and the caller's address, with nginx itself."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from websockets.sync.client import connect

from tests.support.certificates import make_certificate
from tests.support.polling import eventually
from tests.support.process import free_port
from tests.support.processes import Gateway, expect
from tests.support.upstream import DONE, LAST_CHUNK, SSE_HEAD, Gate, Upstream, chunk, delta, finish

CONFIGURATION = Path(__file__).resolve().parents[2] / "deploy" / "nginx.conf"
NGINX = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")

pytestmark = pytest.mark.skipif(NGINX is None, reason="there is no nginx: apt-get install nginx")


@dataclass
class Proxy:
    """nginx before a gateway, on a port of loopback, with a certificate that signs itself."""

    port: int
    trust: ssl.SSLContext

    @property
    def client(self) -> httpx.Client:
        return httpx.Client(
            base_url=f"https://127.0.0.1:{self.port}",
            verify=self.trust,
            timeout=20,
            trust_env=False,
        )


@pytest.fixture(scope="module")
def gateway(proxied_gateway: Gateway) -> Gateway:
    return proxied_gateway


@pytest.fixture
def proxy(gateway: Gateway, tmp_path: Path) -> Iterator[Proxy]:
    assert NGINX is not None
    port = free_port()
    certificate = make_certificate(tmp_path / "fairlead.pem", "127.0.0.1")
    site = CONFIGURATION.read_text("utf-8")
    for pattern, value in {
        r"server 127\.0\.0\.1:20128;": f"server 127.0.0.1:{gateway.port};",
        r"listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
        r"(ssl_certificate(?:_key)?) \S+;": rf"\1 {certificate};",
    }.items():
        site, count = re.subn(pattern, value, site)
        assert count, pattern
    (tmp_path / "site.conf").write_text(site, "utf-8")
    main = tmp_path / "nginx.conf"
    main.write_text(
        f"daemon off; master_process off; pid {tmp_path}/nginx.pid; error_log stderr;"
        f"events {{}} http {{ access_log off; include {tmp_path}/site.conf;"
        + "".join(
            f"{kind}_temp_path {tmp_path}/{kind};"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        + "}",
        "utf-8",
    )
    trust = ssl.create_default_context(cafile=str(certificate.with_suffix(".crt")))
    proxy = Proxy(port, trust)
    log_path = tmp_path / "nginx.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen([NGINX, "-p", str(tmp_path), "-c", str(main)], stderr=log)

    def answers() -> bool:
        assert process.poll() is None, log_path.read_text()
        with contextlib.suppress(httpx.HTTPError), proxy.client as client:
            return client.get("/healthz").status_code == 200
        return False

    try:
        eventually(answers, "nginx answers", within_s=20)
        yield proxy
    finally:
        process.terminate()
        process.wait(10)


def test_a_piece_of_a_stream_arrives_before_the_next_is_sent(
    proxy: Proxy, gateway: Gateway, upstream: Upstream
) -> None:
    """The provider waits until the client has the first piece, so a proxy that buffers would wait forever."""
    lane = gateway.add_lane(upstream)
    gate = Gate()
    upstream.script([SSE_HEAD, chunk(delta("one")), gate, chunk(finish() + DONE), LAST_CHUNK])
    body = lane.body(stream=True)
    headers = {"Authorization": f"Bearer {gateway.key}"}
    with (
        proxy.client as client,
        client.stream("POST", "/v1/chat/completions", json=body, headers=headers) as answer,
    ):
        pieces = answer.iter_bytes()
        first = next(pieces)
        assert b"one" in first
        gate.open()
        assert b"[DONE]" in b"".join(pieces)


def test_an_upload_larger_than_the_default_of_nginx(proxy: Proxy, gateway: Gateway) -> None:
    headers = {"Authorization": f"Bearer {gateway.key}"}
    with proxy.client as client:
        answer = client.post(
            "/v1/files",
            headers=headers,
            data={"purpose": "user_data"},
            files={"file": ("large.bin", b"x" * 3_000_000)},
        )
    assert expect(answer, 200)["bytes"] == 3_000_000


def test_the_address_of_the_caller(proxy: Proxy, gateway: Gateway) -> None:
    """A caller cannot claim another address: nginx overwrites the header."""
    stranger = gateway.create_key(ipAllowlist=["198.51.100.7"])["key"]
    with proxy.client as client:
        answer = client.get(
            "/v1/models",
            headers={"Authorization": f"Bearer {stranger}", "X-Forwarded-For": "198.51.100.7"},
        )
    assert expect(answer, 403)["error"]["param"] == "ipAllowlist"


def test_a_websocket(proxy: Proxy, gateway: Gateway) -> None:
    with connect(
        f"wss://127.0.0.1:{proxy.port}/v1/ws",
        ssl=proxy.trust,
        additional_headers={"Authorization": f"Bearer {gateway.key}"},
        open_timeout=20,
        proxy=None,
    ) as socket:
        assert "session.ready" in str(socket.recv(timeout=20))


def test_the_local_token_opens_nothing_through_the_proxy(proxy: Proxy, gateway: Gateway) -> None:
    """nginx connects from this machine, but its callers come from elsewhere."""
    with proxy.client as client:
        answer = client.get("/api/keys", headers={"X-Gateway-Cli-Token": gateway.cli_token})
    expect(answer, 401)
