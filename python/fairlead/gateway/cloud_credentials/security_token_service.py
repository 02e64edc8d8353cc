"""AWS's Security Token Service: temporary keys of a role, for a web identity or for other keys."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

import httpx
import orjson

from fairlead import _core
from fairlead.gateway.cloud_credentials.obtained import NotObtained, Obtained, moment_ms
from fairlead.gateway.providers.client import send_bounded
from fairlead.moment import now_ms

NAME: Final = "AWS STS"
_VERSION: Final = "2011-06-15"
_FORM: Final = "application/x-www-form-urlencoded; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Role:
    """The role to assume."""

    arn: str
    session_name: str = "fairlead"
    external_id: str | None = None


@dataclass(frozen=True, slots=True)
class TokenService:
    """STS in one region, called through a client that checks addresses."""

    client: httpx.AsyncClient
    region: str
    environment: Mapping[str, str]

    async def for_web_identity(self, role: Role, token: str) -> Obtained:
        """Keys of the role for an OIDC token; `NotObtained` when STS gives none."""
        action = {"Action": "AssumeRoleWithWebIdentity", "WebIdentityToken": token}
        return await self._keys({**action, **_members(role)}, None)

    async def for_keys(self, role: Role, keys: dict[str, str | None]) -> Obtained:
        """Keys of the role for other keys, by which the request is signed; `NotObtained` when STS gives none."""
        return await self._keys({"Action": "AssumeRole", **_members(role)}, keys)

    async def _keys(self, members: dict[str, str], keys: dict[str, str | None] | None) -> Obtained:
        body = urlencode({**members, "Version": _VERSION}).encode()
        url = httpx.URL(self.environment.get("AWS_ENDPOINT_URL_STS") or self._address()).join("/")
        headers = {"content-type": _FORM, "accept": "text/xml"}
        if keys is not None:
            headers |= self._signature(url, body, keys)
        try:
            request = self.client.build_request("POST", url, content=body, headers=headers)
            status, answer = await send_bounded(request, self.client)
        except httpx.HTTPError as error:
            raise NotObtained(f"{NAME} cannot be reached ({type(error).__name__}).") from None
        text = answer.decode(errors="replace")
        if status != 200:
            code = _element(text, "Code") or ""
            shown = f" ({code})" if re.fullmatch(r"[A-Za-z.]{1,80}", code) else ""
            raise NotObtained(f"{NAME} answered {status}{shown}.")
        return _obtained(text)

    def _address(self) -> str:
        suffix = ".cn" if self.region.startswith("cn-") else ""
        return f"https://sts.{self.region}.amazonaws.com{suffix}"

    def _signature(
        self, url: httpx.URL, body: bytes, keys: dict[str, str | None]
    ) -> dict[str, str]:
        host, path = url.netloc.decode(), url.raw_path.decode()
        credential = orjson.dumps(keys)
        at_s = now_ms() // 1000
        signed: Any = _core.sign_aws(
            credential, self.region, "sts", "POST", host, path, "", at_s, body
        )
        return dict(signed)


def _members(role: Role) -> dict[str, str]:
    members = {"RoleArn": role.arn, "RoleSessionName": role.session_name}
    return members if role.external_id is None else {**members, "ExternalId": role.external_id}


def _obtained(text: str) -> Obtained:
    found = {
        name: _element(text, name)
        for name in ("AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration")
    }
    missing = next((name for name, value in found.items() if not value), None)
    if missing is not None:
        raise NotObtained(f"{NAME} answered without {missing}.")
    keys = {
        "access_key_id": found["AccessKeyId"],
        "secret_access_key": found["SecretAccessKey"],
        "session_token": found["SessionToken"],
    }
    return Obtained(aws=keys, expires_at_ms=moment_ms(str(found["Expiration"]), NAME))


def _element(text: str, name: str) -> str | None:
    """The text of the first element of this name. Answers of STS have no attributes and no nested texts there."""
    _, begin, rest = text.partition(f"<{name}>")
    value, end, _ = rest.partition(f"</{name}>")
    return html.unescape(value).strip() if begin and end and "<" not in value else None
