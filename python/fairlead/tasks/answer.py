"""Builds response envelopes from tool results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead.tasks.envelope import SCHEMA_VERSION, Envelope, Outcome, ToolClass
from fairlead.tasks.plan import SWITCHING, Failure
from fairlead.tasks.task import Block, Task

MANAGE: Final = "manage_reverse_task"
ORCHESTRATE: Final = "orchestrate_reverse_task"
HEALTH: Final = "get_rebuild_health_report"
DIFF: Final = "diff_env_requirements"
TOOLS: Final = (MANAGE, ORCHESTRATE, HEALTH, DIFF)

_CLASS: Final[dict[str, ToolClass]] = {
    MANAGE: "task",
    ORCHESTRATE: "orchestration",
    HEALTH: "rebuild",
    DIFF: "analysis",
}
_HINT: Final = {
    "task": "stay_on_task_flow",
    "orchestration": "switch_to_orchestration",
    "rebuild": "switch_to_rebuild",
    "analysis": "switch_to_analysis",
}
_REQUIRED: Final = {
    MANAGE: ("action",),
    ORCHESTRATE: ("taskId",),
    HEALTH: ("taskId",),
    DIFF: ("runtimeError", "observedCapabilities"),
}
_ACTIONS_WITHOUT_TASK: Final = frozenset({"list", "search", "prune"})
# Members that a compact answer leaves out.
_VERBOSE_ONLY: Final = (
    "nextBestTool",
    "nextBestParams",
    "shouldSwitchStrategy",
    "agentGuidance",
    "fallbackPlan",
    "routeGuard",
)


@dataclass(frozen=True, slots=True)
class Next:
    """A suggested next call.

    `params` are complete: the call can be made as it is. `example` is a fuller call where the agent has to add
    something first; then the suggestion is not ready, and the plain call makes no progress.
    """

    tool: str
    params: dict[str, Any]
    reason: str
    strategy: str | None = None
    example: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call. `facts` are members beside those of the envelope."""

    outcome: Outcome
    summary: str
    next: Next
    action: str
    task: Task | None = None
    failure: Failure | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    fallback: Mapping[str, Any] | None = None
    should_resume: bool = False
    should_switch: bool | None = None
    avoid: Sequence[str] = ()


def envelope(result: ToolResult, output_mode: str = "verbose") -> Envelope:
    """The envelope of a result. The compact mode leaves out repeated and explanatory members."""
    follow = result.next
    is_ready = result.outcome != "blocked" and follow.example is None
    tool_class = _CLASS[follow.tool]
    switches = result.should_switch
    if switches is None:
        switches = follow.strategy in SWITCHING
    body: dict[str, Any] = {
        "schemaVersion": SCHEMA_VERSION,
        "outcome": result.outcome,
        "detailLevel": "standard",
        "continuation": _continuation(follow, is_ready=is_ready),
        "responseSummary": result.summary,
        "diagnostics": {
            "responseStatus": _status(result),
            "action": result.action,
            "outputMode": output_mode,
            **({} if result.task is None else {"taskId": result.task.id}),
            "hasFallbackPlan": result.fallback is not None,
            **result.diagnostics,
        },
        "shouldResume": result.should_resume,
        "shouldSwitchStrategy": switches,
        "nextBestTool": follow.tool,
        "nextBestParams": follow.params,
        "routeGuard": {
            "preferredToolClass": tool_class,
            "routeHint": _HINT[tool_class],
            "avoidTools": list(result.avoid),
        },
        "agentGuidance": _guidance(result, is_ready=is_ready),
        **result.facts,
    }
    if result.failure is not None:
        body |= {
            "errorCode": result.failure.type,
            "errorType": result.failure.type,
            "retryable": result.failure.is_retryable,
            "blockedBy": result.failure.blocked_by,
        }
    if result.fallback is not None:
        body["fallbackPlan"] = dict(result.fallback)
    if output_mode == "compact":
        body = {name: value for name, value in body.items() if name not in _VERBOSE_ONLY}
        body["detailLevel"] = "minimal"
    return Envelope.model_validate(body)


