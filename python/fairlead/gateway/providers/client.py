"""HTTP requests from control to providers, with answers of bounded size."""

from __future__ import annotations

import httpx

from fairlead.gateway.outbound.table import Proxy
from fairlead.gateway.outbound.tunnel import ProxyTransport
from fairlead.net.operator_egress import EgressTransport

MAX_ANSWER_BYTES = 16 * 1024 * 1024
CONNECT_S = 5.0


class AnswerTooLarge(httpx.HTTPError):
    """The answer has more bytes than any valid one."""


def open_client(proxy: Proxy | None = None) -> httpx.AsyncClient:
    """An HTTP client for a few requests, all of them through the proxy if there is one; the caller closes
    it.
    """
    return httpx.AsyncClient(
        transport=EgressTransport() if proxy is None else ProxyTransport(proxy),
        follow_redirects=False,
        timeout=httpx.Timeout(None, connect=CONNECT_S),
        trust_env=False,
    )


async def fetch(client: httpx.AsyncClient, url: str, headers: dict[str, str]) -> tuple[int, bytes]:
    """GET: the status and the body, at most `MAX_ANSWER_BYTES`; `httpx.HTTPError` when there is no
    answer.
    """
    return await send_bounded(client.build_request("GET", url, headers=headers), client)


async def post(
    client: httpx.AsyncClient, url: str, body: bytes, headers: dict[str, str]
) -> tuple[int, bytes]:
    """POST of a JSON body; returns like `fetch`."""
    headers = {**headers, "content-type": "application/json"}
    return await send_bounded(
        client.build_request("POST", url, content=body, headers=headers), client
    )


async def exchange(client: httpx.AsyncClient, url: str, form: dict[str, str]) -> tuple[int, bytes]:
    """POST of a form; returns like `fetch`."""
    headers = {"accept": "application/json"}
    return await send_bounded(client.build_request("POST", url, data=form, headers=headers), client)


async def send_bounded(request: httpx.Request, client: httpx.AsyncClient) -> tuple[int, bytes]:
    """Sends a request that was built; returns like `fetch`."""
    answer = await client.send(request, stream=True)
    try:
        body = bytearray()
        async for part in answer.aiter_bytes():
            body += part
            if len(body) > MAX_ANSWER_BYTES:
                raise AnswerTooLarge("the answer is too large")
        return answer.status_code, bytes(body)
    finally:
        await answer.aclose()
