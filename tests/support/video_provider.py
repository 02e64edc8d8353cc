"""A provider of videos in OpenAI's form, on loopback: begun by a form, done after it was asked about twice.

with VideoProvider() as provider:
    gateway.add_node("v", provider.url)
    provider.forms     # what was sent to begin one: the fields, and the file as (type, bytes)
"""

from __future__ import annotations

import json
import secrets
import threading
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from tests.support.http_server import LocalServer

MADE = b"\x00\x00\x00\x18ftypmp42"
FAILS = "please fail"


class VideoProvider:
    """`videos` are those that it knows, by id; `calls` are method and path of every request."""

    def __init__(self) -> None:
        outer = self
        self.videos: dict[str, dict[str, Any]] = {}
        self.forms: list[dict[str, Any]] = []
        self.calls: list[tuple[str, str]] = []
        self.credentials: set[str | None] = set()
        self.refuse_with: int | None = None
        self.proceed = threading.Event()
        self.proceed.set()

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                """Says nothing."""

            def do_GET(self) -> None:
                outer._serve(self, b"")

            def do_DELETE(self) -> None:
                outer._serve(self, b"")

            def do_POST(self) -> None:
                outer._serve(self, self.rfile.read(int(self.headers.get("content-length", 0))))

        self._local = LocalServer(Handler)
        self.url = f"http://{self._local.authority}/v1"

    def __enter__(self) -> Self:
        self._local.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.proceed.set()
        self._local.__exit__(*exc)

    def _serve(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        parts = urlsplit(handler.path)
        path = parts.path.removeprefix("/v1")
        self.calls.append((handler.command, path))
        self.credentials.add(handler.headers.get("authorization"))
        if path == "/models":
            return _answer(handler, 200, {"object": "list", "data": [{"id": "reel"}]})
        _, _, video_id, *rest = [*path.split("/"), ""]
        if handler.command == "POST" and self.refuse_with is not None:
            return _answer(handler, self.refuse_with, {"error": {"message": "No such size."}})
        if handler.command == "POST" and not video_id:
            return _answer(handler, 200, self._begin(_form(handler, body)))
        video = self.videos.get(video_id)
        if video is None:
            return _answer(handler, 404, {"error": {"message": "no such video"}})
        if handler.command == "POST" and rest[0] == "remix":
            asked = {**json.loads(body), "seconds": video["seconds"], "model": video["model"]}
            return _answer(handler, 200, {**self._begin(asked), "remixed_from_video_id": video_id})
        if handler.command == "DELETE":
            del self.videos[video_id]
            return _answer(handler, 200, {"id": video_id, "deleted": True})
        if rest[0] == "content":
            variant = parse_qs(parts.query).get("variant", ["video"])[0]
            kind = "video/mp4" if variant == "video" else "image/webp"
            return _send(handler, 200, kind, MADE + f"{video_id} {variant}".encode())
        return _answer(handler, 200, self._look(video))

    def _begin(self, form: dict[str, Any]) -> dict[str, Any]:
        self.forms.append(form)
        video_id = f"video_{secrets.token_hex(8)}"
        self.videos[video_id] = {
            "id": video_id,
            "object": "video",
            "status": "queued",
            "progress": 0,
            "looks": 0,
            **{name: form.get(name) for name in ("model", "prompt", "seconds", "size")},
        }
        return self.videos[video_id]

    def _look(self, video: dict[str, Any]) -> dict[str, Any]:
        video["looks"] += 1
        if video["looks"] == 1:
            video |= {"status": "in_progress", "progress": 42}
        elif self.proceed.is_set():
            video |= {"status": "completed", "progress": 100}
            if video["prompt"] == FAILS:
                video |= {"status": "failed", "error": {"code": "x", "message": "Too plain."}}
        return video


def _form(handler: BaseHTTPRequestHandler, body: bytes) -> dict[str, Any]:
    head = f"content-type: {handler.headers['content-type']}\r\n\r\n".encode()
    told: dict[str, Any] = {}
    for part in BytesParser(policy=HTTP).parsebytes(head + body).iter_parts():
        name = part.get_param("name", header="content-disposition")
        content: Any = part.get_payload(decode=True)
        is_file = part.get_filename() is not None
        told[str(name)] = (part.get_content_type(), content) if is_file else content.decode()
    return told


def _answer(handler: BaseHTTPRequestHandler, status: int, body: dict[str, Any]) -> None:
    _send(handler, status, "application/json", json.dumps(body).encode())


def _send(handler: BaseHTTPRequestHandler, status: int, kind: str, data: bytes) -> None:
    handler.send_response(status)
    handler.send_header("content-type", kind)
    handler.send_header("content-length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)
