"""The address of a Redis or Valkey: what is taken."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

SCHEMES: Final = ("redis", "rediss", "valkey", "valkeys")


def check_store_url(url: str) -> None:
    """Raises `ValueError` with the rule and the fix, without the address: it may hold a password."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("the port must be a number from 1 to 65535") from None
    if parts.scheme not in SCHEMES:
        raise ValueError(
            "must begin with redis://, rediss://, valkey:// or valkeys://, such as redis://127.0.0.1:6379/0"
        )
    if not parts.hostname:
        raise ValueError("must name a host, such as redis://127.0.0.1:6379/0")
    if port == 0:
        raise ValueError("the port must be a number from 1 to 65535")
    number = parts.path.removeprefix("/")
    if number and not (number.isascii() and number.isdigit()):
        raise ValueError("the path must be the number of a database, such as /0")
    if parts.query or parts.fragment:
        raise ValueError(
            "must end after the number of the database: options are settings of their own"
        )
