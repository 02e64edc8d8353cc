"""`orchestrate_reverse_task`, `get_rebuild_health_report`, `diff_env_requirements`: steps, stops and ways out."""

from __future__ import annotations

import pytest

from fairlead.tasks.environment import ERROR_MAX_CHARS, gaps, required_by
from fairlead.tasks.plan import PLANS, STEPS, failure_of

from .conftest import Agent

OK = {"status": "ok", "result": "done"}


def statuses(answer: dict) -> list[str]:
    return [each["status"] for each in answer["steps"]]


def test_a_plan_is_shown_and_nothing_is_done(agent: Agent) -> None:
    agent.make()
    for strategy, names in PLANS.items():
        answer = agent.orchestrate("t1", strategy=strategy)
        assert [each["step"] for each in answer["steps"]] == list(names)
        assert set(statuses(answer)) == {"pending"}
        assert answer["diagnostics"]["executed"] is False
    assert len(agent.manage("get", taskId="t1")["timeline"]) == 2
    assert agent.follow(agent.orchestrate("t1"))["diagnostics"]["executed"] is True


def test_a_run_stops_where_the_agent_must_work_and_goes_on_behind_it(agent: Agent) -> None:
    agent.make()
    first = agent.orchestrate("t1", execute=True)
    assert (first["stopReason"], first["outcome"]) == ("checkpoint_required", "partial")
    assert (first["continuation"]["ready"], first["shouldResume"]) == (False, True)
    again = agent.follow(first)
    # Nobody did anything: it says so, and claims nothing.
    assert (again["stopReason"], set(statuses(again))) == ("stalled", {"pending"})
    seen = []
    answer = again
    while answer["stopReason"] in ("checkpoint_required", "stalled"):
        hint = answer["continuation"]["invokeHint"]["example"]
        seen += hint["executionOverrides"]
        answer = agent.call("orchestrate_reverse_task", **hint)
    assert seen == [name for name in PLANS["observe-first"] if not STEPS[name].is_ours]
    assert (answer["stopReason"], answer["outcome"]) == ("pure_extraction_ready", "success")
    assert answer["task"]["currentStage"] == "PureExtraction"
    timeline = agent.manage("get", taskId="t1")["timeline"]
    assert [each["action"] for each in timeline[:5]] == list(PLANS["observe-first"])[::-1]


def test_what_is_not_kept_leaves_no_trace(agent: Agent) -> None:
    agent.make()
    before = agent.manage("get", taskId="t1")
    overrides = dict.fromkeys(("observe", "capture", "deep-dive", "extract"), OK)
    done = agent.orchestrate("t1", execute=True, persistState=False, executionOverrides=overrides)
    assert done["stopReason"] == "pure_extraction_ready"
    assert agent.manage("get", taskId="t1") == before


def test_steps_are_skipped_chosen_and_begun_at(agent: Agent) -> None:
    agent.make()
    answer = agent.orchestrate(
        "t1", execute=True, skipSteps=["observe", "capture"], onlySteps=["review-evidence"]
    )
    assert [each["step"] for each in answer["steps"]] == ["review-evidence"]
    assert answer["stopReason"] == "analysis_completed"
    answer = agent.orchestrate("t1", fromStep="deep-dive")
    assert [each["step"] for each in answer["steps"]] == ["deep-dive", "extract"]
    wrong = agent.orchestrate("t1", fromStep="verify")
    assert (wrong["outcome"], wrong["errorCode"]) == ("blocked", "validation_error")
    assert "verify is no step of observe-first" in wrong["responseSummary"]


def test_a_task_that_meets_its_criteria_passes(agent: Agent) -> None:
    agent.make(currentStage="Rebuild")
    prove(agent)
    answer = agent.orchestrate("t1", execute=True, executionOverrides={"rebuild": OK, "patch": OK})
    assert answer["outcome"] == "success"
    assert (answer["strategy"], answer["stopReason"]) == ("rebuild-first", "task_passed")
    assert answer["task"]["status"] == "pass"
    assert agent.follow(answer)["task"]["archivedAtMs"] > 0


