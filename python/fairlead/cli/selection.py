"""One record out of a list, by what people call it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlead.cli.failure import CommandFailed


def one_of(records: Sequence[dict[str, Any]], wanted: str, kind: str) -> dict[str, Any]:
    """The record with this id, or the only one with this name. Raises `CommandFailed`."""
    found = [record for record in records if record["id"] == wanted]
    found = found or [record for record in records if record["name"] == wanted]
    if not found:
        raise CommandFailed(f"there is no {kind} with the id or name {wanted}.")
    if len(found) > 1:
        raise CommandFailed(f"{len(found)} {kind}s have the name {wanted}: name one by its id.")
    return found[0]
