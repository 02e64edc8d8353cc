"""A2A 1.0 over A2A 0.3: its methods, parameters and results are those of 0.3 under other names.

1.0 writes messages in Protocol Buffers' JSON: parts have no kind, states and roles are names of an enumeration, and a
result says what it is by the name of its only member.
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.agents import protocol
from fairlead.agents.protocol import Call, RpcFault

VERSION: Final = "1.0"
VERSION_HEADER: Final = "a2a-version"
METHODS: Final = {
    "SendMessage": "message/send",
    "SendStreamingMessage": "message/stream",
    "GetTask": "tasks/get",
    "ListTasks": "tasks/list",
    "CancelTask": "tasks/cancel",
    "SubscribeToTask": "tasks/resubscribe",
    "CreateTaskPushNotificationConfig": "tasks/pushNotificationConfig/set",
    "GetTaskPushNotificationConfig": "tasks/pushNotificationConfig/get",
    "ListTaskPushNotificationConfigs": "tasks/pushNotificationConfig/list",
    "DeleteTaskPushNotificationConfig": "tasks/pushNotificationConfig/delete",
    "GetExtendedAgentCard": "agent/getAuthenticatedExtendedCard",
}
_STATE: Final = "TASK_STATE_"
_REASONS: Final = {
    protocol.TASK_NOT_FOUND: "TASK_NOT_FOUND",
    protocol.TASK_NOT_CANCELABLE: "TASK_NOT_CANCELABLE",
    protocol.PUSH_NOT_SUPPORTED: "PUSH_NOTIFICATION_NOT_SUPPORTED",
    protocol.UNSUPPORTED_OPERATION: "UNSUPPORTED_OPERATION",
    protocol.CONTENT_TYPE_NOT_SUPPORTED: "CONTENT_TYPE_NOT_SUPPORTED",
    protocol.VERSION_NOT_SUPPORTED: "VERSION_NOT_SUPPORTED",
    protocol.INVALID_PARAMS: "INVALID_PARAMS",
    protocol.INVALID_REQUEST: "INVALID_REQUEST",
    protocol.METHOD_NOT_FOUND: "METHOD_NOT_FOUND",
    protocol.INTERNAL_ERROR: "INTERNAL_ERROR",
}
"""The protocol's reasons of errors, by their codes."""


def check_version(header: str | None) -> None:
    """Refuses a protocol version that is not served, with the error of 1.0."""
    if header is None or header.strip() in {"", VERSION, "1.0.0", "0.3", "0.3.0"}:
        return
    raise RpcFault(
        protocol.VERSION_NOT_SUPPORTED,
        f"A2A-Version must be {VERSION} or 0.3.",
        data=error_data(protocol.VERSION_NOT_SUPPORTED),
    )


def is_of_version_one(method: str) -> bool:
    """Whether a method is one of A2A 1.0."""
    return method in METHODS


def error_data(code: int) -> list[dict[str, Any]]:
    """The details of an error, as 1.0 has them."""
    if code not in _REASONS:
        return []
    return [
        {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": _REASONS[code],
            "domain": "a2a-protocol.org",
        }
    ]


def as_older_call(call: Call) -> Call:
    """The call in A2A 0.3. Values of a wrong type stay as they are, and are refused there."""
    params = dict(call.params)
    if isinstance(message := params.get("message"), dict):
        params["message"] = _older_message(message)
    if isinstance(options := params.get("configuration"), dict):
        params["configuration"] = _older_options(options)
    if isinstance(state := params.get("status"), str):
        # The first value of the enumeration stands for none.
        named = state.removeprefix(_STATE).lower()
        params["status"] = None if named == "unspecified" else named
    if "statusTimestampAfter" in params:
        params["lastUpdatedAfter"] = params.pop("statusTimestampAfter")
    return Call(call.id, METHODS[call.method], params)


def newer_result(method: str, result: dict[str, Any]) -> dict[str, Any]:
    """The result of a call, by its method of 1.0, in A2A 1.0."""
    if method == "SendMessage":
        return {"task": newer_task(result)}
    if method == "ListTasks":
        return {**result, "tasks": [newer_task(task) for task in result["tasks"]]}
    return newer_task(result)


def newer_event(event: dict[str, Any]) -> dict[str, Any]:
    """An event of a stream in A2A 1.0."""
    match event["kind"]:
        case "status-update":
            members = {name: event[name] for name in ("taskId", "contextId")}
            return {"statusUpdate": {**members, "status": _newer_status(event["status"])}}
        case "artifact-update":
            members = {name: event[name] for name in ("taskId", "contextId", "append", "lastChunk")}
            return {"artifactUpdate": {**members, "artifact": _newer_artifact(event["artifact"])}}
    return {"task": newer_task(event)}


def newer_task(task: dict[str, Any]) -> dict[str, Any]:
    """A task in A2A 1.0."""
    newer = {name: value for name, value in task.items() if name != "kind"}
    newer["status"] = _newer_status(task["status"])
    if "history" in task:
        newer["history"] = [_newer_message(each) for each in task["history"]]
    if "artifacts" in task:
        newer["artifacts"] = [_newer_artifact(each) for each in task["artifacts"]]
    return newer


def _older_message(message: dict[str, Any]) -> dict[str, Any]:
    older = {**message, "kind": "message"}
    if message.get("role") == "ROLE_USER":
        older["role"] = "user"
    if isinstance(parts := message.get("parts"), list):
        older["parts"] = [_older_part(part) for part in parts]
    # An unset text of Protocol Buffers may be sent as an empty one.
    for name in ("taskId", "contextId"):
        if older.get(name) == "":
            del older[name]
    return older


def _older_part(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    if "text" in part:
        return {"kind": "text", "text": part["text"]}
    if "data" in part:
        return {"kind": "data", "data": part["data"]}
    return {"kind": "file"} if "raw" in part or "url" in part else part


def _older_options(options: dict[str, Any]) -> dict[str, Any]:
    older = dict(options)
    if isinstance(older.get("returnImmediately"), bool):
        older["blocking"] = not older.pop("returnImmediately")
    if "taskPushNotificationConfig" in older:
        older["pushNotificationConfig"] = older.pop("taskPushNotificationConfig")
    return older


def _newer_status(status: dict[str, Any]) -> dict[str, Any]:
    newer = {**status, "state": _STATE + status["state"].upper()}
    if "message" in status:
        newer["message"] = _newer_message(status["message"])
    return newer


def _newer_message(message: dict[str, Any]) -> dict[str, Any]:
    newer = {name: value for name, value in message.items() if name != "kind"}
    newer["role"] = "ROLE_" + message["role"].upper()
    newer["parts"] = [_newer_part(part) for part in message["parts"]]
    return newer


def _newer_artifact(artifact: dict[str, Any]) -> dict[str, Any]:
    return {**artifact, "parts": [_newer_part(part) for part in artifact["parts"]]}


def _newer_part(part: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name != "kind"}
