"""`orchestrate_reverse_task`: runs the steps of a strategy in order, as far as they go.

Steps of the gateway run here. A step of the agent stops the run until it is reported with `executionOverrides`;
progress is stored, so the next call continues behind it. Runs in the writer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from fairlead.store.file import Connection
from fairlead.tasks.answer import (
    MANAGE,
    ORCHESTRATE,
    Next,
    ToolResult,
    blocked,
    envelope,
    invalid,
    show_task,
)
from fairlead.tasks.envelope import Envelope
from fairlead.tasks.environment import DEFAULT_OBSERVED
from fairlead.tasks.fields import OrchestrateRequest
from fairlead.tasks.health import LOOKED_AT, missing_of
from fairlead.tasks.manage import next_of
from fairlead.tasks.plan import PLANS, STEPS, Failure, Step, failure_of, fallback_for, strategy_for
from fairlead.tasks.proof import proof_of
from fairlead.tasks.table import (
    add_entry,
    count_evidence,
    evidence,
    find_block,
    find_run,
    find_task,
    keep_run,
    raise_block,
    update_task,
)
from fairlead.tasks.task import Block, Entry, Run, Task

ROUNDS_MAX: Final = 200


@dataclass(slots=True)
class _State:
    """The state of a run."""

    task: Task
    strategy: str
    names: tuple[str, ...]
    steps: dict[str, dict[str, Any]]
    rounds: int
    executed: list[str] = field(default_factory=list)
    failure: Failure | None = None
    failed: str | None = None
    stop: str = ""


def orchestrate(con: Connection, owner: str, request: OrchestrateRequest, at_ms: int) -> Envelope:
    """Shows the plan, or runs its steps, in the writer."""
    task = find_task(con, owner, request.task_id)
    if task is None:
        return invalid(f"There is no task {request.task_id}.", ORCHESTRATE, request.output_mode)
    if task.archived_at_ms is not None:
        result = ToolResult(
            "partial",
            f"{task.id} is archived: restore it first.",
            next_of(task),
            ORCHESTRATE,
            task,
        )
        return envelope(result, request.output_mode)
    if task.status == "blocked":
        return blocked(task, find_block(con, task), ORCHESTRATE, request.output_mode)
    before = find_run(con, task) if request.resume else None
    strategy = request.strategy or (before.strategy if before is not None else strategy_for(task))
    if before is not None and before.strategy != strategy:
        before = None
    plan = PLANS[strategy]
    if message := _unknown_step(request, plan, strategy):
        return invalid(message, ORCHESTRATE, request.output_mode, task)
    state = _State(
        task,
        strategy,
        _chosen(request, plan),
        dict(before.steps) if before else {},
        before.rounds if before else 0,
    )
    if not request.execute:
        return _planned(state, request)
    _run(con, state, request, at_ms)
    if request.persist_state:
        _keep(con, state, at_ms)
    return _outcome_envelope(state, request)


def _unknown_step(request: OrchestrateRequest, plan: tuple[str, ...], strategy: str) -> str | None:
    given = [*request.skip_steps, *request.only_steps, *request.execution_overrides]
    given += [request.from_step] if request.from_step else []
    unknown = [name for name in given if name not in plan]
    if not unknown:
        return None
    return f"{unknown[0][:64]} is no step of {strategy}: its steps are {', '.join(plan)}"


def _chosen(request: OrchestrateRequest, plan: tuple[str, ...]) -> tuple[str, ...]:
    start = plan.index(request.from_step) if request.from_step else 0
    return tuple(
        name
        for name in plan[start:]
        if name not in request.skip_steps and (not request.only_steps or name in request.only_steps)
    )


def _run(con: Connection, state: _State, request: OrchestrateRequest, at_ms: int) -> None:
    observed = list(request.observed_capabilities or DEFAULT_OBSERVED)
    state.rounds += 1
    if state.rounds > ROUNDS_MAX:
        state.stop = "max_rounds"
        return
    for name in state.names:
        report = request.execution_overrides.get(name)
        if name == "verify" and report is not None and report.status == "ok":
            # The stored findings decide what is proven, not the agent's report.
            report = None
        if report is None and state.steps.get(name, {}).get("status") == "ok":
            continue
        if report is not None:
            done = report.model_dump(by_alias=True, exclude_none=True)
        elif STEPS[name].is_ours:
            done = _OURS[name](con, state, observed)
        else:
            state.stop = "checkpoint_required" if state.executed or state.rounds == 1 else "stalled"
            state.failed = name
            break
        _note(state, name, done)
        if request.persist_state:
            add_entry(con, state.task, _entry(state, name, done, at_ms))
        if done["status"] == "error" and request.stop_on_error:
            break
    else:
        state.stop = _end_of(state)
    if state.failure is not None and not state.failure.is_resumable:
        state.stop = "blocked"


def _note(state: _State, name: str, done: dict[str, Any]) -> None:
    state.steps[name] = done
    state.executed.append(name)
    stage = STEPS[name].stage
    if done["status"] == "error":
        state.failed = name
        done["error"] = str(done.get("error") or f"{name} failed.")
        state.failure = failure_of(done["error"], done.get("errorType"))
        done["errorType"] = state.failure.type
    elif stage is not None:
        state.task = replace(state.task, stage=stage)


def _entry(state: _State, name: str, done: dict[str, Any], at_ms: int) -> Entry:
    detail = str(done.get("error") or done.get("result") or "")[:2000] or None
    return Entry(at_ms, state.task.stage, name, done["status"], detail)


def _keep(con: Connection, state: _State, at_ms: int) -> None:
    task = replace(state.task, updated_at_ms=max(at_ms, state.task.updated_at_ms + 1))
    if state.stop == "blocked" and state.failure is not None:
        task = replace(task, status="blocked")
        reason = state.failure.error[:500] or f"{state.failed} failed."
        raise_block(con, task, Block(reason, state.failure.blocked_by, at_ms))
    elif state.stop == "task_passed":
        task = replace(task, status="pass")
    update_task(con, task)
    keep_run(con, task, Run(state.strategy, state.steps, state.rounds), at_ms)
    state.task = task


def _end_of(state: _State) -> str:
    verified = state.steps.get("verify", {}).get("status") if "verify" in state.names else None
    if verified is not None:
        return "task_passed" if verified == "ok" else "criteria_unmet"
    if state.steps.get("extract", {}).get("status") == "ok":
        return "pure_extraction_ready"
    return "analysis_completed"


def _planned(state: _State, request: OrchestrateRequest) -> Envelope:
    params = {"taskId": state.task.id, "strategy": state.strategy, "execute": True}
    if request.resume:
        params["resume"] = True
    result = ToolResult(
        "success",
        f"The plan of {state.strategy}: {', '.join(state.names)}.",
        Next(ORCHESTRATE, params, "Take the steps.", state.strategy),
        ORCHESTRATE,
        state.task,
        facts=_facts(state, request),
        diagnostics={"executed": False},
    )
    return envelope(result, request.output_mode)


def _outcome_envelope(state: _State, request: OrchestrateRequest) -> Envelope:
    """The envelope of a run, by what stopped it."""
    facts = {**_facts(state, request), "stopReason": state.stop or "blocked"}
    if state.failure is not None:
        facts["stopReason"] = "blocked" if state.stop == "blocked" else "checkpoint_required"
        observed = list(request.observed_capabilities or DEFAULT_OBSERVED)
        result = _failed(state, state.failure, observed)
    elif state.stop in ("checkpoint_required", "stalled") and state.failed is not None:
        result = _step_of_agent(state, STEPS[state.failed])
    elif state.stop == "criteria_unmet":
        result = _unproven(state)
    else:
        is_done = state.stop != "max_rounds"
        result = ToolResult(
            "success" if is_done else "partial",
            f"{state.strategy}: {state.stop}.",
            _follow(state),
            ORCHESTRATE,
            state.task,
        )
    diagnostics = {"executed": True, "executedSteps": state.executed}
    return envelope(replace(result, facts=facts, diagnostics=diagnostics), request.output_mode)


def _failed(state: _State, failure: Failure, observed: list[str]) -> ToolResult:
    """The result of a failed step: the fallback's first call, or that the task is blocked."""
    task = state.task
    fallback = fallback_for(failure, task, state.strategy, observed)
    if fallback is None:
        block = Block(failure.error[:500] or f"{state.failed} failed.", failure.blocked_by, 0)
        return ToolResult(
            "blocked",
            f"{state.failed} failed: {block.reason}",
            Next("manage_reverse_task", {"action": "get", "taskId": task.id}, block.reason),
            ORCHESTRATE,
            task,
            failure,
            should_switch=False,
            avoid=(ORCHESTRATE,),
        )
    first = fallback["steps"][0]
    return ToolResult(
        "partial",
        f"{state.failed} failed: {failure.error[:500]}",
        Next(first["tool"], first["params"], fallback["reason"], fallback["recommendedStrategy"]),
        ORCHESTRATE,
        task,
        failure,
        fallback=fallback,
        should_resume=True,
        should_switch=True,
    )


