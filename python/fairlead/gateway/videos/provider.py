"""Calls of the providers that make videos: begin one, ask for its status, read it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Final

import httpx
import orjson

from fairlead import _core
from fairlead.errors import (
    FairleadError,
    InvalidRequest,
    ModelNotFound,
    NotFound,
    UpstreamAuth,
    UpstreamInvalid,
    UpstreamRateLimited,
    UpstreamRefused,
    UpstreamReset,
    UpstreamStatus,
    UpstreamTimeout,
)
from fairlead.gateway.providers.access_token import TokenRefused
from fairlead.gateway.providers.client import fetch, open_client, send_bounded
from fairlead.gateway.providers.probe import headers_for
from fairlead.gateway.videos.targets import OPENAI, VideoTarget
from fairlead.net.egress import AddressForbidden as NotPublic
from fairlead.net.egress import Egress, NameUnknown
from fairlead.net.operator_egress import AddressForbidden, EgressTransport

BEGIN_DEADLINE_S: Final = 50.0
ASK_DEADLINE_S: Final = 30.0
HEAD_DEADLINE_S: Final = 30.0
IDLE_S: Final = 50.0
REDIRECTS_MAX: Final = 3
MESSAGE_MAX_CHARS: Final = 500

_NAME = re.compile(r"[A-Za-z0-9._~:@-]+(/[A-Za-z0-9._~:@-]+)*")
_NAME_MAX_CHARS: Final = 512


@dataclass(frozen=True, slots=True)
class OperationStatus:
    """A provider's answer about an operation. `fault` is the HTTP status of an answer that is no
    operation, 0 where there was no answer; `progress` is 0 to 100 where the provider tells it.
    """

    operation: dict[str, Any] | None = None
    fault: int | None = None
    progress: int | None = None


@dataclass(frozen=True, slots=True)
class ProviderCall:
    """A request that begins a video at one provider: the path below its base URL, the body, and the member of
    the answer that has the provider's name of it.
    """

    path: str
    content: bytes
    content_type: str
    name_member: str


VideoRequest = Callable[[VideoTarget], ProviderCall]
"""The request in the format of a target; raises `InvalidRequest` if the target cannot express it."""


def google_request(body: dict[str, Any]) -> VideoRequest:
    """A `predictLongRunning` call with this body."""
    content = orjson.dumps(body)

    def call(target: VideoTarget) -> ProviderCall:
        path = f"/{_core.model_address(target.model)}:predictLongRunning"
        return ProviderCall(path, content, "application/json", "name")

    return call


async def begin(targets: list[VideoTarget], request: VideoRequest) -> tuple[VideoTarget, str]:
    """Begins a video at the first target that accepts it; returns that target and the provider's
    name of the operation. A refusal goes on to the next target; an unclear outcome does not,
    because a video may have been begun.
    """
    refusal: FairleadError | None = None
    try:
        async with asyncio.timeout(BEGIN_DEADLINE_S):
            for target in targets:
                try:
                    call = request(target)
                except InvalidRequest as error:
                    refusal = refusal or error
                    continue
                try:
                    async with open_client(target.endpoint.proxy) as client:
                        return target, await _begin(client, target, call)
                except (
                    ModelNotFound,
                    UpstreamAuth,
                    UpstreamRateLimited,
                    UpstreamRefused,
                    UpstreamStatus,
                ) as error:
                    refusal = refusal or error
    except TimeoutError:
        raise UpstreamTimeout(
            f"The provider did not begin the video within {BEGIN_DEADLINE_S:g} s."
        ) from None
    raise refusal or UpstreamRefused("No connection is left to ask for the video.")


async def read_status(target: VideoTarget, name: str) -> OperationStatus:
    """The status of an operation. Never raises for errors of the provider or the network."""
    try:
        async with asyncio.timeout(ASK_DEADLINE_S), open_client(target.endpoint.proxy) as client:
            headers = await headers_for(client, target.endpoint, target.credentials)
            is_openai = target.endpoint.dialect == OPENAI
            path = f"videos/{name}" if is_openai else name
            status, body = await fetch(client, f"{_base(target)}/{path}", headers)
    except (TimeoutError, httpx.HTTPError, TokenRefused):
        return OperationStatus(fault=0)
    if status != 200:
        return OperationStatus(fault=status)
    document = _object(body)
    if document is None:
        return OperationStatus(fault=502)
    return (
        _status_of(document, f"{_base(target)}/{path}") if is_openai else OperationStatus(document)
    )


def _status_of(video: dict[str, Any], address: str) -> OperationStatus:
    """A video in OpenAI's format as an operation: its content is below its own URL."""
    state, progress = video.get("status"), video.get("progress")
    percent = progress if isinstance(progress, int) and 0 <= progress <= 100 else None
    if state == "completed":
        sample = {"video": {"uri": f"{address}/content"}}
        made = {"generateVideoResponse": {"generatedSamples": [sample]}}
        return OperationStatus({"done": True, "response": made}, progress=100)
    if state == "failed":
        fault = video.get("error")
        message = fault.get("message") if isinstance(fault, dict) else None
        return OperationStatus({"done": True, "error": {"message": message}}, progress=percent)
    is_under_way = state in ("queued", "in_progress")
    return OperationStatus({}, progress=percent) if is_under_way else OperationStatus(fault=502)


async def delete_at(target: VideoTarget, name: str) -> None:
    """Deletes a video at a provider in OpenAI's dialect. A video that the provider does not know any more counts
    as deleted.
    """
    try:
        async with (
            asyncio.timeout(ASK_DEADLINE_S),
            open_client(target.endpoint.proxy) as client,
        ):
            headers = await headers_for(client, target.endpoint, target.credentials)
            request = client.build_request(
                "DELETE", f"{_base(target)}/videos/{name}", headers=headers
            )
            status, _ = await send_bounded(request, client)
    except (TimeoutError, httpx.HTTPError, TokenRefused) as error:
        raise _unread(error) from None
    if status not in (200, 204, 404):
        raise UpstreamStatus(f"The provider did not delete the video ({status}).")


