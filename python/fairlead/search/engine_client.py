"""A search request to one engine over HTTP."""

from __future__ import annotations

import asyncio
from typing import Final

import httpx

from fairlead import __version__
from fairlead.errors import (
    FairleadError,
    UpstreamAuth,
    UpstreamInvalid,
    UpstreamRateLimited,
    UpstreamStatus,
    UpstreamTimeout,
)
from fairlead.net.operator_egress import EgressTransport
from fairlead.search.engines import ENGINES, read_results
from fairlead.search.query import SearchQuery, SearchResult

DEADLINE_S: Final = 15.0
ANSWER_MAX_BYTES: Final = 5 * 1024 * 1024


async def query_engine(
    kind: str, base_url: str, key: str, query: SearchQuery
) -> list[SearchResult]:
    """Queries an engine and returns at most `max_results` results.

    Raises a `FairleadError` of the upstream kinds, which never quotes the engine's response.
    """
    request = ENGINES[kind].build_request(query, key)
    headers = {
        "user-agent": f"fairlead/{__version__}",
        "accept-encoding": "identity",
        **request.headers,
    }
    body = bytearray()
    try:
        async with (
            asyncio.timeout(DEADLINE_S),
            # The operator set this address, so private networks are allowed.
            httpx.AsyncClient(transport=EgressTransport(), trust_env=False) as client,
            client.stream(
                request.method,
                f"{base_url.rstrip('/')}{request.path}",
                headers=headers,
                content=request.body,
            ) as answer,
        ):
            if answer.status_code != 200:
                raise _refusal(kind, answer)
            async for part in answer.aiter_raw():
                body += part
                if len(body) > ANSWER_MAX_BYTES:
                    raise UpstreamInvalid(f"The answer of {kind} is too large.")
    except TimeoutError:
        raise UpstreamTimeout(f"{kind} did not answer within {DEADLINE_S:g} s.") from None
    except httpx.HTTPError:
        raise UpstreamInvalid(f"{kind} did not answer.") from None
    return read_results(kind, bytes(body))[: query.max_results]


def _refusal(kind: str, answer: httpx.Response) -> FairleadError:
    status = answer.status_code
    if status in (401, 402, 403):
        return UpstreamAuth(f"{kind} refused the credential ({status}).")
    if status == 429:
        retry_after = answer.headers.get("retry-after", "")
        after_s = (
            min(int(retry_after), 3600) if retry_after.isascii() and retry_after.isdigit() else 1
        )
        return UpstreamRateLimited(f"{kind} limits this gateway.", retry_after_s=max(1, after_s))
    return UpstreamStatus(f"{kind} answered {status}.")
