"""Failures of the last minutes: which provider fails, how often, and what it answered last."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from fairlead.dashboard import figures
from fairlead.dashboard.api import Api
from fairlead.dashboard.window import Row, read_sums
from fairlead.moment import iso, moment_of, now_ms

LOOKS_BACK_MS: Final = 15 * 60_000
# So many failures in a row, without a success since, are no accident.
IN_A_ROW: Final = 5
# A share of failures says something about this many requests and more.
MANY: Final = 20
SHARE_NOTED: Final = 0.05
READ: Final = 200
# The caller left: nobody failed.
_NO_FAULT: Final = "client_gone"


@dataclass(frozen=True, slots=True)
class FailingProvider:
    """A provider whose requests fail, or the gateway itself where `provider` is None: it refused them."""

    provider: str | None
    requests: int
    errors: int
    in_a_row: int
    """The newest requests, all of which failed."""
    message: str | None
    """The last sentence that a caller received."""

    @property
    def fails_always(self) -> bool:
        """Whether nothing succeeds: all of the window, or all of the newest requests."""
        return self.in_a_row >= IN_A_ROW or self.errors >= self.requests

    @property
    def href(self) -> str:
        """The requests that failed."""
        if self.provider is None:
            return f"/dashboard/logs?{urlencode({'outcome': 'refused', 'window': '1h'})}"
        return f"/dashboard/logs?{urlencode({'provider': self.provider, 'outcome': 'upstream_failed', 'window': '1h'})}"

    def words(self, name: str) -> str:
        """A sentence about it; `name` is the provider's."""
        who = f"{name}: " if self.provider is not None else "Refused by the gateway: "
        if self.errors < self.requests and self.in_a_row >= IN_A_ROW:
            share = f"the last {self.in_a_row} requests failed"
        else:
            part = figures.share(self.errors / self.requests)
            share = f"{part} of the requests of the last 15 minutes failed ({self.errors:,} of {self.requests:,})"
        return f"{who}{share}." + (f" {self.message}" if self.message else "")


def is_failing(requests: int, errors: int) -> bool:
    """Whether so many errors are more than an accident: all of a few, or a noticeable share of many."""
    if requests >= MANY:
        return errors / requests > SHARE_NOTED
    return IN_A_ROW <= requests == errors


class Recent(NamedTuple):
    """The requests of the last minutes."""

    requests: int
    failing: list[FailingProvider]


async def read_recent(api: Api) -> Recent:
    """The providers that fail now. One stays until a request to it succeeds, or a quarter of an hour has passed."""
    since = iso(moment_of(now_ms() - LOOKS_BACK_MS))
    rows, log = await asyncio.gather(
        read_sums(api, "provider", **{"from": since}),
        api.get("/api/usage/logs", limit=READ, **{"from": since}),
    )
    return Recent(sum(row["requests"] for row in rows), failing_of(rows, log["logs"]))


def failing_of(rows: Iterable[Row], logs: list[dict[str, Any]]) -> list[FailingProvider]:
    """The failing providers of these sums; `logs` are requests, newest first."""
    found = []
    for row in rows:
        own = [
            each
            for each in logs
            if each["provider"] == row["provider"] and each["outcome"] != _NO_FAULT
        ]
        failed = list(takewhile(lambda each: each["outcome"] != "completed", own))
        if is_failing(row["requests"], row["errors"]) or len(failed) >= IN_A_ROW:
            messages = (each["errorMessage"] for each in own if each["errorMessage"])
            found.append(
                FailingProvider(
                    row["provider"],
                    row["requests"],
                    row["errors"],
                    len(failed),
                    next(messages, None),
                )
            )
    return sorted(found, key=lambda each: (-each.errors, each.provider or ""))
