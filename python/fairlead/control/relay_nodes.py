"""The nodes of relays without a control of their own: what they bring, and what is known of them.

A segment that is brought is stored in this node's spool under its name, and is from there on one of its own: the log of
usage has each name once. One that the log has already was brought before, perhaps to another control.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from pathlib import Path
from typing import Final

import orjson
import structlog
from pydantic import BaseModel, Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from fairlead.control.answers import error_response
from fairlead.control.body import read_body
from fairlead.errors import FairleadError, Forbidden, InvalidRequest, StorageUnavailable
from fairlead.fsync import fsync_path
from fairlead.gateway.cluster.relay_node import RelayNodes
from fairlead.store.file import Connection
from fairlead.store.services import Services
from fairlead.usage.segment import SEALED

# Set by the gate for a request with the node token.
REMOTE_KEY: Final = "fairlead.remote"
# A segment is sealed above 16 MiB, with at most a line more.
FILE_MAX_BYTES: Final = 64 * 1024 * 1024
_NAME: Final = re.compile(r"[0-9A-Za-z_-]{1,200}")


log = structlog.get_logger("fairlead.control")


class NodeState(BaseModel):
    """A relay node's state, which it sends with each round of deliveries."""

    node: str = Field(pattern="^[0-9a-f]{1,64}$")
    host: str = Field(max_length=255)
    version: str = Field(max_length=64)
    workers: int = Field(ge=0, le=1024)
    snapshot_version: int = Field(ge=0, le=2**53)
    segments_left: int = Field(ge=0, le=2**53)


class Deliveries:
    """The routes on which such nodes bring what they have."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._spool = services.data_dir / "spool"
        self._nodes = services.singleton(RelayNodes, RelayNodes)

    async def note(self, request: Request) -> Response:
        """`POST /internal/node`."""
        try:
            _only_remote(request)
            state = NodeState.model_validate(orjson.loads(await read_body(request.receive)))
        except FairleadError as error:
            return error_response(error, None)
        except (ValidationError, ValueError):
            return error_response(InvalidRequest("The node's state cannot be read."), None)
        self._nodes.heard(
            state.node,
            host=state.host,
            version=state.version,
            workers=state.workers,
            snapshot_version=state.snapshot_version,
            segments_left=state.segments_left,
        )
        return Response(status_code=204)

    async def segment(self, request: Request) -> Response:
        """`POST /internal/node/segments?name=`: 204 when it is stored."""
        return await self._take(request, self._spool, SEALED)

    async def body(self, request: Request) -> Response:
        """`POST /internal/node/bodies?name=`: 204 when it is stored."""
        return await self._take(request, self._spool / "bodies", ".body")

    async def _take(self, request: Request, folder: Path, suffix: str) -> Response:
        try:
            _only_remote(request)
            name = request.query_params.get("name", "")
            if _NAME.fullmatch(name) is None:
                raise InvalidRequest("`name` is no name of a file in the spool.")
            data = await read_body(request.receive, FILE_MAX_BYTES)
            if suffix != SEALED or not await self._services.state.read(
                lambda con: _is_logged(con, name)
            ):
                await asyncio.to_thread(_store, folder / f"{name}{suffix}", data)
        except FairleadError as error:
            return error_response(error, None)
        except OSError as error:
            log.error("what a relay brings cannot be stored", error=type(error).__name__)
            return error_response(
                StorageUnavailable("The file cannot be stored.", retry_after_s=1), None
            )
        return Response(status_code=204)


def _only_remote(request: Request) -> None:
    if not request.scope.get(REMOTE_KEY, False):
        raise Forbidden("This is for nodes with the node token only.")


def _is_logged(con: Connection, name: str) -> bool:
    found = con.execute("SELECT 1 FROM usage_segments WHERE name = $1 LIMIT 1", [name]).fetchone()
    return found is not None


def _store(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    new = path.with_name(f"{path.name}.{time.monotonic_ns()}.new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.rename(path)
    fsync_path(path.parent)
