"""A Google service account's access token, asked for by a test of its connection. The relay asks for
its own.
"""

from __future__ import annotations

from typing import Any

import httpx
import orjson

from fairlead import _core
from fairlead.gateway.providers.client import exchange
from fairlead.moment import now_ms

_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"


class TokenRefused(Exception):
    """Google gave no token; the text says why."""


async def access_token(client: httpx.AsyncClient, account: dict[str, Any]) -> str:
    """Exchanges a signed assertion for a token (RFC 7523); `TokenRefused` when there is none,
    `httpx.HTTPError` when there is no answer.
    """
    assertion = _core.google_assertion(orjson.dumps(account), now_ms() // 1000)
    form = {"grant_type": _GRANT, "assertion": assertion}
    status, body = await exchange(client, str(account["token_uri"]), form)
    if status != 200:
        raise TokenRefused(f"The token service refused the service account with {status}.")
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = None
    token = document.get("access_token") if isinstance(document, dict) else None
    if not isinstance(token, str) or not token:
        raise TokenRefused("The token service's answer holds no token.")
    return token
