"""Work that control does not survive: begun again once, then given up with a reason, while what is new is done."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from fairlead.store.runner import GIVEN_UP
from tests.support.agents import make_agent, rpc, say
from tests.support.polling import eventually
from tests.support.processes import Gateway, expect
from tests.support.site import BRISK, Site
from tests.support.upstream import Gate, Script, Seen, Upstream, completion, reply

ENDED = ("completed", "failed", "cancelled", "expired")


class Holding(Upstream):
    """Holds what has "hold" in it until the test is over, and counts how often it was asked for each model."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()
        self.gates: list[Gate] = []

    def choose(self, seen: Seen) -> Script:
        self.asked[seen.json()["model"]] += 1
        answer = reply(completion(json.dumps({"found": 1})))
        if b"hold" not in seen.body:
            return answer
        self.gates.append(Gate())
        return [self.gates[-1], *answer]


@pytest.fixture
def holding() -> Iterator[Holding]:
    with Holding() as running:
        yield running
        for gate in running.gates:
            gate.open()


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as running:
        yield running


class Work:
    """One of each kind of work that is taken up again, all held by `holding`."""

    def __init__(self, gateway: Gateway, holding: Holding, site: Site) -> None:
        self.gateway = gateway
        self.holding = holding
        self.http = gateway.client(headers={"Authorization": f"Bearer {gateway.key}"})
        self.prefix = gateway.add_lane(holding).prefix
        self.agent = str(make_agent(gateway, f"{self.prefix}/agent")["path"])
        self.page = site.url("/pages/3")
        self.extraction = self.extract("hold")
        self.batch = self.begin_batch("hold")
        asked = say("hold", configuration={"blocking": False})
        self.task = expect(rpc(self.http, self.agent, "message/send", asked), 200)["result"]["id"]

    def extract(self, prompt: str) -> str:
        body = {"urls": [self.page], "prompt": prompt, "model": f"{self.prefix}/extract"}
        return str(expect(self.http.post("/api/extract", json=body), 200)["id"])

    def begin_batch(self, text: str) -> str:
        line = {
            "custom_id": "1",
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {
                "model": f"{self.prefix}/batch",
                "messages": [{"role": "user", "content": text}],
            },
        }
        upload = self.http.post(
            "/v1/files", data={"purpose": "batch"}, files={"file": ("b.jsonl", json.dumps(line))}
        )
        body = {
            "input_file_id": expect(upload, 200)["id"],
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
        }
        return str(expect(self.http.post("/v1/batches", json=body), 200)["id"])

    def until_begun(self, times: int) -> None:
        eventually(
            lambda: all(
                self.holding.asked[kind] >= times for kind in ("extract", "batch", "agent")
            ),
            f"all is begun {times} times",
            within_s=30,
            every_s=0.05,
        )

    def _look(self, path: str) -> Any:
        try:
            answer = self.http.get(path)
        except httpx.HTTPError:
            return None
        view = answer.json() if answer.status_code == 200 else {}
        return view if view.get("status") in ENDED else None

    def ended(self, path: str) -> Any:
        return eventually(lambda: self._look(path), f"the end of {path}", within_s=40, every_s=0.1)

    def task_status(self) -> Any:
        shown = rpc(self.http, self.agent, "tasks/get", {"id": self.task})
        return expect(shown, 200)["result"]["status"]


def test_work_that_control_died_of_twice_is_not_begun_a_third_time(
    gateways: Callable[..., Gateway], holding: Holding, site: Site
) -> None:
    gateway = gateways(FAIRLEAD_ALLOW_PRIVATE_FETCH="127.0.0.0/8")
    expect(gateway.admin.patch("/api/settings", json=BRISK), 200)
    work = Work(gateway, holding, site)
    for times in (1, 2):
        work.until_begun(times)
        worker = gateway.control
        worker.signal(signal.SIGKILL)
        eventually(
            lambda dead=worker: gateway.control != dead and gateway.manages(),
            "control is back",
            within_s=40,
            every_s=0.1,
        )
    assert work.ended(f"/api/extract/{work.extraction}")["error"] == GIVEN_UP
    batch = work.ended(f"/v1/batches/{work.batch}")
    assert (batch["status"], batch["errors"]["data"][0]["message"]) == ("failed", GIVEN_UP)
    task = eventually(
        lambda: status if (status := work.task_status())["state"] == "failed" else None,
        "the task's end",
    )
    assert GIVEN_UP in json.dumps(task)
    assert set(holding.asked.values()) == {2}, "nothing was begun a third time"
    # What is new is done.
    done = work.ended(f"/api/extract/{work.extract('go on')}")
    assert done["status"] == "completed"


@pytest.mark.slow
def test_starts_that_ended_in_good_order_do_not_count(
    gateways: Callable[..., Gateway], holding: Holding, site: Site
) -> None:
    gateway = gateways(FAIRLEAD_ALLOW_PRIVATE_FETCH="127.0.0.0/8", FAIRLEAD_DRAIN_MS="0")
    expect(gateway.admin.patch("/api/settings", json=BRISK), 200)
    work = Work(gateway, holding, site)
    for times in (1, 2, 3):
        work.until_begun(times)
        worker = gateway.control
        gateway.control.signal(signal.SIGTERM)
        eventually(
            lambda dead=worker: gateway.control != dead and gateway.manages(),
            "control is back",
            within_s=40,
            every_s=0.1,
        )
    work.until_begun(4)
    for gate in holding.gates:
        gate.open()
    assert work.ended(f"/api/extract/{work.extraction}")["status"] == "completed"
    assert work.ended(f"/v1/batches/{work.batch}")["status"] == "completed"
