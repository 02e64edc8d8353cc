"""A relay worker without a server: what the ASGI adapter does, in plain calls."""

from __future__ import annotations

import select
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlead import _core


@dataclass(frozen=True)
class Worker:
    """What a relay worker holds. `key` is valid; keys are required."""

    engine: _core.Engine
    key: str
    data_dir: Path

    def scope(self, method: str, path: str, key: str, length: int = 0) -> dict[str, Any]:
        """The head of a request as granian hands it over, with the headers that SDKs send.

        `length` is that of the body in bytes.
        """
        length_header = [(b"content-length", str(length).encode())] if length else []
        return {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "client": ["127.0.0.1", 40000],
            "server": ["127.0.0.1", 20128],
            "headers": [
                (b"host", b"127.0.0.1:20128"),
                (b"accept", b"application/json"),
                (b"accept-encoding", b"gzip, deflate"),
                (b"user-agent", b"bench/1.0"),
                (b"content-type", b"application/json"),
                (b"authorization", b"Bearer " + key.encode()),
                *length_header,
            ],
        }

    def ask(self, body: bytes, path: str = "/v1/chat/completions") -> tuple[int, bytes]:
        """One completion from admission to its last byte, as the ASGI adapter drives it."""
        scope = self.scope("POST", path, self.key, len(body))
        exchange = self.engine.admit(scope)
        exchange.feed(body, False)
        while (head := exchange.head()) is None:
            self.wait()
        parts, more = [], True
        while more:
            while (taken := exchange.take()) is None:
                self.wait()
            part, more = taken
            parts.append(part)
        return head[0], b"".join(parts)

    def wait(self) -> None:
        select.select([self.engine.ready_descriptor()], [], [], 10)
        self.engine.ready()
