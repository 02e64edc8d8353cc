"""`get_rebuild_health_report` and `diff_env_requirements`: capabilities that a rebuild's environment lacks.

Both run in the writer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from fairlead.store.file import Connection
from fairlead.tasks.answer import (
    DIFF,
    HEALTH,
    MANAGE,
    ORCHESTRATE,
    Next,
    ToolResult,
    blocked,
    envelope,
    invalid,
)
from fairlead.tasks.envelope import Envelope
from fairlead.tasks.environment import (
    DEFAULT_OBSERVED,
    ERROR_MAX_CHARS,
    Gap,
    gaps,
    required_by,
)
from fairlead.tasks.fields import DiffRequest, HealthRequest
from fairlead.tasks.manage import next_of
from fairlead.tasks.plan import Failure, fallback_for
from fairlead.tasks.proof import Proof, proof_of
from fairlead.tasks.table import add_evidence, count_evidence, evidence, find_block, find_task
from fairlead.tasks.task import Evidence, Task

LOOKED_AT: Final = 500


def missing_of(
    con: Connection, task: Task, observed: Sequence[str]
) -> tuple[list[Gap], str | None]:
    """Capabilities that the task's runtime errors ask for and that are neither observed nor patched, and the
    last such error.
    """
    errors = evidence(con, task, LOOKED_AT, ["runtime-error"])
    patched = {
        str(each.data.get("capability", each.summary))
        for each in evidence(con, task, LOOKED_AT, ["patch"])
    }
    required: list[str] = []
    last: str | None = None
    for each in reversed(errors):
        error = _message(each)
        wanted = [name for name in required_by(error) if name not in patched]
        required += wanted
        last = error if wanted else last
    found = gaps(required, observed)
    return found, last if found else None


def health(con: Connection, owner: str, request: HealthRequest, _at_ms: int) -> Envelope:
    """Reports the state of a task's rebuild, in the writer."""
    task = find_task(con, owner, request.task_id)
    if task is None:
        return invalid(f"There is no task {request.task_id}.", HEALTH, request.output_mode)
    observed = list(request.observed_capabilities or DEFAULT_OBSERVED)
    missing, error = missing_of(con, task, observed)
    proof = proof_of(con, task)
    artifacts = evidence(con, task, LOOKED_AT, ["artifact"])
    facts: dict[str, Any] = {
        "currentStage": task.stage,
        "status": task.status,
        **_shown(missing),
        "evidenceAggregates": count_evidence(con, task),
        **proof.shown(),
        "artifacts": [{"summary": each.summary, **each.data} for each in artifacts],
    }
    if proof.open_divergences:
        first = proof.open_divergences[0]
        facts["firstDivergence"] = {"summary": first.summary, **first.data}
    if task.status == "blocked":
        answer = blocked(task, find_block(con, task), HEALTH, request.output_mode)
        return answer.model_copy(update=facts)
    if missing:
        result = _with_gaps(task, missing, Failure("env_error", error or ""), observed)
    else:
        result = _without_gaps(task, proof)
    shown = {**facts, "recommendedNextAction": result.next.reason}
    return envelope(replace(result, facts=shown), request.output_mode)


def _without_gaps(task: Task, proof: Proof) -> ToolResult:
    """The report where no capability is missing: what is left to show, or to do next."""
    follow = next_of(task)
    if follow.tool == HEALTH:
        # The report was the suggested call, so the steps are suggested now.
        params = {
            "taskId": task.id,
            "strategy": "rebuild-first",
            "execute": True,
            "resume": True,
        }
        reason = "Continue with the rebuild: " + (
            f"{'; '.join(proof.lacks)}." if proof.lacks else "every criterion is shown."
        )
        follow = Next(ORCHESTRATE, params, reason, "rebuild-first")
    lacks = proof.lacks if proof.findings else ["nothing was found out yet", *proof.lacks]
    summary = f"No capability that {task.id} needs is missing, and each criterion is shown."
    if lacks:
        summary = f"No runtime error of {task.id} is open, but {'; '.join(lacks)}."
    return ToolResult(
        "partial" if lacks else "success",
        summary,
        follow,
        HEALTH,
        task,
        should_resume=True,
        should_switch=False,
        diagnostics={"hasPatchSuggestions": False},
    )


def _with_gaps(task: Task, missing: list[Gap], failure: Failure, observed: list[str]) -> ToolResult:
    """The report of capabilities that are missing, with the call that says how to patch them."""
    params = {"runtimeError": failure.error, "observedCapabilities": observed, "taskId": task.id}
    return ToolResult(
        "partial",
        f"{task.id} needs {', '.join(gap.capability for gap in missing)}.",
        Next(DIFF, params, "See what to patch.", "env-fix"),
        HEALTH,
        task,
        failure,
        fallback=fallback_for(failure, task, "rebuild-first", observed),
        should_switch=True,
        diagnostics={"hasPatchSuggestions": True},
    )


def diff(con: Connection, owner: str, request: DiffRequest, at_ms: int) -> Envelope:
    """Reports the capabilities that an error asks for and that were not observed, in the writer."""
    task = None
    if request.task_id is not None:
        task = find_task(con, owner, request.task_id)
        if task is None:
            return invalid(f"There is no task {request.task_id}.", DIFF, request.output_mode)
    required = required_by(request.runtime_error)
    missing = gaps(required, request.observed_capabilities)
    if task is not None and task.archived_at_ms is None:
        _keep(con, task, request.runtime_error, at_ms)
    facts = {**_shown(missing), "nextPatches": [gap.capability for gap in missing[:3]]}
    if task is not None and task.status == "blocked":
        answer = blocked(task, find_block(con, task), DIFF, request.output_mode)
        return answer.model_copy(update=facts)
    if task is None:
        follow = Next(MANAGE, {"action": "list"}, "Choose the task that this belongs to.")
    elif missing:
        params = {"taskId": task.id, "strategy": "env-fix", "execute": True}
        follow = Next(ORCHESTRATE, params, "Patch what is missing.", "env-fix")
    else:
        follow = next_of(task)
    names = ", ".join(gap.capability for gap in missing)
    summary = f"Missing: {names}." if missing else "The error names nothing that is missing."
    result = ToolResult(
        "partial" if missing else "success",
        summary,
        follow,
        DIFF,
        task,
        Failure("env_error", request.runtime_error) if missing else None,
        facts=facts,
        should_switch=bool(missing),
        diagnostics={"hasPatchSuggestions": bool(missing)},
        should_resume=task is not None and not missing,
    )
    return envelope(result, request.output_mode)


def _keep(con: Connection, task: Task, error: str, at_ms: int) -> None:
    """Stores the error as evidence, unless the same error is stored already."""
    known = {_message(each) for each in evidence(con, task, LOOKED_AT, ["runtime-error"])}
    if error not in known:
        add_evidence(con, task, Evidence(at_ms, "runtime-error", error[:500], {"message": error}))


def _message(each: Evidence) -> str:
    # Evidence has a higher length limit than a call's parameter.
    return str(each.data.get("message") or each.summary)[:ERROR_MAX_CHARS]


def _shown(missing: Sequence[Gap]) -> dict[str, Any]:
    return {
        "missingCapabilities": [gap.capability for gap in missing],
        "patchSuggestions": [{"capability": gap.capability, "patch": gap.patch} for gap in missing],
    }
