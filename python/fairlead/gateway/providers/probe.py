"""A probe asks a provider for its models: whether the address answers, whether the credential is
valid, which models are served.

No completion is requested, so a probe costs nothing. No text of the provider gets into an error message.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx
import orjson

from fairlead import _core
from fairlead.gateway.outbound.tunnel import ProxyFailed
from fairlead.gateway.providers.access_token import TokenRefused, access_token
from fairlead.gateway.providers.client import fetch, open_client
from fairlead.gateway.providers.credentials import Credentials
from fairlead.gateway.providers.endpoint import Endpoint
from fairlead.gateway.providers.models import NotAList, parse_models
from fairlead.moment import now_ms
from fairlead.net.connection_fault import cause_of, shown_address
from fairlead.net.operator_egress import AddressForbidden

DEADLINE_S = 15.0
ANTHROPIC_VERSION = "2023-06-01"

Diagnosis = Literal[
    "ok",
    "auth",
    "credits_exhausted",
    "rate_limited",
    "not_found",
    "redirect",
    "upstream_error",
    "invalid_answer",
    "address_refused",
    "network",
    "proxy",
    "timeout",
]

_UNLISTED = "The provider lists no models: the catalogue's are used, and the key is untested."

# The connection's `testStatus` for each diagnosis.
TEST_STATUS: dict[Diagnosis, str] = {
    "ok": "active",
    "auth": "error",
    "credits_exhausted": "credits_exhausted",
    "rate_limited": "rate_limited",
    "not_found": "error",
    "redirect": "error",
    "upstream_error": "unavailable",
    "invalid_answer": "error",
    "address_refused": "error",
    "network": "unavailable",
    "proxy": "unavailable",
    "timeout": "unavailable",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a probe. `status_code` is None when there was no answer, `models` when there
    was no list.
    """

    diagnosis: Diagnosis
    error: str | None
    latency_ms: int
    status_code: int | None = None
    warning: str | None = None
    models: list[dict[str, Any]] | None = field(default=None, repr=False)

    @property
    def valid(self) -> bool:
        """Whether the connection can be used."""
        return self.diagnosis == "ok"


async def probe(
    endpoint: Endpoint, credentials: Credentials, deadline_s: float = DEADLINE_S
) -> Finding:
    """Sends one request, within the deadline. Never raises for errors of the provider or the
    network.
    """
    started = time.monotonic()
    account = credentials.service_account if endpoint.auth == "google-service-account" else None
    tried = str((account or {}).get("token_uri") or endpoint.check_url or endpoint.models_url)

    def found(diagnosis: Diagnosis, error: str | None, **more: Any) -> Finding:
        latency_ms = round((time.monotonic() - started) * 1000)
        sentence = error and f"{error} The address tried was {shown_address(tried)}."
        return Finding(diagnosis, sentence, latency_ms, **more)

    try:
        async with asyncio.timeout(deadline_s), open_client(endpoint.proxy) as client:
            headers = await headers_for(client, endpoint, credentials)
            if endpoint.check_url is not None:
                tried = endpoint.check_url
                status, _ = await fetch(client, endpoint.check_url, headers)
                if status != 200:
                    return found(*_diagnose(status), status_code=status)
            if endpoint.models_url is None:
                return found("ok", None, warning=_UNLISTED)
            tried = endpoint.models_url
            status, body = await fetch(client, endpoint.models_url, headers)
    except TokenRefused as error:
        return found("auth", str(error))
    except TimeoutError:
        return found("timeout", f"The provider did not answer within {deadline_s:g} s.")
    except AddressForbidden:
        return found(
            "address_refused",
            "The host leads to a link-local, metadata or multicast address: never dialled.",
        )
    except ProxyFailed as error:
        return found("proxy", str(error))
    except httpx.HTTPError as error:
        return found(*_unanswered(error))
    except Exception as error:  # noqa: BLE001 - a stored key that no header can have, an address that is none: a finding about it
        kind = type(error).__name__
        return found("network", f"The provider could not be asked ({kind}): check key and address.")
    if status != 200:
        return found(*_diagnose(status), status_code=status)
    try:
        models = parse_models(orjson.loads(body))
    except (orjson.JSONDecodeError, NotAList):
        return found(
            "invalid_answer",
            "The provider's answer is not a list of models: check the base URL.",
            status_code=status,
        )
    warning = None if models else "The provider lists no model."
    return found("ok", None, status_code=status, warning=warning, models=models)


async def headers_for(
    client: httpx.AsyncClient, endpoint: Endpoint, credentials: Credentials
) -> dict[str, str]:
    """The headers that authenticate a call of a provider; where calls are signed, the signature is
    for the list of models.
    """
    headers = {"accept": "application/json", **credentials.headers}
    if endpoint.dialect == "anthropic":
        headers.setdefault("anthropic-version", ANTHROPIC_VERSION)
    if endpoint.auth == "aws-sigv4":
        return {**headers, **_signature(endpoint, credentials)}
    if endpoint.auth == "google-service-account":
        token = await access_token(client, credentials.service_account or {})
        return {**headers, "authorization": f"Bearer {token}"}
    if credentials.api_key is None or endpoint.auth == "none":
        return headers
    if endpoint.auth == "bearer":
        return {**headers, "authorization": f"Bearer {credentials.api_key}"}
    return {**headers, endpoint.auth: credentials.api_key}


def _signature(endpoint: Endpoint, credentials: Credentials) -> dict[str, str]:
    scope, url = endpoint.aws or {}, httpx.URL(endpoint.models_url or endpoint.base_url)
    signed = _core.sign_aws(
        orjson.dumps(credentials.aws),
        scope["region"],
        scope["service"],
        "GET",
        url.netloc.decode(),
        url.raw_path.partition(b"?")[0].decode(),
        url.query.decode(),
        now_ms() // 1000,
    )
    return dict(signed)


def _unanswered(error: httpx.HTTPError) -> tuple[Diagnosis, str]:
    if isinstance(error, httpx.TimeoutException):
        return "timeout", "The provider did not accept a connection in time."
    if isinstance(error, httpx.ConnectError):
        return "network", f"No connection to the provider: {cause_of(error)}."
    return "network", "The provider broke the connection or does not speak HTTP."


def _diagnose(status: int) -> tuple[Diagnosis, str]:
    if status in {401, 403}:
        return "auth", f"The provider refused the credential with {status}."
    if status == 402:
        return "credits_exhausted", "The provider requires payment (402)."
    if status == 429:
        return "rate_limited", "The provider's rate limit is reached (429)."
    if status in {404, 405}:
        return (
            "not_found",
            f"The provider has no list of models there ({status}): check the base URL.",
        )
    if 300 <= status < 400:
        advice = "which is not followed with a key: set the base URL that it leads to"
        return "redirect", f"The provider answered with a redirect ({status}), {advice}."
    return "upstream_error", f"The provider answered {status}."
