"""Connections to clouds' providers with a scripted upstream in place of the cloud, and Amazon's event streams."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any

from tests.support.processes import Gateway, expect
from tests.support.upstream import LAST_CHUNK, Step, Upstream, chunk, head

AMAZON_STREAM = "application/vnd.amazon.eventstream"


def connect(gateway: Gateway, provider: str, base_url: str, **fields: Any) -> dict[str, Any]:
    """The provider's one connection, at `base_url` in place of its own address. `region`, `project` and the like become
    parts of `providerSpecificData`.
    """
    # Tests share the gateway, and a page of the list may be full of others' connections.
    known: list[dict[str, Any]] = []
    page = expect(gateway.admin.get("/api/providers"), 200)["connections"]
    while page:
        known += page
        page = expect(gateway.admin.get(f"/api/providers?offset={len(known)}"), 200)["connections"]
    for each in known:
        if each["provider"] == provider:
            expect(gateway.admin.delete(f"/api/providers/{each['id']}"), 200)
    specific: dict[str, Any] = {"baseUrl": base_url}
    for part in ("region", "project", "apiVersion", "deployments", "awsProfile", "roleArn"):
        if part in fields:
            specific[part] = fields.pop(part)
    body = {"provider": provider, "name": "mine", "providerSpecificData": specific, **fields}
    connection: dict[str, Any] = expect(gateway.admin.post("/api/providers", json=body), 201)[
        "connection"
    ]
    return connection


def host(upstream: Upstream) -> str:
    """The upstream's address without a path: another host of the cloud."""
    return f"http://127.0.0.1:{upstream.port}"


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One message of Amazon's event stream, with text headers."""
    written = b"".join(
        struct.pack(">B", len(name))
        + name.encode()
        + struct.pack(">BH", 7, len(value))
        + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack(">II", 16 + len(written) + len(payload), len(written))
    prelude += struct.pack(">I", zlib.crc32(prelude))
    whole = prelude + written + payload
    return whole + struct.pack(">I", zlib.crc32(whole))


def converse_event(name: str, payload: Mapping[str, Any]) -> bytes:
    """An event of `ConverseStream`."""
    kind = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    return frame(kind, json.dumps(payload).encode())


def invoke_chunk(event: Mapping[str, Any]) -> bytes:
    """An event of `InvokeModelWithResponseStream`, padded as Bedrock does."""
    payload = {"bytes": base64.b64encode(json.dumps(event).encode()).decode(), "p": "abcdefgh"}
    return converse_event("chunk", payload)


def exception(name: str, message: str) -> bytes:
    """An exception inside a stream."""
    kind = {
        ":exception-type": name,
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return frame(kind, json.dumps({"message": message}).encode())


def amazon_stream(*frames: bytes) -> list[Step]:
    """A stream of these messages, cut in the middle of each."""
    start = head(200, [("Content-Type", AMAZON_STREAM), ("Transfer-Encoding", "chunked")])
    parts = (part for one in frames for part in (one[: len(one) // 2], one[len(one) // 2 :]))
    return [start, *(chunk(part) for part in parts), LAST_CHUNK]
