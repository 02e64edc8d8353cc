"""A base for HTTP servers that tests run in a thread of their own process."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

# How often the serving thread looks whether it is to stop; the default of half a second would delay each test.
_POLL_S = 0.02


class LocalServer:
    """Listens on a free loopback port while its `with` lasts; `authority` is `host:port`."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_S,), daemon=True
        )
        self.authority = f"127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)