CRITERIA = ("localRebuild", "serverAcceptance", "browserAlignment")


def prove(agent: Agent) -> None:
    """Every criterion judged `pass` and shown by a finding."""
    finding = {"kind": "observation", "summary": "seen", "data": {"criterion": list(CRITERIA)}}
    agent.manage(
        "update", taskId="t1", successCriteria=dict.fromkeys(CRITERIA, "pass"), evidence=[finding]
    )


def test_a_task_is_held_to_its_criteria_and_their_evidence(agent: Agent) -> None:
    """Neither a plan that is done nor an agent that says so makes a task pass."""
    agent.make(currentStage="Rebuild")
    done = {"rebuild": OK, "patch": OK, "verify": OK}
    answer = agent.orchestrate("t1", execute=True, executionOverrides=done)
    assert (answer["outcome"], answer["stopReason"]) == ("partial", "criteria_unmet")
    assert "localRebuild is judged unknown" in answer["responseSummary"]
    assert (answer["steps"][-1]["step"], answer["steps"][-1]["status"]) == ("verify", "partial")
    assert answer["task"]["status"] == "active"
    assert answer["diagnostics"]["responseStatus"] == "incomplete"
    example = answer["continuation"]["invokeHint"]["example"]
    assert example["evidence"][0]["data"]["criterion"] == list(CRITERIA)

    judged = dict.fromkeys(CRITERIA, "pass")
    shown = {"kind": "artifact", "summary": "a run", "data": {"criterion": "localRebuild"}}
    against = {"kind": "runtime-error", "summary": "x", "data": {"criterion": "serverAcceptance"}}
    agent.manage("update", taskId="t1", successCriteria=judged, evidence=[shown, against])
    answer = agent.orchestrate("t1", execute=True, resume=True)
    assert (answer["outcome"], answer["stopReason"]) == ("partial", "criteria_unmet")
    found = {
        each["criterion"]: each["evidence"] for each in answer["steps"][-1]["result"]["criteria"]
    }
    assert found == {"localRebuild": [1], "serverAcceptance": [], "browserAlignment": []}

    wrong = {"kind": "divergence", "summary": "line 3", "data": {"expected": "a", "actual": "b"}}
    agent.manage("update", taskId="t1", evidence=[wrong])
    prove(agent)
    answer = agent.orchestrate("t1", execute=True, resume=True)
    assert answer["stopReason"] == "criteria_unmet"
    assert "1 divergences are open (number 3)" in answer["responseSummary"]
    mended = {"kind": "patch", "summary": "line 3", "data": {"resolves": 3}}
    agent.manage("update", taskId="t1", evidence=[mended])
    answer = agent.orchestrate("t1", execute=True, resume=True)
    assert (answer["outcome"], answer["stopReason"]) == ("success", "task_passed")
    assert answer["task"]["status"] == "pass"


def test_a_health_report_counts_what_is_missing(agent: Agent) -> None:
    agent.make(currentStage="Rebuild")
    report = agent.call("get_rebuild_health_report", taskId="t1")
    assert report["outcome"] == "partial"
    assert report["missingEvidence"] == list(CRITERIA)
    assert "nothing was found out yet" in report["responseSummary"]
    prove(agent)
    assert agent.call("get_rebuild_health_report", taskId="t1")["outcome"] == "success"
    wrong = {"kind": "divergence", "summary": "line 3", "data": {}}
    agent.manage("update", taskId="t1", evidence=[wrong])
    report = agent.call("get_rebuild_health_report", taskId="t1")
    assert (report["outcome"], report["openDivergences"]) == (
        "partial",
        [{"number": 2, "summary": "line 3"}],
    )
    # Only a later finding ends it.
    number = {"kind": "note", "summary": "n", "data": {"resolves": [2]}}
    agent.manage("update", taskId="t1", evidence=[number])
    report = agent.call("get_rebuild_health_report", taskId="t1")
    assert (report["outcome"], report["openDivergences"]) == ("success", [])


