"""Control that is there and answers nothing: it is restarted, and no caller of a model notices."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import pytest

from fairlead.serve.watchdog import START_FACTOR
from tests.integration.test_kill import Traffic, lane_of
from tests.support.polling import eventually
from tests.support.processes import Gateway
from tests.support.upstream import Upstream

SILENCE_MS = 3000
# To stop in good order what does not stop: the supervisor waits so long before it kills.
STOPS_WITHIN_S = 10


def test_control_that_hangs_is_started_anew_and_inference_goes_on(
    gateways: Callable[..., Gateway], upstream: Upstream
) -> None:
    gateway = gateways(FAIRLEAD_CONTROL_SILENCE_MS=str(SILENCE_MS))
    lane = lane_of(gateway, upstream)
    with Traffic(lane) as traffic:
        traffic.wait_for_more(10)
        hung = gateway.control
        hung.signal(signal.SIGSTOP)
        # Started, asked for in vain, told to stop, killed, started: all with room for a full machine.
        eventually(
            lambda: gateway.control != hung and gateway.manages(),
            "control answers again",
            within_s=SILENCE_MS / 1000 + STOPS_WITHIN_S + 40,
            every_s=0.2,
        )
        traffic.wait_for_more(20)
    gateway.remember_processes()
    assert traffic.failed == []
    assert "control has not answered for 3 s (6 probes) and is restarted" in gateway.log
    assert gateway.stop() == 0


@pytest.mark.slow
def test_control_that_answers_slowly_is_left_alone(gateways: Callable[..., Gateway]) -> None:
    """It is stopped again and again for most of what it may be silent: each answer in between counts."""
    gateway = gateways(FAIRLEAD_CONTROL_SILENCE_MS=str(SILENCE_MS))
    worker = gateway.control
    ends_s = time.monotonic() + 3 * SILENCE_MS / 1000
    while time.monotonic() < ends_s:
        worker.signal(signal.SIGSTOP)
        # What is measured here is time itself.
        time.sleep(SILENCE_MS / 1000 / 3)
        worker.signal(signal.SIGCONT)
        eventually(gateway.manages, "control answers in between", every_s=0.02)
    assert gateway.control == worker
    assert "is restarted" not in gateway.log


@pytest.mark.slow
def test_a_stop_while_control_hangs_is_a_stop(gateways: Callable[..., Gateway]) -> None:
    gateway = gateways(FAIRLEAD_CONTROL_SILENCE_MS=str(SILENCE_MS))
    gateway.control.signal(signal.SIGSTOP)
    # Where the watchdog had no answer of it yet, it takes control for one that starts, and waits ten times as long.
    wait_s = START_FACTOR * SILENCE_MS / 1000 + 10
    eventually(lambda: "is restarted" in gateway.log, "the watchdog has acted", within_s=wait_s)
    assert gateway.stop() == 0
    assert "control ended with" not in gateway.log
