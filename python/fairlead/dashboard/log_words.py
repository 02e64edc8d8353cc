"""Words for the outcomes of requests."""

from __future__ import annotations

from typing import Final

from fairlead.dashboard.form import Options

OUTCOMES: Final[Options] = (
    ("", "any"),
    ("completed", "completed"),
    ("upstream_failed", "provider failed"),
    ("client_gone", "caller gone"),
    ("refused", "refused"),
    ("shed", "turned away"),
    ("drained", "drained"),
)
OUTCOME_WORDS: Final = dict(OUTCOMES)
OUTCOME_MOODS: Final = {
    "completed": "good",
    "upstream_failed": "bad",
    "refused": "warn",
    "shed": "warn",
}
