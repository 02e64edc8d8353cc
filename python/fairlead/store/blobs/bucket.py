"""Signed requests to one bucket of an S3-compatible store, tried again where that is safe.

The bucket is in the path, which every such store understands. Each request is signed (AWS Signature Version 4),
with the hash of its body, which the store checks.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

import httpx
import orjson

from fairlead import _core
from fairlead.errors import StorageUnavailable
from fairlead.net.operator_egress import EgressTransport
from fairlead.net.url import split_url
from fairlead.settings.files import BucketLocation

CONNECT_S: Final = 5.0
# Between two pieces of an answer, and for the whole of one that is read at once.
SILENCE_S: Final = 30.0
ANSWER_S: Final = 120.0
TRIES: Final = 4
RETRY_FIRST_S: Final = 0.2
ANSWER_MAX_BYTES: Final = 8 * 1024 * 1024
# Larger bodies are hashed beside the event loop.
_HASHED_HERE_BYTES: Final = 64 * 1024
_PASSING: Final = frozenset({429, 500, 502, 503, 504})
_CODE: Final = re.compile(rb"<Code>([A-Za-z]{1,64})</Code>")


class Bucket:
    """The requests of one bucket. `StorageUnavailable` when the store does not answer, or refuses."""

    def __init__(
        self, location: BucketLocation, access_key_id: str, secret_access_key: str
    ) -> None:
        self._location = location
        self._keys = orjson.dumps(
            {"access_key_id": access_key_id, "secret_access_key": secret_access_key}
        )
        self._host = split_url(location.endpoint).netloc
        self._http = httpx.AsyncClient(
            transport=EgressTransport(),
            timeout=httpx.Timeout(SILENCE_S, connect=CONNECT_S),
            follow_redirects=False,
            trust_env=False,
        )

    @property
    def prefix(self) -> str:
        """The beginning of every name in the bucket."""
        return self._location.prefix

    async def ask(
        self,
        method: str,
        name: str | None,
        query: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> httpx.Response:
        """The answer to a request about an object, or about the bucket, read to its end: 2xx or 404."""
        fault = ""
        for attempt in range(TRIES):
            if attempt:
                await asyncio.sleep(RETRY_FIRST_S * 2**attempt)
            try:
                async with asyncio.timeout(ANSWER_S):
                    answer = await self._send(method, name, query or {}, body)
                    if answer.status_code not in _PASSING:
                        return await self._read(answer, method)
                    fault = str(answer.status_code)
                    await answer.aclose()
            except (httpx.TransportError, TimeoutError) as error:
                fault = type(error).__name__
        raise self._unavailable(f"does not answer ({fault})")

    async def stream(self, name: str, first: int, last: int | None) -> httpx.Response:
        """An answer with an object's bytes, to be read and closed: 200, 206 or 404. Raises `httpx.TransportError`."""
        headers = {} if first == 0 and last is None else {"range": f"bytes={first}-{last or ''}"}
        answer = await self._send("GET", name, {}, b"", headers)
        if answer.status_code in (200, 206, 404):
            return answer
        if answer.status_code in _PASSING:
            await answer.aclose()
            raise httpx.ReadError(str(answer.status_code))
        return await self._read(answer, "GET")

    def lost(self) -> StorageUnavailable:
        """The error of a content that could not be read to its end."""
        return self._unavailable("does not answer")

    async def close(self) -> None:
        """Ends the connections."""
        await self._http.aclose()

    async def _send(
        self,
        method: str,
        name: str | None,
        query: Mapping[str, str],
        body: bytes,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        path = f"/{self._location.bucket}" + ("" if name is None else f"/{self.prefix}{name}")
        text = "&".join(
            f"{key}={quote(value, safe='-_.~')}" for key, value in sorted(query.items())
        )
        arguments = (self._keys, self._location.region, "s3", method, self._host, path, text)
        if len(body) > _HASHED_HERE_BYTES:
            signed = await asyncio.to_thread(_core.sign_aws, *arguments, int(time.time()), body)
        else:
            signed = _core.sign_aws(*arguments, int(time.time()), body)
        url = f"{self._location.endpoint}{path}" + (f"?{text}" if text else "")
        # A content encoding would change the length and the range.
        own = {"accept-encoding": "identity", **dict(signed), **(headers or {})}
        request = self._http.build_request(method, url, headers=own, content=body or None)
        return await self._http.send(request, stream=True)

    async def _read(self, answer: httpx.Response, method: str) -> httpx.Response:
        try:
            content = bytearray()
            async for part in answer.aiter_raw():
                content += part
                if len(content) > ANSWER_MAX_BYTES:
                    raise self._unavailable("answers more than it should")
        finally:
            await answer.aclose()
        read = httpx.Response(answer.status_code, headers=answer.headers, content=bytes(content))
        if answer.is_success or answer.status_code == 404:
            return read
        code = found[1].decode() if (found := _CODE.search(content)) else ""
        raise self._unavailable(f"refuses {method} with {answer.status_code} {code}".rstrip())

    def _unavailable(self, fault: str) -> StorageUnavailable:
        return StorageUnavailable(f"The store of files at {self._host} {fault}.", retry_after_s=5)
