"""Checks the URL of a Redis or Valkey."""

from __future__ import annotations

from typing import Final

from fairlead.net.url import split_url

SCHEMES: Final = ("redis", "rediss", "valkey", "valkeys")


def check_store_url(url: str) -> None:
    """Raises `ValueError` with the rule and the fix, without the address: it may hold a password.

    Several hosts between commas are servers of one cluster, and so is one host with `?cluster=true`.
    """
    try:
        parts = split_url(url)
    except ValueError:
        raise ValueError("must be an address, such as redis://127.0.0.1:6379/0") from None
    if parts.scheme not in SCHEMES:
        raise ValueError(
            "must begin with redis://, rediss://, valkey:// or valkeys://, such as redis://127.0.0.1:6379/0"
        )
    hosts = parts.netloc.rpartition("@")[2].split(",")
    for host in hosts:
        _check_host(host)
    number = parts.path.removeprefix("/")
    if number and not (number.isascii() and number.isdigit()):
        raise ValueError("the path must be the number of a database, such as /0")
    if parts.query not in {"", "cluster=true"} or parts.fragment:
        raise ValueError(
            "must end after the number of the database, or with ?cluster=true: options are "
            "separate settings"
        )
    if (len(hosts) > 1 or parts.query) and number.strip("0"):
        raise ValueError("a cluster has database 0 only: the path must be /0, or nothing")


def _check_host(host: str) -> None:
    try:
        parts = split_url(f"//{host}")
        name, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError("the port must be a number from 1 to 65535") from None
    if not name:
        raise ValueError("must name a host, such as redis://127.0.0.1:6379/0")
    if port == 0:
        raise ValueError("the port must be a number from 1 to 65535")
