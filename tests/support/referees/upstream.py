"""The server: every vendor below its own path, and what was refused.

The base address of a vendor is `referee.base(VENDOR)`. A request to it is judged by the rules of the vendor and of
the family of its model; if it passes, `referee.judge.plan` is the answer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from tests.support.clouds import amazon_stream
from tests.support.referees.judge import Judge, place_of
from tests.support.referees.refusal import Refusal
from tests.support.upstream import Script, Seen, Upstream, reply, stream

PATHS: Final = {"gemini": "/v1beta", "bedrock": ""}


@dataclass(frozen=True)
class Refused:
    """A request that a referee refused."""

    provider: str
    model: str
    status: int
    error: str
    body: dict[str, Any]

    def __str__(self) -> str:
        body = json.dumps(self.body)
        return f"{self.provider}/{self.model} refuses with {self.status} {self.error}\n  {body[:3_000]}"


class Referee(Upstream):
    """See the module's page."""

    def __init__(self) -> None:
        super().__init__()
        self.judge = Judge()
        self.refused: list[Refused] = []
        self.accepted: list[tuple[str, str]] = []

    def base(self, provider: str) -> str:
        """The base address of a vendor."""
        if provider == "bedrock":
            return f"http://127.0.0.1:{self.port}"
        return f"http://127.0.0.1:{self.port}/{provider}{PATHS.get(provider, '/v1')}"

    def choose(self, seen: Seen) -> Script:
        path = unquote(urlsplit(seen.target).path)
        body: dict[str, Any] = json.loads(seen.body)
        provider, model, is_stream = place_of(path, body)
        try:
            judged = self.judge.rule(provider, model, path, body)
        except Refusal as refusal:
            error = json.dumps(refusal.body)
            self.refused.append(Refused(provider, model, refusal.status, error, body))
            return reply(refusal.body, refusal.status)
        self.accepted.append((provider, model))
        if not is_stream:
            return reply(judged.answer)
        if provider == "bedrock":
            return amazon_stream(*judged.frames)
        return stream(*judged.frames)