def test_a_status_says_what_became_of_the_call(agent: Agent) -> None:
    agent.make()
    assert agent.manage("get", taskId="t1")["diagnostics"]["responseStatus"] == "ok"
    refused = agent.manage("tag", taskId="t1")
    assert refused["diagnostics"]["responseStatus"] == "refused"
    assert "confidence" not in refused["agentGuidance"]
    failed = agent.orchestrate(
        "t1", execute=True, executionOverrides={"observe": {"status": "error", "error": "HTTP 503"}}
    )
    assert failed["diagnostics"]["responseStatus"] == "failed"
    agent.manage("update", taskId="t1", status="blocked")
    blocked = agent.manage("get", taskId="t1")
    assert blocked["diagnostics"]["responseStatus"] == "blocked"


def test_a_gap_in_the_environment_leads_to_the_diff_and_back(agent: Agent) -> None:
    agent.make(currentStage="Rebuild")
    error = "ReferenceError: XMLHttpRequest is not defined"
    answer = agent.orchestrate(
        "t1", execute=True, executionOverrides={"rebuild": {"status": "error", "error": error}}
    )
    assert (answer["outcome"], answer["errorCode"], answer["blockedBy"]) == (
        "partial",
        "env_error",
        "environment",
    )
    assert (answer["shouldResume"], answer["shouldSwitchStrategy"]) == (True, True)
    follow = answer["continuation"]
    assert follow["tool"] == "diff_env_requirements"
    assert follow["params"]["runtimeError"] == error
    assert "window" in follow["params"]["observedCapabilities"]
    assert answer["fallbackPlan"]["steps"][0] == follow["invoke"]
    diff = agent.follow(answer)
    assert diff["missingCapabilities"] == ["XMLHttpRequest"]
    assert diff["continuation"]["params"]["strategy"] == "env-fix"
    report = agent.call("get_rebuild_health_report", taskId="t1")
    assert (report["outcome"], report["missingCapabilities"]) == ("partial", ["XMLHttpRequest"])
    assert report["shouldSwitchStrategy"] is True
    fixing = agent.follow(diff)
    assert fixing["stopReason"] == "checkpoint_required"
    patch = {"kind": "patch", "summary": "a class", "data": {"capability": "XMLHttpRequest"}}
    agent.manage("progress", taskId="t1", evidence=[patch])
    done = agent.orchestrate(
        "t1",
        strategy="env-fix",
        execute=True,
        resume=True,
        executionOverrides={"patch": OK, "rebuild": OK},
    )
    assert (done["outcome"], done["stopReason"]) == ("partial", "criteria_unmet")
    report = agent.call("get_rebuild_health_report", taskId="t1")
    assert (report["outcome"], report["missingCapabilities"]) == ("partial", [])
    prove(agent)
    report = agent.call("get_rebuild_health_report", taskId="t1")
    assert (report["outcome"], report["missingCapabilities"]) == ("success", [])
    assert (report["shouldResume"], report["shouldSwitchStrategy"]) == (True, False)


@pytest.mark.parametrize(
    ("error", "kind", "outcome"),
    [
        ("connect ECONNREFUSED 192.0.2.1:443", "external_error", "partial"),
        ("HTTP 503 from upstream", "external_error", "partial"),
        ("the field sign is required", "validation_error", "partial"),
        ("the tool ended with exit code 3", "tool_error", "partial"),
        ("access denied by the site's owner", "task_blocked", "blocked"),
        ("something else", "unknown", "blocked"),
    ],
)
def test_every_failure_says_whether_it_goes_on(
    agent: Agent, error: str, kind: str, outcome: str
) -> None:
    agent.make()
    report = {"observe": {"status": "error", "error": error}}
    answer = agent.orchestrate("t1", execute=True, executionOverrides=report)
    assert (answer["outcome"], answer["errorCode"]) == (outcome, kind)
    assert ("fallbackPlan" in answer) == (outcome == "partial")
    stored = agent.manage("get", taskId="t1")["task"]
    assert stored["status"] == ("blocked" if outcome == "blocked" else "active")
    if outcome == "partial":
        assert answer["continuation"]["invoke"] == answer["fallbackPlan"]["steps"][0]
    assert agent.follow(answer)["outcome"] in ("success", "partial", "blocked")


