"""Agents over A2A: tasks as they happen, lists of tasks, and version 1.0 of the protocol beside 0.3."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.agents import make_agent, rpc, say
from tests.support.processes import Gateway, Lane
from tests.support.upstream import Gate, Upstream, completion, reply

PYTHON = Path(__file__).parents[2] / ".venv" / "clients" / "bin" / "python"
CALLS = Path(__file__).parents[1] / "support" / "a2a_one_calls.py"
ANSWER = completion()["choices"][0]["message"]["content"]

pytestmark = pytest.mark.one_node(
    reason="behind a proxy an agent that protects itself by nothing is closed"
)


@pytest.fixture
def lane(gateway: Gateway, upstream: Upstream) -> Lane:
    return gateway.add_lane(upstream)


@pytest.fixture
def path(gateway: Gateway, lane: Lane) -> str:
    return str(make_agent(gateway, lane.model)["path"])


def body_of(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "s1", "method": method, "params": params}


def events_of(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.headers["content-type"].startswith("text/event-stream")
    frames = [json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: ")]
    assert all(frame["id"] == "s1" for frame in frames)
    return [frame["result"] for frame in frames]


def stream(gateway: Gateway, path: str, method: str, params: Any) -> list[dict[str, Any]]:
    with gateway.client(timeout=60.0).stream("POST", path, json=body_of(method, params)) as answer:
        assert answer.status_code == 200
        return events_of(answer)


def say_one(text: str, **more: Any) -> dict[str, Any]:
    """The parameters of `SendMessage`."""
    older = say(text)["message"]
    message = {"messageId": older["messageId"], "role": "ROLE_USER", "parts": [{"text": text}]}
    return {"message": message, **more}


def test_a_task_is_told_as_it_happens(gateway: Gateway, path: str) -> None:
    first, *updates, last = stream(gateway, path, "message/stream", say("hello"))
    assert first["kind"] == "task"
    assert first["status"]["state"] in {"submitted", "working", "completed"}
    assert (last["kind"], last["final"]) == ("status-update", True)
    assert last["status"]["state"] == "completed"
    [artifact] = [each for each in updates if each["kind"] == "artifact-update"]
    assert artifact["artifact"]["parts"] == [{"kind": "text", "text": ANSWER}]
    assert {each["taskId"] for each in [*updates, last]} == {first["id"]}
    # Who comes back later gets the task as it ended.
    [again] = stream(gateway, path, "tasks/resubscribe", {"id": first["id"]})
    assert again["status"]["state"] == "completed"
    assert again["artifacts"]


def test_a_caller_who_comes_back_follows_a_task_in_progress(
    gateway: Gateway, path: str, lane: Lane
) -> None:
    gate = Gate()
    lane.upstream.script([gate, *reply(completion())])
    client = gateway.client(timeout=60.0)
    begun = rpc(client, path, "message/send", say("hello", configuration={"blocking": False}))
    task_id = begun.json()["result"]["id"]
    body = body_of("SubscribeToTask", {"id": task_id})
    with client.stream("POST", path, json=body) as answer:
        lines = answer.iter_lines()
        first = json.loads(next(line for line in lines if line.startswith("data: "))[6:])
        assert first["result"]["task"]["status"]["state"].startswith("TASK_STATE_")
        gate.open()
        results = [json.loads(line[6:])["result"] for line in lines if line.startswith("data: ")]
    assert results[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    refused = rpc(client, path, "SubscribeToTask", {"id": task_id}).json()["error"]
    assert refused["code"] == -32004
    assert refused["data"][0]["reason"] == "UNSUPPORTED_OPERATION"


def test_tasks_are_listed_the_last_changed_first(gateway: Gateway, path: str) -> None:
    client = gateway.client(timeout=60.0)
    sent = [rpc(client, path, "message/send", say(f"m{n}")).json()["result"] for n in range(3)]
    ids = [task["id"] for task in reversed(sent)]
    page = rpc(client, path, "tasks/list", {"pageSize": 2}).json()["result"]
    assert [task["id"] for task in page["tasks"]] == ids[:2]
    assert (page["pageSize"], page["totalSize"]) == (2, 3)
    assert page["tasks"][0]["history"] == []
    assert "artifacts" not in page["tasks"][0]
    rest = rpc(client, path, "tasks/list", {"pageToken": page["nextPageToken"]}).json()["result"]
    assert ([task["id"] for task in rest["tasks"]], rest["nextPageToken"]) == (ids[2:], "")
    context = {"contextId": sent[0]["contextId"], "historyLength": 5, "includeArtifacts": True}
    [own] = rpc(client, path, "tasks/list", context).json()["result"]["tasks"]
    assert len(own["history"]) == 2
    assert own["artifacts"]
    none = rpc(client, path, "tasks/list", {"status": "failed"}).json()["result"]
    assert (none["tasks"], none["totalSize"]) == ([], 0)
    after = {"lastUpdatedAfter": sent[1]["status"]["timestamp"]}
    newer = rpc(client, path, "tasks/list", after).json()["result"]["tasks"]
    assert [task["id"] for task in newer] == ids[:1]
    for wrong in (
        {"status": "busy"},
        {"pageSize": -1},
        {"pageToken": "x"},
        {"pageToken": 5},
        {"lastUpdatedAfter": "yesterday"},
        {"includeArtifacts": 1},
    ):
        assert rpc(client, path, "tasks/list", wrong).json()["error"]["code"] == -32602
    # Another agent's tasks are not among them.
    other = str(make_agent(gateway, "x/y")["path"])
    assert rpc(client, other, "tasks/list", {}).json()["result"]["totalSize"] == 0


def test_version_one_is_spoken_beside_the_older(gateway: Gateway, path: str) -> None:
    client = gateway.client(timeout=60.0)
    card = client.get(f"{path}/.well-known/agent-card.json").json()
    assert card["protocolVersion"] == "0.3.0"
    assert [each["protocolVersion"] for each in card["supportedInterfaces"]] == ["1.0", "0.3"]
    assert {each["url"] for each in card["supportedInterfaces"]} == {card["url"]}
    assert card["capabilities"]["streaming"] is True
    newer = {"A2A-Version": "1.0"}
    task = rpc(client, path, "SendMessage", say_one("hello"), **newer).json()["result"]["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert "kind" not in task
    assert [each["role"] for each in task["history"]] == ["ROLE_USER", "ROLE_AGENT"]
    assert task["artifacts"][0]["parts"] == [{"text": ANSWER}]
    found = rpc(client, path, "GetTask", {"id": task["id"], "historyLength": 0}, **newer)
    assert found.json()["result"]["history"] == []
    listed = rpc(client, path, "ListTasks", {"status": "TASK_STATE_COMPLETED"}, **newer)
    assert listed.json()["result"]["tasks"][0]["status"]["state"] == "TASK_STATE_COMPLETED"
    first, *_, last = stream(gateway, path, "SendStreamingMessage", say_one("hello"))
    assert first["task"]["history"][0]["parts"] == [{"text": "hello"}]
    assert last["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    data = say_one("x")
    data["message"]["parts"] = [{"data": {"a": 1}}]
    assert rpc(client, path, "SendMessage", data).json()["result"]["task"]


def test_version_one_has_its_errors(gateway: Gateway, path: str) -> None:
    client = gateway.client(timeout=60.0)
    done = rpc(client, path, "SendMessage", say_one("hello")).json()["result"]["task"]["id"]
    raw = say_one("x")
    raw["message"]["parts"] = [{"raw": "aGVsbG8=", "mediaType": "text/plain"}]
    for method, params, code, reason in [
        ("GetTask", {"id": "none"}, -32001, "TASK_NOT_FOUND"),
        ("CancelTask", {"id": done}, -32002, "TASK_NOT_CANCELABLE"),
        ("SendMessage", raw, -32005, "CONTENT_TYPE_NOT_SUPPORTED"),
        ("SendMessage", {"message": {}}, -32602, "INVALID_PARAMS"),
        ("SendMessage", {"message": 5}, -32602, "INVALID_PARAMS"),
        (
            "CreateTaskPushNotificationConfig",
            {"taskId": done, "url": "http://x/"},
            -32003,
            "PUSH_NOTIFICATION_NOT_SUPPORTED",
        ),
    ]:
        error = rpc(client, path, method, params).json()["error"]
        assert (error["code"], error["data"][0]["reason"]) == (code, reason), method
    # A version that nobody serves.
    future = rpc(client, path, "GetTask", {"id": done}, **{"A2A-Version": "2.0"}).json()["error"]
    assert (future["code"], future["data"][0]["reason"]) == (-32009, "VERSION_NOT_SUPPORTED")


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.exists(), reason="needs `make .venv/.stamp-clients`")
def test_the_client_of_version_one_talks_with_an_agent(gateway: Gateway, path: str) -> None:
    done = subprocess.run(
        [str(PYTHON), str(CALLS), f"{gateway.url}{path}"],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    returned = json.loads(done.stdout.splitlines()[-1])
    last = returned["streamed"][-1]["statusUpdate"]
    assert last["status"]["state"] == "TASK_STATE_COMPLETED"
    assert returned["sent"]["task"]["artifacts"][0]["parts"] == [{"text": ANSWER}]
    assert len(returned["found"]["history"]) == 1
    assert returned["listed"]["totalSize"] == 2
    assert len(returned["rest"]["tasks"]) == 1
    assert returned["cancel"] == "TaskNotCancelableError"
    assert returned["unknown"] == "TaskNotFoundError"
