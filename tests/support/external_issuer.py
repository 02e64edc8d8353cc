"""Somebody else's issuer, as a process: `python -m tests.support.external_issuer <port>`, with TLS if a
file with a key and a certificate follows.

What it says of a token stands in the token: base64url of JSON `{"answer": ..., "status": 200,
"after_s": 0, "content_type": ..., "raw": ..., "headers": {...}}`; a text that is no such thing is an
unknown token. `GET /seen` tells how often each token was asked about; `POST /revoke` makes it unknown.
"""

from __future__ import annotations

import base64
import json
import ssl
import sys
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs


class Issuer(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    seen: ClassVar[Counter[str]] = Counter()
    revoked: ClassVar[set[str]] = set()

    def do_GET(self) -> None:
        self._tell(200, json.dumps(self.seen).encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        form = parse_qs(body.decode())
        token = form.get("token", [""])[0]
        if self.path == "/revoke":
            self.revoked.add(token)
            self._tell(200, b"{}")
            return
        self.seen[token] += 1
        if self.path != "/admin/oauth2/introspect" or token in self.revoked:
            self._tell(200, b'{"active": false}')
            return
        said = behaviour(token)
        time.sleep(said.get("after_s", 0))
        raw = said.get("raw")
        data = raw.encode() if raw is not None else json.dumps(said["answer"]).encode()
        self._tell(said.get("status", 200), data * said.get("times", 1), said.get("headers", {}))

    def _tell(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(data)
        except OSError:
            self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Nothing."""


def token_that(answer: Any = None, **said: Any) -> str:
    """A token of which this is said."""
    text = json.dumps({"answer": answer, **said}).encode()
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def behaviour(token: str) -> dict[str, Any]:
    """What a token says is to be said of it."""
    try:
        return dict(json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))))
    except ValueError:
        return {"answer": {"active": False}}


def main(port: int, certificate: str | None = None) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", port), Issuer)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
