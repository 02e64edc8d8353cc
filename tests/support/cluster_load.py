"""Load on a cluster while something breaks: calls that must not be lost or counted twice, and keys that are revoked.

with Load(cluster, plain) as load:
    load.begin_revoking()
    ... break something ...
assert not load.passed
assert_all_is_logged_once(cluster, load)
"""

from __future__ import annotations

import contextlib
import random
import time
from functools import partial
from typing import Final

import httpx

from tests.support.chat import CHAT
from tests.support.cluster import Cluster
from tests.support.polling import eventually
from tests.support.processes import Gateway
from tests.support.side_work import SideWork
from tests.support.upstream import Plain

CALLERS: Final = 2
REVOKERS: Final = 3
MADE_BEFORE: Final = 30


class Load(SideWork):
    """Calls at both relays, and keys that are made, used and revoked at either. A context manager."""

    def __init__(self, cluster: Cluster, plain: Plain) -> None:
        self.cluster = cluster
        self.acknowledged: list[str] = []
        self.failed: list[str] = []
        self.revoked = 0
        self.passed: list[str] = []
        """Calls under keys whose revocation had been answered as in force everywhere."""
        self.excused: tuple[int, float] = (-1, 0.0)
        """A relay that stood still, and until when it may not have asked for what it missed."""
        lane = cluster.relays[0].add_lane(plain)
        self._body = lane.body()
        self._key = cluster.relays[0].create_key(name="load")["key"]
        self._made = [cluster.relays[0].create_key(name="short") for _ in range(MADE_BEFORE)]
        self._random = random.Random(17)
        super().__init__(*(partial(self._call, at % 2) for at in range(CALLERS)))

    def begin_revoking(self) -> None:
        """Not before: what is revoked during a fault was made before it."""
        for _ in range(REVOKERS):
            self.begin(self._revoke)

    def wait_for_more(self, calls: int, revocations: int) -> None:
        """Until so many more calls were acknowledged, and so many more keys revoked."""
        served, revoked = len(self.acknowledged) + calls, self.revoked + revocations
        eventually(
            lambda: len(self.acknowledged) >= served and self.revoked >= revoked,
            f"{calls} calls and {revocations} revocations more",
            within_s=90,
            every_s=0.1,
        )

    def _ask(self, relay: Gateway, key: str) -> httpx.Response:
        headers = {"authorization": f"Bearer {key}"}
        return httpx.post(f"{relay.url}{CHAT}", json=self._body, headers=headers, timeout=20)

    def _call(self, at: int) -> None:
        relay = self.cluster.relays[at]
        while not self.is_over.wait(0.03):
            try:
                answer = self._ask(relay, self._key)
            except httpx.HTTPError as error:
                self.failed.append(f"{at} {type(error).__name__}")
                continue
            if answer.status_code == 200:
                self.acknowledged.append(answer.headers["x-gateway-request-id"])
            else:
                self.failed.append(f"{at} {answer.status_code} {answer.text[:200]}")

    def _revoke(self) -> None:
        while not self.is_over.wait(0.05):
            with contextlib.suppress(httpx.HTTPError, KeyError, ValueError):
                self._revoke_one(*self._random.choices(self.cluster.relays, k=2))

    def _revoke_one(self, maker: Gateway, revoker: Gateway) -> None:
        with httpx.Client(headers=dict(maker.admin.headers), timeout=4) as admin:
            try:
                # One that every relay knows, also one that is cut off by now.
                made = self._made.pop()
            except IndexError:
                answer = admin.post(f"{maker.url}/api/keys", json={"name": "short"})
                if answer.status_code != 201:
                    return
                made = answer.json()
            key, path = made["key"], f"/api/keys/{made['id']}"
            gone = admin.delete(f"{revoker.url}{path}")
        if gone.status_code not in (200, 204) or "x-gateway-snapshot" in gone.headers:
            # Not stored, or said to be not everywhere yet.
            return
        answered_s = time.monotonic()
        self.revoked += 1
        for at, relay in enumerate(self.cluster.relays):
            asked_s = time.monotonic()
            try:
                answer = self._ask(relay, key)
            except httpx.HTTPError:
                continue
            excused, until_s = self.excused
            if answer.status_code == 200 and not (at == excused and asked_s < until_s):
                late_ms = round((time.monotonic() - answered_s) * 1000)
                self.passed.append(f"relay {at}, {late_ms} ms after {path}")


def assert_all_is_logged_once(cluster: Cluster, load: Load) -> None:
    """Every call that was acknowledged is in the log of usage, which waits for what is still under way."""

    def missing() -> list[str]:
        logged = cluster.logged()
        return [each for each in load.acknowledged if each not in logged]

    eventually(lambda: not missing(), "all that was acknowledged is logged", within_s=60, every_s=1)
    logged = cluster.logged()
    assert {each: count for each, count in logged.items() if count > 1} == {}
