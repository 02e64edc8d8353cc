"""The nodes of relays without a local control: what they send, and what is known of them.

A received segment is stored in this node's spool under its name, and then treated like a local one: the log of
usage has each name once. A segment that the log already has was sent before, perhaps to another control.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from pathlib import Path
from typing import Final

import orjson
import structlog
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from fairlead.control.answers import error_response
from fairlead.control.body import read_body
from fairlead.control.spool_capacity import SpoolCapacity
from fairlead.errors import FairleadError, Forbidden, InvalidRequest, StorageUnavailable
from fairlead.gateway.cluster.relay_node import NodeState, RelayNodes
from fairlead.gateway.responses.intake import responses_folder
from fairlead.process.fsync import write_whole
from fairlead.records.kept_bodies import spool_of
from fairlead.store.file import Connection
from fairlead.store.segment import SEALED
from fairlead.store.services import Services

# Set by the gate for a request with the node token.
REMOTE_KEY: Final = "fairlead.remote"
# A segment is sealed above 16 MiB, with at most a line more.
FILE_MAX_BYTES: Final = 64 * 1024 * 1024
# As much as workers of this node may leave there (`capture_writer.rs`). Bodies wait while the store of files is away.
BODIES_MAX_BYTES: Final = 256 * 1024 * 1024
_NAME: Final = re.compile(r"[0-9A-Za-z_-]{1,200}")


log = structlog.get_logger("fairlead.control")


class Deliveries:
    """The routes on which such nodes bring what they have."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._spool = services.data_dir / "spool"
        self._bodies = spool_of(services.data_dir)
        self._responses = responses_folder(services.data_dir)
        self._capacity = SpoolCapacity(self._bodies, BODIES_MAX_BYTES)
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
        self._nodes.note(state)
        return Response(status_code=204)

    async def segment(self, request: Request) -> Response:
        """`POST /internal/node/segments?name=`: 204 when it is stored."""
        return await self._take(request, self._spool, SEALED)

    async def body(self, request: Request) -> Response:
        """`POST /internal/node/bodies?name=`: 204 when it is stored, 503 while there is no room."""
        return await self._take(request, self._bodies, ".body")

    async def responses(self, request: Request) -> Response:
        """`POST /internal/node/responses?name=`: 204 when the segment of responses is on this node's disk."""
        return await self._take(request, self._responses, SEALED)

    async def _take(self, request: Request, folder: Path, suffix: str) -> Response:
        try:
            _only_remote(request)
            name = request.query_params.get("name", "")
            if _NAME.fullmatch(name) is None:
                raise InvalidRequest("`name` is no name of a file in the spool.")
            data = await read_body(request.receive, FILE_MAX_BYTES)
            if folder == self._bodies:
                await asyncio.to_thread(self._capacity.claim, len(data))
            if folder != self._spool or not await self._services.state.read(
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
    # If two nodes send one file at once, each writes a separate copy.
    write_whole(path, data, new=path.with_name(f"{path.name}.{secrets.token_hex(4)}.new"))
