"""Browser actions that a model may choose: validated actions of a session, and the end.

`evaluate` is excluded, since a page could talk the model into running a script. Actions that only show the page
(`content`, `scrape`, `screenshot`) are excluded too, because each question shows it anyway.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from fairlead.calls.structured_output import json_of
from fairlead.scrape.model.schema import Schema
from fairlead.scrape.model.untrusted import strip_link_targets
from fairlead.scrape.requests.browser import SessionAction
from fairlead.text.invalid import invalid_request

ACTIONS: Final = {
    "navigate": '{"type": "navigate", "url": "https://..."}',
    "click": '{"type": "click", "selector": "css"}',
    "fill": '{"type": "fill", "selector": "css", "value": "text"}',
    "type": '{"type": "type", "selector": "css", "value": "text, key by key"}',
    "press": '{"type": "press", "selector": "css", "value": "Enter"}',
    "select": '{"type": "select", "selector": "css", "value": "the option\'s value"}',
    "scroll": '{"type": "scroll", "position": 1000}',
    "waitForSelector": '{"type": "waitForSelector", "selector": "css"}',
    "wait": '{"type": "wait", "timeout": 1000}',
    "back": '{"type": "back"}',
    "forward": '{"type": "forward"}',
    "reload": '{"type": "reload"}',
}
_FIELDS: Final = frozenset(["type", "url", "selector", "value", "position", "timeout"])
_END: Final = frozenset(["type", "completed", "reason", "answer", "data"])
THOUGHT_MAX_CHARS: Final = 500
ANSWER_MAX_CHARS: Final = 100_000


class InvalidAction(ValueError):
    """An answer that is not a valid action; the text tells the model why."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The action that ends the agent. `data` is None where the request has no schema."""

    completed: bool
    reason: str
    answer: str | None
    data: Any


@dataclass(frozen=True, slots=True)
class Decision:
    """One answer of the model: its reasoning, and an action or the end."""

    thought: str
    action: SessionAction | Finish

    def view(self) -> dict[str, Any]:
        """The action as the API shows it and the next prompt repeats it."""
        if isinstance(self.action, Finish):
            return {
                "type": "finish",
                "completed": self.action.completed,
                "reason": self.action.reason,
            }
        return self.action.model_dump(
            mode="json", by_alias=True, include=set(_FIELDS), exclude_none=True
        )


async def decision_of(text: str, schema: Schema | None, *, only_finish: bool) -> Decision:
    """Reads the model's answer and holds it to the schema, if there is one. `InvalidAction` for an answer that does
    not fit, `InvalidRequest` for a schema that cannot be used.
    """
    try:
        answer_json = json_of(text)
    except ValueError:
        raise InvalidAction("it is not JSON") from None
    if not isinstance(answer_json, dict) or not isinstance(
        action := answer_json.get("action"), dict
    ):
        raise InvalidAction('it is not an object with "thought" and "action"')
    thought = answer_json.get("thought")
    thought = thought[:THOUGHT_MAX_CHARS] if isinstance(thought, str) else ""
    if action.get("type") == "finish":
        return Decision(thought, await _finish(action, schema))
    if only_finish:
        raise InvalidAction('no step is left: "action" must be of the type finish')
    return Decision(thought, _step(action))


def _step(action: dict[str, Any]) -> SessionAction:
    if action.get("type") not in ACTIONS:
        raise InvalidAction(f'"type" is none of {", ".join(ACTIONS)}, finish')
    if unknown := sorted(set(action) - _FIELDS):
        raise InvalidAction(f"{unknown[0][:50]} is no member of an action")
    try:
        return SessionAction.model_validate({k: v for k, v in action.items() if v is not None})
    except ValidationError as fault:
        wrong = invalid_request(fault.errors(include_url=False, include_input=False))
        raise InvalidAction(wrong.message.removesuffix(".")) from None


async def _finish(action: dict[str, Any], schema: Schema | None) -> Finish:
    if unknown := sorted(set(action) - _END):
        raise InvalidAction(f"{unknown[0][:50]} is no member of finish")
    completed, reason = action.get("completed", True), action.get("reason") or ""
    answer, data = action.get("answer"), action.get("data")
    if not isinstance(completed, bool) or not isinstance(reason, str):
        raise InvalidAction('"completed" must be true or false, and "reason" a text')
    if answer is not None and not isinstance(answer, str):
        raise InvalidAction('"answer" must be a text')
    if schema is None:
        data = None
    elif data is not None or completed:
        violations = await schema.violations_of(data)
        if violations:
            raise InvalidAction('"data" does not fit the schema: ' + "; ".join(violations))
    if schema is None and completed and not answer:
        raise InvalidAction('"answer" is missing')
    # A page may have put what it wants to learn into the addresses of links.
    text = strip_link_targets(answer)[:ANSWER_MAX_CHARS] if answer else None
    return Finish(completed, strip_link_targets(reason)[:THOUGHT_MAX_CHARS], text, data)
