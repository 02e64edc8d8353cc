"""What `fairlead doctor` finds: each with how bad it is and what mends it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    check: str
    severity: Severity
    text: str
    fix: str | None = None
    """What to do; None where nothing is wrong."""

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def fine(check: str, text: str) -> Finding:
    """Nothing is wrong."""
    return Finding(check, Severity.OK, text)


def warning(check: str, text: str, fix: str) -> Finding:
    """It works, and may not for long."""
    return Finding(check, Severity.WARNING, text, fix)


def failure(check: str, text: str, fix: str) -> Finding:
    """It does not work."""
    return Finding(check, Severity.FAILURE, text, fix)
