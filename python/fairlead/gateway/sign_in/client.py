"""The OAuth client of control: authlib's, over control's own way out (checked addresses, outbound proxies, bounded
answers).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import httpx
from authlib.oauth2 import OAuth2Error
from authlib.oauth2.client import OAuth2Client

from fairlead.errors import InvalidRequest, UpstreamInvalid, UpstreamRefused, UpstreamTimeout
from fairlead.gateway.outbound.table import Proxy
from fairlead.gateway.outbound.tunnel import ProxyFailed
from fairlead.gateway.providers.client import open_client, send_bounded
from fairlead.gateway.sign_in.section import Section
from fairlead.moment import now_ms
from fairlead.net.secret_origin import check_given_for

DEADLINE_S: Final = 20.0
DEVICE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
DEVICE_INTERVAL_S: Final = 5
TOKEN_MAX_CHARS: Final = 100_000
# Providers that say longer are not believed.
LIFETIME_MAX_S: Final = 366 * 86_400
FLOW_MAX_S: Final = 1_800


class Refused(Exception):
    """The provider's token service said no; `code` is its word for it (RFC 6749, section 5.2)."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Unreached(Exception):
    """The provider gave no answer that could be used; trying again may help. The text says why."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens that a provider gave. Its printed form does not contain it. `expires_at_ms` is None where the
    provider does not say it.
    """

    access: str = field(repr=False)
    refresh: str | None = field(repr=False)
    expires_at_ms: int | None
    given_by: str | None = None
    """The address that gave them, and the only one that gets the refresh token."""


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """The code that a person enters on another device, and the one that is asked about meanwhile."""

    device_code: str = field(repr=False)
    user_code: str
    verification_uri: str
    verification_uri_complete: str | None
    interval_s: int
    expires_in_s: int


class _Client(OAuth2Client):  # type: ignore[misc] # authlib has no types
    """authlib's client, whose requests are awaited."""

    async def _fetch_token(
        self, url: str, body: str, headers: dict[str, str], auth: Any, **_: Any
    ) -> Any:
        return self.parse_response_token(await self.post_form(url, body, headers, auth))

    async def _refresh_token(
        self, url: str, body: str, headers: dict[str, str], auth: Any, **_: Any
    ) -> Any:
        return self.parse_response_token(await self.post_form(url, body, headers, auth))

    async def post_form(
        self, url: str, body: str, headers: dict[str, str], auth: Any = None
    ) -> httpx.Response:
        auth = auth or self.client_auth(self.token_endpoint_auth_method)
        url, headers, body = auth.prepare("POST", url, dict(headers), body)
        request = self.session.build_request("POST", url, headers=headers, content=body)
        status, answer = await send_bounded(request, self.session)
        return httpx.Response(status, content=answer, request=request)


