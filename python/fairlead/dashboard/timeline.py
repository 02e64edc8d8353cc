"""A request's way as a picture: admitted, chosen, the attempts that failed, the first byte, the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from fairlead.dashboard import figures
from fairlead.dashboard.names import Names

Mood = Literal["", "rail", "wait", "flow", "fail"]
# The picture is drawn in a box of this width.
BOX: Final = 100.0
# A stretch that took no time is still seen.
LEAST: Final = 0.4


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the picture: where it begins, how wide it is, what it was."""

    x: float
    width: float
    mood: Mood


@dataclass(frozen=True, slots=True)
class Step:
    """An event on the way, in words; `mood` is of the stretch that it ended."""

    name: str
    words: str
    mood: Mood = ""


@dataclass(frozen=True, slots=True)
class Timeline:
    """The stretches of a request, and its steps in order."""

    stretches: tuple[Stretch, ...]
    steps: tuple[Step, ...]


def make_timeline(row: Mapping[str, Any], names: Names, ending: str) -> Timeline:
    """The way of a row of the request log; `ending` says how it ended."""
    whole = max(row["latencyMs"], row["ttftMs"] or 0, 0.001)
    stretches: list[Stretch] = []
    steps = [Step("Admitted", "0")]
    at = 0.0

    def stretch(until_ms: float, mood: Mood) -> None:
        nonlocal at
        until = min(max(until_ms, at), whole)
        width = max((until - at) / whole * BOX, LEAST)
        stretches.append(Stretch(min(at / whole * BOX, BOX - width), width, mood))
        at = until

    if row["chosenMs"] is not None:
        stretch(row["chosenMs"], "rail")
        steps.append(Step("Chosen", f"after {figures.milliseconds(row['chosenMs'])}", "rail"))
    for attempt in row["failedAttempts"]:
        stretch(attempt["endedMs"], "fail")
        where = names.connections.get(attempt["connectionId"], attempt["model"])
        words = f"{where}: {_kind(attempt['errorKind'])}, until {figures.milliseconds(attempt['endedMs'])}"
        steps.append(Step("Attempt failed", words, "fail"))
    if row["ttftMs"] is not None:
        stretch(row["ttftMs"], "wait")
        steps.append(Step("First byte", f"after {figures.milliseconds(row['ttftMs'])}", "wait"))
    is_whole = row["outcome"] == "completed"
    is_lost = row["outcome"] == "upstream_failed"
    last: Mood = "fail" if is_lost else "wait" if row["ttftMs"] is None else "flow"
    stretch(whole, last)
    words = f"after {figures.milliseconds(row['latencyMs'])}"
    if pace := _pace(row):
        words += f", {figures.count(pace)} tokens/s"
    steps.append(Step("End" if is_whole else ending.capitalize(), words, last))
    return Timeline(tuple(stretches), tuple(steps))


def _pace(row: Mapping[str, Any]) -> float | None:
    """Tokens a second of a stream, from its first byte on."""
    if not row["stream"] or row["ttftMs"] is None or not row["tokensOutput"]:
        return None
    flowed_ms = row["latencyMs"] - row["ttftMs"]
    return row["tokensOutput"] / flowed_ms * 1000 if flowed_ms > 1 else None


def _kind(error_kind: str) -> str:
    return error_kind.replace("_", " ")
