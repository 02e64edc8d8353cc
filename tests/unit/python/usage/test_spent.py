"""Sums over the past of keys: of what, and when they are whole."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any

import pytest

from fairlead.store.database import Database
from fairlead.store.segment import has_unread
from fairlead.store.state import State
from fairlead.usage.budgets.spent import Question, SpentQuery, SpentSums
from fairlead.usage.ingestion.ingest import Ingest
from fairlead.usage.ingestion.segment_store import SegmentStore

pytestmark = pytest.mark.anyio


@pytest.fixture
async def state(state: State) -> State:
    """With one node, whose prefix is `lab`."""
    await state.database.write(
        lambda con: con.execute(
            "INSERT INTO provider_nodes BY NAME SELECT 'node-1' AS id, 'openai-compatible' AS type, "
            "'lab' AS name, 'lab' AS prefix, 'chat' AS api_type, 'http://h' AS base_url, "
            "'[]' AS header_names, '{}' AS timeouts, 0 AS created_at_ms, 0 AS updated_at_ms"
        )
    )
    return state


async def test_a_model_counts_under_every_name_that_led_to_it(
    usage: Database, spool: Path, state: State, lines: Any
) -> None:
    node = {"provider": "node-1", "upstream_model": "m", "tokens_input": 10, "tokens_output": 0}
    (spool / "w-00000000.ndjson").write_bytes(
        lines("1", **node, model="lab/m")
        + lines("2", **node | {"tokens_input": 100}, model="quick")
        + lines("3", **node | {"tokens_input": 1000, "provider": "openai"}, model="quick")
        + lines("4", **node | {"tokens_input": 10_000, "upstream_model": "n"}, model="lab/n")
    )
    await Ingest(SegmentStore(usage, spool), spool).ingest()
    questions = [
        Question(key_id="k", unit="tokens", from_ms=0, model=model)
        for model in ("lab/m", "node-1/m", "openai/m", "m", "quick", "lab/n", "other/m")
    ]
    spending = SpentSums(usage, spool, state)
    sums = await spending.sums("w", SpentQuery(before_segment=1, questions=questions))
    assert sums == [110, 110, 1000, 1110, 1100, 10_000, 0]


async def test_sums_are_of_what_is_asked(
    usage: Database, spool: Path, state: State, lines: Any
) -> None:
    mine = {"model": "p/m", "provider": "p", "tokens_input": 10, "tokens_output": 1}
    (spool / "w-00000000.ndjson").write_bytes(
        lines("1", **mine, ts_ms=100, cost_usd_micros=5)
        + lines("2", **mine, ts_ms=200, cost_usd_micros=7)
        + lines(
            "3",
            **mine | {"model": "p/other", "upstream_model": "other"},
            ts_ms=200,
            cost_usd_micros=0,
        )
        + lines(
            "4",
            **mine | {"tokens_input": 0, "tokens_output": 0},
            ts_ms=200,
            outcome="refused",
            cost_usd_micros=0,
        )
        + lines("5", **mine, ts_ms=200, key_id="other")
    )
    await Ingest(SegmentStore(usage, spool), spool).ingest()
    questions = [
        Question(key_id="k", unit="tokens", from_ms=0),
        Question(key_id="k", unit="tokens", from_ms=150),
        Question(key_id="k", unit="tokens", from_ms=150, model="p/m"),
        Question(key_id="k", unit="tokens", from_ms=0, provider="q"),
        Question(key_id="k", unit="usd_micros", from_ms=0),
        Question(key_id="k", unit="requests", from_ms=0),
        Question(key_id="nobody", unit="requests", from_ms=0),
    ]
    spending = SpentSums(usage, spool, state)
    sums = await spending.sums("w", SpentQuery(before_segment=1, questions=questions))
    assert sums == [33, 22, 11, 0, 12, 3, 0]


def test_the_past_is_what_is_sealed_or_left_behind(tmp_path: Path) -> None:
    assert not has_unread(tmp_path, "w", 5)
    (tmp_path / "w-00000005.open").touch()
    assert not has_unread(tmp_path, "w", 5), "what the asking worker writes now"
    (tmp_path / "w-00000004.ndjson").touch()
    assert has_unread(tmp_path, "w", 5)
    (tmp_path / "w-00000004.ndjson").unlink()
    (tmp_path / "dead-00000001.open").touch()
    assert has_unread(tmp_path, "w", 5), "a worker that is gone left it"
    with (tmp_path / "dead-00000001.open").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert not has_unread(tmp_path, "w", 5), "its worker lives"


async def test_no_sum_without_all_records(
    usage: Database, spool: Path, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead.usage.budgets.spent.WAIT_S", 0.1)
    (spool / "w-00000000.ndjson").touch()
    asked = SpentQuery(before_segment=1, questions=[Question(key_id="k", unit="tokens", from_ms=0)])
    assert await SpentSums(usage, spool, state).sums("w", asked) is None


async def test_a_call_over_an_edge_is_in_the_sum_of_the_window_in_which_it_ended(
    usage: Database, spool: Path, state: State, lines: Any
) -> None:
    """As relays count it; as a request it counts where it began. What ended before is not in it."""
    call = {"model": "p/m", "provider": "p", "tokens_input": 10, "tokens_output": 1}
    edge_ms = 10_000_000
    (spool / "w-00000000.ndjson").write_bytes(
        lines("1", **call, ts_ms=edge_ms - 5_000, latency_ms=5_001.0, cost_usd_micros=3)
        + lines("2", **call, ts_ms=edge_ms - 5_000, latency_ms=4_998.0, cost_usd_micros=100)
        + lines("3", **call, ts_ms=edge_ms + 5_000, latency_ms=1.0, cost_usd_micros=1000)
        + lines("4", **call, ts_ms=1, latency_ms=9_000_000.0, cost_usd_micros=10_000)
    )
    await Ingest(SegmentStore(usage, spool), spool).ingest()
    questions = [
        Question(key_id="k", unit=unit, from_ms=edge_ms, model=model)
        for unit, model in (
            ("tokens", None),
            ("usd_micros", None),
            ("requests", None),
            ("tokens", "other"),
        )
    ]
    sums = await SpentSums(usage, spool, state).sums(
        "w", SpentQuery(before_segment=1, questions=questions)
    )
    assert sums == [22, 1003, 1, 0]


async def test_a_group_spent_what_its_keys_spent_while_they_were_in_it(
    usage: Database, spool: Path, state: State, lines: Any
) -> None:
    (spool / "w-00000000.ndjson").write_bytes(
        lines("1", group_path="firm/area/team", cost_usd_micros=1)
        + lines("2", group_path="firm/area", cost_usd_micros=10)
        + lines("3", group_path="firm", key_id="gone", cost_usd_micros=100)
        + lines("4", group_path=None, cost_usd_micros=1000)
        + lines("5", group_path="firm2/team2", cost_usd_micros=10_000)
    )
    await Ingest(SegmentStore(usage, spool), spool).ingest()
    questions = [
        *(
            Question(group_id=name, unit="usd_micros", from_ms=0)
            for name in ("firm", "area", "team", "firm2", "other")
        ),
        Question(group_id="area", unit="requests", from_ms=0),
        Question(key_id="k", unit="usd_micros", from_ms=0),
    ]
    spending = SpentSums(usage, spool, state)
    sums = await spending.sums("w", SpentQuery(before_segment=1, questions=questions))
    assert sums == [111, 11, 1, 10_000, 0, 2, 11_011]


async def test_each_worker_has_its_own_sum_and_is_over_when_its_process_is_gone(
    usage: Database, spool: Path, state: State, lines: Any
) -> None:
    """For those who share limits: by who wrote a record, whatever the rollups have."""
    call = {"model": "p/m", "provider": "p", "tokens_input": 10, "tokens_output": 1}
    edge_ms = 10_000_000
    for node in ("a", "b"):
        (spool / f"{node}-00000000.ndjson").write_bytes(
            lines(f"{node}1", **call, ts_ms=edge_ms + 5, cost_usd_micros=3, worker_id=node)
            + lines(f"{node}2", **call, ts_ms=edge_ms - 5_000, cost_usd_micros=100, worker_id=node)
            + lines(
                f"{node}3", **call, ts_ms=edge_ms + 5, worker_id=node, outcome="refused", key_id="o"
            )
        )
    await Ingest(SegmentStore(usage, spool), spool).ingest()
    (spool / "c-00000000.open").touch()
    # Of workers that this control has not heard of, the one that lives has locked its file.
    (workers := spool.parent / "workers").mkdir()
    for node in ("e", "f"):
        (workers / node).touch()
    living = (workers / "f").open()
    fcntl.flock(living, fcntl.LOCK_EX)
    asked = SpentQuery(
        before_segment=1,
        questions=[
            Question(key_id="k", unit=unit, from_ms=edge_ms) for unit in ("usd_micros", "requests")
        ],
        nodes=["a", "b", "c", "d", "e", "f"],
    )
    gone = 2**22 + 1  # no process has a number above the kernel's limit
    sums, told = await SpentSums(usage, spool, state).shared_sums(
        "a", asked, {"a": os.getpid(), "b": gone, "c": gone}
    )
    living.close()
    assert sums == [6, 2], "although one worker left what is not read: it is asked for"
    assert [(each.node, each.has_ended, each.sums) for each in told] == [
        ("a", False, [3, 1]),
        ("b", True, [3, 1]),
        ("c", False, [0, 0]),
        ("d", False, [0, 0]),
        ("e", True, [0, 0]),
        ("f", False, [0, 0]),
    ]
