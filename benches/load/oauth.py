"""What the authorization server does in a second, through the relay, on one control worker.

    python benches/load/oauth.py [--seconds N] [--connections N] [--rounds N] [--quick]

Refreshes: each connection holds an approval of its own and spends the refresh token that its last
answer brought. Pages: the login and the consent page. Each request comes from an address of its own
(a trusted proxy says so), because 60 a minute from one address is the limit. The figures go into `benches/results`
(not those of `--quick`, one short round). Exit code 1 when the best round of a page misses its goal.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import json
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from itertools import count
from pathlib import Path
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from figures import Figure, Round, keep, page
from ours import COMMAND
from run import machine
from target import free_port, start, wait_for_line

PASSWORD = "a password of the benchmark"
REDIRECT = "http://127.0.0.1:1/callback"
VERIFIER = "v" * 64
FORM = "application/x-www-form-urlencoded"

# A page is there before anybody has looked away.
PAGE_P99_GOAL_US = 20_000

_addresses = count(1)


def address() -> str:
    """One that nobody had before."""
    number = next(_addresses)
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


class Connection:
    """A kept connection that sends one request at a time."""

    def __init__(self, port: int, origin: str) -> None:
        self._port = port
        self.origin = origin

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def ask(
        self, method: str, path: str, body: bytes = b"", kind: str = FORM, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body."""
        lines = [f"{method} {path} HTTP/1.1", "host: 127.0.0.1", f"x-forwarded-for: {address()}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if method == "POST":
            lines += [f"content-type: {kind}", f"content-length: {len(body)}"]
        self._writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        found = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
        if "content-length" in found:
            content = await self._reader.readexactly(int(found["content-length"]))
        else:
            content = await self._chunks()
        location = [line[10:] for line in head if line.lower().startswith("location: ")]
        return int(head[0].split()[1]), found | {"location": "".join(location)}, content

    async def _chunks(self) -> bytes:
        content = b""
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            content += (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readexactly(2)
        return content

    def close(self) -> None:
        self._writer.close()


class Client:
    """A registered tool client with an approval."""

    def __init__(self, connection: Connection, cookie: str) -> None:
        self.connection = connection
        self.cookie = cookie

    async def connect(self) -> None:
        body = json.dumps({"client_name": "bench", "redirect_uris": [REDIRECT]}).encode()
        answer = await self.connection.ask("POST", "/oauth/register", body, "application/json")
        self.client_id = json.loads(answer[2])["client_id"]
        digest = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest())
        self.asked = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": REDIRECT,
            "code_challenge": digest.rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            "resource": f"{self.connection.origin}/mcp/rpc",
        }
        form = urlencode(self.asked | {"action": "approve"}).encode()
        approved = await self.connection.ask(
            "POST",
            "/oauth/authorize",
            form,
            origin=self.connection.origin,
            cookie=f"auth_token={self.cookie}",
        )
        code = parse_qs(urlsplit(approved[1]["location"]).query)["code"][0]
        await self._token(
            grant_type="authorization_code",
            code=code,
            redirect_uri=REDIRECT,
            code_verifier=VERIFIER,
        )

    async def refresh(self) -> None:
        await self._token(grant_type="refresh_token", refresh_token=self.refresh_token)

    async def _token(self, **fields: str) -> None:
        resource = f"{self.connection.origin}/mcp/rpc"
        form = urlencode({**fields, "client_id": self.client_id, "resource": resource}).encode()
        status, _, body = await self.connection.ask("POST", "/oauth/token", form)
        if status != 200:
            raise RuntimeError(f"{status} {body.decode()}")
        self.refresh_token = json.loads(body)["refresh_token"]

    async def login_page(self) -> None:
        await self._page({})

    async def consent_page(self) -> None:
        await self._page({"cookie": f"auth_token={self.cookie}"})

    async def _page(self, headers: dict[str, str]) -> None:
        path = f"/oauth/authorize?{urlencode(self.asked, quote_via=quote)}"
        status, _, body = await self.connection.ask("GET", path, **headers)
        if status != 200:
            raise RuntimeError(f"{status} {body.decode()}")


async def load(clients: list[Client], what: Callable[[Client], object], seconds: float) -> Round:
    """Everybody asks again as soon as they are answered."""
    taken: list[float] = []
    end = time.perf_counter() + seconds

    async def one(client: Client) -> None:
        while (began := time.perf_counter()) < end:
            await what(client)  # type: ignore[misc]
            taken.append((time.perf_counter() - began) * 1000)

    began = time.perf_counter()
    await asyncio.gather(*(one(client) for client in clients))
    lasted = time.perf_counter() - began
    cuts = statistics.quantiles(taken, n=100)
    return Round(len(taken) / lasted, cuts[98] * 1000)


async def run(
    port: int, origin: str, seconds: float, connections: int, rounds: int
) -> list[Figure]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/auth/login",
        json.dumps({"password": PASSWORD}).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        cookie = answer.headers["set-cookie"].split(";")[0].partition("=")[2]
    clients = []
    for _ in range(connections):
        connection = Connection(port, origin)
        await connection.open()
        client = Client(connection, cookie)
        await client.connect()
        clients.append(client)
    await load(clients, Client.refresh, 1)
    refresh = Figure("refresh")
    login = Figure("login page", goal_p99_us=PAGE_P99_GOAL_US)
    consent = Figure("consent page", goal_p99_us=PAGE_P99_GOAL_US)
    for _ in range(rounds):
        refresh.rounds.append(await load(clients, Client.refresh, seconds))
        login.rounds.append(await load(clients[:1], Client.login_page, seconds / 4))
        consent.rounds.append(await load(clients[:1], Client.consent_page, seconds / 4))
    for client in clients:
        client.connection.close()
    return [refresh, login, consent]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--connections", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--command", default=str(COMMAND), help="the `fairlead` to measure")
    parser.add_argument(
        "--quick", action="store_true", help="one short round, nothing kept: a trial"
    )
    options = parser.parse_args()
    seconds, rounds = (2.0, 1) if options.quick else (options.seconds, options.rounds)
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as name:
        folder, port = Path(name), free_port()
        origin = f"http://127.0.0.1:{port}"
        command = [*options.command.split(), "serve", "--port", str(port)]
        environment = {
            "INITIAL_PASSWORD": PASSWORD,
            "SERVICE_TRUST_PROXY": "1",
            "SERVICE_PUBLIC_BASE_URL": origin,
        }
        log = folder / "log"
        process = start([*command, "--data-dir", str(folder / "data")], log=log, env=environment)
        try:
            wait_for_line(process, log, "fairlead ready", 60)
            figures = asyncio.run(run(port, origin, seconds, options.connections, rounds))
        finally:
            process.terminate()
            process.wait(30)
    conditions = (
        f"{rounds} rounds: {seconds:.0f} s of refreshes on {options.connections} connections, "
        f"{seconds / 4:.1f} s of each page on one; the load is a Python program on the same cores."
    )
    title = "The authorization server, through the relay"
    print(page(title, machine(), conditions, figures))
    if not options.quick:
        print(f"kept as {keep('oauth', title, machine(), conditions, figures)}")
    return int(not all(figure.is_met for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
