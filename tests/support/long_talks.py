"""Long conversations with a tool, as clients of each dialect keep them: every answer goes back as it came."""

from __future__ import annotations

import itertools
import secrets
from typing import Any, Final

INSTRUCTIONS: Final = "You report the weather. " + "Be exact and name your sources. " * 250
SCHEMA: Final = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ABOUT: Final = "The weather of a city. " * 20
MARK: Final = {"type": "ephemeral"}


class Talk:
    """A conversation in one dialect: `body` is the next request, `take` adds its answer and the next turn."""

    def __init__(self, form: str) -> None:
        self.form = form
        self.turns: list[Any] = []
        self._opening = f"Begin {secrets.token_hex(6)}."
        self._numbers = itertools.count(1)
        self._say(self._opening)

    def body(self, model: str) -> dict[str, Any]:
        tool = {"name": "weather", "description": ABOUT}
        if self.form == "messages":
            # Claude Code sends a block for Anthropic's billing that is never the same.
            billing = f"x-anthropic-billing-header: cc_version=2.1.37; cch={secrets.token_hex(3)};"
            return {
                "model": model,
                "max_tokens": 500,
                "system": [
                    {"type": "text", "text": billing},
                    {"type": "text", "text": INSTRUCTIONS},
                ],
                "tools": [tool | {"input_schema": SCHEMA}],
                "messages": self.turns,
            }
        if self.form == "gemini":
            return {
                "systemInstruction": {"parts": [{"text": INSTRUCTIONS}]},
                "tools": [{"functionDeclarations": [tool | {"parametersJsonSchema": SCHEMA}]}],
                "contents": self.turns,
            }
        if self.form == "responses":
            function = {"type": "function", "parameters": SCHEMA, "strict": False}
            return {
                "model": model,
                "instructions": INSTRUCTIONS,
                "input": self.turns,
                "tools": [tool | function],
                "store": False,
            }
        system = {"role": "system", "content": INSTRUCTIONS}
        function = {"type": "function", "function": tool | {"parameters": SCHEMA}}
        return {"model": model, "messages": [system, *self.turns], "tools": [function]}

    def marked_body(self, model: str) -> dict[str, Any]:
        """The next request with the marks of a client that manages the provider's cache itself."""
        body = self.body(model)
        turns = list(body["messages"])
        said = ("user", "tool")
        own = [at for at, turn in enumerate(turns) if turn["role"] in said][-2:]
        for at in (*own, 0) if turns[0]["role"] == "system" else own:
            turns[at] = turns[at] | {"content": _marked(turns[at]["content"])}
        if "system" in body:
            body["system"] = _marked(body["system"])
        return body | {"messages": turns}

    def take(self, answer: dict[str, Any]) -> None:
        number = next(self._numbers)
        result = f"Result {number}: " + "sunny spells. " * 20
        calls = self._add(answer)
        for call in calls:
            if self.form == "messages":
                block = {"type": "tool_result", "tool_use_id": call["id"], "content": result}
                self.turns.append({"role": "user", "content": [block]})
            elif self.form == "gemini":
                response = {"name": call["name"], "response": {"output": result}}
                response |= {"id": call["id"]} if "id" in call else {}
                self.turns.append({"role": "user", "parts": [{"functionResponse": response}]})
            elif self.form == "responses":
                output = {"type": "function_call_output", "call_id": call["call_id"]}
                self.turns.append(output | {"output": result})
            else:
                tool = {"role": "tool", "tool_call_id": call["id"], "content": result}
                self.turns.append(tool)
        if not calls:
            self._say(f"Question {number}: " + "and tomorrow? " * 20)

    def _add(self, answer: dict[str, Any]) -> list[dict[str, Any]]:
        """Adds the answer; returns its calls."""
        if self.form == "messages":
            self.turns.append({"role": "assistant", "content": answer["content"]})
            return [block for block in answer["content"] if block["type"] == "tool_use"]
        if self.form == "gemini":
            content = answer["candidates"][0]["content"]
            self.turns.append(content)
            return [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        if self.form == "responses":
            self.turns += answer["output"]
            return [item for item in answer["output"] if item["type"] == "function_call"]
        message = answer["choices"][0]["message"]
        self.turns.append(message)
        return list(message.get("tool_calls") or [])

    def _say(self, text: str) -> None:
        if self.form == "gemini":
            self.turns.append({"role": "user", "parts": [{"text": text}]})
        else:
            self.turns.append({"role": "user", "content": text})


def _marked(content: Any) -> list[dict[str, Any]]:
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    return [*parts[:-1], parts[-1] | {"cache_control": MARK}]
