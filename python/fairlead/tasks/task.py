"""A reverse task with its entries, evidence, blocks and runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

Status = Literal["active", "blocked", "partial", "pass"]
Stage = Literal["Observe", "Capture", "Rebuild", "Patch", "DeepDive", "PureExtraction", "Port"]
EvidenceKind = Literal[
    "observation", "capture", "runtime-error", "divergence", "artifact", "patch", "note"
]
Judgement = Literal["pass", "partial", "unknown"]

STATUSES: Final[tuple[str, ...]] = get_args(Status)
STAGES: Final[tuple[str, ...]] = get_args(Stage)
KINDS: Final[tuple[str, ...]] = get_args(EvidenceKind)
# The success criteria of a task; each is `unknown` in a new one.
CRITERIA: Final = ("localRebuild", "serverAcceptance", "browserAlignment")
NO_CRITERIA: Final[dict[str, Any]] = dict.fromkeys(CRITERIA, "unknown")


@dataclass(frozen=True, slots=True)
class Task:
    """A task. `owner` is a person's id; `criteria` has a judgement for each of `CRITERIA`, and `notes`."""

    owner: str
    id: str
    slug: str | None
    target_url: str | None
    goal: str
    stage: str
    status: str
    summary: str | None
    next_step_hint: str | None
    criteria: dict[str, Any]
    tags: list[str]
    created_at_ms: int
    updated_at_ms: int
    archived_at_ms: int | None

    @property
    def has_passed_all(self) -> bool:
        """Whether every criterion is judged `pass`."""
        return all(self.criteria.get(name) == "pass" for name in CRITERIA)


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a task's timeline; it has its number once it is stored."""

    at_ms: int
    stage: str
    action: str
    status: str
    detail: str | None
    number: int = 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """A finding; it has its number once it is stored.

    The kind determines `data`: `message` of a runtime error, `capability` of a patch, `path` of an artifact,
    `expected` and `actual` of a divergence.
    """

    at_ms: int
    kind: str
    summary: str
    data: dict[str, Any]
    number: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """The reason why a task is stopped until the block is lifted. `blocked_by` has the values of the envelope."""

    reason: str
    blocked_by: str
    raised_at_ms: int


@dataclass(frozen=True, slots=True)
class Run:
    """The progress of the last orchestrated run, by step: `{status, result?, error?, errorType?}`."""

    strategy: str
    steps: dict[str, dict[str, Any]]
    rounds: int