def blocked(task: Task, block: Block | None, action: str, output_mode: str) -> Envelope:
    """The envelope for a blocked task, which may be read but not advanced."""
    reason = block.reason if block is not None else "The task is blocked."
    result = ToolResult(
        "blocked",
        f"{task.id} is blocked: {reason}",
        Next(MANAGE, {"action": "get", "taskId": task.id}, f"Blocked: {reason}"),
        action,
        task,
        Failure("task_blocked", reason),
        facts={"task": show_task(task, block)},
        should_switch=False,
        avoid=(ORCHESTRATE,),
    )
    return envelope(result, output_mode)


def invalid(message: str, action: str, output_mode: str, task: Task | None = None) -> Envelope:
    """The envelope for a call that breaks a rule and changed nothing."""
    params: dict[str, Any] = {"action": "list"}
    if task is not None:
        params = {"action": "get", "taskId": task.id}
    result = ToolResult(
        "blocked",
        message,
        Next(MANAGE, params, message),
        action,
        task,
        Failure("validation_error", message),
        should_switch=False,
    )
    return envelope(result, output_mode)


def show_task(task: Task, block: Block | None = None) -> dict[str, Any]:
    """The JSON form of a task; absent values are left out."""
    shown: dict[str, Any] = {
        "taskId": task.id,
        "taskSlug": task.slug,
        "targetUrl": task.target_url,
        "goal": task.goal,
        "currentStage": task.stage,
        "status": task.status,
        "currentSummary": task.summary,
        "nextStepHint": task.next_step_hint,
        "successCriteria": task.criteria,
        "tags": task.tags,
        "createdAtMs": task.created_at_ms,
        "updatedAtMs": task.updated_at_ms,
        "archivedAtMs": task.archived_at_ms,
    }
    if block is not None:
        shown["block"] = {
            "reason": block.reason,
            "blockedBy": block.blocked_by,
            "raisedAtMs": block.raised_at_ms,
        }
    return {name: value for name, value in shown.items() if value is not None}


def _continuation(follow: Next, *, is_ready: bool) -> dict[str, Any]:
    required = list(_REQUIRED[follow.tool])
    if follow.tool == MANAGE and follow.params.get("action") not in _ACTIONS_WITHOUT_TASK:
        required.append("taskId")
    example = follow.params if follow.example is None else follow.example
    tool_class = _CLASS[follow.tool]
    named: dict[str, Any] = {
        "ready": is_ready,
        "reason": follow.reason,
        "tool": follow.tool,
        "params": follow.params,
        "invoke": {"tool": follow.tool, "params": follow.params},
        "invokeHint": {
            "requiredParams": required,
            "optionalParams": [name for name in example if name not in required],
            "example": example,
        },
        "toolClass": tool_class,
        "routeHint": _HINT[tool_class],
        "actionKey": follow.tool,
    }
    if follow.strategy is not None:
        named["strategy"] = follow.strategy
    if is_ready:
        named["resumeCommand"] = f"{follow.tool} {json.dumps(follow.params, ensure_ascii=False)}"
    return named


def _status(result: ToolResult) -> str:
    """The envelope's `status`: `refused` (the call broke a rule and changed nothing), `blocked`, `failed` (a
    step or a check failed), `incomplete` or `ok`.
    """
    if result.outcome == "blocked":
        refused = result.failure is not None and result.failure.type == "validation_error"
        return "refused" if refused else "blocked"
    if result.failure is not None:
        return "failed"
    return "ok" if result.outcome == "success" else "incomplete"


def _guidance(result: ToolResult, *, is_ready: bool) -> dict[str, Any]:
    guidance: dict[str, Any] = {
        "status": "ok" if is_ready else "needs_input",
        "summary": result.summary,
        "recommendedNextAction": result.next.reason,
        "recommendedTool": result.next.tool,
        "recommendedParams": result.next.params,
    }
    if result.next.strategy is not None:
        guidance["recommendedStrategy"] = result.next.strategy
    if result.should_resume:
        guidance["resumeHint"] = (
            "Make the call of `continuation.invoke` unchanged."
            if is_ready
            else "Do what the reason says, then call as `continuation.invokeHint.example` does."
        )
    return guidance