def _step_of_agent(state: _State, step: Step) -> ToolResult:
    """The result of a run that waits for a step of the agent's, with the call that reports it."""
    params = {
        "taskId": state.task.id,
        "strategy": state.strategy,
        "execute": True,
        "resume": True,
    }
    # The plain call reports nothing as done, since only the agent can say what it did.
    report = {step.name: {"status": "ok", "result": "<what came of it>"}}
    reason = f"{step.what} Then report {step.name} with executionOverrides."
    example = {**params, "executionOverrides": report}
    return ToolResult(
        "partial",
        f"{step.name} is yours: {step.what}",
        Next(ORCHESTRATE, params, reason, state.strategy, example),
        ORCHESTRATE,
        state.task,
        should_resume=True,
        should_switch=False,
    )


def _unproven(state: _State) -> ToolResult:
    """The result of a run whose steps are done while criteria are not shown."""
    task, lacks = state.task, state.steps["verify"]["lacks"]
    return ToolResult(
        "partial",
        f"{state.strategy} is done, and {task.id} does not pass: {'; '.join(lacks)}.",
        _proving(state),
        ORCHESTRATE,
        task,
        should_resume=True,
        should_switch=False,
    )


def _proving(state: _State) -> Next:
    """The suggested call that reports the missing proof; without additions it only shows the task."""
    result = state.steps["verify"]["result"]
    unmet = [each["criterion"] for each in result["criteria"] if not each["met"]]
    finding: dict[str, Any] = {"kind": "observation", "summary": "<what shows it>", "data": {}}
    if unmet:
        finding["data"]["criterion"] = unmet
    if result["openDivergences"]:
        finding["data"]["resolves"] = [each["number"] for each in result["openDivergences"]]
    example: dict[str, Any] = {
        "action": "update",
        "taskId": state.task.id,
        "evidence": [finding],
        **({"successCriteria": dict.fromkeys(unmet, "pass")} if unmet else {}),
    }
    reason = "Report the findings that show each criterion, and judge it; then run the steps again."
    return Next(MANAGE, {"action": "get", "taskId": state.task.id}, reason, None, example)


