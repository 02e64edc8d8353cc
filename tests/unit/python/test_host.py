"""Which hosts are this machine, whoever resolves them."""

from __future__ import annotations

import pytest

from fairlead.net.host import is_loopback


@pytest.mark.parametrize(
    "host", ["localhost", "LocalHost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"]
)
def test_loopback_names_and_addresses_are_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    ["", "127.example.org", "localhost.example.org", "0.0.0.0", "192.168.0.2", "::2", "127.1"],
)
def test_other_names_and_addresses_are_not(host: str) -> None:
    assert not is_loopback(host)
