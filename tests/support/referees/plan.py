"""What a referee answers next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

THOUGHT: Final = "The referee considers the request."
TOKENS_IN: Final = 1_300
TOKENS_CACHED: Final = 1_024
TOKENS_OUT: Final = 12
TOKENS_THOUGHT: Final = 5


class Offer(NamedTuple):
    """The functions that a request offers."""

    names: list[str]
    is_forced: bool = False
    is_single: bool = False
    """Parallel calls are switched off."""


@dataclass(frozen=True)
class Plan:
    """An answer: reasoning if the model reasons, then text, then calls of the functions that are offered."""

    calls: int = 0
    has_text: bool = True
    has_thought: bool = True

    def calls_of(self, offer: Offer) -> list[tuple[str, dict[str, Any]]]:
        count = self.calls or (1 if offer.is_forced else 0)
        if not offer.names or (offer.is_single and count):
            count = min(count, len(offer.names), 1)
        return [(offer.names[at % len(offer.names)], {"city": f"City {at}"}) for at in range(count)]

    def text_of(self, calls: list[Any]) -> str | None:
        return "It is sunny." if self.has_text or not calls else None
