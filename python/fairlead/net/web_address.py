"""Checks of URLs that an operator sets. `ValueError` states the rule, without a subject."""

from __future__ import annotations

from fairlead.net.host import is_loopback
from fairlead.net.url import split_url


def web_address(text: str) -> str:
    """The text, if it is a URL to which browsers and secrets may be sent."""
    try:
        parts = split_url(text)
        is_local = is_loopback(parts.hostname or "")
        is_right = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_right = is_local = False
    if (
        not is_right
        or not (parts.scheme == "https" or (parts.scheme == "http" and is_local))
        or parts.username is not None
        or any(each in text for each in "?#\\")
        or not text.isprintable()
        or " " in text
    ):
        raise ValueError(
            "must be an https address without query and fragment (http on this machine only)"
        )
    return text


def service_address(text: str) -> str:
    """The text without a trailing slash, if it is the base URL of a server that programs call."""
    try:
        parts = split_url(text)
        is_right = parts.scheme in ("http", "https") and bool(parts.hostname)
        is_right = is_right and (parts.port is None or parts.port > 0)
    except ValueError:
        is_right = False
    if (
        not is_right
        or "@" in text
        or any(each in text for each in "?#\\")
        or not text.isprintable()
        or " " in text
    ):
        raise ValueError("must be an http or https address without user, query and fragment")
    return text.rstrip("/")
