"""The console speaks the language of the trade: phrases that its users did not understand do not come back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairlead import dashboard

HERE = Path(dashboard.__file__).parent
# The phrase that was there, and the one that a platform engineer knows.
PHRASES = {
    "Its requests": "View requests",
    "New text": "Rotate key",
    "that is not is refused": "Inactive keys are rejected",
    "Limits of money": "Spending limits",
    "none of money": "No spending limit",
    "Tell webhooks at": "Alert at",
    "Needs a hand": "Needs attention",
    "It came to no choice": "No provider was chosen",
    "Its way": "Timeline",
    "Answered by": "Served by",
    "Told of": "Events",
    "Name has": "Search",
    "requests fit": "requests match",
    "Kept are the newest": "Keep newest",
    "Begins and ends": "Key",
    "Which is tried first": "Strategy",
    "aults on purpose": "Fault injection",
    "What else it opens": "Permissions",
    "Models that rest": "Models in cooldown",
    "Forget": "Delete",
    "Given again": "Hits",
    "that fit<": "that match<",
    "Nothing is kept": "No stored answers",
    "They are kept": "I saved the codes",
    "Beside it": "Second model",
    "Your words": "Prompt",
    "Take it back": "Remove",
    "Make the": "Create",
    "not made here": "Unknown combos",
    "Provider's word": "Provider headers",
    "limit of money": "spending limit",
    "Begins anew": "Resets",
    ", anew ": "resets",
    "own word": "as the provider reported",
    "What the provider tells": "Usage reported by the provider",
    "It is told": "Prompt",
    "What it is told": "Prompt",
    "made by themselves": "automatic",
    "asked beside": "asked in parallel",
    "stands beside it": "with its use",
    "Made shorter": "Shortened",
    "room is needed": "its limits apply too",
    "none that is kept": "not stored",
    "is told by mail": "No mail is sent",
}
# Whole labels, which are words of ordinary sentences too.
LABELS = (
    "Goes",
    "Kept",
    "May",
    "Of (UTC)",
    "Room",
    "Over",
    "Speaks",
    "Rests",
    "Asked",
    "needed",
    "Go on",
)


def texts() -> dict[str, str]:
    """What the console is written in, without the docstrings of its code."""
    files = [*HERE.glob("templates/*.html"), *HERE.rglob("*.py")]
    return {
        each.name: re.sub(r'"""[\s\S]*?"""', "", each.read_text(encoding="utf-8")) for each in files
    }


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_phrase_that_nobody_understood_is_gone(phrase: str) -> None:
    found = [name for name, text in texts().items() if phrase in text]
    assert not found, f"write {PHRASES[phrase]!r}"


@pytest.mark.parametrize("label", LABELS)
def test_a_label_that_nobody_understood_is_gone(label: str) -> None:
    whole = re.compile(rf'(>|"){re.escape(label)}(<|")')
    found = [name for name, text in texts().items() if whole.search(text)]
    assert not found
