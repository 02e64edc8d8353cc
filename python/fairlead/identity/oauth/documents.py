"""Clients that are known by the address of a document about them (OAuth Client ID Metadata Documents, as MCP revisions
since 2025-11-25 use them): nobody registers, the client's id is the https address itself.

The URL is untrusted, because anybody can name one. It is fetched through the egress guard, without
redirects, with a small size and a short deadline, a few times a minute for each caller and a few at once. An
invalid document is never remembered; a valid one is, for as long as it says within limits.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from fairlead.errors import RateLimited
from fairlead.identity.oauth.document_fetch import FetchedDocument, FetchFailed, fetch
from fairlead.identity.oauth.records import Client
from fairlead.identity.oauth.redirect import is_same, redirect_fault
from fairlead.identity.rate_window import RateWindow
from fairlead.moment import now_ms
from fairlead.net.egress import Egress
from fairlead.net.host import AddressRefused
from fairlead.net.url import split_url

FETCHES_A_MINUTE = 20
FETCHES_AT_ONCE = 8
DOCUMENTS_MAX = 1000
FRESH_LEAST_S = 60.0
FRESH_DEFAULT_S = 300.0
FRESH_MOST_S = 86_400.0

ID_MAX_CHARS = 1024
NAME_MAX_CODE_POINTS = 128
REDIRECTS_MAX = 20

# Path segments of dots, plain or percent-encoded.
_DOTS = re.compile(r"/(?:\.|%2[eE]){1,2}(?:/|$)")


class NoClient(Exception):
    """The reason why an address is not a client's; the sentence ends the message for the person."""


@dataclass(frozen=True, slots=True)
class Document:
    """A client's description of itself, under the address that is its id."""

    client_id: str
    name: str
    redirect_uris: tuple[str, ...]

    def client(self, redirect_uri: str | None) -> Client:
        """The client of this document. Its redirect URI is the requested one, or else the first."""
        meant = (
            uri
            for uri in self.redirect_uris
            if redirect_uri is not None and is_same(uri, redirect_uri)
        )
        return Client(self.client_id, self.name, next(meant, self.redirect_uris[0]), now_ms())


