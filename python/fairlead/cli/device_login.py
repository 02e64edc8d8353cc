"""Signing in by device code at a gateway's own authorization server (RFC 8628)."""

from __future__ import annotations

import socket
import sys
import time
from typing import Any, Final

import httpx

from fairlead.cli.context_file import GatewayContext
from fairlead.cli.failure import CommandFailed
from fairlead.cli.gateway_address import signed_in
from fairlead.cli.printable import printable

CLIENT_ID: Final = "fairlead-cli"
GRANT_TYPE: Final = "urn:ietf:params:oauth:grant-type:device_code"
_TIMEOUT_S: Final = 30.0
_INTERVAL_S: Final = 5
_LONGEST_S: Final = 1800
_REFUSALS: Final = {
    "access_denied": "the sign-in was denied.",
    "expired_token": "nobody approved the code in time: run the command again.",
}


def device_token(context: GatewayContext, scope: str) -> str:
    """An access token that a person approved in a browser. Shows the code on standard error and waits.

    Raises `CommandFailed`.
    """
    tls = signed_in(context).tls
    with httpx.Client(base_url=context.url, timeout=_TIMEOUT_S, verify=tls) as client:
        began = _begin(client, context.url, scope)
        address, code = _text(began, "verification_uri"), _text(began, "user_code")
        lines = [
            f"Open {address} in a browser and enter the code {code}",
            f"or open {_text(began, 'verification_uri_complete')} and compare the code.",
        ]
        print("\n".join(lines), file=sys.stderr, flush=True)
        return _wait(client, context.url, began)


def _begin(client: httpx.Client, url: str, scope: str) -> dict[str, Any]:
    name = f"fairlead on {socket.gethostname()}"[:100]
    form = {"client_id": CLIENT_ID, "scope": scope, "device_name": name}
    status, document = _post(client, url, "/oauth/device_authorization", form)
    if status == 404:
        raise CommandFailed(
            f"{url} does not support sign-in by device code: use a token, with --token-file."
        )
    if status != 200:
        raise CommandFailed(f"{url} refused: {_reason(document)}")
    return document


def _wait(client: httpx.Client, url: str, began: dict[str, Any]) -> str:
    """Asks for the token until it is there, never more often than the gateway said."""
    form = {
        "grant_type": GRANT_TYPE,
        "device_code": _text(began, "device_code"),
        "client_id": CLIENT_ID,
    }
    pause_s = _seconds(began, "interval", _INTERVAL_S)
    ends_s = time.monotonic() + _seconds(began, "expires_in", _LONGEST_S)
    while time.monotonic() < ends_s:
        time.sleep(pause_s)
        status, document = _post(client, url, "/oauth/token", form)
        if status == 200:
            return _text(document, "access_token")
        error = document.get("error")
        if error == "slow_down" or status == 429:
            pause_s += _INTERVAL_S
        elif error != "authorization_pending":
            raise CommandFailed(_REFUSALS.get(str(error)) or f"{url} refused: {_reason(document)}")
    raise CommandFailed(_REFUSALS["expired_token"])


def _post(
    client: httpx.Client, url: str, path: str, form: dict[str, str]
) -> tuple[int, dict[str, Any]]:
    try:
        answer = client.post(path, data=form)
    except httpx.HTTPError as error:
        raise CommandFailed(f"{url} does not answer ({type(error).__name__}).") from None
    try:
        document = answer.json()
    except ValueError:
        document = {}
    return answer.status_code, document if isinstance(document, dict) else {}


def _text(document: dict[str, Any], name: str) -> str:
    value = document.get(name)
    if not isinstance(value, str) or not value:
        raise CommandFailed(f"the gateway's answer has no {name}.")
    return printable(value)


def _seconds(document: dict[str, Any], name: str, most: int) -> int:
    value = document.get(name)
    return min(value, _LONGEST_S) if isinstance(value, int) and value > 0 else most


def _reason(document: dict[str, Any]) -> str:
    return printable(
        str(document.get("error_description") or document.get("error") or "no reason given")
    )
