"""D7: somebody sets the clock. What waits goes on waiting as long as it was told to, and nobody is locked out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.support.chat import CHAT
from tests.support.clock import DAY_S, WallClock
from tests.support.polling import eventually
from tests.support.processes import Gateway, expect
from tests.support.upstream import Upstream, completion, reply

LIMITED = reply({"error": {"message": "slow"}}, 429, [("Retry-After", "600")])


@pytest.mark.parametrize("jump_s", [DAY_S, -DAY_S])
def test_a_jump_of_the_clock_changes_no_wait_and_locks_nobody_out(
    gateways: Callable[..., Gateway], upstream: Upstream, tmp_path: Path, jump_s: int
) -> None:
    clock = WallClock(tmp_path)
    gateway = gateways(**clock.environment)
    lane, resting = gateway.add_lane(upstream), gateway.add_lane(upstream)
    upstream.script(LIMITED, reply(completion()), key=resting.secrets[0])
    rated = gateway.create_key(rateLimits=[{"limit": 1, "window": 2}])["key"]
    daily = gateway.create_key(rateLimits=[{"limit": 100, "window": DAY_S}])["key"]

    def call(model: str, key: str = gateway.key, **headers: str) -> httpx.Response:
        sent = {"Authorization": f"Bearer {key}", **headers}
        body = {**lane.body(), "model": model}
        return gateway.caller.post(CHAT, json=body, headers=sent)

    assert call(resting.model).status_code == 429
    assert call(lane.model, rated).status_code == 200
    assert call(lane.model, daily).status_code == 200
    # An idempotency window is five seconds of waiting, whatever the clock says meanwhile.
    first = call(lane.model, **{"Idempotency-Key": "before"})
    assert first.status_code == 200
    clock.put(jump_s)
    again = call(lane.model, **{"Idempotency-Key": "before"})
    assert again.headers.get("x-gateway-idempotent") == "true"

    # A provider that asked for ten minutes is left alone for ten minutes, no more and no less.
    refused = call(resting.model)
    assert refused.status_code == 429
    assert 500 < int(refused.headers["retry-after"]) <= 600
    assert len([seen for seen in upstream.requests if seen.bearer == resting.secrets[0]]) == 1

    # Rates count in the window that it is now.
    served = eventually(
        lambda: call(lane.model, rated).status_code == 200, "a rate passes again", within_s=15
    )
    assert served
    assert call(lane.model, rated).status_code == 429
    eventually(
        lambda: call(lane.model, daily).status_code == 200,
        "a long window is looked up anew",
        within_s=15,
    )

    # Back again, management and records as ever.
    clock.put(0)
    eventually(lambda: call(lane.model, rated).status_code == 200, "and back again", within_s=15)
    eventually(lambda: call(lane.model, daily).status_code == 200, "and back again", within_s=15)
    assert expect(gateway.admin.get("/api/monitoring/health"), 200)["status"] != "error"
    assert gateway.record(first.headers["x-gateway-request-id"])["status"] == 200
