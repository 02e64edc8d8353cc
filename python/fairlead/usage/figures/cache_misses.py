"""Why prompts were not read from the providers' caches, and what that cost.

A request is compared with the request before it in the same conversation. All of that prompt can be read
from the cache, unless something before its end has changed. The cause of a miss is the first difference.
Prompts are compared by the hashes of their segments, which the relay stores instead of the prompts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Self, get_args

from fairlead.store.file import Connection
from fairlead.usage.sums.span import Span

Cause = Literal[
    "model_switch",
    "other_connection",
    "tools",
    "system_prompt",
    "client",
    "time",
    "compression",
    "provider",
]
ChangedBy = Literal["client", "gateway", "provider"]

CAUSES: Final[tuple[Cause, ...]] = get_args(Cause)
# Providers cache whole blocks of a prompt, so less than this, or a tenth of what could be read, is no miss.
LEAST_TOKENS: Final = 1_024
LEAST_SHARE: Final = 10
# How long providers keep a prompt.
SHORT_MS: Final = 5 * 60_000
LONG_MS: Final = 60 * 60_000
# The requests that are compared, and the misses that are listed, the newest first.
COMPARED_MOST: Final = 200_000
LISTED_MOST: Final = 100

_SQL: Final = """
SELECT request_id, ts_ms, model, upstream_model, connection_id, tokens_input, tokens_cached,
    coalesce(tokens_cache_write_hour, 0), conversation, prompt_hashes, coalesce(cache_read_saving, 0),
    compression IS NOT NULL
FROM requests
WHERE ts_ms >= ? AND ts_ms < ? AND conversation IS NOT NULL AND status < 400 AND attempts > 0 AND tokens_input > 0
ORDER BY ts_ms DESC, request_id DESC
LIMIT ?
"""


class Call(NamedTuple):
    """A request to a model that reads cached input at a lower price."""

    request_id: str
    ts_ms: int
    model: str | None
    upstream_model: str | None
    connection_id: str | None
    tokens_input: int
    tokens_cached: int
    tokens_cache_write_hour: int
    conversation: str
    prompt_hashes: str
    cache_read_saving: int
    is_compressed: bool

    def is_of(self, model: str | None) -> bool:
        return model is None or model in (self.model, self.upstream_model)


@dataclass(frozen=True, slots=True)
class Prompt:
    """The hashes of a prompt. `turns` has those of the newest turns, by their number from 1; each covers
    every turn before it.
    """

    tools: str
    system: str
    count: int
    turns: dict[int, str]

    @classmethod
    def of(cls, text: str) -> Self:
        tools, system, count, *turns = text.split(".")
        newest = int(count)
        return cls(tools, system, newest, {newest - at: turn for at, turn in enumerate(turns)})

    def changed_turn(self, before: Prompt) -> str | None:
        """The first message that is not as it was, as `messages[3]`; None if the earlier prompt is still there."""
        known = self.turns.get(before.count)
        is_older_than_known = self.count > before.count and known is None
        if is_older_than_known or known == before.turns.get(before.count):
            return None
        same = [at for at, turn in self.turns.items() if before.turns.get(at) == turn]
        return f"messages[{max(same)}]" if same else "messages"


class Difference(NamedTuple):
    """The first difference between two calls of a conversation, and who made it."""

    cause: Cause
    changed_by: ChangedBy
    place: str | None


class Miss(NamedTuple):
    """A call that sent tokens again which the cache could have had."""

    call: Call
    difference: Difference
    tokens: int
    cost_usd_micros: int


class MissSum(NamedTuple):
    """All misses of one cause."""

    cause: Cause
    calls: int
    tokens: int
    cost_usd_micros: int


class CacheMisses(NamedTuple):
    """The misses of a span: by cause, the most expensive first, and the newest one by one. `is_truncated`: older
    calls of the span were not compared.
    """

    by_cause: list[MissSum]
    newest: list[Miss]
    is_truncated: bool


def read_cache_misses(con: Connection, span: Span, model: str | None) -> CacheMisses:
    """The misses as far back as single requests are stored. `model`: only calls of this model."""
    bound = [span.from_ms - LONG_MS, span.until_ms, COMPARED_MOST + 1]
    rows = con.execute(_SQL, bound).fetchall()
    calls = [Call(*row) for row in reversed(rows[:COMPARED_MOST])]
    sums: defaultdict[Cause, list[int]] = defaultdict(lambda: [0, 0, 0])
    misses = [
        miss
        for miss in _misses(calls)
        if miss.call.ts_ms >= span.from_ms and miss.call.is_of(model)
    ]
    for miss in misses:
        total = sums[miss.difference.cause]
        for at, value in enumerate((1, miss.tokens, miss.cost_usd_micros)):
            total[at] += value
    by_cause = [MissSum(cause, *total) for cause, total in sums.items()]
    by_cause.sort(key=lambda one: (-one.cost_usd_micros, -one.tokens, one.cause))
    return CacheMisses(by_cause, misses[: -LISTED_MOST - 1 : -1], len(rows) > COMPARED_MOST)


def _misses(calls: list[Call]) -> Iterator[Miss]:
    """The misses of calls in order of time."""
    last: dict[str, Call] = {}
    for call in calls:
        before = last.get(call.conversation)
        last[call.conversation] = call
        if before is None:
            continue
        readable = min(before.tokens_input, call.tokens_input)
        missed = readable - call.tokens_cached
        if missed >= LEAST_TOKENS and missed * LEAST_SHARE >= readable:
            cost = missed * call.cache_read_saving // 1_000_000
            yield Miss(call, difference(before, call), missed, cost)


def difference(before: Call, call: Call) -> Difference:
    """Why the provider did not read the prompt of `before` from its cache for `call`."""
    if call.upstream_model != before.upstream_model:
        by: ChangedBy = "gateway" if call.model == before.model else "client"
        return Difference("model_switch", by, "model")
    if call.connection_id != before.connection_id:
        return Difference("other_connection", "gateway", "connection")
    was, now = Prompt.of(before.prompt_hashes), Prompt.of(call.prompt_hashes)
    if now.tools != was.tools:
        return Difference("tools", "client", "tools")
    if now.system != was.system:
        return Difference("system_prompt", "client", "system")
    changed = now.changed_turn(was)
    if changed is not None:
        return Difference("client", "client", changed)
    lasts_ms = LONG_MS if before.tokens_cache_write_hour else SHORT_MS
    if call.ts_ms - before.ts_ms > lasts_ms:
        return Difference("time", "client", None)
    if call.is_compressed or before.is_compressed:
        return Difference("compression", "gateway", None)
    return Difference("provider", "provider", None)
