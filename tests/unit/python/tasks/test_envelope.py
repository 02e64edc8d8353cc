"""The envelope: its schema, what it refuses, and that no sequence of calls gets out of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, settings, strategies
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)
from pydantic import ValidationError

from fairlead.tasks.envelope import Envelope, envelope_schema
from fairlead.tasks.plan import FAILURE_TYPES, PLANS
from fairlead.tasks.task import KINDS, STAGES, STATUSES

from .conftest import VALIDATOR, Agent

COPY = Path(__file__).parents[4] / "docs" / "reference" / "agent-envelope.schema.json"
LEAST: dict[str, Any] = {
    "schemaVersion": "1.0",
    "outcome": "success",
    "detailLevel": "standard",
    "continuation": {"ready": True, "reason": "go on"},
}


def test_the_committed_schema_is_fresh() -> None:
    assert json.loads(COPY.read_text("utf-8")) == envelope_schema()


def test_the_schema_is_one_and_says_what_the_specification_says() -> None:
    schema = envelope_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema["required"]) == {"schemaVersion", "outcome", "detailLevel", "continuation"}
    assert schema["additionalProperties"] is True
    parts = schema["$defs"]
    for name in ("Continuation", "Invoke", "InvokeHint", "RouteGuard"):
        assert parts[name]["additionalProperties"] is False
    assert parts["FallbackPlan"]["additionalProperties"] is True
    assert parts["Continuation"]["required"] == ["ready", "reason"]
    assert parts["InvokeHint"]["required"] == ["requiredParams"]
    assert parts["Invoke"]["required"] == ["tool"]
    assert "null" not in json.dumps(schema)


WRONG: list[dict[str, Any]] = [
    {"schemaVersion": "2.0"},
    {"outcome": "failed"},
    {"detailLevel": "full"},
    {"continuation": {"ready": True}},
    {"continuation": {"ready": True, "reason": "x", "more": 1}},
    {"continuation": {"ready": True, "reason": "x", "toolClass": "other"}},
    {"continuation": {"ready": True, "reason": "x", "invoke": {"params": {}}}},
    {"continuation": {"ready": True, "reason": "x", "invokeHint": {}}},
    {"routeGuard": {"toolClass": "task"}},
    {"fallbackPlan": {"steps": [{"params": {}}]}},
]


@pytest.mark.parametrize("change", WRONG)
def test_what_is_no_envelope_is_refused_by_model_and_schema(change: dict[str, Any]) -> None:
    VALIDATOR.validate(LEAST)
    Envelope.model_validate(LEAST)
    with pytest.raises(ValidationError):
        Envelope.model_validate(LEAST | change)
    assert not VALIDATOR.is_valid(LEAST | change)


def test_extra_members_are_taken_and_absent_ones_are_absent() -> None:
    more = LEAST | {"agentGuidance": {"a": 1}, "fallbackPlan": {"reason": "x", "confidence": 1}}
    assert Envelope.model_validate(more).model_dump(by_alias=True) == more
    with pytest.raises(ValidationError, match="not ready"):
        Envelope.model_validate(LEAST | {"outcome": "blocked"})


ids = strategies.sampled_from(["t1", "t2", "nobody"])
maybe = strategies.none()
errors = strategies.one_of(
    strategies.sampled_from(
        ["fetch is not defined", "HTTP 503", "access denied", "is required", "exit code 1", "?"]
    ),
    strategies.text(max_size=40).filter(bool),
)
# More than a call takes, of what a piece of evidence may say.
LONG = "x is not defined " * 1500
modes = strategies.sampled_from(["compact", "verbose"])


class Sequences(RuleBasedStateMachine):
    """Any sequence of calls: each answer is valid, and what it proposes can be called."""

    def __init__(self) -> None:
        super().__init__()
        self.agent = Agent()
        self.agent.make("t1")
        self.last = self.agent.make("t2")

    def teardown(self) -> None:
        self.agent.con.close()

    @rule(
        task=ids,
        mode=modes,
        status=maybe | strategies.sampled_from(STATUSES),
        stage=maybe | strategies.sampled_from(STAGES),
        goal=maybe | strategies.just("a goal"),
    )
    def update(self, task: str, mode: str, status: Any, stage: Any, goal: Any) -> None:
        given = {"status": status, "currentStage": stage, "goal": goal}
        sent = {name: value for name, value in given.items() if value is not None}
        self.last = self.agent.manage("update", taskId=task, outputMode=mode, **sent)

    @rule(
        task=ids,
        mode=modes,
        action=strategies.sampled_from(
            ["list", "get", "summarize", "progress", "timeline", "archive", "restore", "prune"]
        ),
    )
    def manage(self, task: str, mode: str, action: str) -> None:
        self.last = self.agent.manage(action, taskId=task, outputMode=mode)

    @rule(
        task=ids,
        mode=modes,
        execute=strategies.booleans(),
        resume=strategies.booleans(),
        stop=strategies.booleans(),
        persist=strategies.booleans(),
        strategy=maybe | strategies.sampled_from(sorted(PLANS)),
        fails=maybe
        | strategies.tuples(maybe | errors, maybe | strategies.sampled_from(FAILURE_TYPES)),
        done=strategies.integers(0, 5),
    )
    def orchestrate(
        self,
        task: str,
        mode: str,
        execute: bool,
        resume: bool,
        stop: bool,
        persist: bool,
        strategy: Any,
        fails: Any,
        done: int,
    ) -> None:
        sent: dict[str, Any] = {} if strategy is None else {"strategy": strategy}
        names = list(PLANS[strategy])[:done] if strategy else []
        reports: dict[str, Any] = {name: {"status": "ok"} for name in names}
        if fails is not None and names:
            reports[names[-1]] = {"status": "error"}
            if fails[0] is not None:
                reports[names[-1]]["error"] = fails[0]
            if fails[1] is not None:
                reports[names[-1]]["errorType"] = fails[1]
        self.last = self.agent.orchestrate(
            task,
            execute=execute,
            resume=resume,
            stopOnError=stop,
            persistState=persist,
            outputMode=mode,
            executionOverrides=reports,
            **sent,
        )

    @rule(
        task=ids,
        kind=strategies.sampled_from(KINDS),
        data=strategies.dictionaries(
            strategies.sampled_from(["message", "capability", "path", "expected"]),
            errors | maybe | strategies.integers(-(2**63), 2**63 - 1) | strategies.just(LONG),
            max_size=2,
        ),
    )
    def find(self, task: str, kind: str, data: dict[str, Any]) -> None:
        found = [{"kind": kind, "summary": "fetch is not defined", "data": data}]
        self.last = self.agent.manage("progress", taskId=task, evidence=found)

    @rule(task=maybe | ids, error=errors, mode=modes)
    def diff(self, task: Any, error: str, mode: str) -> None:
        sent = {} if task is None else {"taskId": task}
        self.last = self.agent.call(
            "diff_env_requirements",
            runtimeError=error,
            observedCapabilities=["window"],
            outputMode=mode,
            **sent,
        )

    @rule(task=ids, mode=modes)
    def health(self, task: str, mode: str) -> None:
        self.last = self.agent.call("get_rebuild_health_report", taskId=task, outputMode=mode)

    @rule()
    def follow(self) -> None:
        """As it stands: what was proposed breaks no rule."""
        self.last = self.agent.follow(self.last)
        assert self.last.get("errorCode") != "validation_error" or self.last["outcome"] == "partial"

    @invariant()
    def blocks_and_statuses_agree(self) -> None:
        rows = self.agent.con.execute(
            "SELECT t.status = 'blocked', count(b.task_id) FROM reverse_tasks t LEFT JOIN "
            "reverse_task_blocks b ON b.owner = t.owner AND b.task_id = t.id "
            "AND b.lifted_at_ms IS NULL GROUP BY t.id, t.status"
        ).fetchall()
        assert all(count == int(is_blocked) for is_blocked, count in rows)


TestSequences = Sequences.TestCase
TestSequences.settings = settings(
    max_examples=15,
    stateful_step_count=10,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_many_sequences() -> None:
    run_state_machine_as_test(
        Sequences,
        settings=settings(TestSequences.settings, max_examples=60, stateful_step_count=20),
    )
