"""The proof of a task: the findings behind each success criterion, and the open divergences. Runs in the
writer.

A finding names criteria in `data.criterion`, one or a list. A divergence is open until a later finding names
its number in `data.resolves`, one or a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from fairlead.store.file import Connection
from fairlead.tasks.table import EVIDENCE_MAX, evidence
from fairlead.tasks.task import CRITERIA, Evidence, Task

# Kinds of findings that cannot support a criterion.
_NO_PROOF: Final = frozenset({"runtime-error", "divergence"})


@dataclass(frozen=True, slots=True)
class CriterionProof:
    """A criterion with the agent's judgement and the numbers of the findings that support it."""

    criterion: str
    judgement: str
    evidence: tuple[int, ...]

    @property
    def is_met(self) -> bool:
        """Whether it is judged `pass` and at least one finding supports it."""
        return self.judgement == "pass" and bool(self.evidence)

    @property
    def lack(self) -> str | None:
        """A sentence about what the criterion lacks, None if it is met."""
        if self.judgement != "pass":
            return f"{self.criterion} is judged {self.judgement}"
        return None if self.evidence else f"no evidence names {self.criterion}"

    def shown(self) -> dict[str, Any]:
        """The JSON form in responses."""
        return {
            "criterion": self.criterion,
            "judgement": self.judgement,
            "evidence": list(self.evidence),
            "met": self.is_met,
        }


@dataclass(frozen=True, slots=True)
class Proof:
    """The proof of a task. `findings` is the number of all findings."""

    criteria: tuple[CriterionProof, ...]
    open_divergences: tuple[Evidence, ...]
    findings: int

    @property
    def lacks(self) -> list[str]:
        """Sentences about everything that keeps the task from passing; empty when it passes."""
        lacks = [each.lack for each in self.criteria if each.lack is not None]
        if self.open_divergences:
            numbers = ", ".join(str(each.number) for each in self.open_divergences[:10])
            lacks.append(f"{len(self.open_divergences)} divergences are open (number {numbers})")
        return lacks

    @property
    def unproven(self) -> list[str]:
        """The criteria without a supporting finding."""
        return [each.criterion for each in self.criteria if not each.evidence]

    def shown(self) -> dict[str, Any]:
        """The JSON form in responses."""
        return {
            "criteria": [each.shown() for each in self.criteria],
            "missingEvidence": self.unproven,
            "openDivergences": [
                {"number": each.number, "summary": each.summary, **each.data}
                for each in self.open_divergences
            ],
        }


def proof_of(con: Connection, task: Task) -> Proof:
    """The proof from all findings of the task, in the writer."""
    found = evidence(con, task, EVIDENCE_MAX)
    resolved = {
        number
        for each in found
        for number in _listed(each.data.get("resolves"))
        if isinstance(number, int) and number < each.number
    }
    open_divergences = tuple(
        each
        for each in reversed(found)
        if each.kind == "divergence" and each.number not in resolved
    )
    criteria = tuple(
        CriterionProof(name, str(task.criteria.get(name, "unknown")), _naming(name, found))
        for name in CRITERIA
    )
    return Proof(criteria, open_divergences, len(found))


def _naming(criterion: str, found: Sequence[Evidence]) -> tuple[int, ...]:
    return tuple(
        each.number
        for each in reversed(found)
        if each.kind not in _NO_PROOF and criterion in _listed(each.data.get("criterion"))
    )


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]
