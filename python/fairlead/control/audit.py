"""Audit of management requests: who asked, from where, with which body, and what was there before.

The entry of a change is stored with the first write of its request (`store/state.py`), or here when
the request has been answered: changes that write nothing to the state (a cache that is emptied) are
in the log too, and callers who were turned away.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl

import orjson
import structlog
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairlead import _core
from fairlead.calls.caller import caller_of
from fairlead.control.answers import path_pattern
from fairlead.control.body import replay
from fairlead.errors import FairleadError, Internal
from fairlead.store.audit_log import (
    AuditRecord,
    Outcome,
    current_record,
    insert_entry,
    set_outcome,
)
from fairlead.store.database import Database
from fairlead.store.file import Connection
from fairlead.store.services import services_of

CHANGING: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
TIERS: Final = frozenset({"management", "session", "admin", "account", "public"})
# Content that people and agents work on, and calls that change nothing: they are no management of
# the gateway. A form of the console is in the log as the call that it makes.
NOT_AUDITED: Final = re.compile(
    r"/dashboard/.*|/board|/api/board/.*|/api/tasks/.*|/api/v1/agents/tasks(?:/.*)?|/api/agent-skills/generate"
    r"|/api/guardrails/test|/api/providers/validate"
    # The log contains the use of an upload: its restore.
    r"|/api/db-backups/uploads(?:/\{id\})?"
)
# Callers whose attempt is worth an entry though nothing was changed.
TURNED_AWAY: Final = frozenset({401, 403})
PATH_MAX_CHARS: Final = 1000
NAMES_MAX: Final = 50
SENT_MAX_BYTES: Final = 16 * 1024
VIEW_MAX_BYTES: Final = 64 * 1024
MASK: Final = "***"
# By their letters alone, in small ones: `apiKey`, `api_key` and `API-Key` are one name.
_SECRET_NAME: Final = re.compile(
    r".*(?:password|secret|credential|authorization|cookie|passphrase|privatekey).*"
    r"|.*keys?|.*token|code|recoverycode|otp|totp"
)
# Objects whose every text may be a secret.
_SECRET_OBJECT: Final = re.compile(r".*headers|.*env(?:ironment)?|providerspecificdata")
_LOGIN: Final = re.compile(r"(?<=://)[^/@\s]+(?=@)")

log = structlog.get_logger("fairlead.audit")


@dataclass(frozen=True, slots=True)
class _Route:
    pattern: re.Pattern[str]
    method: str
    path: str
    is_read: bool
    """Whether GET at this path shows the one thing that is changed."""


def _routes() -> tuple[_Route, ...]:
    of_control = [
        route
        for route in _core.routes()
        if route["surface"] == "management" and route["answered_by"] == "control"
    ]
    methods: dict[str, set[str]] = {}
    for route in of_control:
        methods.setdefault(str(route["path"]), set()).add(str(route["method"]))
    return tuple(
        _Route(
            re.compile(path_pattern(path)),
            method,
            path,
            # A path that things are added to shows a list.
            is_read="GET" in methods[path]
            and "POST" not in methods[path]
            and ("{" in path or method != "DELETE"),
        )
        for path, method in (
            (str(route["path"]), str(route["method"]))
            for route in of_control
            if route["tier"] in TIERS
        )
        if method in CHANGING and NOT_AUDITED.fullmatch(path) is None
    )


ROUTES: Final = _routes()


class AuditTrail:
    """Middleware between the gate and the routes. Plain ASGI."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = _route_of(scope)
        if route is None:
            await self._app(scope, receive, send)
            return
        # The gate has read the body and gives it in one piece.
        first = await receive()
        body, content_type = first.get("body", b""), _content_type(scope)
        sent = await asyncio.to_thread(shown_body, body, content_type)
        record = AuditRecord(
            caller_of(HTTPConnection(scope)),
            route.method,
            scope["path"][:PATH_MAX_CHARS],
            route.path,
            sent=sent,
            before=await self._view_before(scope) if route.is_read else None,
        )
        database = services_of(HTTPConnection(scope)).state.database

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                await _store_outcome(database, record, message["status"])
            await send(message)

        token = current_record.set(record)
        try:
            await self._app(scope, replay(body, receive), send_on)
        except Exception:
            await _store_outcome(database, record, Internal.status)
            raise
        finally:
            current_record.reset(token)

    async def _view_before(self, scope: Scope) -> str | None:
        """The thing as GET shows it to this caller, masked; None if it is not there, or too long."""
        chunks: list[bytes] = []
        status = 0

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                chunks.append(message.get("body", b""))

        headers = [
            (name, value)
            for name, value in scope["headers"]
            if name not in (b"content-length", b"content-type")
        ]
        await self._app({**scope, "method": "GET", "headers": headers}, receive, send)
        body = b"".join(chunks)
        if status != 200 or len(body) > VIEW_MAX_BYTES:
            return None
        try:
            return orjson.dumps(masked(orjson.loads(body))).decode()
        except orjson.JSONDecodeError:
            return None  # a page or a file


