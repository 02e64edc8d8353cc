"""`manage_reverse_task`: what is stored, what comes back, and what is refused in which words."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from .conftest import Agent


def test_a_task_is_made_read_changed_and_told(agent: Agent) -> None:
    made = agent.make(taskSlug="shop", targetUrl="https://shop.example/", tags=["b", "a"])
    assert made["outcome"] == "success"
    assert made["task"]["currentStage"] == "Observe"
    assert made["task"]["tags"] == ["a", "b"]
    finding = {"kind": "artifact", "summary": "the script", "data": {"path": "sign.js"}}
    told = agent.manage(
        "progress", taskId="t1", currentStage="Capture", result="two requests", evidence=[finding]
    )
    assert (told["shouldResume"], told["task"]["currentStage"]) == (True, "Capture")
    got = agent.manage("get", taskId="t1")
    assert [each["action"] for each in got["timeline"]] == ["progress", "update", "made"]
    assert [each["data"] for each in got["evidence"]] == [{"path": "sign.js"}]
    assert got["task"]["currentSummary"] == "two requests"
    summary = agent.manage("summarize", taskId="t1")
    assert "1 artifact" in summary["responseSummary"]
    changed = agent.manage("update", taskId="t1", successCriteria={"localRebuild": "pass"})
    assert changed["task"]["successCriteria"]["localRebuild"] == "pass"
    assert changed["task"]["successCriteria"]["serverAcceptance"] == "unknown"


def test_a_blocked_task_is_looked_at_and_does_not_go_on(agent: Agent) -> None:
    agent.make()
    blocked = agent.manage("update", taskId="t1", status="blocked", detail="no account")
    for answer in (
        blocked,
        agent.manage("get", taskId="t1"),
        agent.manage("summarize", taskId="t1"),
        agent.manage("progress", taskId="t1", result="anyway"),
        agent.orchestrate("t1", execute=True),
        agent.call("get_rebuild_health_report", taskId="t1"),
        agent.call(
            "diff_env_requirements",
            taskId="t1",
            runtimeError="x is not defined",
            observedCapabilities=[],
        ),
    ):
        assert (answer["outcome"], answer["errorCode"]) == ("blocked", "task_blocked")
        assert answer["continuation"]["reason"] == "Blocked: no account"
    assert agent.manage("get", taskId="t1")["task"]["block"]["blockedBy"] == "task_state"
    assert len(agent.manage("get", taskId="t1")["timeline"]) == 3
    lifted = agent.manage("update", taskId="t1", status="active")
    assert (lifted["outcome"], "block" in lifted["task"]) == ("success", False)
    assert agent.manage("progress", taskId="t1")["shouldResume"] is True


def test_a_partial_task_is_partial(agent: Agent) -> None:
    agent.make()
    assert agent.manage("update", taskId="t1", status="partial")["outcome"] == "partial"
    assert agent.manage("get", taskId="t1")["outcome"] == "partial"
    # An action that is not about how the task stands is a success all the same.
    assert agent.manage("tag", taskId="t1", tags=["x"])["outcome"] == "success"


REFUSED = [
    *[
        ({"action": action}, f'taskId is required when action="{action}"')
        for action in (
            "get",
            "summarize",
            "progress",
            "update",
            "timeline",
            "archive",
            "restore",
            "tag",
            "compare",
        )
    ],
    ({"action": "search"}, 'query or tag is required when action="search"'),
    ({"action": "get", "taskId": "nobody"}, "There is no task nobody."),
    ({"action": "update", "taskId": "nobody"}, "Give goal to make it."),
    ({"action": "update", "taskId": "t1"}, "needs a field to change"),
    ({"action": "tag", "taskId": "t1"}, "at least one tag is required"),
    ({"action": "compare", "taskId": "t1"}, "otherTaskId is required"),
    ({"action": "compare", "taskId": "t1", "otherTaskId": "x"}, "There is no task x."),
    ({"action": "timeline", "taskId": "t1", "stage": "Port"}, "stage, timelineAction and"),
]


@pytest.mark.parametrize(("params", "said"), REFUSED)
def test_a_call_that_breaks_a_rule_is_told_which(agent: Agent, params: dict, said: str) -> None:
    agent.make()
    answer = agent.call("manage_reverse_task", **params)
    assert (answer["outcome"], answer["errorCode"]) == ("blocked", "validation_error")
    assert answer["blockedBy"] == "input_validation"
    assert said in answer["responseSummary"]
    assert agent.follow(answer)["outcome"] == "success"


def test_tasks_are_listed_searched_tagged_and_compared(agent: Agent) -> None:
    for name in ("one", "two", "three"):
        agent.make(name, targetUrl=f"https://{name}.example/")
    agent.manage("tag", taskId="two", tags=["old"])
    agent.manage("tag", taskId="two", tags=["new"], replaceTags=True)
    assert [each["taskId"] for each in agent.manage("list")["tasks"]] == ["two", "three", "one"]
    assert agent.manage("list", limit=1)["total"] == 3
    assert [each["taskId"] for each in agent.manage("search", tag="new")["tasks"]] == ["two"]
    assert agent.manage("search", tag="old")["tasks"] == []
    found = agent.manage("search", query="THREE.example")["tasks"]
    assert [each["taskId"] for each in found] == ["three"]
    differences = agent.manage("compare", taskId="one", otherTaskId="two")["differences"]
    assert differences["tags"] == {"one": [], "two": ["new"]}
    assert "goal" not in differences


def test_an_archived_task_is_restored_before_it_goes_on_and_pruned_when_it_is_old(
    agent: Agent,
) -> None:
    agent.make()
    agent.make("kept")
    agent.manage("archive", taskId="t1")
    assert [each["taskId"] for each in agent.manage("list")["tasks"]] == ["kept"]
    for answer in (agent.manage("progress", taskId="t1"), agent.orchestrate("t1", execute=True)):
        assert answer["outcome"] == "partial"
        assert answer["continuation"]["params"] == {"action": "restore", "taskId": "t1"}
    assert agent.follow(answer)["outcome"] == "success"
    assert agent.manage("progress", taskId="t1")["shouldResume"] is True
    agent.manage("archive", taskId="t1")
    assert agent.manage("prune")["pruned"] == []
    assert agent.manage("prune", pruneOlderThanDays=0)["pruned"] == ["t1"]
    assert agent.manage("get", taskId="t1")["errorCode"] == "validation_error"
    left = agent.con.execute("SELECT count(*) FROM reverse_task_timeline WHERE task_id = 't1'")
    assert left.fetchone() == (0,)


def test_tasks_are_of_their_owner_alone(agent: Agent) -> None:
    agent.make()
    stranger = Agent("somebody else", agent.con)
    assert stranger.manage("list")["total"] == 0
    assert stranger.manage("get", taskId="t1")["errorCode"] == "validation_error"
    stranger.make("t1")
    assert stranger.manage("list")["total"] == agent.manage("list")["total"] == 1
    stranger.manage("archive", taskId="t1")
    stranger.manage("prune", pruneOlderThanDays=0)
    assert agent.manage("get", taskId="t1")["outcome"] == "success"


@pytest.mark.parametrize(
    ("data", "said"), [({"n": 2**70}, "64 bits"), ({"text": "x" * 70_000}, "at most 65536 bytes")]
)
def test_evidence_that_cannot_be_kept_is_refused(agent: Agent, data: dict, said: str) -> None:
    agent.make()
    found = [{"kind": "note", "summary": "x", "data": data}]
    with pytest.raises(ValidationError, match=said):
        agent.manage("progress", taskId="t1", evidence=found)
