"""Usage that counts for a key's limits from before a relay worker began to count: sums over the
rollups, for the link (docs/explanation/contracts.md).

A sum is right only when every earlier record is in the table, so it waits for the spool: for the
asking worker's sealed segments, and for all that earlier workers left.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field

from fairlead import _core
from fairlead.moment import LATEST_MS
from fairlead.store.database import Database
from fairlead.store.file import Connection
from fairlead.store.state import State
from fairlead.usage.facts import Filters, sums_of
from fairlead.usage.segment import has_unread, writers
from fairlead.usage.span import Span

WAIT_S = 1.5
LOOK_EVERY_S = 0.05

# The ids of nodes by their prefix.
Places = dict[str, list[str]]

Unit = Literal["requests", "tokens", "usd_micros"]

# Refused and shed requests do not count for limits of requests.
_SUMS: Final[dict[Unit, tuple[str, ...]]] = {
    "requests": ("let_through",),
    "tokens": ("tokens_input", "tokens_output"),
    "usd_micros": ("cost_usd_micros",),
}
_EVER_MS: Final = LATEST_MS + 1

_LONGEST_MS: Final = 3 * 3_600_000
"""The longest duration of a call: conversations over `/v1/realtime` last longest."""


class Question(BaseModel):
    """The sum for one key since `from_ms`, of one model or provider if it names one.

    A model counts under the name that its callers used and under every name of what served them.
    """

    key_id: str
    unit: Unit
    from_ms: int = Field(ge=0, le=2**53)
    model: str | None = None
    provider: str | None = None


class SpentQuery(BaseModel):
    """A worker's request for sums. The worker keeps its segments from `before_segment` on."""

    before_segment: int = Field(ge=0)
    questions: list[Question]
    nodes: list[Annotated[str, Field(pattern="^[0-9a-f]{1,64}$")]] = Field([], max_length=4096)
    """Workers whose own sums are asked for, too, by those that share their limits with them."""


@dataclass(frozen=True, slots=True)
class NodeSums:
    """Sums of the records of one worker, in the order of the questions. `has_ended`: its process is gone, and
    all that it recorded is in.
    """

    node: str
    has_ended: bool
    sums: list[int]


class SpentSums:
    """Answers workers' requests for sums."""

    def __init__(self, usage: Database, spool_dir: Path, state: State) -> None:
        self._usage = usage
        self._state = state
        self._spool_dir = spool_dir

    async def sums(self, worker: str, asked: SpentQuery) -> list[int] | None:
        """Sums in the order of the questions; None when the records were not all in after 1.5 s."""
        if not await self._all_read(worker, asked):
            return None
        return await spent_of(self._state, self._usage, asked.questions)

    async def _all_read(self, worker: str, asked: SpentQuery) -> bool:
        """Waits for the records before the question. Those of nodes that are asked for need not be in: each tells
        the others itself what it used.
        """
        try:
            async with asyncio.timeout(WAIT_S):
                # Other processes write the files: there is no event to wait for.
                while await asyncio.to_thread(  # noqa: ASYNC110
                    has_unread,
                    self._spool_dir,
                    worker,
                    asked.before_segment,
                    frozenset(asked.nodes),
                ):
                    await asyncio.sleep(LOOK_EVERY_S)
        except TimeoutError:
            return False
        return True

    async def shared_sums(
        self, worker: str, asked: SpentQuery, pids: Mapping[str, int]
    ) -> tuple[list[int] | None, list[NodeSums]]:
        """The sums, and of them those of each of `asked.nodes`; `pids` has the workers that were heard of."""
        if not asked.nodes:
            return await self.sums(worker, asked), []
        if not await self._all_read(worker, asked):
            return None, []
        places = await _places_of(self._state, asked.questions)
        # Before the sums: what a worker wrote last is in them then.
        ended = await asyncio.to_thread(_ended, asked.nodes, pids, self._spool_dir)

        def both(con: Connection) -> tuple[list[int], dict[str, list[int]]]:
            """In one view of the records, so that every one is of a node in both or in none."""
            by_node = sum_of_nodes(con, asked.questions, asked.nodes, places)
            return sum_spent(con, asked.questions, places), by_node

        sums, by_node = await self._usage.read(both)
        return sums, [NodeSums(node, node in ended, by_node[node]) for node in asked.nodes]


def _ended(nodes: list[str], pids: Mapping[str, int], spool_dir: Path) -> set[str]:
    """Nodes that are known to have ended: their processes are gone from this machine, and no record is
    left to read.
    """
    gone = {node for node in nodes if node in pids and not Path(f"/proc/{pids[node]}").exists()}
    return gone - writers(spool_dir)


async def spent_of(state: State, usage: Database, questions: list[Question]) -> list[int]:
    """Sums in the order of the questions."""
    places = await _places_of(state, questions)
    return await usage.read(lambda con: sum_spent(con, questions, places))


async def _places_of(state: State, questions: list[Question]) -> Places:
    return await state.read(_places) if any(each.model for each in questions) else {}


