"""Fetching one page over HTTP: behind the egress guard, under caps, with every redirect checked."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from fairlead import __version__
from fairlead.errors import InvalidRequest
from fairlead.net.egress import Egress
from fairlead.scrape.address import BadAddress, canonical
from fairlead.scrape.fetch.inflate import CODINGS, Inflater
from fairlead.scrape.fetch.sent_headers import NO_HEADERS, SentHeaders
from fairlead.scrape.fetch.transport import Forbidden, GuardedTransport

PAGE_MAX_BYTES: Final = 10 * 1024 * 1024
PAGE_DEADLINE_S: Final = 30.0
SILENCE_S: Final = 15.0
CONNECT_S: Final = 8.0
REDIRECTS_MAX: Final = 5
AGENT: Final = f"fairlead/{__version__}"
ROBOT: Final = "fairlead"

_HEADERS: Final = {
    "user-agent": AGENT,
    "accept": "text/html,application/xhtml+xml,text/plain;q=0.8,application/json;q=0.7,*/*;q=0.5",
    "accept-language": "en,*;q=0.5",
    # Decoded here, a bounded piece at a time; what could not be is not asked for.
    "accept-encoding": "gzip, deflate",
}

_TEMPORARY: Final = frozenset([408, 425, 429, 500, 502, 503, 504])


class FetchFailed(Exception):
    """A page that could not be fetched: `reason` is a sentence without secrets, `status` the answer's, if any.
    `retry_after_s` is the host's Retry-After, if it sent one; `begun` the beginning of a page that is too large.
    """

    def __init__(
        self,
        reason: str,
        *,
        status: int | None = None,
        code: str = "failed",
        retry_after_s: float | None = None,
        begun: bytes = b"",
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.code = code
        self.retry_after_s = retry_after_s
        self.begun = begun

    def as_refusal(self, **known: object) -> InvalidRequest:
        """The failure as an answer of 400 to the caller, with further fields in `known`."""
        return InvalidRequest(self.reason, extra={**known, "metadata": {"reason": self.code}})

    @property
    def is_temporary(self) -> bool:
        """Whether asking again may help: the host was busy, or did not answer."""
        if self.code == "status":
            return self.status in _TEMPORARY
        return self.code in {"unreachable", "timeout", "overloaded"}


@dataclass(frozen=True, slots=True)
class FetchResult:
    """An HTTP answer. `body` is decoded, and empty for 304; `content_type` is the header's value."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    content_type: str
    elapsed_ms: float
    redirects: list[str] = field(default_factory=list)
    artifacts: dict[str, Any] = field(default_factory=dict)
    """Pictures, prints and files that a browser made, as `formats` shows them."""


class Fetcher:
    """Fetches pages; one for the process."""

    def __init__(self, egress: Egress) -> None:
        self.egress = egress
        self._transports: dict[bool, GuardedTransport] = {}

    async def close(self) -> None:
        """Closes kept connections."""
        for transport in self._transports.values():
            await transport.aclose()
        self._transports.clear()

    async def fetch(
        self,
        url: str,
        *,
        sent: SentHeaders = NO_HEADERS,
        verify: bool = True,
        max_bytes: int = PAGE_MAX_BYTES,
        deadline_s: float = PAGE_DEADLINE_S,
    ) -> FetchResult:
        """GET of a canonical address, redirects followed. Raises `FetchFailed`; an answer of 400 or
        more is an answer.
        """
        try:
            async with asyncio.timeout(deadline_s):
                return await self._follow(url, sent, verify, max_bytes, deadline_s)
        except TimeoutError:
            raise FetchFailed(
                f"The page was not complete within {deadline_s:g} s.", code="timeout"
            ) from None
        except Forbidden:
            raise FetchFailed(
                "The address leads to a private or reserved network, which is not fetched.",
                code="forbidden_address",
            ) from None
        except httpx.TimeoutException:
            raise FetchFailed("The host did not answer in time.", code="timeout") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise FetchFailed(
                f"The host could not be reached ({type(error).__name__}).", code="unreachable"
            ) from None

    async def _follow(
        self, url: str, sent: SentHeaders, verify: bool, max_bytes: int, deadline_s: float
    ) -> FetchResult:
        started, first = time.monotonic(), url
        # A caller that gives a page more time gives it to a host that is silent, too.
        silence_s = max(SILENCE_S, deadline_s) if deadline_s > PAGE_DEADLINE_S else SILENCE_S
        timeouts = httpx.Timeout(silence_s, connect=CONNECT_S, pool=deadline_s).as_dict()
        transport = self._transport(verify=verify)
        redirects: list[str] = []
        while True:
            # No client of httpx: it keeps cookies, which must not go from one caller's job to another's, and it reads
            # `Location` even where it follows nothing, and fails at one that is no address of the web.
            request = httpx.Request(
                "GET",
                url,
                headers={**_HEADERS, **sent.to(url, first)},
                extensions={"timeout": timeouts},
            )
            answer = await transport.handle_async_request(request)
            try:
                target = answer.headers.get("location")
                if answer.status_code in {301, 302, 303, 307, 308} and target:
                    if len(redirects) >= REDIRECTS_MAX:
                        raise FetchFailed(
                            f"The address redirects more than {REDIRECTS_MAX} times.",
                            status=answer.status_code,
                            code="redirects",
                        )
                    redirects.append(url)
                    try:
                        # Browsers read a blank in an address as %20 too.
                        url = canonical(target.strip().replace(" ", "%20"), base=url)
                    except BadAddress as fault:
                        raise FetchFailed(
                            f"The address redirects to one that {fault}.",
                            status=answer.status_code,
                            code="redirects",
                        ) from None
                    continue
                body = b"" if answer.status_code == 304 else await _body(answer, max_bytes)
            finally:
                await answer.aclose()
            return FetchResult(
                url=url,
                status=answer.status_code,
                headers=dict(answer.headers),
                body=body,
                content_type=answer.headers.get("content-type", ""),
                elapsed_ms=(time.monotonic() - started) * 1000,
                redirects=redirects,
            )

    def _transport(self, *, verify: bool) -> GuardedTransport:
        if verify not in self._transports:
            self._transports[verify] = GuardedTransport(self.egress, verify=verify)
        return self._transports[verify]


async def _body(answer: httpx.Response, max_bytes: int) -> bytes:
    """The decoded body, at most `max_bytes`; a compression bomb stops at the cap, not at the end of memory."""
    coding = answer.headers.get("content-encoding", "").strip().lower()
    if coding not in CODINGS | {"", "identity"}:
        raise FetchFailed(
            f"The page is coded as {coding[:20]}, which was not asked for.",
            status=answer.status_code,
            code="coding",
        )
    inflater = Inflater(coding) if coding in CODINGS else None
    body = bytearray()
    try:
        async for part in answer.aiter_raw():
            body += part if inflater is None else inflater.add(part, max_bytes + 1 - len(body))
            if len(body) > max_bytes or (inflater is not None and inflater.is_cut):
                raise FetchFailed(
                    f"The page is larger than {max_bytes} bytes.",
                    status=answer.status_code,
                    code="too_large",
                    begun=bytes(body[:max_bytes]),
                )
            if inflater is not None and inflater.is_done:
                break
    except zlib.error:
        raise FetchFailed(
            "The page's compression is broken.", status=answer.status_code, code="coding"
        ) from None
    return bytes(body)
