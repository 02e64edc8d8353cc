"""The claimed port: nobody else's, yet open to the relay's workers."""

from __future__ import annotations

import socket

import pytest

from fairlead.errors import Refusal
from fairlead.serve.port import Address, ClaimedPort, free_port


def bind(port: int, *options: int) -> socket.socket:
    made = socket.socket()
    for option in options:
        made.setsockopt(socket.SOL_SOCKET, option, 1)
    try:
        made.bind(("127.0.0.1", port))
    except OSError:
        made.close()
        raise
    return made


def test_a_claimed_port_is_closed_to_others_and_open_to_a_worker() -> None:
    port = free_port()
    with ClaimedPort("127.0.0.1", port):
        for options in ((), (socket.SO_REUSEADDR,)):
            with pytest.raises(OSError, match="in use"):
                bind(port, *options)
        with bind(port, socket.SO_REUSEADDR, socket.SO_REUSEPORT) as worker:
            worker.listen()
            with socket.create_connection(("127.0.0.1", port), timeout=2):
                worker.accept()[0].close()
    bind(port, socket.SO_REUSEADDR).close()


def test_a_claim_does_not_share_with_another_claim() -> None:
    port = free_port()
    with (
        ClaimedPort("127.0.0.1", port),
        pytest.raises(Refusal, match="in use"),
        ClaimedPort("127.0.0.1", port),
    ):
        pass


def test_lingering_connections_of_an_earlier_start_are_no_hindrance() -> None:
    port = free_port()
    with bind(port, socket.SO_REUSEADDR) as server:
        server.listen()
        client = socket.create_connection(("127.0.0.1", port))
        served, _ = server.accept()
        served.close()  # the side that closes first is left in TIME_WAIT
        client.close()
    with ClaimedPort("127.0.0.1", port):
        pass


def test_names_are_resolved_and_refused_in_words() -> None:
    port = free_port()
    with ClaimedPort("localhost", port) as claimed:
        assert claimed.address == Address("127.0.0.1", port)
    with pytest.raises(Refusal, match=r"no-such-host\.invalid"):
        ClaimedPort("no-such-host.invalid", port)


@pytest.mark.parametrize(
    ("host", "shown"),
    (
        ("127.0.0.1", "127.0.0.1:80"),
        ("0.0.0.0", "127.0.0.1:80"),
        ("::", "[::1]:80"),
        ("::1", "[::1]:80"),
    ),
)
def test_an_address_is_shown_as_a_client_here_writes_it(host: str, shown: str) -> None:
    assert Address(host, 80).reachable == shown
