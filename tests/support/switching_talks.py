"""Conversations whose model changes at each turn, as clients of each dialect keep them: every answer goes back as it
came.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

# A picture of one pixel.
PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
INSTRUCTIONS: Final = "You report the weather."
SCHEMA: Final[dict[str, Any]] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1},
        "days": {"type": ["integer", "null"], "minimum": 1},
        "unit": {"enum": ["C", "F"]},
        "level": {"type": "integer", "enum": [1, 2]},
        "places": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}},
    },
    "required": ["city"],
    "additionalProperties": False,
}
Tools = tuple[tuple[str, str, dict[str, Any]], ...]
TOOLS: Final[Tools] = (
    ("weather", "The weather of a city.", SCHEMA),
    ("list_cities", "All cities.", {"type": "object", "properties": {}}),
)
# What a client sends to a vendor of its own dialect: the schema of that vendor's examples.
OWN_TOOLS: Final[Tools] = tuple(
    (name, about, {key: value for key, value in schema.items() if key != "$schema"})
    for name, about, schema in TOOLS
)


@dataclass(frozen=True)
class Turn:
    """One request of a conversation and what its model answers."""

    model: str
    has_picture: bool = False
    has_system_turn: bool = False
    choice: str = "auto"
    is_parallel: bool = True
    effort: str | None = None
    temperature: float | None = None
    calls: int = 0
    has_text: bool = True
    has_thought: bool = True
    result: str = "text"
    """What the client sends as the result of a call: `text`, `empty`, `error` or `picture`."""


class Call(NamedTuple):
    """A call in an answer."""

    id: str | None
    name: str


class Talk(ABC):
    """A conversation: `request` is the next one, `take` adds its answer."""

    name: str
    path: str

    def __init__(self, has_tools: bool = True) -> None:
        """`has_tools` is the same for the whole conversation: to Claude, other tools are another conversation."""
        self.turns: list[Any] = []
        self._has_tools = has_tools
        self._tools: Tools = TOOLS
        self._open: list[Call] = []
        self._result = "text"

    def request(self, turn: Turn, number: int, is_neutral: bool) -> tuple[str, dict[str, Any]]:
        """Path and body of the next request. `is_neutral`: without members that only some models accept."""
        if self._open:
            self._add_results(self._open, self._result)
        if not self._open or number % 2:
            if turn.has_system_turn and not is_neutral:
                self._add_system(f"The time is {number}.")
            self._ask(f"Question {number}: and tomorrow?", turn.has_picture)
        self._open, self._result = [], turn.result
        self._tools = OWN_TOOLS if is_neutral else TOOLS
        body = self._body(turn) | ({} if is_neutral else self._settings(turn))
        return self.path.replace("{model}", turn.model), body

    def take(self, answer: dict[str, Any]) -> None:
        self._open = self._add(answer)

    @abstractmethod
    def _body(self, turn: Turn) -> dict[str, Any]: ...
    @abstractmethod
    def _settings(self, turn: Turn) -> dict[str, Any]: ...
    @abstractmethod
    def _ask(self, text: str, has_picture: bool) -> None: ...
    @abstractmethod
    def _add_system(self, text: str) -> None: ...
    @abstractmethod
    def _add(self, answer: dict[str, Any]) -> list[Call]: ...
    @abstractmethod
    def _add_results(self, calls: list[Call], kind: str) -> None: ...


def _result(kind: str, call: Call) -> str:
    return {"empty": "", "error": f"{call.name} failed"}.get(kind, f"The result of {call.name}.")


class ChatTalk(Talk):
    name = "chat"
    path = "/v1/chat/completions"

    def _body(self, turn: Turn) -> dict[str, Any]:
        system = {"role": "system", "content": INSTRUCTIONS}
        body = {"model": turn.model, "messages": [system, *self.turns]}
        if self._has_tools:
            functions = [
                {"name": name, "description": about, "parameters": schema}
                for name, about, schema in self._tools
            ]
            body["tools"] = [{"type": "function", "function": each} for each in functions]
        return body

    def _settings(self, turn: Turn) -> dict[str, Any]:
        body: dict[str, Any] = {"max_tokens": 4_000, "user": "u" * 70, "seed": 7}
        if turn.effort:
            body["reasoning_effort"] = turn.effort
        if turn.temperature is not None:
            body |= {"temperature": turn.temperature, "top_p": 0.9, "presence_penalty": 0.5}
        if self._has_tools:
            named = {"type": "function", "function": {"name": "weather"}}
            body["tool_choice"] = named if turn.choice == "named" else turn.choice
            body["parallel_tool_calls"] = turn.is_parallel
        return body

    def _ask(self, text: str, has_picture: bool) -> None:
        content: Any = text
        if has_picture:
            picture = {"url": f"data:image/png;base64,{PIXEL}"}
            content = [
                {"type": "text", "text": text},
                {"type": "image_url", "image_url": picture},
            ]
        self.turns.append({"role": "user", "content": content})

    def _add_system(self, text: str) -> None:
        self.turns.append({"role": "system", "content": text})

    def _add(self, answer: dict[str, Any]) -> list[Call]:
        message = answer["choices"][0]["message"]
        self.turns.append(message)
        calls = message.get("tool_calls") or []
        return [Call(call["id"], call["function"]["name"]) for call in calls]

    def _add_results(self, calls: list[Call], kind: str) -> None:
        for call in calls:
            result = {"role": "tool", "tool_call_id": call.id, "content": _result(kind, call)}
            self.turns.append(result)


class ResponsesTalk(Talk):
    name = "responses"
    path = "/v1/responses"

    def _body(self, turn: Turn) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": turn.model,
            "instructions": INSTRUCTIONS,
            "input": self.turns,
            "store": False,
            "include": ["reasoning.encrypted_content"],
        }
        if self._has_tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": name,
                    "description": about,
                    "parameters": schema,
                    "strict": False,
                }
                for name, about, schema in self._tools
            ]
        return body

    def _settings(self, turn: Turn) -> dict[str, Any]:
        body: dict[str, Any] = {"max_output_tokens": 4_000, "prompt_cache_key": "k" * 70}
        if turn.effort:
            body["reasoning"] = {"effort": turn.effort, "summary": "auto"}
        if turn.temperature is not None:
            body |= {"temperature": turn.temperature, "top_p": 0.9}
        if self._has_tools:
            named = {"type": "function", "name": "weather"}
            body["tool_choice"] = named if turn.choice == "named" else turn.choice
            body["parallel_tool_calls"] = turn.is_parallel
        return body

    def _ask(self, text: str, has_picture: bool) -> None:
        content = [{"type": "input_text", "text": text}]
        if has_picture:
            url = f"data:image/png;base64,{PIXEL}"
            content.append({"type": "input_image", "image_url": url, "detail": "auto"})
        self.turns.append({"type": "message", "role": "user", "content": content})

    def _add_system(self, text: str) -> None:
        content = [{"type": "input_text", "text": text}]
        self.turns.append({"type": "message", "role": "developer", "content": content})

    def _add(self, answer: dict[str, Any]) -> list[Call]:
        self.turns += answer["output"]
        calls = [item for item in answer["output"] if item["type"] == "function_call"]
        return [Call(item["call_id"], item["name"]) for item in calls]

    def _add_results(self, calls: list[Call], kind: str) -> None:
        for call in calls:
            output = {"type": "function_call_output", "call_id": call.id}
            self.turns.append(output | {"output": _result(kind, call)})


class MessagesTalk(Talk):
    name = "messages"
    path = "/v1/messages"

    def _body(self, turn: Turn) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": turn.model,
            "max_tokens": 4_000,
            "system": INSTRUCTIONS,
            "messages": self.turns,
        }
        if self._has_tools:
            body["tools"] = [
                {"name": name, "description": about, "input_schema": schema}
                for name, about, schema in self._tools
            ]
        return body

    def _settings(self, turn: Turn) -> dict[str, Any]:
        body: dict[str, Any] = {"metadata": {"user_id": "u" * 200}}
        if turn.effort == "none":
            body["thinking"] = {"type": "disabled"}
        elif turn.effort == "high":
            body["thinking"] = {"type": "enabled", "budget_tokens": 2_048}
        elif turn.effort:
            body["thinking"] = {"type": "adaptive"}
            body["output_config"] = {"effort": turn.effort}
        if turn.temperature is not None:
            body |= {"temperature": min(turn.temperature, 1), "top_k": 5}
        if self._has_tools and turn.choice != "auto":
            kind = {"required": "any", "named": "tool", "none": "none"}[turn.choice]
            body["tool_choice"] = {"type": kind} | ({"name": "weather"} if kind == "tool" else {})
        return body

    def _ask(self, text: str, has_picture: bool) -> None:
        content: list[dict[str, Any]] = [{"type": "text", "text": text}]
        if has_picture:
            source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
            content.append({"type": "image", "source": source})
        # Claude Code puts the next question beside the results.
        if self.turns and self.turns[-1]["role"] == "user":
            self.turns[-1]["content"] += content
        else:
            self.turns.append({"role": "user", "content": content})

    def _add_system(self, text: str) -> None:
        """Messages has no system turns at most models: clients write reminders into the user's turn."""
        self._ask(f"<system-reminder>{text}</system-reminder>", has_picture=False)

    def _add(self, answer: dict[str, Any]) -> list[Call]:
        self.turns.append({"role": "assistant", "content": answer["content"]})
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        return [Call(block["id"], block["name"]) for block in calls]

    def _add_results(self, calls: list[Call], kind: str) -> None:
        blocks = []
        for call in calls:
            content: Any = _result(kind, call)
            if kind == "picture":
                source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
                content = [{"type": "image", "source": source}]
            block = {"type": "tool_result", "tool_use_id": call.id, "content": content}
            blocks.append(block | ({"is_error": True} if kind == "error" else {}))
        self.turns.append({"role": "user", "content": blocks})


