"""Jobs on two nodes of one database: both work on them, and one that dies or stands still loses what it had."""

from __future__ import annotations

import contextlib
import json
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.support.polling import eventually
from tests.support.processes import Gateway, expect, start_gateway
from tests.support.upstream import Gate, Script, Seen, Upstream, completion, reply

if TYPE_CHECKING:
    from tests.support.postgresql import PostgresqlServer

KEY = "bm9kZXMgb2Ygb25lIGRhdGFiYXNlIHNoYXJlIGEga2U="
LINES = 6


class Holding(Upstream):
    """Holds the first answer to each text that has "hold" in it until `gate` opens; counts what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()
        self.gate = Gate()

    def choose(self, seen: Seen) -> Script:
        text = seen.json()["messages"][-1]["content"]
        self.asked[text] += 1
        answer = reply(completion("answered"))
        return [self.gate, *answer] if "hold" in text and self.asked[text] == 1 else answer


@pytest.fixture
def holding() -> Iterator[Holding]:
    with Holding() as running:
        yield running
        running.gate.open()


@pytest.fixture
def pair(postgresql: PostgresqlServer, tmp_path: Path) -> Iterator[tuple[Gateway, Gateway]]:
    """Two nodes whose folders of files and batches are the same."""
    url = postgresql.migrated()
    settings = {"FAIRLEAD_DATABASE_URL": url, "FAIRLEAD_SECRET_KEY": KEY}
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(start_gateway(tmp_path, **settings))
        second = stack.enter_context(start_gateway(tmp_path, **settings))
        for name in ("files", "batches"):
            shared = tmp_path / "shared" / name
            shared.mkdir(parents=True)
            for gateway in (first, second):
                (gateway.data_dir / name).symlink_to(shared)
        yield first, second
    postgresql.drop(url)


def begin_batch(http: httpx.Client, model: str, text: str) -> str:
    lines = [
        json.dumps(
            {
                "custom_id": f"r{number}",
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": {
                    "model": model,
                    "messages": [{"role": "user", "content": f"{text} {number}"}],
                },
            }
        )
        for number in range(LINES)
    ]
    upload = http.post(
        "/v1/files", data={"purpose": "batch"}, files={"file": ("b.jsonl", "\n".join(lines))}
    )
    body = {
        "input_file_id": expect(upload, 200)["id"],
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
    }
    return str(expect(http.post("/v1/batches", json=body), 200)["id"])


def ended(http: httpx.Client, batch_id: str, within_s: float) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        view = expect(http.get(f"/v1/batches/{batch_id}"), 200)
        return view if view["status"] in ("completed", "failed", "expired", "cancelled") else None

    return eventually(look, f"{batch_id} ends", within_s=within_s, every_s=0.2)


def results(http: httpx.Client, view: dict[str, Any]) -> list[str]:
    content = http.get(f"/v1/files/{view['output_file_id']}/content").text
    return sorted(json.loads(line)["custom_id"] for line in content.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
def test_a_batch_goes_on_at_another_node_and_the_old_one_writes_nothing(
    pair: tuple[Gateway, Gateway], holding: Holding, how: signal.Signals
) -> None:
    first = pair[0]
    key = first.create_key(name="batches")["key"]
    lane = first.add_lane(holding)
    first_http, second_http = (
        each.client(headers={"Authorization": f"Bearer {key}"}) for each in pair
    )
    # The second has not worked on anything: it finds the rows by itself.
    batch = begin_batch(first_http, lane.model, "hold")
    eventually(
        lambda: sum(holding.asked.values()) == LINES,
        "all lines are asked",
        within_s=30,
        every_s=0.1,
    )
    control = first.control
    control.signal(how)
    if how == signal.SIGKILL:
        # The supervisor would start another control at once, which would take the batch up again.
        first.supervisor.signal(signal.SIGSTOP)
    try:
        view = ended(second_http, batch, within_s=60)
        assert view["status"] == "completed", view
        assert results(second_http, view) == [f"r{number}" for number in range(LINES)]
        assert set(holding.asked.values()) == {2}
    finally:
        # The held answers come in at the node that stood still.
        holding.gate.open()
        if how == signal.SIGKILL:
            first.supervisor.signal(signal.SIGCONT)
        else:
            control.signal(signal.SIGCONT)
    eventually(first.manages, "the first node answers again", within_s=60, every_s=0.2)
    again = expect(first_http.get(f"/v1/batches/{batch}"), 200)
    assert again == view
    assert results(first_http, again) == [f"r{number}" for number in range(LINES)]
    assert not list((first.data_dir / "batches").iterdir())
    # It works as before.
    other = begin_batch(first_http, lane.model, "more")
    assert ended(first_http, other, within_s=60)["request_counts"]["completed"] == LINES


def test_batches_of_one_owner_are_worked_on_and_cancelled_at_either_node(
    pair: tuple[Gateway, Gateway], holding: Holding
) -> None:
    first = pair[0]
    key = first.create_key(name="batches")["key"]
    lane = first.add_lane(holding)
    https = [each.client(headers={"Authorization": f"Bearer {key}"}) for each in pair]
    batches = [begin_batch(http, lane.model, f"{at}") for at, http in enumerate(https)]
    for batch in batches:
        for http in https:
            assert ended(http, batch, within_s=60)["request_counts"]["completed"] == LINES
    assert set(holding.asked.values()) == {1}
    held = begin_batch(https[0], lane.model, "hold")
    eventually(
        lambda: sum("hold" in text for text in holding.asked) == LINES,
        "all lines are asked",
        within_s=30,
        every_s=0.1,
    )
    expect(https[1].post(f"/v1/batches/{held}/cancel"), 200)
    holding.gate.open()
    assert ended(https[1], held, within_s=60)["status"] == "cancelled"
