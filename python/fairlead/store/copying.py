"""Copies every table of one store to another: resumable, verified by counts and hashes, the source untouched.

Each table is copied in one transaction and noted with its count and hash. After an interruption the tables that are
noted are read at the source once more, and copied again only if they have changed. At the end every table is read at
the target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from fairlead.errors import Refusal
from fairlead.store.rows import Batch, Source, TableSum, Tally, Target, sum_of


@dataclass(frozen=True, slots=True)
class CopiedTable:
    """A table whose rows are at the target. `is_new` is false where an earlier run had copied it."""

    name: str
    total: TableSum
    is_new: bool


def copy_tables(
    source: Source, target: Target, report: Callable[[CopiedTable], None]
) -> dict[str, TableSum]:
    """Copies and verifies; what each table has. `Refusal` where the two do not have the same tables, or where the
    target is not empty and no earlier copy had begun.
    """
    columns = source.columns()
    _check_tables(columns, target.columns())
    before = target.copied()
    if not before:
        _check_empty(target, columns)
    totals: dict[str, TableSum] = {}
    for table, names in columns.items():
        known = before.get(table)
        if known is not None and sum_of(source, table, names) == known:
            totals[table] = known
            report(CopiedTable(table, known, is_new=False))
            continue
        with target.transaction():
            tally = Tally()
            target.put(table, names, _passing(source, table, names, tally))
            totals[table] = tally.total()
            target.note(table, totals[table])
        report(CopiedTable(table, totals[table], is_new=True))
    _verify(target, columns, totals)
    target.finish()
    return totals


def _passing(source: Source, table: str, names: Sequence[str], tally: Tally) -> Iterator[Batch]:
    for batch in source.batches(table, names):
        yield tally.add(batch)


def _check_tables(ours: dict[str, list[str]], theirs: dict[str, list[str]]) -> None:
    if ours != theirs:
        different = sorted(
            name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)
        )
        raise Refusal(
            f"The stores have other tables: {', '.join(different[:5])}. Nothing was copied."
        )


def _check_empty(target: Target, columns: dict[str, list[str]]) -> None:
    for table, names in columns.items():
        if any(target.batches(table, names)):
            raise Refusal(
                f"The target has rows already (in {table}): name an empty database. Nothing was copied."
            )


def _verify(target: Source, columns: dict[str, list[str]], totals: dict[str, TableSum]) -> None:
    for table, names in columns.items():
        found = sum_of(target, table, names)
        if found != totals[table]:
            raise Refusal(
                f"The table {table} differs between source and target ({found.rows} of "
                f"{totals[table].rows} rows): copy again into an empty database."
            )
