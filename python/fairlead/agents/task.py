r"""A task of an agent and the messages in it, as A2A 0.3 has them.

    submitted -> working -> completed | failed
            \\          \\-> canceled
             \\-> canceled

The three on the right are terminal: the first of them that is stored stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from fairlead.moment import iso, moment_of

State = Literal["submitted", "working", "completed", "failed", "canceled"]
ACTIVE: Final = ("submitted", "working")
Role = Literal["user", "agent"]

ANYONE: Final = "anyone"
OPERATOR: Final = "operator"


def client_owner(client_id: str) -> str:
    """The owner id of an issuer's client; other owners cannot see its tasks."""
    return f"client:{client_id}"


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a task. `parts` are A2A parts: `{"kind": "text"|"data", ...}`."""

    message_id: str
    role: Role
    parts: tuple[dict[str, Any], ...]
    at_ms: int

    def view(self, task: Task) -> dict[str, Any]:
        return {
            "kind": "message",
            "messageId": self.message_id,
            "role": self.role,
            "parts": list(self.parts),
            "taskId": task.id,
            "contextId": task.context_id,
        }


@dataclass(frozen=True, slots=True)
class Task:
    """A stored task. `reason` says why it failed. `attempts` counts the calls of its model."""

    id: str
    skill_id: str
    owner: str
    context_id: str
    message_id: str
    state: State
    attempts: int
    reason: str | None
    metadata: dict[str, Any]
    created_at_ms: int
    updated_at_ms: int
    expires_at_ms: int | None

    @property
    def is_active(self) -> bool:
        """Whether the task has not ended."""
        return self.state in ACTIVE

    def view(
        self, messages: Sequence[Message], history_length: int | None = None
    ) -> dict[str, Any]:
        """The A2A form of the task, with its newest `history_length` messages, or all without it."""
        status: dict[str, Any] = {
            "state": self.state,
            "timestamp": iso(moment_of(self.updated_at_ms)),
        }
        answer = next((each for each in reversed(messages) if each.role == "agent"), None)
        if self.reason is not None:
            status["message"] = Message(
                f"{self.id}-status", "agent", (text_part(self.reason),), self.updated_at_ms
            ).view(self)
        shown = [message.view(self) for message in messages]
        if history_length is not None:
            shown = shown[-history_length:] if history_length else []
        document: dict[str, Any] = {
            "kind": "task",
            "id": self.id,
            "contextId": self.context_id,
            "status": status,
            "history": shown,
            "metadata": self.metadata,
        }
        if self.state == "completed" and answer is not None:
            document["artifacts"] = [
                {"artifactId": f"{self.id}-answer", "name": "answer", "parts": list(answer.parts)}
            ]
        return document


def text_part(text: str) -> dict[str, Any]:
    """A text as an A2A part."""
    return {"kind": "text", "text": text}
