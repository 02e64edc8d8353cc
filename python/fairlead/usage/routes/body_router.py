"""`/api/usage/logs/{id}/body`: what was asked and answered, where it was kept. Every read is in the
audit log. `/headers` beside it has what steered the request, and nothing of what was said.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Annotated, Any, Final, cast

import orjson
from fastapi import APIRouter, Path
from pydantic import Field

from fairlead.calls.caller import Caller, CallerDep
from fairlead.errors import Forbidden, Internal, NotFound
from fairlead.moment import Time, moment_of
from fairlead.records.kept_bodies import BodyName
from fairlead.store.audit_log import insert_read
from fairlead.store.file import Connection
from fairlead.store.meta import PURGED_BEFORE, read_meta
from fairlead.store.services import Services, ServicesDep
from fairlead.usage.bodies.body_keeping import body_keeper_of
from fairlead.usage.log import LogFilter, Page, read_log
from fairlead.usage.routes.views import View

router = APIRouter(prefix="/api/usage", tags=["usage"])

ROUTE: Final = "/api/usage/logs/{id}/body"


RequestId = Annotated[str, Path(min_length=1, max_length=300)]


class KeptBody(View):
    """One body. Credentials and personal data that guardrails recognise are replaced, and members with secret
    names are `***`.
    """

    content_type: str | None
    bytes: int = Field(description="How long it was.")
    is_cut: bool = Field(description="Whether `body` is only its beginning.")
    body: str | None = Field(description="Null for forms, sound and pictures, which are not kept.")


class KeptAnswer(KeptBody):
    """The answer as the caller was sent it."""

    status: int = Field(description="0 where the caller left before there was any.")
    is_whole: bool = Field(description="Whether the answer came to its end.")
    text: str | None = Field(description="For a stream, the joined text of its events.")


class KeptHeaders(View):
    """Headers by which the caller steered the gateway, and those that the gateway told on the answer. No
    others are kept, and credentials are masked in them.
    """

    request_id: str
    request: dict[str, str] = Field(description="By their names, as the gateway understood them.")
    response: dict[str, str] = Field(description="By their names.")


class RequestBodies(View):
    """The bodies of a request and its answer."""

    request_id: str
    timestamp: Time
    key_id: str | None
    request: KeptBody
    response: KeptAnswer


@router.get("/logs/{request_id}/body", summary="Read the captured request and answer")
async def read_bodies(
    request_id: RequestId, services: ServicesDep, caller: CallerDep
) -> RequestBodies:
    """Available if `captureBodies` is on in the settings or for the key. Each read is in the audit log. For
    people, for the access token of an `admin`, and for a key with the scope `read:bodies` or one that manages.
    """
    principal = caller.principal
    if principal.kind == "token" and "admin" not in principal.scopes:
        raise Forbidden(
            "An access token needs the scope `admin` to read what was asked and answered."
        )
    name, sealed = await _found(services, request_id)
    await _note(services, caller, name)
    bodies = await asyncio.to_thread(_opened, services, name, sealed)
    return RequestBodies.model_construct(
        request_id=name.request_id,
        timestamp=moment_of(name.ts_ms),
        key_id=name.key_id,
        request=KeptBody.model_construct(**_fields(KeptBody, bodies["request"])),
        response=KeptAnswer.model_construct(**_fields(KeptAnswer, bodies["response"])),
    )


@router.get("/logs/{request_id}/headers", summary="The headers of a request, where they were kept")
async def read_headers(request_id: RequestId, services: ServicesDep) -> KeptHeaders:
    """Available if bodies are captured, with the same limits."""
    name, sealed = await _found(services, request_id)
    bodies = await asyncio.to_thread(_opened, services, name, sealed)
    # Those of earlier versions were kept without.
    return KeptHeaders.model_construct(
        request_id=name.request_id,
        request=bodies["request"].get("headers", {}),
        response=bodies["response"].get("headers", {}),
    )


async def _found(services: Services, request_id: str) -> tuple[BodyName, bytes]:
    """The sealed bodies of a request. Raises `NotFound`."""
    name = await _name_of(services, request_id)
    sealed = None
    if name is not None:
        sealed = await body_keeper_of(services).find(name)
    if name is None or sealed is None:
        raise NotFound("No bodies are kept of a request with this id.", param="requestId")
    return name, sealed


async def _name_of(services: Services, request_id: str) -> BodyName | None:
    """The request's name among kept bodies; None for one that is in no log, that was purged at another node, or whose
    key is gone or wants none.
    """
    page, wanted = Page(1), LogFilter(request_id=request_id)
    rows, _ = await services.usage.read(lambda con: read_log(con, wanted, page))
    if not rows:
        return None
    name = BodyName(rows[0]["ts_ms"], rows[0]["request_id"], rows[0]["key_id"])
    return name if await services.state.read(lambda con: _may_be_kept(con, name)) else None


def _may_be_kept(con: Connection, name: BodyName) -> bool:
    if name.ts_ms < int(read_meta(con, PURGED_BEFORE) or 0):
        return False
    if name.key_id is None:
        return True
    row = con.execute("SELECT 1 FROM keys WHERE id = ? AND NOT no_log", [name.key_id]).fetchone()
    return row is not None


async def _note(services: Services, caller: Caller, name: BodyName) -> None:
    """Nothing is shown that is not in the audit log."""
    await services.state.database.write(
        lambda con: insert_read(con, caller, ROUTE, id=name.request_id)
    )


def _opened(services: Services, name: BodyName, sealed: bytes) -> dict[str, Any]:
    """`NotFound` for bodies that were kept under a key of secrets that is no longer there."""
    for sealed_as in (name.sealed_as, name.request_id):
        with contextlib.suppress(Internal):
            document = orjson.loads(services.state.sealer.unseal(sealed_as, sealed))
            # Earlier versions sealed bodies for the id of their request alone, which may be that of another secret.
            if sealed_as == name.sealed_as or _is_document(document):
                return cast("dict[str, Any]", document)
            break
    raise NotFound(
        "The bodies of this request cannot be opened: they were sealed with an earlier key "
        "of secrets. Bodies are not sealed again when the key is exchanged.",
        param="requestId",
    )


def _is_document(document: Any) -> bool:
    return isinstance(document, dict) and {"version", "request", "response"} <= document.keys()


def _fields(view: type[View], body: dict[str, Any]) -> dict[str, Any]:
    return {name: body[info.alias or name] for name, info in view.model_fields.items()}
