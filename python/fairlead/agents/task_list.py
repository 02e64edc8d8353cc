"""`tasks/list`: a caller's tasks of one agent, the last changed first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, get_args

from fairlead.agents import protocol
from fairlead.agents.task import State
from fairlead.agents.task_table import OwnTasks, list_own_tasks, messages_of
from fairlead.store.file import Connection

PAGE_DEFAULT: Final = 50
PAGE_MAX: Final = 100
STATES: Final[tuple[str, ...]] = get_args(State)


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """The parameters of `tasks/list`."""

    context_id: str | None
    state: str | None
    changed_after_ms: int | None
    page_size: int
    after: tuple[int, str] | None
    history_length: int
    has_artifacts: bool


def read_query(params: dict[str, Any]) -> TaskQuery:
    """`RpcFault` names the parameter that is wrong."""
    state = params.get("status")
    if state is not None and state not in STATES:
        raise protocol.invalid_params("status", f"must be one of {', '.join(STATES)}")
    size = params.get("pageSize")
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 0):
        raise protocol.invalid_params("pageSize", f"must be a number from 1 to {PAGE_MAX}")
    has_artifacts = params.get("includeArtifacts") or False
    if not isinstance(has_artifacts, bool):
        raise protocol.invalid_params("includeArtifacts", "must be true or false")
    return TaskQuery(
        context_id=protocol.read_id(params, "contextId") if params.get("contextId") else None,
        state=state,
        changed_after_ms=_moment(params.get("lastUpdatedAfter")),
        page_size=min(size or PAGE_DEFAULT, PAGE_MAX),
        after=_position(params.get("pageToken") or None),
        history_length=protocol.read_length(params) or 0,
        has_artifacts=has_artifacts,
    )


def list_page(con: Connection, skill_id: str, owner: str, query: TaskQuery) -> dict[str, Any]:
    """A page of tasks, and how many there are in all."""
    own = OwnTasks(skill_id, owner, query.context_id, query.state, query.changed_after_ms)
    tasks, total = list_own_tasks(con, own, query.after, query.page_size + 1)
    shown = tasks[: query.page_size]
    views = []
    for task in shown:
        view = task.view(messages_of(con, task.id), query.history_length)
        if not query.has_artifacts:
            view.pop("artifacts", None)
        views.append(view)
    last = shown[-1] if len(tasks) > query.page_size else None
    return {
        "tasks": views,
        "nextPageToken": f"{last.updated_at_ms}.{last.id}" if last else "",
        "pageSize": query.page_size,
        "totalSize": total,
    }


def _position(token: Any) -> tuple[int, str] | None:
    if token is None:
        return None
    at_ms, _, task_id = token.partition(".") if isinstance(token, str) else ("", "", "")
    if not (at_ms.isascii() and at_ms.isdigit() and len(at_ms) < 16 and len(task_id) <= 64):
        raise protocol.invalid_params("pageToken", "must be the nextPageToken of an earlier page")
    return int(at_ms), task_id


def _moment(value: Any) -> int | None:
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
        return int(moment.timestamp() * 1000)
    except (TypeError, ValueError, OverflowError):
        raise protocol.invalid_params("lastUpdatedAfter", "must be a time in ISO 8601") from None
