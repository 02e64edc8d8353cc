"""Where a tool client waits for its answer: a listener on this machine, on a free port."""

from __future__ import annotations

import queue
from http.server import BaseHTTPRequestHandler

from tests.support.http_server import LocalServer
from tests.support.tool_client import query_of

WITHIN_S = 20.0


class Callback(LocalServer):
    """`url` is the redirect URI; `take` waits for the next answer, of this state if one is given."""

    def __init__(self) -> None:
        answers: queue.Queue[dict[str, str]] = queue.Queue()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.startswith("/callback?"):
                    answers.put(query_of(self.path))
                body = b"<!doctype html><title>Done</title><p>You may close this page.</p>"
                self.send_response(200 if self.path.startswith("/callback") else 404)
                self.send_header("content-type", "text/html")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self._answers = answers
        super().__init__(Handler)
        self.url = f"http://{self.authority}/callback"

    def take(self, state: str | None = None) -> dict[str, str]:
        answer = self._answers.get(timeout=WITHIN_S)
        assert state is None or answer.get("state") == state
        return answer
