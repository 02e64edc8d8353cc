"""`/api/settings/mail`: the mail server that alerts are handed to."""

from __future__ import annotations

import time
from uuid import uuid4

from fastapi import APIRouter
from pydantic import SecretStr

from fairlead.errors import InvalidRequest, NotFound
from fairlead.gateway.mail.fields import MASK, MailServer, MailTested, MailView, check_login
from fairlead.gateway.mail.smtp import MailFailed, MailMessage, send_mail
from fairlead.gateway.mail.table import (
    drop_server,
    end_pending,
    put_server,
    read_queue,
    read_server,
)
from fairlead.gateway.settings.router import REVISION
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.meta import read_meta
from fairlead.store.outbox import Event, emit
from fairlead.store.sealer import Sealer
from fairlead.store.services import ServicesDep

router = APIRouter(prefix="/api/settings/mail", tags=["settings"])


@router.get("", summary="The mail server, and mails that wait")
async def show(services: ServicesDep) -> MailView:
    return await services.state.read(lambda con: _view(con, services.state.sealer))


@router.put("", summary="Set the mail server")
async def change(body: MailServer, services: ServicesDep) -> MailView:
    """Waiting mails are retried at once."""
    check_login(body)
    sealer = services.state.sealer

    def update(con: Connection) -> MailView:
        put_server(con, sealer, _with_password(con, sealer, body), now_ms())
        _emit_update(con)
        return _view(con, sealer)

    return await services.state.record(update)


@router.delete("", summary="Remove the mail server")
async def delete(services: ServicesDep) -> MailView:
    """No more mails are sent; waiting mails are dropped."""

    def drop(con: Connection) -> MailView:
        drop_server(con)
        end_pending(con, "the mail server was removed", now_ms())
        _emit_update(con)
        return _view(con, services.state.sealer)

    return await services.state.record(drop)


@router.post("/test", summary="Send a test mail now")
async def test(services: ServicesDep) -> MailTested:
    """To every recipient, by the stored server."""
    server = await services.state.read(lambda con: read_server(con, services.state.sealer))
    if server is None:
        raise NotFound("There is no mail server: set one at PUT /api/settings/mail.")
    body = "This is a test of the mail server that fairlead hands its alerts to.\n"
    message = MailMessage(str(uuid4()), "A test mail of fairlead", body, now_ms())
    started = time.monotonic()
    error_kind = error = None
    try:
        await send_mail(server, message)
    except MailFailed as failure:
        error_kind, error = failure.kind, str(failure)
    return MailTested.model_construct(
        sent=error is None,
        error_kind=error_kind,
        error=error,
        latency_ms=round((time.monotonic() - started) * 1000),
    )


def _with_password(con: Connection, sealer: Sealer, body: MailServer) -> MailServer:
    password = body.password
    if password is None or password.get_secret_value() != MASK:
        return body
    current = read_server(con, sealer)
    place = (body.host, body.port, body.tls, body.username)
    if current is None or (current.host, current.port, current.tls, current.username) != place:
        raise InvalidRequest(
            "password is stored for another server or username, or not at all: send it again.",
            param="password",
        )
    stored = current.password or SecretStr("")
    return body.model_copy(update={"password": stored})


def _emit_update(con: Connection) -> None:
    revision = int(read_meta(con, REVISION) or 0)
    emit(con, Event("settings.updated", {"settingsRevision": revision, "changed": ["mail"]}))


def _view(con: Connection, sealer: Sealer) -> MailView:
    return MailView.model_construct(server=read_server(con, sealer), queue=read_queue(con))