async def open_video(
    egress: Egress, target: VideoTarget, uri: str
) -> tuple[str, int | None, AsyncIterator[bytes]]:
    """A video's content type, its size if known, and its bytes as they come. The connection's
    credential is sent to the connection's own origin only; other addresses are read without one.
    """

    async def public(host: str, port: int) -> list[str]:
        try:
            return await egress.resolve(host, port)
        except (NotPublic, NameUnknown) as error:
            raise AddressForbidden(str(error)) from None

    url = _read_address(uri)
    for _ in range(REDIRECTS_MAX + 1):
        is_own = _origin(url) == _origin(httpx.URL(target.endpoint.base_url))
        client = (
            open_client(target.endpoint.proxy)
            if is_own or target.endpoint.proxy is not None
            else _open_public(EgressTransport(public))
        )
        answer = None
        try:
            if not is_own:
                # Through a proxy too, a provider's word leads to no private address.
                await public(url.host, url.port or 443)
            headers = (
                await headers_for(client, target.endpoint, target.credentials) if is_own else {}
            )
            headers |= {"accept": "*/*", "accept-encoding": "identity"}
            async with asyncio.timeout(HEAD_DEADLINE_S):
                request = client.build_request("GET", url, headers=headers)
                answer = await client.send(request, stream=True)
        except (TimeoutError, httpx.HTTPError, TokenRefused) as error:
            raise _unread(error) from None
        finally:
            if answer is None:
                await client.aclose()
        if not answer.is_redirect:
            break
        location = answer.headers.get("location", "")
        await answer.aclose()
        await client.aclose()
        url = _read_address(location, url)
    else:
        raise UpstreamInvalid("The URL of the video redirects too often.")
    if answer.status_code != 200:
        status = answer.status_code
        await answer.aclose()
        await client.aclose()
        raise _refusal(status, b"") if status != 404 else NotFound("The video is gone.")
    content_length = answer.headers.get("content-length", "")
    size = int(content_length) if content_length.isascii() and content_length.isdigit() else None
    kind = answer.headers.get("content-type", "application/octet-stream")
    return kind, size, _chunks(client, answer)


async def _begin(client: httpx.AsyncClient, target: VideoTarget, call: ProviderCall) -> str:
    try:
        headers = await headers_for(client, target.endpoint, target.credentials)
        headers |= {"content-type": call.content_type}
        url = _base(target) + call.path
        request = client.build_request("POST", url, content=call.content, headers=headers)
        status, answer = await send_bounded(request, client)
    except TokenRefused as error:
        raise UpstreamAuth(str(error)) from None
    except (AddressForbidden, httpx.ConnectError, httpx.ConnectTimeout):
        raise UpstreamRefused("There is no connection to the provider.") from None
    except httpx.HTTPError:
        raise UpstreamReset("The provider broke the connection.") from None
    if status not in (200, 201, 202):
        raise _refusal(status, answer)
    document = _object(answer) or {}
    name = document.get(call.name_member)
    if (
        not isinstance(name, str)
        or len(name) > _NAME_MAX_CHARS
        or _NAME.fullmatch(name) is None
        or any(part in (".", "..") for part in name.split("/"))
    ):
        raise UpstreamInvalid("The provider's answer names no operation.")
    return name


def _refusal(status: int, body: bytes) -> FairleadError:
    if status in (401, 402, 403):
        return UpstreamAuth(f"The provider refused the credential ({status}).")
    if status == 404:
        return ModelNotFound("The provider makes no videos of this model.", param="model")
    if status == 429:
        return UpstreamRateLimited("The provider's rate limit is reached.", retry_after_s=10)
    if 400 <= status < 500:
        # Only the provider knows the error in the caller's request, so its message is passed on.
        fault = (_object(body) or {}).get("error")
        message = fault.get("message") if isinstance(fault, dict) else None
        reason = f": {message[:MESSAGE_MAX_CHARS]}" if isinstance(message, str) else "."
        return InvalidRequest(f"The provider refused the request ({status}){reason}")
    return UpstreamStatus(f"The provider answered {status}.")


def _unread(error: Exception) -> FairleadError:
    if isinstance(error, TokenRefused):
        return UpstreamAuth(str(error))
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        return UpstreamTimeout("The provider did not send the video in time.")
    return UpstreamRefused("The video cannot be read at the address that the provider gave.")


def _read_address(text: str, base: httpx.URL | None = None) -> httpx.URL:
    try:
        url = httpx.URL(text) if base is None else base.join(text)
    except httpx.InvalidURL:
        raise UpstreamInvalid("The provider's answer has no address of the video.") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise UpstreamInvalid("The provider's answer has no address of the video.")
    return url


async def _chunks(client: httpx.AsyncClient, answer: httpx.Response) -> AsyncIterator[bytes]:
    chunks = answer.aiter_raw()
    try:
        while True:
            async with asyncio.timeout(IDLE_S):
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            yield chunk
    finally:
        await answer.aclose()
        await client.aclose()


def _open_public(transport: httpx.AsyncBaseTransport) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=transport,
        follow_redirects=False,
        timeout=httpx.Timeout(IDLE_S, connect=5.0),
        trust_env=False,
    )


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _base(target: VideoTarget) -> str:
    return target.endpoint.base_url.rstrip("/")


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return document if isinstance(document, dict) else None
