"""The tables `agent_tasks` and `agent_messages`. Every function runs inside `state.read` or the writer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import orjson

from fairlead.agents.task import Message, State, Task
from fairlead.errors import NotFound, RateLimited
from fairlead.store.file import Connection
from fairlead.store.table import Table

ACTIVE_MAX: Final = 1000
ACTIVE_OF_OWNER_MAX: Final = 100
RETENTION_MS: Final = 7 * 24 * 3_600_000
CONTEXT_MESSAGES_MAX: Final = 20

_TASKS: Final = Table("agent_tasks", Task, json={"metadata": dict})
_ACTIVE = "state IN ('submitted', 'working')"


def insert_task(con: Connection, task: Task, message: Message) -> Task:
    """Adds a task with its first message.

    A repeated message id of the same owner to the same agent returns the first task, so that clients may retry.
    Raises `RateLimited`.
    """
    same_message = "skill_id = ? AND owner = ? AND message_id = ?"
    known = _TASKS.find(con, same_message, task.skill_id, task.owner, task.message_id)
    if known is not None:
        return known
    counts = con.execute(
        f"SELECT count(*), count(*) FILTER (WHERE owner = ?) FROM agent_tasks WHERE {_ACTIVE}",
        [task.owner],
    ).fetchone() or (0, 0)
    if counts[0] >= ACTIVE_MAX or counts[1] >= ACTIVE_OF_OWNER_MAX:
        raise RateLimited(
            "Too many tasks are in progress: wait until some have ended.", retry_after_s=5
        )
    _TASKS.insert(con, task)
    insert_message(con, task.id, message)
    return task


def insert_message(con: Connection, task_id: str, message: Message) -> None:
    """Appends a message to a task."""
    con.execute(
        "INSERT INTO agent_messages SELECT ?, "
        "(SELECT count(*) FROM agent_messages WHERE task_id = ?), ?, ?, ?, ?",
        [
            task_id,
            task_id,
            message.message_id,
            message.role,
            orjson.dumps(list(message.parts)).decode(),
            message.at_ms,
        ],
    )


def begin_task(con: Connection, task_id: str, at_ms: int) -> bool:
    """Marks an active task as working; False when it has ended."""
    row = con.execute(
        f"UPDATE agent_tasks SET state = 'working', attempts = attempts + 1, updated_at_ms = ? "
        f"WHERE id = ? AND {_ACTIVE} RETURNING attempts",
        [at_ms, task_id],
    ).fetchone()
    return row is not None


@dataclass(frozen=True, slots=True)
class Ending:
    """How a task ended: its last state, why, and the agent's answer where there is one."""

    state: State
    reason: str | None = None
    answer: Message | None = None


def end_task(con: Connection, task_id: str, ending: Ending, at_ms: int) -> bool:
    """Ends an active task; False when it had ended already."""
    row = con.execute(
        f"UPDATE agent_tasks SET state = ?, reason = ?, updated_at_ms = ?, expires_at_ms = ? "
        f"WHERE id = ? AND {_ACTIVE} RETURNING 1",
        [ending.state, ending.reason, at_ms, at_ms + RETENTION_MS, task_id],
    ).fetchone()
    if row is None:
        return False
    if ending.answer is not None:
        insert_message(con, task_id, ending.answer)
    return True


def active_tasks(con: Connection) -> list[Task]:
    """Every task that has not ended, oldest first."""
    return _TASKS.select(con, f"WHERE {_ACTIVE} ORDER BY created_at_ms, id")


def active_of_skill(con: Connection, skill_id: str) -> list[str]:
    """The ids of an agent's tasks that have not ended."""
    rows = con.execute(
        f"SELECT id FROM agent_tasks WHERE skill_id = ? AND {_ACTIVE}", [skill_id]
    ).fetchall()
    return [str(row[0]) for row in rows]


def find_task(con: Connection, task_id: str) -> Task | None:
    """The task with this id."""
    return _TASKS.find(con, "id = ?", task_id)


def found_task(con: Connection, task_id: str) -> Task:
    """The task with this id; raises `NotFound`."""
    task = find_task(con, task_id)
    if task is None:
        raise NotFound("There is no task with this id.", param="id")
    return task


