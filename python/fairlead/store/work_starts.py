"""The rows that count starts of work. Every function runs inside `state.read` or `state.record`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.store.file import Connection

TOTAL_MAX: Final = 24
"""From then on it does not help an item that it came further between two ends of the process."""


def count_starts(
    con: Connection, kind: str, steps: Mapping[str, int], process: str
) -> dict[str, int]:
    """Notes that `process` begins work on the items, each of which has come `steps` far; for each, how many processes
    now have begun it since it last came further. One that begins the same again is counted once: it has not ended
    in between.
    """
    item_ids = list(steps)
    begun: dict[str, tuple[str, int, int, int]] = {
        item_id: (last, starts, total, reached)
        for item_id, last, starts, total, reached in con.execute(
            "SELECT item_id, process, starts, total, steps FROM work_starts "
            "WHERE kind = ? AND list_contains(?::VARCHAR[], item_id)",
            [kind, item_ids],
        ).fetchall()
    }
    rows: list[tuple[int, int]] = []
    for item_id, reached in steps.items():
        last, starts, total, before = begun.get(item_id, ("", 0, 0, 0))
        if last != process:
            is_further = reached > before and total < TOTAL_MAX
            starts, total = 1 if is_further else starts + 1, total + 1
        rows.append((starts, total))
    _forget(con, kind, item_ids)
    con.execute(
        "INSERT INTO work_starts (kind, item_id, process, starts, total, steps) "
        "SELECT ?, unnest(?::VARCHAR[]), ?, unnest(?::INTEGER[]), unnest(?::INTEGER[]), unnest(?::BIGINT[])",
        [
            kind,
            item_ids,
            process,
            [starts for starts, _ in rows],
            [total for _, total in rows],
            list(steps.values()),
        ],
    )
    return {item_id: starts for item_id, (starts, _) in zip(item_ids, rows, strict=True)}


def take_back_starts(con: Connection, kind: str, process: str) -> None:
    """The process ends in good order: what it had begun does not count."""
    con.execute(
        "UPDATE work_starts SET starts = starts - 1, total = total - 1, process = '' WHERE kind = ? AND process = ?",
        [kind, process],
    )
    con.execute("DELETE FROM work_starts WHERE kind = ? AND starts <= 0", [kind])


def keep_starts(con: Connection, kind: str, active_ids: list[str], proven_ids: list[str]) -> None:
    """Forgets all but those of active items, and of these the `proven`."""
    con.execute(
        "DELETE FROM work_starts WHERE kind = ? AND NOT list_contains(?::VARCHAR[], item_id)",
        [kind, active_ids],
    )
    _forget(con, kind, proven_ids)


def _forget(con: Connection, kind: str, item_ids: list[str]) -> None:
    con.execute(
        "DELETE FROM work_starts WHERE kind = ? AND list_contains(?::VARCHAR[], item_id)",
        [kind, item_ids],
    )
