"""Requests to one address that the machine's environment names, such as its metadata service.

The rules for providers' addresses forbid metadata addresses. Only a connection whose operator chose such a source
uses this client, and the client reaches no other address.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

import httpx

from fairlead.gateway.cloud_credentials.obtained import NotObtained
from fairlead.net.operator_egress import AddressForbidden, trusted_tls

DEADLINE_S: Final = 5.0
MAX_ANSWER_BYTES: Final = 64 * 1024


class _OneOrigin(httpx.AsyncBaseTransport):
    """Reaches one origin and no other. Redirects are not followed, and no proxy is used."""

    def __init__(self, url: httpx.URL) -> None:
        self._origin = _origin(url)
        self._inner = httpx.AsyncHTTPTransport(verify=trusted_tls(), trust_env=False)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if _origin(request.url) != self._origin:
            raise AddressForbidden("this client reaches one address only")
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _bounded(answer: httpx.Response, name: str) -> bytes:
    body = bytearray()
    async for part in answer.aiter_bytes():
        body += part
        if len(body) > MAX_ANSWER_BYTES:
            raise NotObtained(f"{name} answered with too many bytes.")
    return bytes(body)


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


@dataclass(frozen=True, slots=True)
class FixedAddress:
    """A service at one address. `name` is used in messages."""

    name: str
    url: str

    async def ask(
        self, path: str, headers: dict[str, str], method: str = "GET"
    ) -> tuple[int, bytes, httpx.Headers]:
        """The status, the body and the headers of an answer; `NotObtained` when there is none in time."""
        try:
            base = httpx.URL(self.url)
            async with (
                asyncio.timeout(DEADLINE_S),
                httpx.AsyncClient(
                    transport=_OneOrigin(base),
                    follow_redirects=False,
                    timeout=httpx.Timeout(DEADLINE_S),
                    trust_env=False,
                ) as client,
            ):
                request = client.build_request(method, base.join(path), headers=headers)
                answer = await client.send(request, stream=True)
                try:
                    return answer.status_code, await _bounded(answer, self.name), answer.headers
                finally:
                    await answer.aclose()
        except TimeoutError:
            raise NotObtained(f"{self.name} did not answer within {DEADLINE_S:g} s.") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = type(error).__name__
            raise NotObtained(f"{self.name} cannot be reached ({reason}).") from None