class Documents:
    """A cache of documents that were read lately. `egress` guards every connection."""

    def __init__(
        self, egress: Egress, *, is_on: bool = True, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.is_on = is_on
        self._egress = egress
        self._clock = clock
        self._known: OrderedDict[str, tuple[float, Document]] = OrderedDict()
        self._window = RateWindow(FETCHES_A_MINUTE, clock)
        self._fetching: dict[str, asyncio.Task[Document]] = {}

    async def find(self, client_id: str, caller_address: str) -> Document:
        """The document under this address. `NoClient` with the reason when there is none."""
        if not self.is_on:
            raise NoClient("clients must be registered here")
        if (fault := fault_of_id(client_id)) is not None:
            raise NoClient(fault)
        fresh_until_s, document = self._known.get(client_id, (0.0, None))
        if document is not None and self._clock() < fresh_until_s:
            self._known.move_to_end(client_id)
            return document
        # A request for a document that is being fetched waits for that fetch.
        if (fetching := self._fetching.get(client_id)) is None:
            try:
                self._window.spend(caller_address)
            except RateLimited:
                raise NoClient("too many unknown clients were asked for; try again later") from None
            if len(self._fetching) >= FETCHES_AT_ONCE:
                raise NoClient("too many documents are being read; try again shortly")
            fetching = asyncio.create_task(self._read(client_id), name="client-document")
            self._fetching[client_id] = fetching
            fetching.add_done_callback(lambda done: self._ended(client_id, done))
        return await asyncio.shield(fetching)

    def _ended(self, client_id: str, done: asyncio.Task[Document]) -> None:
        self._fetching.pop(client_id, None)
        if not done.cancelled():
            # Marks the error as seen, or asyncio would log it when every caller is gone.
            done.exception()

    async def _read(self, client_id: str) -> Document:
        try:
            fetched = await fetch(self._egress, client_id)
            document = check_document(client_id, fetched.body)
        except (FetchFailed, AddressRefused) as error:
            raise NoClient(f"its document cannot be read: {error}") from None
        self._known[client_id] = (self._clock() + fresh_s(fetched), document)
        self._known.move_to_end(client_id)
        while len(self._known) > DOCUMENTS_MAX:
            self._known.popitem(last=False)
        return document


def is_document_id(client_id: str) -> bool:
    """Whether this id is a URL, which ids issued here never are."""
    return client_id.lower().startswith(("https:", "http:"))


def fault_of_id(client_id: str) -> str | None:
    """The reason why this address cannot be a client's id, or None."""
    if len(client_id) > ID_MAX_CHARS:
        return f"its id is longer than {ID_MAX_CHARS} characters"
    if not client_id.startswith("https://"):
        return "its id must be an https address"
    if (
        not client_id.isascii()
        or not client_id.isprintable()
        or re.search(r'[\s\\"<>^`{|}]', client_id)
    ):
        return "its id has characters that no address has"
    if "#" in client_id:
        return "its id has a fragment"
    try:
        parts = split_url(client_id)
        if parts.port == 0 or not parts.hostname:
            return "its id names no host"
    except ValueError:
        return "its id is not an address"
    if "@" in parts.netloc:
        return "its id has a user in it"
    if parts.path in ("", "/"):
        return "its id must have a path"
    return "its id has a path with `.` or `..`" if _DOTS.search(parts.path) else None


def check_document(client_id: str, body: bytes) -> Document:
    """The document in a body; `NoClient` when it is not valid."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise NoClient("its document is not JSON") from None
    if not isinstance(document, dict):
        raise NoClient("its document is not a JSON object")
    if document.get("client_id") != client_id:
        raise NoClient("its document is about another client_id")
    if document.keys() & {"client_secret", "client_secret_expires_at"}:
        raise NoClient("its document contains a secret, which is public thereby")
    method = document.get("token_endpoint_auth_method", "none")
    if method != "none":
        raise NoClient("its document has a token_endpoint_auth_method other than none")
    for name, wanted in (("grant_types", "authorization_code"), ("response_types", "code")):
        listed = document.get(name, [wanted])
        if not isinstance(listed, list) or wanted not in listed:
            raise NoClient(f"its document's {name} leave {wanted} out")
    name = document.get("client_name", "")
    if not isinstance(name, str) or len(name.strip()) > NAME_MAX_CODE_POINTS:
        raise NoClient(f"its client_name must be text of at most {NAME_MAX_CODE_POINTS} characters")
    return Document(
        client_id, name.replace("\0", "").strip(), _redirect_uris(document.get("redirect_uris"))
    )


def _redirect_uris(redirect_uris: Any) -> tuple[str, ...]:
    if not isinstance(redirect_uris, list) or not 1 <= len(redirect_uris) <= REDIRECTS_MAX:
        raise NoClient(f"its document must list 1 to {REDIRECTS_MAX} redirect_uris")
    # Schemes of desktop programs may be listed; they are skipped, because nobody is redirected to
    # them.
    usable = tuple(
        uri for uri in redirect_uris if isinstance(uri, str) and uri and redirect_fault(uri) is None
    )
    if not usable:
        raise NoClient("its document lists no redirect URI that may be used here")
    return usable


def fresh_s(fetched: FetchedDocument) -> float:
    """Seconds for which a document is cached (RFC 9111, within bounds)."""
    control = fetched.cache_control.lower()
    if "no-store" in control or "no-cache" in control:
        return FRESH_LEAST_S
    found = re.search(r"(?:^|[,\s])max-age=\"?([0-9]{1,9})", control)
    wanted = float(found[1]) if found else FRESH_DEFAULT_S
    return min(max(wanted, FRESH_LEAST_S), FRESH_MOST_S)
