"""Strategies with their steps, and the meaning of failures for a run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from fairlead.tasks.environment import is_environment_error
from fairlead.tasks.task import Task

Strategy = Literal["observe-first", "rebuild-first", "env-fix", "artifact-sync", "evidence-only"]
STRATEGIES: Final[tuple[str, ...]] = get_args(Strategy)

FailureType = Literal[
    "task_blocked", "env_error", "external_error", "validation_error", "tool_error", "unknown"
]
FAILURE_TYPES: Final[tuple[str, ...]] = get_args(FailureType)


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a strategy. `stage` is the task's stage once the step is done. The agent takes the steps that
    the gateway cannot, and reports with `executionOverrides`.
    """

    name: str
    stage: str | None
    is_ours: bool
    what: str


STEPS: Final = {
    step.name: step
    for step in (
        Step("observe", "Observe", False, "Watch the page and note which requests matter."),
        Step("capture", "Capture", False, "Capture requests, scripts and state as evidence."),
        Step("review-evidence", None, True, "Count what was found."),
        Step("diff-environment", None, True, "Compare what scripts need with what is observed."),
        Step("rebuild", "Rebuild", False, "Run the scripts outside of the page."),
        Step("patch", "Patch", False, "Supply what the environment lacks."),
        Step("deep-dive", "DeepDive", False, "Follow the algorithm through its scripts."),
        Step("extract", "PureExtraction", False, "Write the algorithm down without the page."),
        Step("sync-artifacts", None, True, "List the artifacts that evidence names."),
        Step("port", "Port", False, "Port the algorithm to where it is to run."),
        Step("verify", None, True, "Check the task against its success criteria."),
    )
}

PLANS: Final[dict[str, tuple[str, ...]]] = {
    "observe-first": ("observe", "capture", "review-evidence", "deep-dive", "extract"),
    "rebuild-first": ("review-evidence", "diff-environment", "rebuild", "patch", "verify"),
    "env-fix": ("diff-environment", "patch", "rebuild", "verify"),
    "artifact-sync": ("review-evidence", "sync-artifacts", "port", "verify"),
    "evidence-only": ("review-evidence",),
}
# Strategies to which an agent switches from its current one.
SWITCHING: Final = frozenset({"rebuild-first", "env-fix", "artifact-sync", "evidence-only"})

_OF_STAGE: Final = {
    "Observe": "observe-first",
    "Capture": "observe-first",
    "Rebuild": "rebuild-first",
    "Patch": "env-fix",
    "DeepDive": "observe-first",
    "PureExtraction": "artifact-sync",
    "Port": "artifact-sync",
}

BLOCKED_BY: Final[dict[str, str]] = {
    "task_blocked": "task_state",
    "env_error": "environment",
    "external_error": "external_dependency",
    "validation_error": "input_validation",
    "tool_error": "tooling",
    "unknown": "unknown",
}

_EXTERNAL = re.compile(
    r"timed? ?out|ECONN|ENOTFOUND|connection (?:refused|reset)|network|DNS|\b(?:429|50[0234])\b|"
    r"rate limit|captcha|unreachable",
    re.IGNORECASE,
)
_VALIDATION = re.compile(
    r"\binvalid\b|\brequired\b|must be|schema|validation|bad request", re.IGNORECASE
)
_BLOCKED = re.compile(r"\bblocked\b|not permitted|forbidden|access denied", re.IGNORECASE)
_TOOL = re.compile(
    r"\btool\b|\bexit code\b|crash|segmentation|syntaxerror|traceback", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A step's failure. Resumable: the same run may continue once the cause is fixed; retryable: the same call
    may be repeated.
    """

    type: str
    error: str

    @property
    def is_resumable(self) -> bool:
        return self.type in ("env_error", "external_error", "validation_error", "tool_error")

    @property
    def is_retryable(self) -> bool:
        return self.type in ("env_error", "external_error", "tool_error")

    @property
    def blocked_by(self) -> str:
        return BLOCKED_BY[self.type]


def failure_of(error: str, reported: str | None = None) -> Failure:
    """Classifies an error text; a kind that the reporter names takes precedence."""
    if reported in FAILURE_TYPES:
        return Failure(str(reported), error)
    for kind, is_it in (
        ("env_error", is_environment_error),
        ("external_error", _EXTERNAL.search),
        ("task_blocked", _BLOCKED.search),
        ("validation_error", _VALIDATION.search),
        ("tool_error", _TOOL.search),
    ):
        if is_it(error):
            return Failure(kind, error)
    return Failure("unknown", error)


def strategy_for(task: Task) -> str:
    """The strategy of a task for which none was chosen."""
    return _OF_STAGE[task.stage]


def fallback_for(
    failure: Failure, task: Task, strategy: str, observed: list[str]
) -> dict[str, Any] | None:
    """The fallback after a failure: reason, strategy, calls; None where only a person can help."""
    resume = {"taskId": task.id, "resume": True, "execute": True}
    if failure.type == "env_error":
        diff = {"runtimeError": failure.error, "observedCapabilities": observed, "taskId": task.id}
        return {
            "reason": "The environment lacks what the scripts need.",
            "recommendedStrategy": "env-fix",
            "steps": [
                {"tool": "diff_env_requirements", "params": diff},
                {
                    "tool": "orchestrate_reverse_task",
                    "params": {"taskId": task.id, "strategy": "env-fix", "execute": True},
                },
            ],
        }
    if failure.type in ("external_error", "tool_error"):
        return {
            "reason": "It may go well the next time.",
            "recommendedStrategy": strategy,
            "steps": [
                {"tool": "orchestrate_reverse_task", "params": {**resume, "strategy": strategy}}
            ],
        }
    if failure.type == "validation_error":
        return {
            "reason": "The findings so far contradict each other: look at them first.",
            "recommendedStrategy": "evidence-only",
            "steps": [
                {"tool": "get_rebuild_health_report", "params": {"taskId": task.id}},
                {
                    "tool": "orchestrate_reverse_task",
                    "params": {"taskId": task.id, "strategy": "evidence-only", "execute": True},
                },
            ],
        }
    return None
