"""A host of client documents: real TLS on loopback, with a certificate of its own.

with DocumentHost(tmp_path) as host:
    host.put("/tool.json", {"client_name": "Tool", "redirect_uris": [...]})
"""

from __future__ import annotations

import json
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from tests.support.http_server import LocalServer


class DocumentHost(LocalServer):
    """Listens on a free port while its `with` lasts. `asked` are the paths in order."""

    def __init__(self, directory: Path) -> None:
        self.certificate, key = directory / "cert.pem", directory / "key.pem"
        command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
        names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
        files = ["-keyout", str(key), "-out", str(self.certificate)]
        subprocess.run([*command.split(), *names, *files], check=True, capture_output=True)
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.asked: list[str] = []
        self.hold = threading.Event()
        """While it is clear nothing is answered."""
        self.hold.set()
        super().__init__(_handler(self))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self.origin = f"https://{self.authority}"

    def __exit__(self, *_: object) -> None:
        self.hold.set()
        super().__exit__()

    def put(self, path: str, said: Any, *, status: int = 200, **headers: str) -> str:
        """Serves a document under this path, with its own address as `client_id` unless it names one; the
        address. A `bytes` is served as it is.
        """
        address = f"{self.origin}{path}"
        body = (
            said if isinstance(said, bytes) else json.dumps({"client_id": address} | said).encode()
        )
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers[path] = (status, {"content-type": "application/json"} | named, body)
        return address


def _handler(host: DocumentHost) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 10

        def do_GET(self) -> None:
            host.asked.append(self.path)
            host.hold.wait(10)
            nothing: tuple[int, dict[str, str], bytes] = (404, {}, b"")
            status, headers, body = host.answers.get(self.path, nothing)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            return

    return Handler
