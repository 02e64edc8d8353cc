"""Histograms and sums of buckets that are closed, kept in memory: they change only when a late record arrives.

A histogram has hundreds of rows for each group and bucket, so adding up those of a month takes tens of milliseconds,
and nearly all of them are of days that are over. Sums have few rows, but to plan their statement takes as long. Whole
answers are kept beside them, of buckets that are still open too. Whatever is kept is forgotten as soon as a record
arrives that falls into it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import polars as pl

from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.usage.sums.facts import (
    Measure,
    Selection,
    add_up,
    bins_of_parts,
    parts_between,
    sums_of_parts,
)
from fairlead.usage.sums.rollup import BUCKET_MS, Level, read_kept
from fairlead.usage.sums.span import Part, Span

T = TypeVar("T")

# A row takes about 40 bytes.
ROWS_KEPT: Final = 250_000
# In an answer, a row of names and numbers takes as much as this many rows of bins.
ROWS_OF_ANSWER: Final = 50
# The maximum that one answer adds; more would evict all others.
ROWS_OF_ONE: Final = 100_000
# Groups of which all sums are held at once.
GROUPS_MAX: Final = 100_000
# Changes that a read may be overtaken by, and still keep its rows.
CHANGES_KEPT: Final = 64

_Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    part: Part
    value: Any
    rows: int


@dataclass(slots=True)
class ClosedBins:
    """Kept rows, the least recently used first. `epoch` counts the changes."""

    epoch: int = 0
    _changes: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=CHANGES_KEPT))
    _entries: OrderedDict[_Key, _Entry] = field(default_factory=OrderedDict)
    _rows: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def forget(self, from_ms: int, until_ms: int) -> None:
        """Forgets what has a bucket in this time; called after the change is committed."""
        with self._lock:
            # For a read that began before the change, and has not kept its rows yet.
            self.epoch += 1
            self._changes.append((from_ms, until_ms))
            changed = [
                key
                for key, entry in self._entries.items()
                if entry.part.from_ms < until_ms and entry.part.until_ms > from_ms
            ]
            for key in changed:
                self._rows -= self._entries.pop(key).rows

    def find(self, key: _Key) -> Any | None:
        """The kept rows of a part, or an answer, or None."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key].value

    def keep(self, key: _Key, part: Part, bins: pl.DataFrame, epoch: int) -> None:
        """Keeps rows that were read in a transaction that began at this epoch or later."""
        self._keep(key, _Entry(part, bins, bins.height), epoch)

    def keep_answer(self, key: _Key, part: Part, answer: tuple[Any, int], epoch: int) -> None:
        """Keeps an answer, which has so many rows, of a transaction that began at this epoch or later."""
        value, rows = answer
        self._keep(key, _Entry(part, value, (rows + 1) * ROWS_OF_ANSWER), epoch)

    def _keep(self, key: _Key, entry: _Entry, epoch: int) -> None:
        if entry.rows > ROWS_OF_ONE:
            return
        with self._lock:
            if key in self._entries or self._has_changed(entry.part, epoch):
                return
            self._entries[key] = entry
            self._rows += entry.rows
            while self._rows > ROWS_KEPT:
                self._rows -= self._entries.popitem(last=False)[1].rows

    def _has_changed(self, part: Part, since: int) -> bool:
        missed = self.epoch - since
        if missed > len(self._changes):
            return True
        recent = list(self._changes)[len(self._changes) - missed :]
        return any(
            part.from_ms < until_ms and part.until_ms > from_ms for from_ms, until_ms in recent
        )


@dataclass(slots=True)
class BinsReader:
    """Histograms and sums, as `facts.bins_of` and `facts.sums_of` give them, for one read. Made before the read's
    transaction begins.
    """

    closed: ClosedBins
    epoch: int
    _levels: dict[Level, int] | None = None

    @classmethod
    def over(cls, closed: ClosedBins) -> BinsReader:
        """A reader that keeps what it reads of closed buckets."""
        return cls(closed, closed.epoch)

    def levels(self, con: Connection) -> dict[Level, int]:
        """The time from which each level is complete, read once."""
        if self._levels is None:
            self._levels = read_kept(con)
        return self._levels

    def parts(self, con: Connection, span: Span, coarsest: Level) -> list[Part]:
        """The parts of a span, of which each level answers its own."""
        return parts_between(self.levels(con), span, coarsest)

    def answer(
        self,
        query_key: _Key,
        parts: Sequence[Part],
        make: Callable[[], T],
        rows_of: Callable[[T], int],
    ) -> T:
        """The answer that `make` reads of these parts alone, or the one that was read before if no record has arrived
        in them since. `query_key` names the answer. Single records are read again: they may be deleted by themselves.
        """
        if any(part.level == "requests" for part in parts):
            return make()
        key = ("answer", *query_key, *parts)
        found: T | None = self.closed.find(key)
        if found is not None:
            return found
        made = make()
        from_ms, until_ms = (
            min(part.from_ms for part in parts),
            max(part.until_ms for part in parts),
        )
        whole = Part("minute", from_ms, until_ms)
        self.closed.keep_answer(key, whole, (made, rows_of(made)), self.epoch)
        return made

    def read(
        self,
        con: Connection,
        span: Span,
        selection: Selection,
        wanted: Sequence[Measure],
    ) -> pl.DataFrame:
        """One row or more for each group and `bin`."""
        return self._join(
            self.parts(con, span, selection.coarsest),
            ("bins", *_key_of(selection), *wanted),
            lambda parts: bins_of_parts(con, parts, selection, wanted),
        )

    def sums(
        self, con: Connection, span: Span, selection: Selection, wanted: Sequence[str]
    ) -> pl.DataFrame:
        """One row for each group. `TooManyGroups`."""
        rows = self._join(
            self.parts(con, span, selection.coarsest),
            ("sums", *_key_of(selection), *wanted),
            lambda parts: sums_of_parts(con, parts, selection, wanted, GROUPS_MAX),
        )
        return add_up(rows, list(selection.groups)).select(*selection.groups, *wanted)

    def _join(
        self, parts: list[Part], query_key: _Key, read: Callable[[list[Part]], pl.DataFrame]
    ) -> pl.DataFrame:
        """The rows of all parts: closed ones as they were kept, all others read in one statement."""
        closed, open_ = _split(parts, now_ms())
        frames = []
        for part in closed:
            key = (part, *query_key)
            rows: pl.DataFrame | None = self.closed.find(key)
            if rows is None:
                rows = read([part])
                self.closed.keep(key, part, rows, self.epoch)
            frames.append(rows)
        if open_ or not frames:
            frames.append(read(open_ or [Part("requests", 0, 0)]))
        return pl.concat(frames, how="vertical_relaxed")


def _key_of(selection: Selection) -> _Key:
    filters = selection.filters
    return (*selection.groups.items(), *filters.conditions, *filters.bound.items())


def _split(parts: list[Part], at_ms: int) -> tuple[list[Part], list[Part]]:
    """The closed buckets, and the open ones. Single records are read directly."""
    closed, open_ = [], []
    for part in parts:
        over_ms = at_ms - at_ms % BUCKET_MS[part.level]
        if part.level == "requests" or part.from_ms >= over_ms:
            open_.append(part)
        elif part.until_ms <= over_ms:
            closed.append(part)
        else:
            closed.append(Part(part.level, part.from_ms, over_ms))
            open_.append(Part(part.level, over_ms, part.until_ms))
    return closed, open_
