"""`manage_reverse_task`: creates, shows and changes tasks. Runs in the writer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from fairlead.store.file import Connection
from fairlead.tasks.answer import (
    HEALTH,
    MANAGE,
    ORCHESTRATE,
    Next,
    ToolResult,
    blocked,
    envelope,
    invalid,
    show_task,
)
from fairlead.tasks.envelope import Envelope, Outcome
from fairlead.tasks.fields import ManageRequest
from fairlead.tasks.plan import strategy_for
from fairlead.tasks.table import (
    TaskFilter,
    add_entry,
    add_evidence,
    count_evidence,
    evidence,
    find_block,
    find_task,
    insert_task,
    lift_blocks,
    list_tasks,
    prune_tasks,
    raise_block,
    timeline,
    update_task,
)
from fairlead.tasks.task import CRITERIA, NO_CRITERIA, Block, Entry, Evidence, Task

DAY_MS: Final = 86_400_000
_MUTABLE: Final = {
    "task_slug": "slug",
    "target_url": "target_url",
    "goal": "goal",
    "current_stage": "stage",
    "status": "status",
    "current_summary": "summary",
    "next_step_hint": "next_step_hint",
}
# Actions that an archived task still allows.
_OF_ARCHIVED: Final = frozenset({"get", "summarize", "restore", "compare", "archive"})


def manage(con: Connection, owner: str, request: ManageRequest, at_ms: int) -> Envelope:
    """Performs the action, in the writer."""
    if request.action in ("list", "search"):
        return _listed(con, owner, request)
    if request.action == "prune":
        return _pruned(con, owner, request, at_ms)
    if request.task_id is None:
        return _invalid(request, f'taskId is required when action="{request.action}"')
    task = find_task(con, owner, request.task_id)
    if task is None:
        if request.action == "update" and request.goal is not None:
            return _made(con, owner, request, at_ms)
        hint = " Give goal to make it." if request.action == "update" else ""
        return _invalid(request, f"There is no task {request.task_id}.{hint}")
    if task.archived_at_ms is not None and request.action not in _OF_ARCHIVED:
        result = ToolResult(
            "partial",
            f"{task.id} is archived: restore it first.",
            Next(MANAGE, {"action": "restore", "taskId": task.id}, "Restore the task first."),
            request.action,
            task,
            facts={"task": show_task(task)},
        )
        return envelope(result, request.output_mode)
    return _ACTIONS[request.action](con, task, request, at_ms)


def next_of(task: Task) -> Next:
    """The suggested next call for a task in its current state."""
    if task.archived_at_ms is not None:
        return Next(MANAGE, {"action": "restore", "taskId": task.id}, "The task is archived.")
    if task.status == "pass":
        return Next(MANAGE, {"action": "archive", "taskId": task.id}, "The task has passed.")
    if task.stage in ("Rebuild", "Patch"):
        return Next(HEALTH, {"taskId": task.id}, "See the state of the rebuild.")
    strategy = strategy_for(task)
    params = {"taskId": task.id, "strategy": strategy, "execute": True, "resume": True}
    return Next(ORCHESTRATE, params, f"Continue from {task.stage}.", strategy)


def _outcome(task: Task) -> Outcome:
    return "partial" if task.status == "partial" else "success"


def _invalid(request: ManageRequest, message: str, task: Task | None = None) -> Envelope:
    return invalid(message, request.action, request.output_mode, task)


def _listed(con: Connection, owner: str, request: ManageRequest) -> Envelope:
    if request.action == "search" and request.query is None and request.tag is None:
        return _invalid(request, 'query or tag is required when action="search"')
    wanted = TaskFilter(request.include_archived, request.query, request.tag)
    found, total = list_tasks(con, owner, wanted, request.limit)
    follow = Next(MANAGE, {"action": "list", "includeArchived": True}, "See the archived ones too.")
    if found:
        follow = Next(MANAGE, {"action": "get", "taskId": found[0].id}, "See the latest one.")
    result = ToolResult(
        "success",
        f"{total} tasks.",
        follow,
        request.action,
        facts={"tasks": [show_task(task) for task in found], "total": total},
    )
    return envelope(result, request.output_mode)


def _pruned(con: Connection, owner: str, request: ManageRequest, at_ms: int) -> Envelope:
    gone = prune_tasks(con, owner, at_ms - request.prune_older_than_days * DAY_MS)
    result = ToolResult(
        "success",
        f"{len(gone)} archived tasks were deleted.",
        Next(MANAGE, {"action": "list"}, "See what is left."),
        request.action,
        facts={"pruned": gone},
    )
    return envelope(result, request.output_mode)


def _made(con: Connection, owner: str, request: ManageRequest, at_ms: int) -> Envelope:
    task = Task(
        owner,
        request.task_id or "",
        request.task_slug,
        request.target_url,
        request.goal or "",
        request.current_stage or "Observe",
        "active",
        request.current_summary,
        request.next_step_hint,
        dict(NO_CRITERIA),
        sorted(set(request.tags)),
        at_ms,
        at_ms,
        None,
    )
    insert_task(con, task)
    add_entry(con, task, Entry(at_ms, task.stage, "made", "ok", None))
    return _updated(con, task, request, at_ms)


def _got(con: Connection, task: Task, request: ManageRequest, _at_ms: int) -> Envelope:
    facts = {
        "timeline": _entries(con, task, request.timeline_limit),
        "evidence": [
            {
                "number": each.number,
                "kind": each.kind,
                "summary": each.summary,
                "data": each.data,
                "atMs": each.at_ms,
            }
            for each in evidence(con, task, request.evidence_limit)
        ],
    }
    report = _Report(f"{task.id} is {task.status} at {task.stage}.", facts)
    return _of_task(con, task, request, report)


def _summarized(con: Connection, task: Task, request: ManageRequest, _at_ms: int) -> Envelope:
    counts = count_evidence(con, task)
    found = ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "nothing yet"
    judged = ", ".join(f"{name} {task.criteria.get(name)}" for name in CRITERIA)
    words = [f"{task.id} ({task.goal[:200]}) is {task.status} at {task.stage}."]
    words += [each for each in (task.summary, task.next_step_hint) if each]
    words += [f"Evidence: {found}.", f"Criteria: {judged}."]
    return _of_task(con, task, request, _Report(" ".join(words), {"evidenceAggregates": counts}))


def _progressed(con: Connection, task: Task, request: ManageRequest, at_ms: int) -> Envelope:
    if task.status == "blocked":
        return blocked(task, find_block(con, task), request.action, request.output_mode)
    after = replace(
        task,
        stage=request.current_stage or task.stage,
        summary=request.current_summary or request.result or task.summary,
        next_step_hint=request.next_step_hint or request.next or task.next_step_hint,
        updated_at_ms=_later(task, at_ms),
    )
    update_task(con, after)
    add_entry(
        con, after, Entry(at_ms, after.stage, "progress", "ok", request.detail or request.result)
    )
    _add_evidence(con, after, request, at_ms)
    report = _Report(f"{task.id} continues at {after.stage}.", should_resume=True)
    return _of_task(con, after, request, report)


def _updated(con: Connection, task: Task, request: ManageRequest, at_ms: int) -> Envelope:
    sent = {name for name in _MUTABLE if getattr(request, name) is not None}
    if not sent and request.success_criteria is None and not request.evidence:
        names = (
            "taskSlug, targetUrl, goal, currentStage, status, currentSummary, nextStepHint, "
            "successCriteria or evidence"
        )
        return _invalid(request, f'action="update" needs a field to change: {names}', task)
    columns: dict[str, Any] = {_MUTABLE[name]: getattr(request, name) for name in sent}
    if request.success_criteria is not None:
        judged = request.success_criteria.model_dump(by_alias=True, exclude_none=True)
        columns["criteria"] = task.criteria | judged
    after = replace(task, **columns, updated_at_ms=_later(task, at_ms))
    update_task(con, after)
    if request.status == "blocked":
        reason = request.detail or request.current_summary or "It was set to blocked."
        raise_block(con, after, Block(reason, "task_state", at_ms))
    elif request.status is not None:
        lift_blocks(con, after, at_ms)
    changed = [*sorted(sent), *(["success_criteria"] if request.success_criteria else [])]
    if changed:
        status = "blocked" if after.status == "blocked" else "ok"
        detail = request.detail or ", ".join(changed)
        add_entry(con, after, Entry(at_ms, after.stage, "update", status, detail))
    _add_evidence(con, after, request, at_ms)
    return _of_task(con, after, request, _Report(f"{task.id} is {after.status} at {after.stage}."))


def _timeline(con: Connection, task: Task, request: ManageRequest, at_ms: int) -> Envelope:
    given = (request.stage, request.timeline_action, request.timeline_status)
    if any(given):
        stage, action, status = given
        if stage is None or action is None or status is None:
            message = 'stage, timelineAction and timelineStatus are required when action="timeline" adds a line'
            return _invalid(request, message, task)
        add_entry(con, task, Entry(at_ms, stage, action, status, request.detail))
    entries = _entries(con, task, request.timeline_limit)
    result = ToolResult(
        "success",
        f"{len(entries)} lines of {task.id}'s timeline.",
        next_of(task),
        request.action,
        task,
        facts={"timeline": entries},
    )
    return envelope(result, request.output_mode)


def _archived(con: Connection, task: Task, request: ManageRequest, at_ms: int) -> Envelope:
    return _moved(con, task, request, at_ms, task.archived_at_ms or at_ms)


def _restored(con: Connection, task: Task, request: ManageRequest, at_ms: int) -> Envelope:
    return _moved(con, task, request, at_ms, None)


def _moved(
    con: Connection, task: Task, request: ManageRequest, at_ms: int, archived_at_ms: int | None
) -> Envelope:
    after = replace(task, archived_at_ms=archived_at_ms, updated_at_ms=_later(task, at_ms))
    if archived_at_ms != task.archived_at_ms:
        update_task(con, after)
        add_entry(con, after, Entry(at_ms, after.stage, request.action, "ok", None))
    if archived_at_ms is None:
        follow = Next(MANAGE, {"action": "get", "taskId": task.id}, "See its state.")
    else:
        follow = Next(MANAGE, {"action": "list"}, "See what is left.")
    result = ToolResult(
        "success",
        f"{task.id}: {request.action}.",
        follow,
        request.action,
        after,
        facts={"task": show_task(after)},
    )
    return envelope(result, request.output_mode)


def _tagged(con: Connection, task: Task, request: ManageRequest, at_ms: int) -> Envelope:
    if not request.tags:
        return _invalid(request, 'at least one tag is required when action="tag"', task)
    tags = sorted(set(request.tags) | (set() if request.replace_tags else set(task.tags)))
    after = replace(task, tags=tags, updated_at_ms=_later(task, at_ms))
    update_task(con, after)
    result = ToolResult(
        "success",
        f"{task.id} has the tags {', '.join(tags)}.",
        next_of(after),
        request.action,
        after,
        facts={"task": show_task(after)},
    )
    return envelope(result, request.output_mode)


def _compared(con: Connection, task: Task, request: ManageRequest, _at_ms: int) -> Envelope:
    if request.other_task_id is None:
        return _invalid(request, 'otherTaskId is required when action="compare"', task)
    other = find_task(con, task.owner, request.other_task_id)
    if other is None:
        return _invalid(request, f"There is no task {request.other_task_id}.", task)
    mine, theirs = show_task(task), show_task(other)
    mine["evidenceAggregates"] = count_evidence(con, task)
    theirs["evidenceAggregates"] = count_evidence(con, other)
    names = sorted((mine.keys() | theirs.keys()) - {"taskId", "createdAtMs", "updatedAtMs"})
    differences = {
        name: {task.id: mine.get(name), other.id: theirs.get(name)}
        for name in names
        if mine.get(name) != theirs.get(name)
    }
    result = ToolResult(
        "success",
        f"{task.id} and {other.id} differ in {len(differences)} fields.",
        next_of(task),
        request.action,
        task,
        facts={"differences": differences},
    )
    return envelope(result, request.output_mode)


@dataclass(frozen=True, slots=True)
class _Report:
    """A sentence about a task, and facts beside the task itself."""

    summary: str
    facts: dict[str, Any] = field(default_factory=dict)
    should_resume: bool = False


def _of_task(con: Connection, task: Task, request: ManageRequest, report: _Report) -> Envelope:
    """The envelope of an action: that the task is blocked if it is, else the result with the next call."""
    if task.status == "blocked":
        answer = blocked(task, find_block(con, task), request.action, request.output_mode)
        return answer.model_copy(update={**report.facts, "response_summary": report.summary})
    result = ToolResult(
        _outcome(task),
        report.summary,
        next_of(task),
        request.action,
        task,
        facts={"task": show_task(task), **report.facts},
        should_resume=report.should_resume,
    )
    return envelope(result, request.output_mode)


def _entries(con: Connection, task: Task, limit: int) -> list[dict[str, Any]]:
    return [
        {
            "number": each.number,
            "atMs": each.at_ms,
            "stage": each.stage,
            "action": each.action,
            "status": each.status,
            **({} if each.detail is None else {"detail": each.detail}),
        }
        for each in timeline(con, task, limit)
    ]


def _add_evidence(con: Connection, task: Task, request: ManageRequest, at_ms: int) -> None:
    for each in request.evidence:
        add_evidence(con, task, Evidence(at_ms, each.kind, each.summary, each.data))


def _later(task: Task, at_ms: int) -> int:
    return max(at_ms, task.updated_at_ms + 1)


_ACTIONS: Final[dict[str, Callable[[Connection, Task, ManageRequest, int], Envelope]]] = {
    "get": _got,
    "summarize": _summarized,
    "progress": _progressed,
    "update": _updated,
    "timeline": _timeline,
    "archive": _archived,
    "restore": _restored,
    "tag": _tagged,
    "compare": _compared,
}