def _places(con: Connection) -> Places:
    found: Places = defaultdict(list)
    for prefix, node_id in con.execute("SELECT prefix, id FROM provider_nodes").fetchall():
        found[prefix].append(node_id)
    return found


def sum_spent(con: Connection, questions: list[Question], places: Places) -> list[int]:
    """The sums, with one statement for all questions that share beginning, model and provider."""
    groups: dict[tuple[int, str | None, str | None], set[str]] = defaultdict(set)
    for question in questions:
        groups[question.from_ms, question.model, question.provider].add(question.key_id)
    found: dict[tuple[int, str | None, str | None, str, Unit], int] = {}
    for (from_ms, model, provider), key_ids in groups.items():
        conditions, bound = _conditions(key_ids, model, provider, places)
        rows = sums_of(
            con, Span(from_ms, _EVER_MS), {"key_id": "key_id"}, Filters(conditions, bound)
        )
        for row in rows.iter_rows(named=True):
            for unit, columns in _SUMS.items():
                total = sum(row[column] for column in columns)
                found[from_ms, model, provider, row["key_id"], unit] = total
        for key_id, tokens, usd_micros in _over_the_edge(con, from_ms, conditions, bound):
            used: dict[Unit, int] = {"tokens": tokens, "usd_micros": usd_micros}
            for unit, amount in used.items():
                place = (from_ms, model, provider, key_id, unit)
                found[place] = found.get(place, 0) + amount
    return [
        found.get(
            (
                question.from_ms,
                question.model,
                question.provider,
                question.key_id,
                question.unit,
            ),
            0,
        )
        for question in questions
    ]


def _conditions(
    key_ids: set[str], model: str | None, provider: str | None, places: Places
) -> tuple[list[str], dict[str, Any]]:
    """Which records are meant, and what is bound."""
    conditions = ["key_id IN (SELECT unnest($key_ids))"]
    bound: dict[str, Any] = {"key_ids": sorted(key_ids)}
    if provider is not None:
        conditions.append("provider = $provider")
        bound["provider"] = provider
    if model is not None:
        # Records have one name for each model; a provider may add a folder to it.
        prefix, _, name = model.partition("/")
        name = _core.model_without_folder(name)
        own = f"{prefix}/{name}" if name else model
        # The prefix is a built-in provider's id, or a node's prefix.
        conditions.append(
            "(lower(model) IN ($model, $own) OR lower(upstream_model) = $model "
            "OR (lower(upstream_model) IN ($name, 'models/' || $name) "
            "AND provider IN (SELECT unnest($providers))))"
        )
        bound |= {
            "model": model.lower(),
            "own": own.lower(),
            "name": name.lower(),
            "providers": [prefix, *places.get(prefix, ())],
        }
    return conditions, bound


def sum_of_nodes(
    con: Connection, questions: list[Question], nodes: list[str], places: Places
) -> dict[str, list[int]]:
    """The sums of each worker, from single records: rollups do not know who wrote them. What is deleted
    by then counts among those of workers that are not known, so nothing is forgotten.
    """
    found = {node: [0] * len(questions) for node in nodes}
    for at, question in enumerate(questions):
        conditions, bound = _conditions(
            {question.key_id}, question.model, question.provider, places
        )
        where = " AND ".join(conditions)
        rows = con.execute(
            "SELECT worker_id, "
            "count(*) FILTER (ts_ms >= $edge_ms AND outcome NOT IN ('refused', 'shed')), "
            "sum(tokens_input + tokens_output)::BIGINT, sum(cost_usd_micros)::BIGINT "
            "FROM requests WHERE ts_ms >= $earliest_ms AND ts_ms + latency_ms >= $edge_ms "
            f"AND worker_id IN (SELECT unnest($nodes)) AND {where} GROUP BY worker_id",
            {
                **bound,
                "nodes": nodes,
                "earliest_ms": question.from_ms - _LONGEST_MS,
                "edge_ms": question.from_ms,
            },
        ).fetchall()
        for node, requests, tokens, usd_micros in rows:
            sums: dict[Unit, int] = {
                "requests": requests,
                "tokens": tokens,
                "usd_micros": usd_micros,
            }
            found[str(node)][at] = int(sums[question.unit])
    return found


def _over_the_edge(
    con: Connection, from_ms: int, conditions: list[str], bound: dict[str, Any]
) -> list[tuple[str, int, int]]:
    """Tokens and cost of calls that began before and ended since: relays count a call in the window
    in which it ends, and records are stored under its beginning.
    """
    where = " AND ".join(conditions)
    rows = con.execute(
        "SELECT key_id, sum(tokens_input + tokens_output)::BIGINT, sum(cost_usd_micros)::BIGINT "
        "FROM request_facts WHERE ts_ms >= $earliest_ms AND ts_ms < $edge_ms "
        f"AND ts_ms + latency_us // 1000 >= $edge_ms AND {where} GROUP BY key_id",
        {**bound, "earliest_ms": from_ms - _LONGEST_MS, "edge_ms": from_ms},
    ).fetchall()
    return [(str(key_id), int(tokens), int(usd_micros)) for key_id, tokens, usd_micros in rows]
