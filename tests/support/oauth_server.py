"""An authorization server on loopback, of authlib's server side: codes with PKCE, device codes, rotated refresh tokens.

    with OAuthServer() as server:
        server.section()      # what the gateway is told of it
        server.approve(code)  # what a person does on the other device

Who opens the page of sign-in is signed in and approves.
"""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

import httpx
import orjson
from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc6749 import AuthorizationServer, ClientMixin, grants
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload, OAuth2Request
from authlib.oauth2.rfc6750 import BearerTokenGenerator
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc8628 import (
    DeviceAuthorizationEndpoint,
    DeviceCodeGrant,
    DeviceCredentialDict,
)

from tests.support.http_server import LocalServer

CLIENT_ID = "gateway-client"
CLIENT_SECRET = "client-secret-canary"
REDIRECT_URI = "http://127.0.0.1:9/callback"
PERSON = "somebody"


@dataclass
class _Client(ClientMixin):  # type: ignore[misc] # authlib has no types
    redirect_uri: str

    def get_client_id(self) -> str:
        return CLIENT_ID

    def get_default_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_allowed_scope(self, scope: str) -> str:
        return scope

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri == self.redirect_uri

    def check_client_secret(self, client_secret: str) -> bool:
        return client_secret == CLIENT_SECRET

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == "client_secret_basic" or endpoint != "token"

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return True


@dataclass
class _Code:
    redirect_uri: str
    scope: str
    code_challenge: str | None
    code_challenge_method: str | None

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope


@dataclass
class _Refresh:
    token: str
    scope: str

    def check_client(self, client: Any) -> bool:
        return bool(client.get_client_id() == CLIENT_ID)

    def get_scope(self) -> str:
        return self.scope


class _CodeGrant(grants.AuthorizationCodeGrant):  # type: ignore[misc] # authlib has no types
    def save_authorization_code(self, code: str, request: Any) -> None:
        told = request.payload.data
        self.server.codes[code] = _Code(
            request.payload.redirect_uri,
            request.payload.scope or "",
            told.get("code_challenge"),
            told.get("code_challenge_method"),
        )

    def query_authorization_code(self, code: str, client: Any) -> Any:
        return self.server.codes.get(code)

    def delete_authorization_code(self, authorization_code: Any) -> None:
        codes = self.server.codes
        for code in [each for each, kept in codes.items() if kept is authorization_code]:
            del codes[code]

    def authenticate_user(self, authorization_code: Any) -> str:
        return PERSON


class _RefreshGrant(grants.RefreshTokenGrant):  # type: ignore[misc] # authlib has no types
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token: str) -> Any:
        return self.server.refresh_tokens.get(refresh_token)

    def authenticate_user(self, refresh_token: Any) -> str:
        return PERSON

    def revoke_old_credential(self, refresh_token: Any) -> None:
        if not self.server.keeps_old:
            self.server.refresh_tokens.pop(refresh_token.token, None)


class _DeviceEndpoint(DeviceAuthorizationEndpoint):  # type: ignore[misc] # authlib has no types
    INTERVAL = 1

    def get_verification_uri(self) -> str:
        return f"{self.server.url}/device"

    def save_device_credential(self, client_id: str, scope: str, data: dict[str, Any]) -> None:
        expires_at = int(time.time()) + data["expires_in"]
        self.server.devices[data["device_code"]] = DeviceCredentialDict(
            client_id=client_id, scope=scope or "", expires_at=expires_at, **_codes(data)
        )


def _codes(data: dict[str, Any]) -> dict[str, Any]:
    return {name: data[name] for name in ("device_code", "user_code")}


class _DeviceGrant(DeviceCodeGrant):  # type: ignore[misc] # authlib has no types
    TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic",)

    def query_device_credential(self, device_code: str) -> Any:
        return self.server.devices.get(device_code)

    def query_user_grant(self, user_code: str) -> Any:
        approved = self.server.answers.get(user_code)
        return None if approved is None else (PERSON, approved)

    def should_slow_down(self, credential: Any) -> bool:
        return False


