"""Usage that counts for a key's limits from before a relay worker began to count: sums over the
rollups, for the link (docs/explanation/contracts.md).

A sum is right only when every earlier record is in the table, so it waits for the spool: for the asking
worker's sealed segments, and for all that earlier workers left. If nodes share a log of usage, it also waits
until that was read to its end once.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, Field, model_validator

from fairlead import _core
from fairlead.moment import LATEST_MS
from fairlead.store.database import Database
from fairlead.store.file import Connection
from fairlead.store.segment import has_unread, is_free, writers
from fairlead.store.state import State
from fairlead.usage.figures.unpriced import IS_UNPRICED
from fairlead.usage.ingestion.shared_log import SharedLog
from fairlead.usage.sums.facts import Filters, Selection, sums_of
from fairlead.usage.sums.span import Span

WORKERS: Final = "workers"
"""The folder of the files that workers who share limits lock for as long as they live."""
WAIT_S = 1.5
LOOK_EVERY_S = 0.05

# The ids of nodes by their prefix.
NodesByPrefix = dict[str, list[str]]

Unit = Literal["requests", "tokens", "usd_micros", "unpriced_requests"]

# Refused and shed requests do not count for limits of requests.
_SUMS: Final[dict[Unit, tuple[str, ...]]] = {
    "requests": ("let_through",),
    "tokens": ("tokens_input", "tokens_output"),
    "usd_micros": ("cost_usd_micros",),
    "unpriced_requests": ("unpriced_requests",),
}
_EVER_MS: Final = LATEST_MS + 1

_LONGEST_MS: Final = 3 * 3_600_000
"""The longest duration of a call: conversations over `/v1/realtime` last longest."""


class Question(BaseModel):
    """The sum for one key since `from_ms`, or for all keys of a group and the groups below it, of one model or
    provider if it names one.

    A model counts under the name that its callers used and under every name of what served them. For a group,
    the usage of its keys counts while they were in it.
    """

    key_id: str | None = None
    group_id: str | None = None
    unit: Unit
    from_ms: int = Field(ge=0, le=2**53)
    model: str | None = None
    provider: str | None = None

    @model_validator(mode="after")
    def _has_one_owner(self) -> Self:
        if (self.key_id is None) == (self.group_id is None):
            raise ValueError("a question is about a key or about a group")
        return self


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

    def __init__(
        self, usage: Database, spool_dir: Path, state: State, shared: SharedLog | None = None
    ) -> None:
        self._usage = usage
        self._shared = shared
        self._state = state
        self._spool_dir = spool_dir
        self.wanted = asyncio.Event()
        """Set while a question waits for records that are in the spool."""

    async def sums(self, worker: str, query: SpentQuery) -> list[int] | None:
        """Sums in the order of the questions; None when the records were not all in after 1.5 s."""
        if not await self._all_read(worker, query):
            return None
        return await spent_of(self._state, self._usage, query.questions)

    async def _all_read(self, worker: str, query: SpentQuery) -> bool:
        """Waits for the records before the question. Those of nodes that are asked for need not be in: each tells
        the others itself what it used.
        """
        try:
            async with asyncio.timeout(WAIT_S):
                # Other processes write the files: there is no event to wait for.
                while self._is_behind() or await asyncio.to_thread(
                    has_unread,
                    self._spool_dir,
                    worker,
                    query.before_segment,
                    frozenset(query.nodes),
                ):
                    self.wanted.set()
                    await asyncio.sleep(LOOK_EVERY_S)
        except TimeoutError:
            return False
        return True

    def _is_behind(self) -> bool:
        """Whether a usage database that was made again has not been filled from the nodes' log yet."""
        return self._shared is not None and not self._shared.was_current

    async def shared_sums(
        self, worker: str, query: SpentQuery, pids: Mapping[str, int]
    ) -> tuple[list[int] | None, list[NodeSums]]:
        """The sums, and of them those of each of `query.nodes`; `pids` has the workers that were heard of."""
        if not query.nodes:
            return await self.sums(worker, query), []
        if not await self._all_read(worker, query):
            return None, []
        nodes_by_prefix = await _nodes_for(self._state, query.questions)
        # Before the sums: what a worker wrote last is in them then.
        ended = await asyncio.to_thread(_ended, query.nodes, pids, self._spool_dir)

        def both(con: Connection) -> tuple[list[int], dict[str, list[int]]]:
            """In one view of the records, so that every one is of a node in both or in none."""
            by_node = sum_of_nodes(con, query.questions, query.nodes, nodes_by_prefix)
            return sum_spent(con, query.questions, nodes_by_prefix), by_node

        sums, by_node = await self._usage.read(both)
        return sums, [NodeSums(node, node in ended, by_node[node]) for node in query.nodes]


def _ended(nodes: list[str], pids: Mapping[str, int], spool_dir: Path) -> set[str]:
    """Nodes that are known to have ended: their processes are gone from this machine, and no record is
    left to read. Those that ended with the control before this one are known by the files that they had locked.
    """
    gone = {node for node in nodes if node in pids and not Path(f"/proc/{pids[node]}").exists()}
    gone |= {node for node in nodes if is_free(spool_dir.parent / WORKERS / node)}
    return gone - writers(spool_dir)


async def spent_of(state: State, usage: Database, questions: list[Question]) -> list[int]:
    """Returns the sums in the order of the questions."""
    nodes_by_prefix = await _nodes_for(state, questions)
    return await usage.read(lambda con: sum_spent(con, questions, nodes_by_prefix))


async def _nodes_for(state: State, questions: list[Question]) -> NodesByPrefix:
    return await state.read(_read_nodes_by_prefix) if any(each.model for each in questions) else {}


