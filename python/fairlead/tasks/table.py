"""The tables of reverse tasks. Every function runs inside `state.read` or in the writer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from fairlead.errors import Conflict
from fairlead.store.file import Connection
from fairlead.store.table import Table, read_number
from fairlead.tasks.task import Block, Entry, Evidence, Run, Task

TASKS_MAX: Final = 10_000
EVIDENCE_MAX: Final = 10_000
TIMELINE_MAX: Final = 10_000

_TASKS: Final = Table("reverse_tasks", Task, json={"criteria": dict})
_PARTS: Final = (
    "reverse_task_timeline",
    "reverse_task_evidence",
    "reverse_task_blocks",
    "reverse_task_runs",
)


def find_task(con: Connection, owner: str, task_id: str) -> Task | None:
    """The task with this id, if it is the owner's."""
    return _TASKS.find(con, "owner = ? AND id = ?", owner, task_id)


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Which tasks are listed. `query` is searched in id, slug, address, goal and summary, ignoring case."""

    has_archived: bool
    query: str | None
    tag: str | None


def list_tasks(
    con: Connection, owner: str, wanted: TaskFilter, limit: int
) -> tuple[list[Task], int]:
    """An owner's tasks, most recently changed first, and their number."""
    where = (
        "owner = $owner AND ($archived OR archived_at_ms IS NULL) "
        "AND ($tag::VARCHAR IS NULL OR list_contains(tags, $tag)) "
        "AND ($query::VARCHAR IS NULL OR contains(lower(concat_ws(' ', id, slug, target_url, goal, summary)), "
        "lower($query)))"
    )
    values = {
        "owner": owner,
        "archived": wanted.has_archived,
        "tag": wanted.tag,
        "query": wanted.query,
    }
    rows = con.execute(
        f"SELECT {', '.join(_TASKS.columns)} FROM reverse_tasks WHERE {where} "
        "ORDER BY updated_at_ms DESC, id LIMIT $limit",
        {**values, "limit": limit},
    ).fetchall()
    total = read_number(con, f"SELECT count(*) FROM reverse_tasks WHERE {where}", values)
    return [_TASKS.read(row) for row in rows], total


def insert_task(con: Connection, task: Task) -> None:
    """Adds a task, in the writer. `Conflict` when its owner has reached the limit."""
    if _TASKS.count(con, "owner = ?", task.owner) >= TASKS_MAX:
        raise Conflict(f"There are {TASKS_MAX} tasks, the most: prune some first.")
    _TASKS.insert(con, task)


def update_task(con: Connection, task: Task) -> None:
    """Replaces a task's row, in the writer."""
    _TASKS.update(con, task, ("owner", "id"))


def prune_tasks(con: Connection, owner: str, before_ms: int) -> list[str]:
    """Deletes an owner's tasks that were archived before a moment, with their rows in other tables, in the
    writer. Returns their ids.
    """
    rows = con.execute(
        "SELECT id FROM reverse_tasks WHERE owner = ? AND archived_at_ms < ? ORDER BY id",
        [owner, before_ms],
    ).fetchall()
    gone = [str(row[0]) for row in rows]
    for table, column in (*((part, "task_id") for part in _PARTS), ("reverse_tasks", "id")):
        con.execute(
            f"DELETE FROM {table} WHERE owner = ? AND list_contains(?::VARCHAR[], {column})",
            [owner, gone],
        )
    return gone


def add_entry(con: Connection, task: Task, entry: Entry) -> None:
    """Adds a line to a task's timeline, in the writer, which numbers it."""
    number = _next_number(con, "reverse_task_timeline", task, TIMELINE_MAX)
    con.execute(
        "INSERT INTO reverse_task_timeline VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            task.owner,
            task.id,
            number,
            entry.at_ms,
            entry.stage,
            entry.action,
            entry.status,
            entry.detail,
        ],
    )


def timeline(con: Connection, task: Task, limit: int) -> list[Entry]:
    """The last entries of a task's timeline, newest first."""
    rows = con.execute(
        "SELECT at_ms, stage, action, status, detail, number FROM reverse_task_timeline "
        "WHERE owner = ? AND task_id = ? ORDER BY number DESC LIMIT ?",
        [task.owner, task.id, limit],
    ).fetchall()
    return [Entry(*row) for row in rows]