class _Core(AuthorizationServer):  # type: ignore[misc] # authlib has no types
    def __init__(self, url: str, lifetime_s: int) -> None:
        super().__init__()
        self.url = url
        self.codes: dict[str, _Code] = {}
        self.refresh_tokens: dict[str, _Refresh] = {}
        self.devices: dict[str, Any] = {}
        self.answers: dict[str, bool] = {}
        self.access_tokens: list[str] = []
        self.keeps_old = False
        self.lifetime_s = lifetime_s
        self.redirect_uri = REDIRECT_URI

        def token(*_: Any, **__: Any) -> str:
            return f"token-canary-{secrets.token_urlsafe(24)}"

        self.register_token_generator(
            "default", BearerTokenGenerator(token, token, lambda *_: self.lifetime_s)
        )
        self.register_grant(_CodeGrant, [CodeChallenge(required=True)])
        self.register_grant(_RefreshGrant)
        self.register_grant(_DeviceGrant)
        self.register_endpoint(_DeviceEndpoint)

    def query_client(self, client_id: str) -> _Client | None:
        return _Client(self.redirect_uri) if client_id == CLIENT_ID else None

    def save_token(self, token: dict[str, Any], request: Any) -> None:
        self.access_tokens.append(token["access_token"])
        refresh = token.get("refresh_token")
        if refresh is not None:
            self.refresh_tokens[refresh] = _Refresh(refresh, token.get("scope", ""))

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Nobody listens."""

    def create_oauth2_request(self, request: Any) -> Any:
        return request

    def handle_response(self, status: int, body: Any, headers: Any) -> tuple[int, Any, Any]:
        return status, body, headers


class OAuthServer:
    """The server, and what tests do to it.

    `refuse_with` is an OAuth error, or a status, that the token endpoint answers with instead; bytes are answered as
    they are, with status 200. While `held` is not
    set, tokens are made and their answer is held back.
    """

    def __init__(self, *, lifetime_s: int = 3600) -> None:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                """Says nothing."""

            def do_GET(self) -> None:
                outer._serve(self, {})

            def do_POST(self) -> None:
                size = int(self.headers.get("content-length", 0))
                outer._serve(self, dict(parse_qsl(self.rfile.read(size).decode())))

        self._local = LocalServer(Handler)
        self.url = f"http://{self._local.authority}"
        self.core = _Core(self.url, lifetime_s)
        self.refuse_with: str | int | bytes | None = None
        self.held = threading.Event()
        self.held.set()
        self.asked = 0
        """Requests of the token endpoint."""
        self.heard: list[str] = []
        """Every request: its path, credentials and form."""
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._local.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.held.set()
        self._local.__exit__(*exc)

    def section(self, **more: Any) -> dict[str, Any]:
        """As `PUT /api/oauth/<provider>/settings` takes it."""
        return {
            "clientId": CLIENT_ID,
            "clientSecret": CLIENT_SECRET,
            "authorizationUrl": f"{self.url}/authorize",
            "tokenUrl": f"{self.url}/token",
            "deviceAuthorizationUrl": f"{self.url}/device_authorization",
            "redirectUri": REDIRECT_URI,
            "scopes": ["models"],
            **more,
        }

    def approve(self, user_code: str, *, approved: bool = True) -> None:
        """What the person on the other device says."""
        self.core.answers[user_code] = approved

    def sign_in(self, authorization_url: str) -> str:
        """What a browser does: the address that it is sent back to."""
        answer = httpx.get(authorization_url, follow_redirects=False, timeout=10)
        assert answer.status_code == 302, answer.text
        return answer.headers["location"]

    @property
    def newest_token(self) -> str:
        """The access token that was given last."""
        return self.core.access_tokens[-1]

    def _serve(self, handler: BaseHTTPRequestHandler, form: dict[str, str]) -> None:
        parts = urlsplit(handler.path)
        self.heard.append(f"{handler.path} {handler.headers.get('authorization')} {form}")
        # The library takes no other scheme; this is loopback.
        request = OAuth2Request(
            handler.command,
            f"https://{self._local.authority}{handler.path}",
            headers=dict(handler.headers),
        )
        request.payload = BasicOAuth2Payload(dict(parse_qsl(parts.query)) | form)
        with self._lock:
            status, body, headers = self._answer(parts.path, request)
        if parts.path == "/token":
            self.held.wait(30)
        data = body.encode() if isinstance(body, str) else orjson.dumps(body)
        try:
            handler.send_response(status)
            for name, value in dict(headers).items():
                handler.send_header(name, value)
            handler.send_header("content-length", str(len(data)))
            handler.end_headers()
            handler.wfile.write(data)
        except OSError:
            handler.close_connection = True  # the gateway was killed

    def _answer(self, path: str, request: Any) -> tuple[int, Any, Any]:
        request.__class__ = _Request
        self.asked += path == "/token"
        json = {"content-type": "application/json"}
        if path == "/authorize":
            try:
                grant = self.core.get_consent_grant(request, PERSON)
            except OAuth2Error as error:
                return 400, {"error": error.error}, json
            answer: tuple[int, Any, Any] = self.core.create_authorization_response(
                request, PERSON, grant
            )
            return answer
        if path == "/device_authorization":
            answer = self.core.create_endpoint_response("device_authorization", request)
        elif isinstance(self.refuse_with, int):
            answer = self.refuse_with, "no", {"content-type": "text/plain"}
        elif isinstance(self.refuse_with, bytes):
            answer = 200, self.refuse_with.decode(), json
        elif self.refuse_with is not None:
            answer = 400, {"error": self.refuse_with}, json
        else:
            answer = self.core.create_token_response(request)
        return answer


class _Request(OAuth2Request):  # type: ignore[misc] # authlib has no types
    @property
    def form(self) -> Any:
        return self.payload.data

    @property
    def args(self) -> Any:
        return self.payload.data
