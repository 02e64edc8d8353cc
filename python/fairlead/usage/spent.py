"""What keys have used of their limits before a relay worker began to count: sums over the table
`requests`, for the link (docs/explanation/contracts.md).

A sum is right only when every record of the past is in the table, so it waits for the spool: for
what the asking worker sealed, and for all that workers before it left behind.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from fairlead.store.database import Database
from fairlead.store.file import Connection
from fairlead.usage.segment import has_unread

WAIT_S = 1.5
LOOK_EVERY_S = 0.05

Unit = Literal["requests", "tokens", "usd_micros"]

_SUMS: dict[Unit, str] = {
    # What was refused or shed was not let through, and counts for no limit.
    "requests": "count(*) FILTER (outcome NOT IN ('refused', 'shed'))",
    "tokens": "coalesce(sum(tokens_input + tokens_output), 0)",
    "usd_micros": "coalesce(sum(cost_usd_micros), 0)",
}
_UNITS = tuple(_SUMS)


class Question(BaseModel):
    """The sum for one key since `from_ms`, of one model or provider if it names one."""

    key_id: str
    unit: Unit
    from_ms: int = Field(ge=0, le=2**53)
    model: str | None = None
    provider: str | None = None


class Spent(BaseModel):
    """What a worker asks. It holds back its segments from `before_segment` on."""

    before_segment: int = Field(ge=0)
    questions: list[Question]


class Spending:
    """Answers such questions."""

    def __init__(self, usage: Database, spool_dir: Path) -> None:
        self._usage = usage
        self._spool_dir = spool_dir

    async def sums(self, worker: str, asked: Spent) -> list[int] | None:
        """Sums in the order of the questions; None when the records were not all in after 1.5 s."""
        try:
            async with asyncio.timeout(WAIT_S):
                # Other processes write the files: there is no event to wait for.
                while await asyncio.to_thread(  # noqa: ASYNC110
                    has_unread, self._spool_dir, worker, asked.before_segment
                ):
                    await asyncio.sleep(LOOK_EVERY_S)
        except TimeoutError:
            return None
        return await self._usage.read(lambda con: sum_spent(con, asked.questions))


def sum_spent(con: Connection, questions: list[Question]) -> list[int]:
    """One look at the table for all questions that share their beginning and what they are
    about.
    """
    groups: dict[tuple[int, str | None, str | None], set[str]] = defaultdict(set)
    for question in questions:
        groups[question.from_ms, question.model, question.provider].add(question.key_id)
    found: dict[tuple[int, str | None, str | None, str, Unit], int] = {}
    columns = ", ".join(f"{_SUMS[unit]}::BIGINT" for unit in _UNITS)
    for (from_ms, model, provider), key_ids in groups.items():
        rows = con.execute(
            f"""
            SELECT key_id, {columns} FROM requests
            WHERE ts_ms >= $from_ms AND key_id IN (SELECT unnest($key_ids))
                AND ($model IS NULL OR model = $model)
                AND ($provider IS NULL OR provider = $provider)
            GROUP BY key_id
            """,
            {
                "from_ms": from_ms,
                "key_ids": sorted(key_ids),
                "model": model,
                "provider": provider,
            },
        ).fetchall()
        for key_id, *sums in rows:
            for unit, total in zip(_UNITS, sums, strict=True):
                found[from_ms, model, provider, key_id, unit] = total
    return [
        found.get(
            (
                question.from_ms,
                question.model,
                question.provider,
                question.key_id,
                question.unit,
            ),
            0,
        )
        for question in questions
    ]
