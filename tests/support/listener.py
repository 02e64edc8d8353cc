"""A listener for webhooks in a process of its own. The path says how it answers; all that it got is in a file.

/ok  /status/503  /status/503?retry-after=7  /redirect?to=<url>  /stall  /cut  /huge
/switch            the status that stands in the file `status`, or a stall where it says `stall`
/flaky/2           500 for the first two tries of each message, then 204
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Self
from urllib.parse import parse_qs, urlsplit

from tests.support.polling import eventually

STALL_S = 60.0


@dataclass(frozen=True)
class Received:
    """One request as the listener got it."""

    path: str
    headers: dict[str, str]
    body: bytes
    at_s: float

    @property
    def message_id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def event(self) -> Any:
        return json.loads(self.body)


class Listener:
    """Runs the process; a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "listener"
        self.folder.mkdir()
        self._popen: subprocess.Popen[bytes] | None = None
        self.url = ""

    def __enter__(self) -> Self:
        self._popen = subprocess.Popen(
            [sys.executable, "-m", "tests.support.listener", str(self.folder)],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.DEVNULL,
        )
        port = eventually(self._port, "the listener listens", within_s=10)
        self.url = f"http://127.0.0.1:{port}"
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._popen is not None
        self._popen.kill()
        self._popen.wait(5)

    def _port(self) -> str:
        file = self.folder / "port"
        return file.read_text() if file.exists() else ""

    def answer(self, status: str) -> None:
        """What `/switch` answers from now on."""
        new = self.folder / "status.new"
        new.write_text(status)
        new.rename(self.folder / "status")

    def count(self) -> int:
        """How many requests came: for polling, when there are many."""
        file = self.folder / "received.ndjson"
        return file.read_bytes().count(b"\n") if file.exists() else 0

    def received(self, path: str | None = None) -> list[Received]:
        """Everything that came, or what came to a path, in order."""
        file = self.folder / "received.ndjson"
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        found = [json.loads(line) for line in lines if line.endswith("\n")]
        return [
            Received(one["path"], one["headers"], base64.b64decode(one["body"]), one["at_s"])
            for one in found
            if path is None or one["path"] == path
        ]

    def wait_for(self, path: str = "/ok", count: int = 1) -> list[Received]:
        """What came to a path, in order, once it is so many requests or more."""

        def find() -> list[Received] | None:
            found = self.received(path)
            return found if len(found) >= count else None

        return eventually(find, f"{count} deliveries to {path}", within_s=30, every_s=0.1)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder: ClassVar[Path]
    file: ClassVar[BinaryIO]
    lock: ClassVar[threading.Lock] = threading.Lock()
    tries: ClassVar[Counter[str]] = Counter()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        target = urlsplit(self.path)
        line = {
            "path": target.path,
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "body": base64.b64encode(body).decode(),
            "at_s": time.time(),
        }
        with self.lock:
            self.file.write(json.dumps(line).encode() + b"\n")
        self.close_connection = True
        kind, _, detail = target.path.strip("/").partition("/")
        query = {name: values[0] for name, values in parse_qs(target.query).items()}
        if kind == "switch":
            kind, detail = "status", (self.folder / "status").read_text()
            if detail == "stall":
                kind = "stall"
        if kind == "flaky":
            message_id = self.headers["webhook-id"]
            self.tries[message_id] += 1
            kind = "status"
            detail = "500" if self.tries[message_id] <= int(detail) else "204"
        if kind == "stall":
            time.sleep(STALL_S)
        elif kind == "cut":
            self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-le")
        elif kind == "huge":
            self._say(200, {"content-length": str(10**9)})
            try:
                while True:
                    self.wfile.write(b"x" * 65536)
            except OSError:
                return
        elif kind == "redirect":
            self._say(302, {"location": query["to"], "content-length": "0"})
        else:
            headers = {name: query[name] for name in ("retry-after",) if name in query}
            self._say(int(detail or 200), {**headers, "content-length": "0"})

    def _say(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Says nothing."""


class _Server(ThreadingHTTPServer):
    request_queue_size = 512
    daemon_threads = True


def main(folder: Path) -> None:
    _Handler.folder = folder
    with (
        (folder / "received.ndjson").open("ab", buffering=0) as _Handler.file,
        _Server(("127.0.0.1", 0), _Handler) as server,
    ):
        (folder / "port.new").write_text(str(server.server_port))
        (folder / "port.new").rename(folder / "port")
        server.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