def _route_of(scope: Scope) -> _Route | None:
    if scope["type"] != "http" or scope["method"] not in CHANGING:
        return None
    method, path = scope["method"], scope["path"]
    return next(
        (each for each in ROUTES if each.method == method and each.pattern.fullmatch(path)), None
    )


def _content_type(scope: Scope) -> str:
    found = next((value for name, value in scope["headers"] if name == b"content-type"), b"")
    kind: str = found.decode("latin-1").partition(";")[0].strip().lower()
    return kind


async def _store_outcome(database: Database, record: AuditRecord, status: int) -> None:
    """Stores how the request was answered: the entry of a change that wrote none itself, of a caller
    who was turned away, or the end of one that failed after its first write.

    A failure is logged and not raised: the change has happened, and its caller was informed.
    """
    outcome: Outcome = "done" if status < 400 else "refused" if status < 500 else "failed"
    if outcome == "done" and record.is_stored:
        return
    if outcome != "done" and not record.is_stored and status not in TURNED_AWAY:
        return

    def store(con: Connection) -> None:
        if record.is_stored:
            set_outcome(con, record, outcome, status)
        else:
            insert_entry(con, record, outcome, status)

    try:
        await database.write(store)
    except FairleadError as error:
        log.error(
            "not in the audit log",
            request_id=record.caller.request_id,
            route=record.route,
            error=error.kind,
        )
    record.is_stored = True


def masked(value: object, name: str = "", *, in_secret: bool = False) -> Any:
    """The value with the texts that may be secrets as `***`: by their names, and logins in URLs."""
    letters = re.sub(r"[^a-z0-9]", "", name.lower())
    is_secret = in_secret or _SECRET_NAME.fullmatch(letters) is not None
    if isinstance(value, dict):
        inside = is_secret or _SECRET_OBJECT.fullmatch(letters) is not None
        return {key: masked(each, key, in_secret=inside) for key, each in value.items()}
    if isinstance(value, list):
        return [masked(each, name, in_secret=is_secret) for each in value]
    if is_secret and value and not isinstance(value, bool):
        return MASK
    return _LOGIN.sub(MASK, value) if isinstance(value, str) else value


def shown_body(body: bytes, content_type: str) -> str | None:
    """The body as JSON text, masked; of one that is too long or too deep, the names of its members."""
    if content_type == "application/x-www-form-urlencoded":
        document: Any = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
    elif content_type == "application/json" or content_type.endswith("+json"):
        try:
            document = orjson.loads(body)
        except orjson.JSONDecodeError:
            return None  # refused by the reader
    else:
        return None
    with contextlib.suppress(
        orjson.JSONEncodeError, RecursionError
    ):  # nested more deeply than JSON is written
        text = orjson.dumps(masked(document))
        if len(text) <= SENT_MAX_BYTES:
            return text.decode()
    names = list(document)[:NAMES_MAX] if isinstance(document, dict) else []
    shown = {"truncated": True, "bytes": len(body), "names": [name[:100] for name in names]}
    return orjson.dumps(shown).decode()
