"""A caller that holds the end of its body back over the edge of a window gains nothing by it."""

from __future__ import annotations

import json
import socket
import time

import pytest

from tests.support.chat import CHAT
from tests.support.processes import Gateway, Lane

pytestmark = pytest.mark.both_fronts

WINDOW_S = 6


def wait_for_window(room_s: float) -> None:
    """Until a window has just begun, or has so much left: windows are counted from 1970."""
    into = time.time() % WINDOW_S
    if into > room_s:
        time.sleep(WINDOW_S - into + 0.05)


def test_a_body_that_is_held_back_over_an_edge_wipes_no_limit(gateway: Gateway, lane: Lane) -> None:
    key = gateway.create_key(rateLimits=[{"limit": 2, "window": WINDOW_S}])["key"]

    def call() -> int:
        headers = {"Authorization": f"Bearer {key}"}
        return gateway.caller.post(CHAT, json=lane.body(), headers=headers).status_code

    body = json.dumps(lane.body()).encode()
    head = (
        f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {key}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    # The head comes well before the edge: a clock may always be a little off.
    wait_for_window(WINDOW_S / 2)
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=20) as held:
        held.sendall(head.encode() + body[:-1])
        before = time.time() // WINDOW_S
        # The time itself is what is waited for: the next window, with room in it for the calls.
        time.sleep(WINDOW_S - time.time() % WINDOW_S + 0.05)
        wait_for_window(WINDOW_S / 2)
        window = time.time() // WINDOW_S
        assert window > before
        assert [call() for _ in range(3)] == [200, 200, 429]
        held.sendall(body[-1:])
        answered = held.recv(65536)
        assert answered.startswith(b"HTTP/1.1 429"), answered
        told = [call() for _ in range(3)]
        if time.time() // WINDOW_S == window:
            assert told == [429, 429, 429]
        else:
            # A slow machine: the limit of the next window is whole, and no more than that.
            assert told.count(200) <= 2
