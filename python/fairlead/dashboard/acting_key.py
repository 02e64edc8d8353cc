"""Routes that know no caller but an API key, called for a key that the visitor manages.

Files, batches and scraping belong to keys. People who manage the gateway create and revoke keys, so they may
act with any valid key; the key's rules apply to their actions.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fairlead import _core
from fairlead.calls.caller import caller_of
from fairlead.dashboard.api import Api, Refused
from fairlead.dashboard.figures import parse_time
from fairlead.dashboard.names import read_keys
from fairlead.dashboard.page import FormFields, Visit
from fairlead.moment import moment_of, now_ms
from fairlead.records.key_access import is_listed, is_open

PRINCIPAL: Final = b"x-fairlead-principal"
FORM: Final = b"x-fairlead-form"
KEY: Final = "key"
"""The name of the choice in addresses and forms."""


class KeyApi(Api):
    """The routes of keys, called as one of them."""

    def __init__(self, request: Request, key_id: str) -> None:
        super().__init__(request)
        self.key_id = key_id

    def may(self, method: str, path: str) -> bool:
        """Whether the route is one of keys, and the visitor manages them."""
        principal = caller_of(self._request).principal
        manages = principal.kind == "local" or (
            principal.kind == "session" and "manage" in principal.scopes
        )
        return manages and _core.tier_of(method, path) == "key"

    async def upload(self, name: str, purpose: str, content: bytes) -> Any:
        """Stores a file; `name` as it is shown."""
        upload = {"fields": {"purpose": purpose}, "file": {"name": name, "bytes": len(content)}}
        header = (FORM, base64.b64encode(orjson.dumps(upload)))
        kind = (b"content-type", b"application/octet-stream")
        return await self._send("POST", "/v1/files", content, {}, (header, kind))

    def answer_of(self, path: str, **query: Any) -> Response:
        """The answer of a GET as that of the page, byte by byte as it comes. `Refused`."""
        self._check("GET", path)
        return _RouteAnswer(self._request, self._scope("GET", path, query, ()))

    def _headers(self) -> list[tuple[bytes, bytes]]:
        principal = orjson.dumps({"kind": "key", "id": self.key_id, "scopes": []})
        others = [each for each in super()._headers() if each[0] != PRINCIPAL]
        return [*others, (PRINCIPAL, principal)]


class _RouteAnswer(Response):
    """Another route's answer, as that of the request itself."""

    def __init__(self, request: Request, of_route: Scope) -> None:
        super().__init__()
        self._request = request
        self._of_route = of_route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        extensions = scope.get("extensions", {})
        await self._request.app({**self._of_route, "extensions": extensions}, receive, send)


@dataclass(frozen=True, slots=True)
class KeyChoice:
    """The keys that may be acted for, by name, and the one that the visitor chose; None without any."""

    keys: tuple[dict[str, Any], ...]
    chosen: dict[str, Any] | None
    api: KeyApi | None

    def link(self, place: str, **query: str) -> str:
        """An address that keeps the choice."""
        chosen = {KEY: self.chosen["id"]} if self.chosen else {}
        return f"{place}?{urlencode({**chosen, **query})}"


async def choose_key(visit: Visit, endpoint: str, typed: FormFields | None = None) -> KeyChoice:
    """The key that the form or the address names, else the first that may use the kind of endpoint.

    `Refused` for a named one that may not.
    """
    every = await read_keys(visit.api)
    peer = caller_of(visit.request).peer
    reasons = {each["id"]: why_not(each, endpoint, peer) for each in every}
    keys = sorted(
        (each for each in every if reasons[each["id"]] is None),
        key=lambda each: each["name"].lower(),
    )
    wanted = (typed or {}).get(KEY) or visit.query.get(KEY)
    if not wanted:
        chosen = keys[0] if keys else None
    else:
        chosen = next((each for each in every if each["id"] == wanted), None)
        reason = reasons[chosen["id"]] if chosen else "There is no such key."
        if reason is not None:
            raise Refused(403 if chosen else 404, reason, KEY)
    api = KeyApi(visit.request, chosen["id"]) if chosen else None
    return KeyChoice(tuple(keys), chosen, api)


async def required_key(visit: Visit, endpoint: str, typed: FormFields | None = None) -> KeyApi:
    """The chosen key's API; `Refused` without a key."""
    choice = await choose_key(visit, endpoint, typed)
    if choice.api is None:
        raise Refused(409, "There is no key that may do this: make one first.", KEY)
    return choice.api


def why_not(key: Mapping[str, Any], endpoint: str, peer: str) -> str | None:
    """Why a key may not use a kind of endpoint now, from the address `peer`; None where it may."""
    if key["isBanned"]:
        return f"The key {key['name']} is banned."
    if not key["isActive"]:
        return f"The key {key['name']} is not active."
    expires = key["expiresAt"]
    if expires is not None and parse_time(expires).timestamp() * 1000 <= now_ms():
        return f"The key {key['name']} has expired."
    if key["allowedEndpoints"] and endpoint not in key["allowedEndpoints"]:
        return f"The key {key['name']} may not use the endpoint `{endpoint}`."
    schedule = key["accessSchedule"]
    if not is_open(schedule, moment_of(now_ms())):
        hours = f"{schedule['from']}-{schedule['until']} {schedule['tz']}"
        return f"The key {key['name']} is outside its permitted hours ({hours})."
    if not is_listed(key["ipAllowlist"], peer):
        return f"The key {key['name']} may not be used from {peer}: its `ipAllowlist` does not name it."
    return None
