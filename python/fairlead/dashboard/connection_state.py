"""Whether a connection serves, as people are shown it: its state, its circuit, and its recent requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple

from fairlead.dashboard.recent_failures import FailingProvider

Mood = Literal["", "good", "warn", "bad"]
# States in which a connection gets requests, or is meant not to; every other one is a fault.
_MOODS: Final[Mapping[str, Mood]] = {
    "active": "good",
    "deactivated": "",
    "cooling": "warn",
    "degraded": "warn",
}
_CIRCUITS: Final[Mapping[str, Mood]] = {"open": "bad", "half-open": "warn", "degraded": "warn"}


class ConnectionState(NamedTuple):
    """A word and its mood; only `good` is green."""

    words: str
    mood: Mood


def connection_state_of(
    state: str,
    provider: str,
    breakers: Iterable[Mapping[str, Any]],
    failing: Iterable[FailingProvider],
) -> ConnectionState:
    """The standing of a connection in this state. One that is active serves only while its circuit lets requests
    through and they succeed.
    """
    mood = _MOODS.get(state, "bad")
    if mood != "good":
        return ConnectionState(state, mood)
    circuit = next((each["state"] for each in breakers if each["provider"] == provider), "closed")
    if circuit in _CIRCUITS:
        return ConnectionState(f"circuit {circuit}", _CIRCUITS[circuit])
    fails = next((each for each in failing if each.provider == provider), None)
    if fails is not None:
        return ConnectionState("failing", "bad" if fails.fails_always else "warn")
    return ConnectionState(state, mood)