class SignInClient:
    """The client of one section."""

    def __init__(self, section: Section, proxy: Proxy | None) -> None:
        self._section = section
        self._proxy = proxy

    def authorization_url(self, state: str, verifier: str, redirect_uri: str) -> str:
        """The sign-in URL for a person, with PKCE (RFC 7636)."""
        fields = self._section.fields
        client = self._make(None)
        url, _ = client.create_authorization_url(
            self._section.need("authorization_url"),
            state=state,
            code_verifier=verifier,
            redirect_uri=redirect_uri,
            scope=" ".join(fields.scopes or []) or None,
            **(fields.authorize_params or {}),
        )
        return str(url)

    async def exchange(
        self, code: str, verifier: str, redirect_uri: str | None, origins: str | None
    ) -> Tokens:
        """A code for tokens, at one of the `origins` that the sign-in was begun for. `Refused` and `Unreached` as
        below.
        """
        url = self._token_url("state", origins)
        async with self._open() as client:
            token = await client.fetch_token(
                url,
                grant_type="authorization_code",
                code=code,
                code_verifier=verifier,
                redirect_uri=redirect_uri,
            )
            return _read(token, url)

    async def refresh(self, refresh_token: str, origins: str | None) -> Tokens:
        """A refresh token for new tokens, at one of the `origins` that it was given by; the old refresh token
        stays where no
        new one comes. `Refused` when the provider says no, `Unreached` when it says nothing that can be used.
        """
        url = self._token_url("refreshToken", origins)
        async with self._open() as client:
            token = await client.refresh_token(url, refresh_token)
            return _read({"refresh_token": refresh_token, **token}, url)

    async def begin_device(self) -> DeviceCode:
        """Asks for a code that a person enters elsewhere (RFC 8628)."""
        url = self._section.need("device_authorization_url")
        self._section.check_secret(url)
        scope = " ".join(self._section.fields.scopes or [])
        async with self._open() as client:
            body = str(httpx.QueryParams({"scope": scope})) if scope else ""
            answer = await client.post_form(url, body, _HEADERS)
            document = answer.json() if answer.status_code == 200 else None
            if not isinstance(document, dict):
                raise Refused(_error_of(answer))
            return _read_device(document)

    async def poll_device(self, device_code: str, origins: str | None) -> Tokens:
        """Asks whether the person is done; until then `Refused` with `authorization_pending`."""
        url = self._token_url("state", origins)
        async with self._open() as client:
            token = await client.fetch_token(url, grant_type=DEVICE_GRANT, device_code=device_code)
            return _read(token, url)

    def _token_url(self, field: str, origins: str | None) -> str:
        """The token service's address. `InvalidRequest` where it is at another origin than the client secret, or
        the secret of this `field`, was given for.
        """
        url = self._section.need("token_url")
        self._section.check_secret(url)
        check_given_for(field, origins, url)
        return url

    def _make(self, http: httpx.AsyncClient | None) -> _Client:
        fields = self._section.fields
        return _Client(
            http,
            client_id=self._section.need("client_id"),
            client_secret=self._section.client_secret,
            token_endpoint_auth_method=fields.token_auth,
            code_challenge_method="S256",
        )

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[_Client]:
        try:
            async with asyncio.timeout(DEADLINE_S), open_client(self._proxy) as http:
                yield self._make(http)
        except OAuth2Error as error:
            raise Refused(_code(error.error)) from None
        except TimeoutError:
            raise Unreached(f"The token service did not answer within {DEADLINE_S:g} s.") from None
        except ProxyFailed as error:
            raise Unreached(str(error)) from None
        except httpx.HTTPStatusError as error:
            status = error.response.status_code
            raise Unreached(f"The token service answered {status}.") from None
        except httpx.HTTPError:
            raise Unreached("The token service cannot be reached.") from None
        except (ValueError, TypeError, AttributeError, OverflowError):
            # A list in place of an object, or a lifetime of 1e400 seconds, which JSON reads as infinity.
            raise Unreached("The token service's answer is no token.") from None


_HEADERS: Final = {
    "accept": "application/json",
    "content-type": "application/x-www-form-urlencoded;charset=UTF-8",
}


def _code(error: object) -> str:
    """A provider's error code, which is stored and shown: what RFC 6749 does not allow in one is `?`."""
    text = str(error or "")[:100]
    return "".join(each if "\x20" <= each <= "\x7e" else "?" for each in text)


def _error_of(answer: httpx.Response) -> str:
    try:
        document = answer.json()
    except ValueError:
        document = None
    error = document.get("error") if isinstance(document, dict) else None
    return _code(error) if isinstance(error, str) else f"http_{answer.status_code}"


def _read(token: dict[str, Any], given_by: str) -> Tokens:
    access, refresh, lifetime = (
        token.get(name) for name in ("access_token", "refresh_token", "expires_in")
    )
    if not _is_token(access) or not (refresh is None or _is_token(refresh)):
        raise ValueError("no token")
    expires_at_ms = None
    if lifetime is not None:
        expires_at_ms = now_ms() + max(0, min(int(lifetime), LIFETIME_MAX_S)) * 1000
    return Tokens(str(access), refresh, expires_at_ms, given_by)


def _is_token(text: object) -> bool:
    return (
        isinstance(text, str)
        and 0 < len(text) <= TOKEN_MAX_CHARS
        and all("\x21" <= each <= "\x7e" for each in text)
    )


def _read_device(document: dict[str, Any]) -> DeviceCode:
    texts = [document.get(name) for name in ("device_code", "user_code")]
    address = document.get("verification_uri") or document.get("verification_url")
    if not all(isinstance(each, str) and 0 < len(each) <= 2048 for each in (*texts, address)):
        raise ValueError("no device code")
    complete = document.get("verification_uri_complete")
    return DeviceCode(
        str(texts[0]),
        str(texts[1]),
        str(address),
        complete if isinstance(complete, str) else None,
        max(1, min(int(document.get("interval") or DEVICE_INTERVAL_S), 60)),
        max(1, min(int(document.get("expires_in") or FLOW_MAX_S), FLOW_MAX_S)),
    )


def as_answer(error: Refused | Unreached) -> Exception:
    """A failure in the form for its caller."""
    if isinstance(error, Refused):
        return InvalidRequest(
            f"The provider's token service refused with `{error.code}`.", param="provider"
        )
    text = str(error)
    if "within" in text:
        return UpstreamTimeout(text)
    return UpstreamInvalid(text) if "no token" in text else UpstreamRefused(text)
