"""The tools on a real database, without a server: every answer is held to the published schema."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

import duckdb
import jsonschema
import pytest

from fairlead.store.file import read_migrations
from fairlead.store.prepare import MIGRATIONS
from fairlead.tasks.envelope import envelope_schema
from fairlead.tasks.fields import DiffRequest, HealthRequest, ManageRequest, OrchestrateRequest
from fairlead.tasks.health import diff, health
from fairlead.tasks.manage import manage
from fairlead.tasks.orchestrate import orchestrate

ACTS: dict[str, tuple[Any, Any]] = {
    "manage_reverse_task": (ManageRequest, manage),
    "orchestrate_reverse_task": (OrchestrateRequest, orchestrate),
    "get_rebuild_health_report": (HealthRequest, health),
    "diff_env_requirements": (DiffRequest, diff),
}
VALIDATOR = jsonschema.Draft202012Validator(envelope_schema())


@functools.cache
def _tables() -> list[str]:
    """The statements of the migrations that create the tables of reverse tasks: the others take longer than a test."""
    steps = read_migrations(MIGRATIONS / "state")
    statements = [each for step in steps for each in step.sql.split(";")]
    return [each for each in statements if re.search(r"^[A-Z ]+ reverse_task", each, re.MULTILINE)]


class Agent:
    """Calls tools as a person's agent does."""

    def __init__(self, owner: str = "me", con: Any = None) -> None:
        self.owner = owner
        self.at_ms = 1_000_000
        if con is None:
            con = duckdb.connect()
            for statement in _tables():
                con.execute(statement)
        self.con = con

    def call(self, tool: str, **params: Any) -> dict[str, Any]:
        takes, act = ACTS[tool]
        self.at_ms += 1000
        given = act(self.con, self.owner, takes.model_validate(params), self.at_ms)
        answer: dict[str, Any] = given.model_dump(mode="json", by_alias=True)
        check(answer)
        return answer

    def manage(self, action: str, **params: Any) -> dict[str, Any]:
        return self.call("manage_reverse_task", action=action, **params)

    def orchestrate(self, task_id: str, **params: Any) -> dict[str, Any]:
        return self.call("orchestrate_reverse_task", taskId=task_id, **params)

    def make(self, task_id: str = "t1", **params: Any) -> dict[str, Any]:
        return self.manage("update", taskId=task_id, goal="find the signature", **params)

    def follow(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Makes the call that an answer proposes, as it stands."""
        invoke = answer["continuation"]["invoke"]
        return self.call(invoke["tool"], **invoke["params"])


def check(answer: dict[str, Any]) -> None:
    """What must be true of every answer."""
    VALIDATOR.validate(answer)
    following = answer["continuation"]
    assert following["invoke"] == {"tool": following["tool"], "params": following["params"]}
    assert following["actionKey"] == following["tool"]
    hint = following["invokeHint"]
    assert set(hint["requiredParams"]) <= following["params"].keys()
    assert set(hint["requiredParams"]) | set(hint["optionalParams"]) == hint["example"].keys()
    ACTS[following["tool"]][0].model_validate(following["params"])
    ACTS[following["tool"]][0].model_validate(hint["example"])
    for step in answer.get("fallbackPlan", {}).get("steps", []):
        ACTS[step["tool"]][0].model_validate(step["params"])
    if answer["outcome"] == "blocked":
        assert following["ready"] is False
        assert answer["shouldResume"] is False
        assert answer["errorCode"] == answer["errorType"]
    if answer.get("errorCode") == "task_blocked":
        assert (answer["retryable"], answer["blockedBy"]) == (False, "task_state")
    if answer["detailLevel"] == "minimal":
        assert not answer.keys() & {
            "nextBestTool",
            "nextBestParams",
            "shouldSwitchStrategy",
            "agentGuidance",
            "fallbackPlan",
            "routeGuard",
        }
    else:
        assert answer["nextBestTool"] == following["tool"]
        assert answer["routeGuard"]["preferredToolClass"] == following["toolClass"]


@pytest.fixture
def agent() -> Iterator[Agent]:
    agent = Agent()
    yield agent
    agent.con.close()