def test_an_agent_may_say_what_kind_of_failure_it_was(agent: Agent) -> None:
    agent.make()
    report = {
        "observe": {"status": "error", "error": "x is not defined", "errorType": "tool_error"}
    }
    answer = agent.orchestrate("t1", execute=True, executionOverrides=report, stopOnError=False)
    assert answer["errorCode"] == "tool_error"
    compact = agent.orchestrate("t1", execute=True, executionOverrides=report, outputMode="compact")
    assert compact["detailLevel"] == "minimal"


def test_rounds_are_bounded(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead.tasks.orchestrate.ROUNDS_MAX", 3)
    agent.make()
    stops = [agent.orchestrate("t1", execute=True, resume=True)["stopReason"] for _ in range(4)]
    assert stops == ["checkpoint_required", "stalled", "stalled", "max_rounds"]


def test_a_report_names_the_first_divergence_and_the_artifacts(agent: Agent) -> None:
    agent.make(currentStage="Patch")
    for place in (1, 2):
        found = {"expected": f"e{place}", "actual": f"a{place}"}
        evidence = [
            {"kind": "divergence", "summary": f"line {place}", "data": found},
            {"kind": "artifact", "summary": f"file {place}", "data": {"path": f"{place}.js"}},
        ]
        agent.manage("progress", taskId="t1", evidence=evidence)
    report = agent.call("get_rebuild_health_report", taskId="t1")
    assert report["outcome"] == "partial"
    assert report["firstDivergence"] == {"summary": "line 1", "expected": "e1", "actual": "a1"}
    assert [each["path"] for each in report["artifacts"]] == ["2.js", "1.js"]
    assert report["evidenceAggregates"] == {"artifact": 2, "divergence": 2}
    assert report["recommendedNextAction"]


def test_a_diff_without_a_task(agent: Agent) -> None:
    ask = {"runtimeError": "window.crypto.subtle is not a function", "observedCapabilities": []}
    answer = agent.call("diff_env_requirements", **ask)
    assert (answer["outcome"], answer["missingCapabilities"]) == ("partial", ["crypto"])
    assert answer["patchSuggestions"][0]["capability"] == "crypto"
    assert agent.follow(answer)["outcome"] == "success"
    nothing = agent.call("diff_env_requirements", **{**ask, "observedCapabilities": ["crypto"]})
    assert (nothing["outcome"], nothing["missingCapabilities"]) == ("success", [])
    unknown = agent.call("diff_env_requirements", **ask, taskId="nobody")
    assert unknown["errorCode"] == "validation_error"


@pytest.mark.parametrize(
    ("error", "names"),
    [
        ("ReferenceError: document is not defined", ["document"]),
        ("Can't find variable: localStorage", ["localStorage"]),
        ("TypeError: window.matchMedia is not a function", ["matchMedia"]),
        ("TypeError: Cannot read properties of undefined (reading 'userAgent')", ["userAgent"]),
        ("TypeError: Cannot read property 'getItem' of undefined", ["getItem"]),
        ("undefined is not an object (evaluating 'self.screen.width')", ["screen"]),
        ("a is not defined; then b is not defined; a is not defined", ["a", "b"]),
        ("all is well", []),
        ("", []),
    ],
)
def test_what_an_error_asks_for(error: str, names: list[str]) -> None:
    assert required_by(error) == names
    assert [gap.capability for gap in gaps(names, [])] == names
    assert gaps(names, names) == []
    assert (failure_of(error).type == "env_error") == bool(names)


@pytest.mark.parametrize("piece", ["a.", "a.b.c ", "$", "x is not ", "undefined is not an object "])
def test_a_hostile_error_is_read_in_one_pass(piece: str) -> None:
    """Twice the words are read in about twice the steps: a search that goes back would not end here."""
    assert len(required_by(piece * (ERROR_MAX_CHARS // len(piece)))) <= 3
