"""HTTP of the issuer's listeners: requests read within bounds, answers with the headers that tokens
need (RFC 6749 section 5.1), faults in OAuth's shape.

Plain ASGI, because agents introspect at every call and a framework would be most of its cost.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, unquote_plus

import orjson
import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from fairlead.errors import FairleadError
from fairlead.identity.issuer.fault import IssuerFault, invalid_request, unavailable

BODY_MAX_BYTES: Final = 64 * 1024
BODY_DEADLINE_S: Final = 10.0
REQUEST_DEADLINE_S: Final = 20.0
FIELDS_MAX: Final = 100

FORM: Final = b"application/x-www-form-urlencoded"
# A header of fairlead: a resource server that sees it knows that introspection is cheap, and caches no
# answer.
ISSUER_HEADER: Final = "x-fairlead-issuer"

_ONCE: Final = (b"authorization", b"content-type")
_JSON_HEADERS: Final = [
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    (b"pragma", b"no-cache"),
    (ISSUER_HEADER.encode(), b"1"),
]

log = structlog.get_logger("fairlead.identity")


@dataclass(frozen=True, slots=True)
class IssuerRequest:
    """A request: `path` is decoded, `headers` holds the last value of each name, `query` and `body`
    are raw. `peer` is the socket's other end, `forwarded` every line of `X-Forwarded-For`.
    """

    method: str
    path: str
    query: bytes
    headers: dict[bytes, bytes]
    body: bytes
    peer: str = "unknown"
    forwarded: tuple[str, ...] = ()

    def form(self) -> dict[str, str]:
        """The body as a form: no parameter twice, an empty one counts as left out. `invalid_request`."""
        kind = self.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != FORM:
            raise invalid_request(f"The body must be {FORM.decode()}.")
        return _pairs(self.body, "form")

    def document(self) -> Any:
        """The body as JSON, whatever its content type says."""
        try:
            return orjson.loads(self.body)
        except ValueError:
            raise invalid_request("The body must be JSON.") from None

    def parameters(self) -> dict[str, str]:
        """The parameters of the query, under the rules of `form`."""
        return _pairs(self.query, "query")

    def bearer(self) -> str | None:
        """The token of `Authorization: Bearer`."""
        scheme, _, value = self.headers.get(b"authorization", b"").partition(b" ")
        return value.strip().decode("latin-1") if scheme.lower() == b"bearer" else None

    def basic(self) -> tuple[str, str] | None:
        """Id and secret of `Authorization: Basic` (RFC 6749 section 2.3.1), if it is there."""
        header = self.headers.get(b"authorization")
        if header is None:
            return None
        scheme, _, value = header.partition(b" ")
        try:
            if scheme.lower() != b"basic":
                raise ValueError
            client_id, colon, secret = (
                base64.b64decode(value.strip(), validate=True).decode().partition(":")
            )
            if not colon:
                raise ValueError
        except (ValueError, binascii.Error, UnicodeDecodeError):
            raise IssuerFault(
                401,
                "invalid_client",
                "Authorization must be Basic, with id and secret.",
                challenge="Basic",
            ) from None
        return unquote_plus(client_id), unquote_plus(secret)


@dataclass(frozen=True, slots=True)
class IssuerAnswer:
    """An answer. `document` is sent as JSON; without it there is no body."""

    status: int = 200
    document: Any = None
    headers: tuple[tuple[bytes, bytes], ...] = ()


Handler = Callable[[IssuerRequest], Awaitable[IssuerAnswer]]


def application(answer: Handler) -> ASGIApp:
    """An ASGI application that answers each request with `answer` or the fault that it raises."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError("HTTP only")
        try:
            async with asyncio.timeout(REQUEST_DEADLINE_S):
                reply = await answer(await _read(scope, receive))
        except IssuerFault as fault:
            reply = refusal(fault)
        except TimeoutError:
            reply = refusal(unavailable("The request took too long."))
        except FairleadError as error:
            reply = refusal(unavailable(error.message))
        except _ClientDisconnected:
            return
        except Exception as error:  # noqa: BLE001 - the last place that can answer
            log.error("issuer request failed", path=scope["path"][:200], error=type(error).__name__)
            reply = refusal(
                IssuerFault(500, "server_error", "This is a defect of fairlead; its log has more.")
            )
        body = b"" if reply.document is None else orjson.dumps(reply.document)
        headers = [*_JSON_HEADERS, *reply.headers]
        if reply.status != 204:
            headers.append((b"content-length", b"%d" % len(body)))
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if _is_head(scope) else body})

    return app


def refusal(fault: IssuerFault) -> IssuerAnswer:
    """The answer for a fault."""
    headers: list[tuple[bytes, bytes]] = []
    if fault.challenge is not None:
        headers.append((b"www-authenticate", f'{fault.challenge} realm="issuer"'.encode()))
    if fault.retry_after_s is not None:
        headers.append((b"retry-after", b"%d" % fault.retry_after_s))
    if fault.allow is not None:
        headers.append((b"allow", fault.allow.encode()))
    document = {
        "error": fault.error,
        "error_description": fault.description,
        "status_code": fault.status,
    }
    return IssuerAnswer(fault.status, document, tuple(headers))


def not_found() -> IssuerFault:
    """The fault for a path that is not served."""
    return IssuerFault(404, "not_found", "Nothing is served under this path.")


def other_method(*methods: str) -> IssuerFault:
    """The fault for a method that the path does not take."""
    allow = ", ".join(methods)
    return IssuerFault(405, "invalid_request", f"This path takes {allow}.", allow=allow)


class _ClientDisconnected(Exception):
    """The caller disconnected before its request was complete."""


async def _read(scope: Scope, receive: Receive) -> IssuerRequest:
    headers = dict(scope["headers"])
    # With two headers, a proxy before the gateway may have checked the other one.
    if len(headers) < len(scope["headers"]) and (name := _repeated(scope["headers"])) is not None:
        raise invalid_request(f"{name} was sent more than once.")
    body = b""
    if scope["method"] not in ("GET", "HEAD"):
        chunks: list[bytes] = []
        size = 0
        async with asyncio.timeout(BODY_DEADLINE_S):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise _ClientDisconnected
                chunk = message.get("body", b"")
                size += len(chunk)
                if size > BODY_MAX_BYTES:
                    raise IssuerFault(
                        413, "invalid_request", f"The body is larger than {BODY_MAX_BYTES} bytes."
                    )
                chunks.append(chunk)
                if not message.get("more_body", False):
                    break
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
    method = "GET" if _is_head(scope) else scope["method"]
    forwarded = tuple(
        value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"
    )
    peer = (scope.get("client") or ("unknown",))[0]
    query = scope.get("query_string", b"")
    return IssuerRequest(method, scope["path"], query, headers, body, peer, forwarded)


def _repeated(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    names = [name for name, _ in headers]
    return next((each.decode() for each in _ONCE if names.count(each) > 1), None)


def _is_head(scope: Scope) -> bool:
    return bool(scope["method"] == "HEAD")


def _pairs(text: bytes, what: str) -> dict[str, str]:
    if not text:
        return {}
    try:
        pairs = parse_qsl(
            text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX
        )
    except ValueError:
        raise invalid_request(f"The {what} is not well-formed.") from None
    found = dict(pairs)
    if len(found) != len(pairs):
        raise invalid_request(f"The {what} has a parameter twice.")
    return {name: value for name, value in found.items() if value}