def messages_of(con: Connection, task_id: str) -> list[Message]:
    """The messages of a task, in order."""
    rows = con.execute(
        "SELECT message_id, role, parts, at_ms FROM agent_messages WHERE task_id = ? ORDER BY number",
        [task_id],
    ).fetchall()
    return [_message(row) for row in rows]


def context_before(con: Connection, task: Task) -> list[Message]:
    """The newest messages of completed tasks with the same owner, agent and context before this task, in order."""
    rows = con.execute(
        "SELECT m.message_id, m.role, m.parts, m.at_ms FROM agent_messages m "
        "JOIN agent_tasks t ON t.id = m.task_id "
        "WHERE t.skill_id = ? AND t.owner = ? AND t.context_id = ? AND t.state = 'completed' "
        "AND t.created_at_ms <= ? AND t.id <> ? "
        "ORDER BY t.created_at_ms DESC, t.id DESC, m.number DESC LIMIT ?",
        [
            task.skill_id,
            task.owner,
            task.context_id,
            task.created_at_ms,
            task.id,
            CONTEXT_MESSAGES_MAX,
        ],
    ).fetchall()
    return [_message(row) for row in reversed(rows)]


def list_tasks(
    con: Connection, limit: int, offset: int, skill_id: str | None, states: tuple[State, ...]
) -> tuple[list[Task], int]:
    """A page of tasks, newest first, and their total number."""
    where = "(?::VARCHAR IS NULL OR skill_id = ?) AND (? = 0 OR list_contains(?::VARCHAR[], state))"
    filters: list[object] = [skill_id, skill_id, len(states), list(states)]
    rest = f"WHERE {where} ORDER BY created_at_ms DESC, id LIMIT ? OFFSET ?"
    return _TASKS.select(con, rest, *filters, limit, offset), _TASKS.count(con, where, *filters)


@dataclass(frozen=True, slots=True)
class OwnTasks:
    """Which tasks of one owner and one agent are listed."""

    skill_id: str
    owner: str
    context_id: str | None = None
    state: str | None = None
    changed_after_ms: int | None = None


def list_own_tasks(
    con: Connection, own: OwnTasks, after: tuple[int, str] | None, limit: int
) -> tuple[list[Task], int]:
    """A page of an owner's tasks, the last changed first, and the number of all of them. `after` is the time and the id
    of the last task of the page before.
    """
    where = (
        "skill_id = ? AND owner = ? AND (?::VARCHAR IS NULL OR context_id = ?) "
        "AND (?::VARCHAR IS NULL OR state = ?) AND updated_at_ms > ?"
    )
    filters: list[object] = [own.skill_id, own.owner, own.context_id, own.context_id]
    filters += [own.state, own.state, -1 if own.changed_after_ms is None else own.changed_after_ms]
    at_ms, task_id = after or (2**62, "")
    page = "AND (updated_at_ms < ? OR (updated_at_ms = ? AND id > ?))"
    rest = f"WHERE {where} {page} ORDER BY updated_at_ms DESC, id LIMIT ?"
    tasks = _TASKS.select(con, rest, *filters, at_ms, at_ms, task_id, limit)
    return tasks, _TASKS.count(con, where, *filters)


def delete_task(con: Connection, task_id: str) -> None:
    """Removes a task with its messages."""
    con.execute("DELETE FROM agent_messages WHERE task_id = ?", [task_id])
    con.execute("DELETE FROM agent_tasks WHERE id = ?", [task_id])


def sweep_tasks(con: Connection, at_ms: int) -> None:
    """Removes tasks that ended longer ago than the retention time."""
    gone = con.execute(
        "SELECT id FROM agent_tasks WHERE expires_at_ms <= ? LIMIT 1000", [at_ms]
    ).fetchall()
    if gone:
        ids = [str(row[0]) for row in gone]
        con.execute("DELETE FROM agent_messages WHERE list_contains(?::VARCHAR[], task_id)", [ids])
        con.execute("DELETE FROM agent_tasks WHERE list_contains(?::VARCHAR[], id)", [ids])


def _message(row: tuple[Any, ...]) -> Message:
    message_id, role, parts, at_ms = row
    return Message(message_id, role, tuple(orjson.loads(parts)), at_ms)