def _follow(state: _State) -> Next:
    follow = next_of(state.task)
    if follow.tool == ORCHESTRATE and follow.strategy == state.strategy:
        # Repeating the same plan would find no step to run.
        params = {"action": "summarize", "taskId": state.task.id}
        return Next("manage_reverse_task", params, "See what came of it.")
    return follow


def _facts(state: _State, request: OrchestrateRequest) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "strategy": state.strategy,
        "steps": [
            {
                "step": name,
                "by": "gateway" if STEPS[name].is_ours else "agent",
                "what": STEPS[name].what,
                **state.steps.get(name, {"status": "pending"}),
            }
            for name in state.names
        ],
    }
    if request.include_summary:
        facts["task"] = show_task(state.task)
    return facts


# ----------------------------------------------------------------------------- steps of ours


def _review(con: Connection, state: _State, _observed: list[str]) -> dict[str, Any]:
    return {"status": "ok", "result": count_evidence(con, state.task)}


def _environment(con: Connection, state: _State, observed: list[str]) -> dict[str, Any]:
    missing, error = missing_of(con, state.task, observed)
    if not missing:
        return {"status": "ok", "result": {"missingCapabilities": []}}
    # In the plan that repairs this, the patches are the next step, so here a gap is no failure.
    if state.strategy == "env-fix":
        names = [gap.capability for gap in missing]
        return {"status": "ok", "result": {"missingCapabilities": names}}
    return {"status": "error", "error": error or "", "errorType": "env_error"}


def _artifacts(con: Connection, state: _State, _observed: list[str]) -> dict[str, Any]:
    found = evidence(con, state.task, LOOKED_AT, ["artifact"])
    return {"status": "ok", "result": [each.data.get("path", each.summary) for each in found]}


def _verify(con: Connection, state: _State, _observed: list[str]) -> dict[str, Any]:
    proof = proof_of(con, state.task)
    if not proof.lacks:
        return {"status": "ok", "result": proof.shown()}
    return {"status": "partial", "result": proof.shown(), "lacks": proof.lacks}


_OURS: Final[dict[str, Callable[[Connection, _State, list[str]], dict[str, Any]]]] = {
    "review-evidence": _review,
    "diff-environment": _environment,
    "sync-artifacts": _artifacts,
    "verify": _verify,
}
