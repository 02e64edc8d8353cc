"""Directives: how one request to the stand-in is to be answered, read from `name=value` pairs."""

from dataclasses import dataclass, fields, replace
from typing import Final

from fairlead.standin.failure import InvalidRequest

_MINUTE_MS: Final = 60_000
_LIMITS: Final[dict[str, tuple[int, int]]] = {
    "latency_ms": (0, 60 * _MINUTE_MS),
    "first_ms": (0, 60 * _MINUTE_MS),
    "gap_ms": (0, 60 * _MINUTE_MS),
    "chunks": (0, 1_000_000),
    "chunk_bytes": (1, 1_048_576),
    "tokens_in": (0, 1_000_000_000),
    "tokens_out": (0, 1_000_000_000),
    "tokens_cached": (0, 1_000_000_000),
    "tokens_reasoning": (0, 1_000_000_000),
    "status": (200, 599),
    "retry_after": (0, 86_400),
    "cut_after": (0, 1_000_000),
    "stall_after": (0, 1_000_000),
    "error_after": (0, 1_000_000),
    "malformed": (0, 1),
    "usage": (0, 1),
}


@dataclass(frozen=True, slots=True)
class Directives:
    """Behaviour that a caller may request of the stand-in; `None` keeps the default."""

    latency_ms: int = 0
    """Wait before the response head."""
    first_ms: int = 0
    """Wait between the response head and the first chunk of a stream."""
    gap_ms: int = 0
    """Wait before each further content chunk of a stream."""
    chunks: int | None = None
    """Number of content chunks; the words of the answer repeat or end early to fit."""
    chunk_bytes: int | None = None
    """Size to which each piece of content is padded or cut."""
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int = 0
    tokens_reasoning: int = 0
    status: int = 200
    """From 400 on, an error body with this status, in the shape of the API that was called."""
    retry_after: int | None = None
    """Seconds in a `Retry-After` header."""
    cut_after: int | None = None
    """A stream ends after this many content chunks, without finish, usage or `[DONE]`."""
    stall_after: int | None = None
    """A stream goes silent after this many content chunks, a unary answer does not come: for five and
    a half minutes."""
    error_after: int | None = None
    """A stream sends an error event after this many content chunks and ends."""
    content_type: str | None = None
    """Content type of the answer, whatever its body."""
    malformed: int = 0
    """1: the body, or the first content chunk of a stream, is JSON cut in the middle."""
    usage: int = 1
    """0: never reports usage, as some upstreams do."""


class UnknownDirective(InvalidRequest):
    """A pair that is no directive or is out of its bounds; the text says which, for the caller."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "model", "unknown_knob")


_NAMES: Final = frozenset(field.name for field in fields(Directives))


def parse_directives(text: str, base: Directives | None = None) -> Directives:
    """Reads `name=value,name=value` on top of `base`. Raises `UnknownDirective`."""
    found: dict[str, int | str] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = pair.partition("=")
        name = name.strip()
        if name not in _NAMES:
            raise UnknownDirective(
                f"unknown directive '{name}'; known are {', '.join(sorted(_NAMES))}"
            )
        found[name] = value.strip() if name == "content_type" else _number(name, value)
    return replace(base or Directives(), **found)  # type: ignore[arg-type]


def split_model(model: str, base: Directives) -> tuple[str, Directives]:
    """Splits `name@directives` into the name and the directives on top of `base`. Raises `UnknownDirective`."""
    name, _, suffix = model.partition("@")
    return name, parse_directives(suffix, base)


def _number(name: str, value: str) -> int:
    low, high = _LIMITS[name]
    digits = value.strip()
    if not (digits.isascii() and digits.isdigit() and low <= int(digits) <= high):
        raise UnknownDirective(
            f"directive '{name}' takes a whole number from {low} to {high}, not '{value}'"
        )
    return int(digits)
