"""A tool client written out by hand: every request it makes can be bent in one place.

It speaks to the gateway through any httpx client, in this process or over a socket.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx

FORM = {"content-type": "application/x-www-form-urlencoded"}
REDIRECT = "http://127.0.0.1:53111/callback"


@dataclass
class ToolClient:
    """One registered client with one request under way. `origin` is the issuer."""

    http: httpx.AsyncClient
    origin: str
    headers: dict[str, str] = field(default_factory=dict)
    """Of every request: what a proxy or a test adds."""
    client_id: str = ""
    redirect_uri: str = REDIRECT
    state: str = "st-1"
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))

    @property
    def resource(self) -> str:
        return f"{self.origin}/mcp/rpc"

    @property
    def challenge(self) -> str:
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    async def register(self, name: str = "Test tool", **bent: Any) -> httpx.Response:
        body = {"client_name": name, "redirect_uris": [self.redirect_uri], **bent}
        answer = await self.http.post("/oauth/register", json=body, headers=self.headers)
        if answer.status_code == 201:
            self.client_id = answer.json()["client_id"]
        return answer

    def asked(self, **bent: str | None) -> dict[str, str]:
        """The parameters of the authorization request; None leaves one out."""
        right = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "code_challenge": self.challenge,
            "code_challenge_method": "S256",
            "state": self.state,
            "resource": self.resource,
        }
        return {name: value for name, value in (right | bent).items() if value is not None}

    async def page(
        self, more: str = "", cookie: str | None = None, **bent: str | None
    ) -> httpx.Response:
        return await self.http.get(
            f"/oauth/authorize?{urlencode(self.asked(**bent))}{more}",
            headers=self.headers | _cookie(cookie),
        )

    async def decide(
        self,
        cookie: str | None,
        action: str | None = "approve",
        headers: dict[str, str] | None = None,
        more: str = "",
        **bent: str | None,
    ) -> httpx.Response:
        """The consent form, as the page sends it."""
        fields = self.asked(**bent) | ({} if action is None else {"action": action})
        sent = {"origin": self.origin} if headers is None else headers
        return await self.http.post(
            "/oauth/authorize",
            content=urlencode(fields) + more,
            headers=self.headers | FORM | sent | _cookie(cookie),
        )

    async def code(self, cookie: str) -> str:
        """A fresh code, approved by whoever the cookie is."""
        answer = await self.decide(cookie)
        assert answer.status_code == 302, answer.text
        said = query_of(answer.headers["location"])
        assert said["state"] == self.state
        assert said["iss"] == self.origin
        return said["code"]

    async def post(
        self, path: str, fields: dict[str, str | None], more: str = ""
    ) -> httpx.Response:
        content = urlencode({name: value for name, value in fields.items() if value is not None})
        return await self.http.post(path, content=content + more, headers=self.headers | FORM)

    async def exchange(self, code: str, /, more: str = "", **bent: str | None) -> httpx.Response:
        right: dict[str, str | None] = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "code_verifier": self.verifier,
            "resource": self.resource,
        }
        return await self.post("/oauth/token", right | bent, more)

    async def refresh(self, token: str, /, more: str = "", **bent: str | None) -> httpx.Response:
        right: dict[str, str | None] = {
            "grant_type": "refresh_token",
            "refresh_token": token,
            "client_id": self.client_id,
            "resource": self.resource,
        }
        return await self.post("/oauth/token", right | bent, more)

    async def tokens(self, cookie: str) -> dict[str, Any]:
        """A fresh pair."""
        answer = await self.exchange(await self.code(cookie))
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = answer.json()
        return body


def query_of(url: str) -> dict[str, str]:
    """The parameters of an address, each once."""
    found = parse_qs(urlsplit(url).query, keep_blank_values=True)
    assert all(len(values) == 1 for values in found.values()), url
    return {name: values[0] for name, values in found.items()}


def hidden_fields(page: str) -> dict[str, str]:
    """The hidden fields of a page's forms."""
    return {
        unescape(name): unescape(value)
        for name, value in re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', page)
    }


def _cookie(token: str | None) -> dict[str, str]:
    return {} if token is None else {"cookie": f"auth_token={token}"}
