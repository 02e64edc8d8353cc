"""One request of one vendor: refused, or answered as planned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.support.referees import (
    anthropic,
    chat_answers,
    closed_chat,
    converse,
    converse_answers,
    gemini,
    gemini_answers,
    messages_answers,
    mistral,
    openai_chat,
    reasoning_chat,
    responses,
    responses_answers,
)
from tests.support.referees.ledger import Ledger
from tests.support.referees.plan import Plan


class Judged(NamedTuple):
    """An accepted request: its answer, and the same as the frames of a stream."""

    answer: dict[str, Any]
    frames: list[bytes]


class Judge:
    """The rules of all vendors. `plan` is the next answer."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.plan = Plan()

    def rule(self, provider: str, model: str, path: str, body: dict[str, Any]) -> Judged:
        """The answer to a request. Raises `Refusal`."""
        judges: dict[str, Callable[[], Judged]] = {
            "anthropic": lambda: self._messages(model, body),
            "gemini": lambda: self._gemini(model, body),
            "bedrock": lambda: self._converse(model, body),
        }
        if path.endswith("/responses"):
            return self._responses(model, body)
        return judges.get(provider, lambda: self._chat(provider, model, body))()

    def _chat(self, provider: str, model: str, body: dict[str, Any]) -> Judged:
        thinks = False
        if provider == "openai":
            openai_chat.check(model, body)
        elif provider == "mistral":
            mistral.check(model, body)
            thinks = body.get("reasoning_effort") == "high"
        elif provider in closed_chat.PROVIDERS:
            closed_chat.check(provider, model, body)
            thinks = body.get("reasoning_effort") not in (None, "none")
        else:
            reasoning_chat.check(provider, model, body)
            thinks = reasoning_chat.thinks(provider, model, body)
        speaker = chat_answers.Speaker(provider, model, thinks)
        answer = chat_answers.whole(speaker, body, self.plan, self.ledger)
        return Judged(answer, chat_answers.events(answer, body, provider))

    def _messages(self, model: str, body: dict[str, Any]) -> Judged:
        anthropic.check(model, body, self.ledger)
        thinks = anthropic.thinks(model, body)
        answer = messages_answers.whole(model, body, self.plan, thinks, self.ledger)
        return Judged(answer, messages_answers.events(answer))

    def _responses(self, model: str, body: dict[str, Any]) -> Judged:
        responses.check(model, body, self.ledger)
        thinks = responses.thinks(model, body)
        answer = responses_answers.whole(model, body, self.plan, thinks, self.ledger)
        return Judged(answer, responses_answers.events(answer))

    def _gemini(self, model: str, body: dict[str, Any]) -> Judged:
        body = gemini.in_camel_case(body)
        gemini.check(model, body, self.ledger)
        thinks = gemini.thinks(model, body)
        answer = gemini_answers.whole(model, body, self.plan, thinks, self.ledger)
        return Judged(answer, gemini_answers.events(answer))

    def _converse(self, model: str, body: dict[str, Any]) -> Judged:
        converse.check(model, body)
        answer = converse_answers.whole(model, body, self.plan, self.ledger)
        return Judged(answer, converse_answers.events(answer))


def place_of(path: str, body: dict[str, Any]) -> tuple[str, str, bool]:
    """The vendor of a path, the model, and whether a stream is wanted."""
    parts = path.strip("/").split("/")
    if parts[0] == "model":
        return "bedrock", "/".join(parts[1:-1]), parts[-1] == "converse-stream"
    provider = parts[0]
    if provider == "gemini":
        model, _, method = parts[-1].partition(":")
        return provider, model, method == "streamGenerateContent"
    return provider, str(body.get("model")), bool(body.get("stream"))
