"""A caller's JSON Schema. It is checked, and data is held to it, in the processes that read pages, because its size
does not show what it costs.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from fairlead.errors import InvalidRequest, Overloaded
from fairlead.scrape.page.pool import Pool, ReadFailed
from fairlead.scrape.page.schema import TOO_COSTLY

SCHEMA_MAX_BYTES: Final = 100_000


class Schema:
    """A schema that `owner` (the id of a key) has sent, and the pool of processes that applies it."""

    def __init__(self, pool: Pool, document: dict[str, Any], owner: str) -> None:
        self.document = document
        self._pool = pool
        self._owner = owner

    async def check(self) -> None:
        """`InvalidRequest` for what is no JSON Schema, is too large or too costly, or refers to another document."""
        await self._judge({"schema": self._sized()})

    async def violations_of(self, data: Any) -> list[str]:
        """Up to a few sentences about how JSON data violates this schema. `InvalidRequest` where the schema is
        invalid or costs too much for this data.
        """
        return await self._judge({"schema": self._sized(), "data": data})

    def _sized(self) -> dict[str, Any]:
        try:
            size = len(orjson.dumps(self.document))
        except TypeError as fault:
            raise InvalidRequest(
                f"schema is nested too deep, or holds a number or a text that JSON has not: {fault}.",
                param="schema",
            ) from None
        if size > SCHEMA_MAX_BYTES:
            raise InvalidRequest(f"schema is larger than {SCHEMA_MAX_BYTES} bytes.", param="schema")
        return self.document

    async def _judge(self, question: dict[str, Any]) -> list[str]:
        try:
            verdict = await self._pool.judge(question, self._owner)
        except ReadFailed as failure:
            if failure.code in {"overloaded", "internal"}:
                raise Overloaded(failure.reason, retry_after_s=2) from None
            raise InvalidRequest(TOO_COSTLY, param="schema") from None
        if "refused" in verdict:
            raise InvalidRequest(verdict["refused"], param="schema")
        violations: list[str] = verdict["violations"]
        return violations