def add_evidence(con: Connection, task: Task, finding: Evidence) -> None:
    """Adds a finding, in the writer, which numbers it."""
    number = _next_number(con, "reverse_task_evidence", task, EVIDENCE_MAX)
    con.execute(
        "INSERT INTO reverse_task_evidence VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            task.owner,
            task.id,
            number,
            finding.at_ms,
            finding.kind,
            finding.summary,
            orjson.dumps(finding.data).decode(),
        ],
    )


def evidence(
    con: Connection, task: Task, limit: int, kinds: Sequence[str] | None = None
) -> list[Evidence]:
    """The last findings of these kinds, or of all kinds, newest first."""
    rows = con.execute(
        "SELECT at_ms, kind, summary, data, number FROM reverse_task_evidence "
        "WHERE owner = $owner AND task_id = $task "
        "AND ($kinds::VARCHAR[] IS NULL OR list_contains($kinds::VARCHAR[], kind)) "
        "ORDER BY number DESC LIMIT $limit",
        {
            "owner": task.owner,
            "task": task.id,
            "limit": limit,
            "kinds": None if kinds is None else list(kinds),
        },
    ).fetchall()
    return [
        Evidence(at_ms, kind, summary, orjson.loads(data), number)
        for at_ms, kind, summary, data, number in rows
    ]


def count_evidence(con: Connection, task: Task) -> dict[str, int]:
    """The number of findings of each kind."""
    rows = con.execute(
        "SELECT kind, count(*) FROM reverse_task_evidence WHERE owner = ? AND task_id = ? "
        "GROUP BY kind ORDER BY kind",
        [task.owner, task.id],
    ).fetchall()
    return {str(kind): int(count) for kind, count in rows}


def raise_block(con: Connection, task: Task, block: Block) -> None:
    """Stores the block of a task, in the writer, and ends any earlier one."""
    lift_blocks(con, task, block.raised_at_ms)
    con.execute(
        "INSERT INTO reverse_task_blocks VALUES (?, ?, ?, ?, ?, NULL)",
        [task.owner, task.id, block.reason, block.blocked_by, block.raised_at_ms],
    )


def lift_blocks(con: Connection, task: Task, at_ms: int) -> None:
    """Ends the blocks of a task, in the writer."""
    con.execute(
        "UPDATE reverse_task_blocks SET lifted_at_ms = ? "
        "WHERE owner = ? AND task_id = ? AND lifted_at_ms IS NULL",
        [at_ms, task.owner, task.id],
    )


def find_block(con: Connection, task: Task) -> Block | None:
    """The task's current block, or None."""
    row = con.execute(
        "SELECT reason, blocked_by, raised_at_ms FROM reverse_task_blocks "
        "WHERE owner = ? AND task_id = ? AND lifted_at_ms IS NULL ORDER BY raised_at_ms DESC LIMIT 1",
        [task.owner, task.id],
    ).fetchone()
    return None if row is None else Block(*row)


def keep_run(con: Connection, task: Task, run: Run, at_ms: int) -> None:
    """Replaces the task's last run, in the writer."""
    con.execute(
        "DELETE FROM reverse_task_runs WHERE owner = ? AND task_id = ?", [task.owner, task.id]
    )
    con.execute(
        "INSERT INTO reverse_task_runs VALUES (?, ?, ?, ?, ?, ?)",
        [task.owner, task.id, run.strategy, orjson.dumps(run.steps).decode(), run.rounds, at_ms],
    )


def find_run(con: Connection, task: Task) -> Run | None:
    """The task's last run, or None."""
    row = con.execute(
        "SELECT strategy, steps, rounds FROM reverse_task_runs WHERE owner = ? AND task_id = ?",
        [task.owner, task.id],
    ).fetchone()
    return None if row is None else Run(row[0], orjson.loads(row[1]), row[2])


def _next_number(con: Connection, table: str, task: Task, most: int) -> int:
    last = f"SELECT coalesce(max(number), 0) FROM {table} WHERE owner = ? AND task_id = ?"
    number = read_number(con, last, [task.owner, task.id]) + 1
    if number > most:
        raise Conflict(f"The task has {most} of these, the maximum: continue with another task.")
    return number