class GeminiTalk(Talk):
    name = "gemini"
    path = "/v1beta/models/{model}:generateContent"

    def _body(self, turn: Turn) -> dict[str, Any]:
        body: dict[str, Any] = {
            "systemInstruction": {"parts": [{"text": INSTRUCTIONS}]},
            "contents": self.turns,
        }
        if self._has_tools:
            declared = [
                {"name": name, "description": about, "parametersJsonSchema": schema}
                for name, about, schema in self._tools
            ]
            body["tools"] = [{"functionDeclarations": declared}]
        return body

    def _settings(self, turn: Turn) -> dict[str, Any]:
        config: dict[str, Any] = {"maxOutputTokens": 4_000, "topK": 40, "seed": 7}
        if turn.effort == "none":
            config["thinkingConfig"] = {"thinkingBudget": 0}
        elif turn.effort:
            config["thinkingConfig"] = {"thinkingLevel": turn.effort, "includeThoughts": True}
        if turn.temperature is not None:
            config |= {"temperature": turn.temperature, "topP": 0.9, "presencePenalty": 0.5}
        body: dict[str, Any] = {"generationConfig": config}
        if self._has_tools and turn.choice != "auto":
            choice: dict[str, Any] = {"mode": "NONE" if turn.choice == "none" else "ANY"}
            choice |= {"allowedFunctionNames": ["weather"]} if turn.choice == "named" else {}
            body["toolConfig"] = {"functionCallingConfig": choice}
        return body

    def _ask(self, text: str, has_picture: bool) -> None:
        parts: list[dict[str, Any]] = [{"text": text}]
        if has_picture:
            parts.append({"inlineData": {"mimeType": "image/png", "data": PIXEL}})
        self.turns.append({"role": "user", "parts": parts})

    def _add_system(self, text: str) -> None:
        self._ask(text, has_picture=False)

    def _add(self, answer: dict[str, Any]) -> list[Call]:
        content = answer["candidates"][0]["content"]
        self.turns.append(content)
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        return [Call(call.get("id"), call["name"]) for call in calls]

    def _add_results(self, calls: list[Call], kind: str) -> None:
        parts = []
        for call in calls:
            name = "error" if kind == "error" else "output"
            response: dict[str, Any] = {"name": call.name, "response": {name: _result(kind, call)}}
            response |= {"id": call.id} if call.id else {}
            parts.append({"functionResponse": response})
        self.turns.append({"role": "user", "parts": parts})


TALKS: Final[dict[str, type[Talk]]] = {
    talk.name: talk for talk in (ChatTalk, ResponsesTalk, MessagesTalk, GeminiTalk)
}


def shown(path: str, body: dict[str, Any]) -> str:
    """A request, for the message of a test that failed."""
    return f"{path}\n  {json.dumps(body)[:3_000]}"
