"""A small OpenID provider: real HTTP, real RS256 keys, and a person who has always just agreed.

    with OidcProvider() as provider:
        provider.person = {"sub": "ada", "email": "ada@example.org", "email_verified": True}

It holds its client to the protocol (redirect URI, PKCE, secret, single use of codes). What it gets wrong, it gets wrong
because a test said so: `claims` changes the id token, `sign` replaces its signature, `denies` refuses.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, unquote_plus, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

from tests.support.http_server import LocalServer

CLIENT_ID = "fairlead: tests"
CLIENT_SECRET = "a secret: with % and spaces"

Claims = dict[str, Any]


class OidcProvider(LocalServer):
    """Listens on a free port of this machine while its `with` lasts."""

    def __init__(self) -> None:
        self.person: Claims = {}
        self.userinfo: Claims | None = None
        """What `/userinfo` says; the claims of the id token hold nothing but `sub` then."""
        self.claims: Callable[[Claims], Claims] = dict
        self.sign: Callable[[Claims], str] = self._sign
        self.denies = False
        self.says_iss = True
        self.discovery: Claims = {}
        self.is_down = False
        self.key = self.new_key()
        self.asked: list[dict[str, str]] = []
        """The parameters of every authorization request."""
        self.paths: list[str] = []
        self._codes: dict[str, dict[str, str]] = {}
        self._tokens: set[str] = set()
        super().__init__(_handler(self))
        self.issuer = f"http://{self.authority}"

    def reset(self) -> None:
        """Behaves again, with nobody there."""
        self.person, self.userinfo, self.discovery = {}, None, {}
        self.claims, self.sign, self.denies, self.is_down = dict, self._sign, False, False
        self.says_iss = True

    @staticmethod
    def new_key() -> RSAKey:
        return RSAKey.generate_key(2048, {"kid": secrets.token_hex(4), "use": "sig"})

    def _sign(self, claims: Claims) -> str:
        return jwt.encode({"alg": "RS256", "kid": self.key.kid}, claims, self.key)

    # --- its endpoints: status, headers or body

    def answer(
        self, path: str, query: dict[str, str], form: dict[str, str], authorization: str
    ) -> tuple[int, dict[str, str], Any]:
        self.paths.append(path)
        if self.is_down:
            return 503, {}, {"error": "temporarily_unavailable"}
        if path == "/.well-known/openid-configuration":
            return 200, {}, self._document()
        if path == "/jwks":
            return 200, {}, {"keys": [self.key.as_dict(private=False)]}
        if path == "/authorize":
            return self._authorize(query)
        if path == "/token":
            return self._token(form, authorization)
        if path == "/userinfo" and authorization.removeprefix("Bearer ") in self._tokens:
            return 200, {}, self.userinfo or {}
        return 404, {}, {"error": "not_found"}

    def _document(self) -> Claims:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "authorization_response_iss_parameter_supported": True,
            **self.discovery,
        }

    def _authorize(self, query: dict[str, str]) -> tuple[int, dict[str, str], Any]:
        self.asked.append(query)
        assert query["response_type"] == "code"
        assert query["client_id"] == CLIENT_ID
        assert query["code_challenge_method"] == "S256"
        assert "openid" in query["scope"].split()
        back = {"state": query["state"]}
        if self.says_iss:
            back["iss"] = self.issuer
        if self.denies:
            back["error"] = "access_denied"
        else:
            back["code"] = secrets.token_urlsafe(16)
            self._codes[back["code"]] = query
        return 302, {"Location": f"{query['redirect_uri']}?{urlencode(back)}"}, None

    def _token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, str], Any]:
        scheme, _, credentials = authorization.partition(" ")
        halves = base64.b64decode(credentials).decode().split(":")
        if scheme != "Basic" or [unquote_plus(half) for half in halves] != [
            CLIENT_ID,
            CLIENT_SECRET,
        ]:
            return 401, {}, {"error": "invalid_client"}
        asked = self._codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if (
            asked is None
            or asked["code_challenge"] != challenge
            or asked["redirect_uri"] != form.get("redirect_uri")
        ):
            return 400, {}, {"error": "invalid_grant"}
        now = int(time.time())
        person = self.person if self.userinfo is None else {"sub": self.person["sub"]}
        claims = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "nonce": asked["nonce"],
            **person,
        }
        token = secrets.token_urlsafe(16)
        self._tokens.add(token)
        id_token = self.sign(self.claims(claims))
        return 200, {}, {"access_token": token, "token_type": "Bearer", "id_token": id_token}


def _handler(provider: OidcProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._serve({})

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length", 0))
            self._serve(dict(parse_qsl(self.rfile.read(length).decode())))

        def _serve(self, form: dict[str, str]) -> None:
            parts = urlsplit(self.path)
            query = dict(parse_qsl(parts.query))
            authorization = self.headers.get("authorization", "")
            status, headers, body = provider.answer(parts.path, query, form, authorization)
            text = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Nothing: the tests look at `asked`."""

    return Handler
