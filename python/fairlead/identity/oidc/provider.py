"""The identity provider, from its discovery document.

It is trusted no further than necessary: the document's issuer must be the configured one, endpoints
are https (http on this machine only), answers are bounded in size and time, redirects are not
followed, and only signatures by asymmetric keys are accepted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

import orjson

from fairlead.errors import UpstreamOverloaded
from fairlead.net.url import split_url
from fairlead.store.sign_on import SignOn

if TYPE_CHECKING:
    from joserfc.jwk import KeySet

ANSWER_MAX_BYTES = 1024 * 1024
REQUEST_DEADLINE_S = 10.0
DOCUMENT_FRESH_S = 600.0
# Tokens with unknown keys must not make us fetch the keys each time.
KEYS_ASKED_AGAIN_EVERY_S = 10.0
# Earlier providers that are kept for sign-ins in progress.
LEFT_MAX = 2


class OidcFailed(Exception):
    """A failed sign-in: `provider`, `state_invalid`, `token`, `email` or `account`. `reason` is for
    the log and holds nothing secret.
    """

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The parts of the discovery document that are used."""

    authorization: str
    token: str
    jwks: str
    userinfo: str | None
    sends_iss: bool
    secret_in_body: bool


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity that the provider confirmed. `email` is verified, or None."""

    issuer: str
    subject: str
    email: str | None
    name: str


class Providers:
    """The provider in the settings, made when first needed and again when the settings name
    another.
    """

    def __init__(self) -> None:
        self._now: tuple[SignOn, Provider] | None = None
        self._left: list[Provider] = []

    async def of(self, sign_on: SignOn) -> Provider | None:
        """The provider; None while there is no single sign-on."""
        if sign_on.issuer is None or sign_on.client_id is None:
            return None
        wanted = replace(sign_on, local_auth_disabled=False)
        if self._now is not None and self._now[0] == wanted:
            return self._now[1]
        secret = sign_on.client_secret
        provider = Provider(
            sign_on.issuer, sign_on.client_id, secret.get_secret_value() if secret else None
        )
        before, self._now = self._now, (wanted, provider)
        if before is not None:
            # Sign-ins may be in progress at the earlier provider.
            self._left.append(before[1])
            if len(self._left) > LEFT_MAX:
                await self._left.pop(0).close()
        return provider

    async def close(self) -> None:
        """Closes all connections."""
        for provider in [*self._left, *([self._now[1]] if self._now else [])]:
            await provider.close()


class Provider:
    """One provider; its document and keys are fetched when needed."""

    def __init__(self, issuer: str, client_id: str, client_secret: str | None) -> None:
        # Imported here because it takes long, and most gateways have no provider.
        import httpx  # noqa: PLC0415

        from fairlead.identity.oidc import signature  # noqa: PLC0415
        from fairlead.net.operator_egress import EgressTransport  # noqa: PLC0415

        self._signature = signature
        self.issuer = issuer
        self.client_id = client_id
        self._client_secret = client_secret
        self._http = httpx.AsyncClient(
            transport=EgressTransport(),
            timeout=REQUEST_DEADLINE_S,
            trust_env=False,
            follow_redirects=False,
        )
        self._http_errors = (httpx.HTTPError, httpx.InvalidURL)
        self._endpoints: tuple[float, Endpoints] | None = None
        self._keys: tuple[float, KeySet] | None = None
        self._asked_again_at_s = -KEYS_ASKED_AGAIN_EVERY_S
        self._fetching = asyncio.Lock()

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def endpoints(self) -> Endpoints:
        """The endpoints of the discovery document; `UpstreamOverloaded` (503) when it cannot be
        fetched.
        """
        async with self._fetching:
            if self._endpoints and time.monotonic() - self._endpoints[0] < DOCUMENT_FRESH_S:
                return self._endpoints[1]
            try:
                url = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
                endpoints = self._read(await self._json("GET", url))
            except OidcFailed as failure:
                raise UpstreamOverloaded(
                    f"The identity provider cannot be used: {failure.reason}.", retry_after_s=10
                ) from failure
            self._endpoints = (time.monotonic(), endpoints)
            return endpoints

    async def exchange(self, code: str, verifier: str, redirect_uri: str, nonce: str) -> Identity:
        """The identity for a code. `OidcFailed` for anything but a complete and valid answer."""
        endpoints = await self.endpoints()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
            "client_id": self.client_id,
        }
        auth = None
        if self._client_secret is not None and endpoints.secret_in_body:
            form["client_secret"] = self._client_secret
        elif self._client_secret is not None:
            # RFC 6749 2.3.1: both halves are form-encoded before they are joined.
            auth = (quote_plus(self.client_id), quote_plus(self._client_secret))
        tokens = await self._json("POST", endpoints.token, data=form, auth=auth)
        id_token = tokens.get("id_token")
        if not isinstance(id_token, str):
            raise OidcFailed("token", "its answer has no id token")
        claims = await self._claims(endpoints, id_token, nonce)
        subject = claims["sub"]
        if "email" not in claims and endpoints.userinfo is not None:
            claims = {**await self._userinfo(endpoints.userinfo, tokens, subject), **claims}
        email, name = claims.get("email"), claims.get("name")
        is_verified = claims.get("email_verified") is True and isinstance(email, str)
        return Identity(
            self.issuer,
            subject,
            email if is_verified else None,
            name if isinstance(name, str) else "",
        )

    async def _claims(self, endpoints: Endpoints, id_token: str, nonce: str) -> dict[str, Any]:
        claims = await self._signed(endpoints, id_token)
        try:
            self._signature.check_claims(
                claims, issuer=self.issuer, client_id=self.client_id, nonce=nonce
            )
        except ValueError as error:
            raise OidcFailed("token", f"its id token is invalid ({error})") from error
        return claims

    async def _signed(self, endpoints: Endpoints, id_token: str) -> dict[str, Any]:
        try:
            keys = await self._key_set(endpoints, again=False)
            return self._signature.signed_claims(id_token, keys)
        except ValueError:
            # The provider may have changed its keys since they were fetched.
            keys = await self._key_set(endpoints, again=True)
        try:
            return self._signature.signed_claims(id_token, keys)
        except ValueError as error:
            raise OidcFailed("token", f"its id token's signature ({error})") from error

    async def _key_set(self, endpoints: Endpoints, *, again: bool) -> KeySet:
        async with self._fetching:
            now_s = time.monotonic()
            if self._keys and now_s - self._keys[0] < DOCUMENT_FRESH_S:
                if not again or now_s - self._asked_again_at_s < KEYS_ASKED_AGAIN_EVERY_S:
                    return self._keys[1]
                self._asked_again_at_s = now_s
            document = await self._json("GET", endpoints.jwks)
            try:
                keys = self._signature.read_keys(document)
            except ValueError as error:
                raise OidcFailed("token", "its keys cannot be read") from error
            self._keys = (time.monotonic(), keys)
            return keys

    async def _userinfo(self, url: str, tokens: dict[str, Any], subject: str) -> dict[str, Any]:
        headers = {"authorization": f"Bearer {tokens.get('access_token', '')}"}
        claims = await self._json("GET", url, headers=headers)
        if claims.get("sub") != subject:
            raise OidcFailed("token", "its userinfo is about another subject")
        return claims

    async def _json(
        self,
        method: str,
        url: str,
        *,
        data: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
    ) -> dict[str, Any]:
        try:
            async with (
                asyncio.timeout(REQUEST_DEADLINE_S),
                self._http.stream(method, url, data=data, headers=headers, auth=auth) as answer,
            ):
                if answer.status_code != 200:
                    raise OidcFailed("token", f"it answered {answer.status_code}")
                body = b""
                async for chunk in answer.aiter_bytes():
                    body += chunk
                    if len(body) > ANSWER_MAX_BYTES:
                        raise OidcFailed("token", "its answer is too large")
            document = orjson.loads(body)
        except (*self._http_errors, TimeoutError) as error:
            raise OidcFailed("token", f"it does not answer ({type(error).__name__})") from error
        except orjson.JSONDecodeError as error:
            raise OidcFailed("token", "its answer is not JSON") from error
        if not isinstance(document, dict):
            raise OidcFailed("token", "its answer is not an object")
        return document

    def _read(self, document: dict[str, Any]) -> Endpoints:
        if document.get("issuer") != self.issuer:
            raise OidcFailed("provider", "its discovery document names another issuer")
        methods = document.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        userinfo = document.get("userinfo_endpoint")
        return Endpoints(
            authorization=self._endpoint(document, "authorization_endpoint"),
            token=self._endpoint(document, "token_endpoint"),
            jwks=self._endpoint(document, "jwks_uri"),
            userinfo=self._endpoint(document, "userinfo_endpoint") if userinfo else None,
            sends_iss=document.get("authorization_response_iss_parameter_supported") is True,
            secret_in_body="client_secret_basic" not in methods and "client_secret_post" in methods,
        )

    def _endpoint(self, document: dict[str, Any], name: str) -> str:
        url = document.get(name)
        allowed = {"https", split_url(self.issuer).scheme}
        try:
            is_right = isinstance(url, str) and split_url(url).scheme in allowed and "#" not in url
        except ValueError:
            is_right = False
        if not is_right:
            raise OidcFailed("provider", f"its {name} is not an https address")
        return str(url)
