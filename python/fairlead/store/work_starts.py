"""The table of started work, with which crash loops are found. Every function runs inside `state.read` or
`state.record`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.store.file import Connection

TOTAL_MAX: Final = 24
"""From then on it does not help an item that it came further between two ends of the process."""


def count_starts(
    con: Connection, kind: str, steps: Mapping[str, int], process: str
) -> dict[str, int]:
    """Records that `process` starts the items, each at its progress in `steps`.

    Returns, for each item, how many processes have started it since it last made progress. A repeated start by
    one process counts once.
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
    """Deletes the process's starts, because it ends in good order."""
    con.execute(
        "UPDATE work_starts SET starts = starts - 1, total = total - 1, process = '' WHERE kind = ? AND process = ?",
        [kind, process],
    )
    con.execute("DELETE FROM work_starts WHERE kind = ? AND starts <= 0", [kind])


def take_back_start(con: Connection, kind: str, item_id: str) -> None:
    """Deletes one start of an item: who made it lives, and only lost the item to another process."""
    con.execute(
        "UPDATE work_starts SET starts = starts - 1, total = total - 1 WHERE kind = ? AND item_id = ? AND starts > 0",
        [kind, item_id],
    )


def keep_starts(con: Connection, kind: str, active_ids: list[str], proven_ids: list[str]) -> None:
    """Deletes all starts except those of active items that are not proven."""
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