def _read_nodes_by_prefix(con: Connection) -> NodesByPrefix:
    found: NodesByPrefix = defaultdict(list)
    for prefix, node_id in con.execute("SELECT prefix, id FROM provider_nodes").fetchall():
        found[prefix].append(node_id)
    return found


@dataclass(frozen=True, slots=True)
class _Statement:
    """The questions that one statement answers: those that share beginning, model, provider and sort of owner."""

    from_ms: int
    model: str | None
    provider: str | None
    is_group: bool


def _statement_of(question: Question) -> _Statement:
    return _Statement(
        question.from_ms, question.model, question.provider, question.group_id is not None
    )


def _owner_of(question: Question) -> str:
    return question.group_id or question.key_id or ""


# The amounts of an owner by their unit.
_Found = dict[tuple[_Statement, str, Unit], int]


def sum_spent(
    con: Connection, questions: list[Question], nodes_by_prefix: NodesByPrefix
) -> list[int]:
    """Returns the sums in the order of the questions."""
    owners: dict[_Statement, set[str]] = defaultdict(set)
    wanted = [(_statement_of(each), _owner_of(each), each.unit) for each in questions]
    for statement, owner_id, _ in wanted:
        owners[statement].add(owner_id)
    found: _Found = defaultdict(int)
    for statement, owner_ids in owners.items():
        _add_place(con, statement, owner_ids, nodes_by_prefix, found)
    return [found.get(one, 0) for one in wanted]


def _add_place(
    con: Connection,
    statement: _Statement,
    owner_ids: set[str],
    nodes_by_prefix: NodesByPrefix,
    found: _Found,
) -> None:
    column = "group_path" if statement.is_group else "key_id"
    filters = _filters(statement, owner_ids, nodes_by_prefix)

    def add(owner: str, unit: Unit, amount: int) -> None:
        # A path names a group and every group above it.
        for owner_id in owner.split("/") if statement.is_group else (owner,):
            if owner_id in owner_ids:
                found[statement, owner_id, unit] += amount

    selection = Selection({"owner_id": column}, filters)
    rows = sums_of(con, Span(statement.from_ms, _EVER_MS), selection)
    for row in rows.iter_rows(named=True):
        for unit, columns in _SUMS.items():
            add(row["owner_id"], unit, sum(row[name] for name in columns))
    for owner, amounts in _over_the_edge(con, column, statement.from_ms, filters):
        for unit, amount in amounts.items():
            add(owner, unit, amount)


def _filters(statement: _Statement, owner_ids: set[str], nodes_by_prefix: NodesByPrefix) -> Filters:
    conditions = [
        "list_has_any(string_split(group_path, '/'), $owner_ids)"
        if statement.is_group
        else "key_id IN (SELECT unnest($owner_ids))"
    ]
    bound: dict[str, Any] = {"owner_ids": sorted(owner_ids)}
    if statement.provider is not None:
        conditions.append("provider = $provider")
        bound["provider"] = statement.provider
    if (model := statement.model) is not None:
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
            "providers": [prefix, *nodes_by_prefix.get(prefix, ())],
        }
    return Filters(conditions, bound)


def sum_of_nodes(
    con: Connection, questions: list[Question], nodes: list[str], nodes_by_prefix: NodesByPrefix
) -> dict[str, list[int]]:
    """The sums of each worker, from single records: rollups do not know who wrote them. Records that are deleted
    by then count among those of unknown workers, so nothing is lost.
    """
    found = {node: [0] * len(questions) for node in nodes}
    for at, question in enumerate(questions):
        filters = _filters(_statement_of(question), {_owner_of(question)}, nodes_by_prefix)
        where = " AND ".join(filters.conditions)
        rows = con.execute(
            "SELECT worker_id, "
            "count(*) FILTER (ts_ms >= $edge_ms AND outcome NOT IN ('refused', 'shed')), "
            "sum(tokens_input + tokens_output)::BIGINT, sum(cost_usd_micros)::BIGINT, "
            f"count(*) FILTER ({IS_UNPRICED}) "
            "FROM requests WHERE ts_ms >= $earliest_ms AND ts_ms + latency_ms >= $edge_ms "
            f"AND worker_id IN (SELECT unnest($nodes)) AND {where} GROUP BY worker_id",
            {
                **filters.bound,
                "nodes": nodes,
                "earliest_ms": question.from_ms - _LONGEST_MS,
                "edge_ms": question.from_ms,
            },
        ).fetchall()
        for node, requests, tokens, usd_micros, unpriced in rows:
            sums: dict[Unit, int] = {
                "requests": requests,
                "tokens": tokens,
                "usd_micros": usd_micros,
                "unpriced_requests": unpriced,
            }
            found[str(node)][at] = int(sums[question.unit])
    return found


def _over_the_edge(
    con: Connection, column: str, from_ms: int, filters: Filters
) -> list[tuple[str, dict[Unit, int]]]:
    """Tokens, cost and requests without a price, of calls that began before and ended since: relays count a call in
    the window in which it ends, and records are stored under its beginning.
    """
    where = " AND ".join(filters.conditions)
    rows = con.execute(
        f"SELECT {column}, sum(tokens_input + tokens_output)::BIGINT, "
        "sum(cost_usd_micros)::BIGINT, sum(unpriced_requests)::BIGINT "
        "FROM request_facts WHERE ts_ms >= $earliest_ms AND ts_ms < $edge_ms "
        f"AND ts_ms + latency_us // 1000 >= $edge_ms AND {where} GROUP BY {column}",
        {**filters.bound, "earliest_ms": from_ms - _LONGEST_MS, "edge_ms": from_ms},
    ).fetchall()
    units: tuple[Unit, ...] = ("tokens", "usd_micros", "unpriced_requests")
    return [
        (str(owner), dict(zip(units, map(int, amounts), strict=True))) for owner, *amounts in rows
    ]
