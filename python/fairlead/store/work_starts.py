"""The rows that count starts of work. Every function runs inside `state.read` or `state.record`."""

from __future__ import annotations

from fairlead.store.file import Connection


def count_starts(con: Connection, kind: str, item_ids: list[str], process: str) -> dict[str, int]:
    """Notes that `process` begins work on the items; for each, how many processes now have. One that begins the
    same again is counted once: it has not ended in between.
    """
    begun: dict[str, tuple[str, int]] = {
        item_id: (last, starts)
        for item_id, last, starts in con.execute(
            "SELECT item_id, process, starts FROM work_starts "
            "WHERE kind = ? AND list_contains(?::VARCHAR[], item_id)",
            [kind, item_ids],
        ).fetchall()
    }
    counts: dict[str, int] = {}
    for item_id in item_ids:
        last, starts = begun.get(item_id, ("", 0))
        counts[item_id] = starts if last == process else starts + 1
    _forget(con, kind, item_ids)
    con.execute(
        "INSERT INTO work_starts (kind, item_id, process, starts) "
        "SELECT ?, unnest(?::VARCHAR[]), ?, unnest(?::INTEGER[])",
        [kind, list(counts), process, list(counts.values())],
    )
    return counts


def take_back_starts(con: Connection, kind: str, process: str) -> None:
    """The process ends in good order: what it had begun does not count."""
    con.execute(
        "UPDATE work_starts SET starts = starts - 1, process = '' WHERE kind = ? AND process = ?",
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
