"""The far side of a namespace test: a network with Debian's proxies and a provider, joined to the gateway's by
one link.

    python -m tests.support.far_side <folder>     reads a line once its end `far0` of the link is there, then serves

Each line that it reads is answered with the addresses that called the provider since, as a JSON list.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

from tests.support.upstream import completion

NEAR, FAR, PROVIDER = "10.9.0.1", "10.9.0.2", "203.0.113.9"
NAME = "provider.test"
PORT, CONNECT_PORT, SOCKS_PORT = 8000, 8888, 1080
PLAN = (
    "ip link set lo up",
    f"ip addr add {PROVIDER}/32 dev lo",
    f"ip addr add {FAR}/24 dev far0",
    "ip link set far0 up",
)
MODELS = {"object": "list", "data": [{"id": "m", "object": "model"}]}


class _Provider(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    callers: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self._answer(MODELS)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self._answer(completion("hello"))

    def _answer(self, body: object) -> None:
        self.callers.append(self.client_address[0])
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Says nothing: standard output is the report."""


def serve(folder: Path) -> None:
    """Sets the network up and serves until standard input ends."""
    for command in PLAN:
        subprocess.run(command.split(), check=True)
    hosts = folder / "hosts"
    hosts.write_text(f"127.0.0.1 localhost\n{PROVIDER} {NAME}\n")
    subprocess.run(["mount", "--bind", str(hosts), "/etc/hosts"], check=True)
    config = folder / "tinyproxy.conf"
    config.write_text(f"Port {CONNECT_PORT}\nListen {FAR}\nTimeout 60\nMaxClients 20\n")
    programs = [
        subprocess.Popen(["tinyproxy", "-d", "-c", str(config)], stdout=subprocess.DEVNULL),
        subprocess.Popen(
            ["microsocks", "-i", FAR, "-p", str(SOCKS_PORT)], stderr=subprocess.DEVNULL
        ),
    ]
    provider = ThreadingHTTPServer((PROVIDER, PORT), _Provider)
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    try:
        for line in sys.stdin:
            if line.strip() == "stop proxies":
                for program in programs:
                    program.terminate()
                    program.wait(10)
            callers, _Provider.callers[:] = list(_Provider.callers), []
            print(json.dumps(callers), flush=True)
    finally:
        for program in programs:
            program.kill()
            program.wait(10)


if __name__ == "__main__":
    sys.stdin.readline()
    serve(Path(sys.argv[1]))
