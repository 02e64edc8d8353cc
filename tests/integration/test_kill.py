"""`kill -9`: whatever part dies, the rest serves on, and nothing that anybody was told gets lost."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from functools import partial

import httpx

from tests.support.chat import CHAT, ask, request_id
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane
from tests.support.raw import Closed
from tests.support.records import stored_records
from tests.support.side_work import SideWork
from tests.support.tls import NO_AUTHORITIES
from tests.support.upstream import DONE, Upstream, delta, finish, stream, usage_event


class Traffic(SideWork):
    """Callers that ask on and on, plain and streamed, until they are told to stop. A context manager."""

    def __init__(self, lane: Lane, callers: int = 3) -> None:
        self.served: list[str] = []
        """Ids of requests whose whole answer was read."""
        self.failed: list[str] = []
        self._lane = lane
        super().__init__(*(partial(self._call, number) for number in range(callers)))

    def wait_for_more(self, count: int) -> None:
        wanted = len(self.served) + count
        eventually(
            lambda: len(self.served) >= wanted, f"{count} more requests are served", within_s=20
        )

    def _call(self, number: int) -> None:
        headers = {"Authorization": f"Bearer {self._lane.gateway.key}"}
        streamed = bool(number % 2)
        body = (
            self._lane.body(model=f"{self._lane.prefix}/s", stream=True)
            if streamed
            else self._lane.body()
        )
        while not self.is_over.is_set():
            try:
                answer = httpx.post(
                    self._lane.gateway.url + CHAT,
                    json=body,
                    headers=headers,
                    timeout=10,
                    trust_env=False,
                    verify=NO_AUTHORITIES,
                )
            except httpx.HTTPError as error:
                self.failed.append(repr(error))
                continue
            if answer.status_code == 200 and answer.content.endswith(DONE if streamed else b"}"):
                self.served.append(answer.headers["x-gateway-request-id"])
            else:
                self.failed.append(f"{answer.status_code} {answer.text[:200]}")


def lane_of(gateway: Gateway, upstream: Upstream) -> Lane:
    lane = gateway.add_lane(upstream)
    upstream.script(stream(delta("a"), finish(), usage_event(), DONE), model="s")
    assert gateway.key  # made before anything dies
    return lane


def assert_recorded_once(gateway: Gateway, served: list[str]) -> None:
    """After a stop in good order every served request is on record exactly once."""
    assert gateway.stop() == 0
    stored = Counter(record["request_id"] for record in stored_records(gateway.data_dir))
    assert {one: stored[one] for one in served if stored[one] != 1} == {}
    assert [one for one, count in stored.items() if count > 1] == []


def test_inference_goes_on_without_control(
    gateways: Callable[..., Gateway], upstream: Upstream
) -> None:
    """Control dies during traffic: no caller notices, control comes back, every settled request is on record once."""
    gateway = gateways()
    lane = lane_of(gateway, upstream)
    with Traffic(lane) as traffic:
        traffic.wait_for_more(20)
        doomed = gateway.control
        doomed.kill()
        traffic.wait_for_more(50)
        eventually(gateway.manages, "control is back", within_s=15, every_s=0.1)
        traffic.wait_for_more(20)
    gateway.remember_processes()
    assert traffic.failed == []
    assert gateway.control != doomed
    fresh = gateway.create_key(name="after the crash")
    answer = gateway.caller.post(
        CHAT, json=lane.body(), headers={"Authorization": f"Bearer {fresh['key']}"}
    )
    assert answer.status_code == 200
    assert_recorded_once(gateway, [*traffic.served, answer.headers["x-gateway-request-id"]])


def test_without_control_management_says_so(
    gateways: Callable[..., Gateway], upstream: Upstream
) -> None:
    """While control is away `/healthz` and `/readyz` are 200, `/readyz` tells it, management is a 503 with its code."""
    gateway = gateways()
    lane = lane_of(gateway, upstream)
    gateway.admin.get("/api/keys")
    seen: set[tuple[int, str]] = set()

    def is_told() -> bool:
        answer = gateway.admin.get("/api/keys")
        seen.add(
            (
                answer.status_code,
                "" if answer.status_code == 200 else answer.json()["error"]["code"],
            )
        )
        assert gateway.admin.get("/healthz").status_code == 200
        assert ask(lane).status == 200
        return (
            answer.status_code == 503
            and gateway.admin.get("/readyz").json()["control"]["state"] != "connected"
        )

    def kill_and_look() -> bool:
        gateway.control.kill()
        return is_told()

    eventually(kill_and_look, "control's absence is told", within_s=20)
    assert seen <= {(200, ""), (503, "control_unavailable")}
    eventually(gateway.manages, "control is back", within_s=20, every_s=0.1)
    gateway.remember_processes()


def test_a_relay_that_dies_is_replaced(
    gateways: Callable[..., Gateway], upstream: Upstream
) -> None:
    """Serving again within two seconds; every answer that a caller read whole is on record, once."""
    gateway = gateways()
    lane = lane_of(gateway, upstream)
    served = [request_id(ask(lane)) for _ in range(40)]
    served += [request_id(ask(lane, model=f"{lane.prefix}/s", stream=True)) for _ in range(40)]
    worker = gateway.relay
    killed_at = time.monotonic()
    worker.kill()

    def serves() -> bool:
        try:
            answer = ask(lane)
        except (ConnectionError, Closed, TimeoutError):
            return False
        if answer.status == 200:
            served.append(request_id(answer))
        return answer.status == 200

    eventually(serves, "a new worker serves", within_s=10)
    assert time.monotonic() - killed_at < 2.0
    assert gateway.relay != worker
    fresh = gateway.create_key(name="known to the new worker")
    answer = gateway.caller.post(
        CHAT, json=lane.body(), headers={"Authorization": f"Bearer {fresh['key']}"}
    )
    assert answer.status_code == 200
    gateway.remember_processes()
    assert_recorded_once(gateway, served)


def test_a_relay_that_dies_under_load_loses_nothing_settled(
    gateways: Callable[..., Gateway], upstream: Upstream
) -> None:
    """Killed in the middle of traffic: what callers read whole before and after is on record, once."""
    gateway = gateways()
    lane = lane_of(gateway, upstream)
    with Traffic(lane, callers=4) as traffic:
        for _ in range(2):
            traffic.wait_for_more(40)
            gateway.relay.kill()
            traffic.wait_for_more(20)
    gateway.remember_processes()
    assert_recorded_once(gateway, traffic.served)


def test_killing_the_supervisor_leaves_no_orphans(
    gateways: Callable[..., Gateway], upstream: Upstream
) -> None:
    """When the supervisor dies, every process of the instance ends, and a new start takes the directory over."""
    gateway = gateways()
    lane = lane_of(gateway, upstream)
    served = [request_id(ask(lane)) for _ in range(10)]
    gateway.remember_processes()
    gateway.supervisor.kill()
    gateway.wait(5)
    eventually(lambda: not gateway.living_processes(), "no process is left", within_s=10)
    gateway.start()
    assert ask(lane).status == 200
    assert_recorded_once(gateway, served)


def test_a_torn_last_line_costs_only_itself(
    gateways: Callable[..., Gateway], upstream: Upstream
) -> None:
    """A segment whose writer died in the middle of a line: the whole lines are taken in, the rest is dropped."""
    gateway = gateways()
    lane = lane_of(gateway, upstream)
    served = [request_id(ask(lane)) for _ in range(5)]
    gateway.kill_all()
    torn = gateway.data_dir / "spool" / "deadbeef-00000001.open"
    torn.write_bytes(b'{"request_id":"torn","ts_ms":1')
    torn.chmod(0o600)
    gateway.start()
    assert ask(lane).status == 200
    assert_recorded_once(gateway, served)
