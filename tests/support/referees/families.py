"""What a model accepts: the first family in `facts/PROVIDER.json` whose expression matches its name."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).with_name("facts")


def family_of(provider: str, model: str) -> dict[str, Any]:
    """The facts of `model`. Raises `LookupError` for a model that no family has."""
    for family in families(provider):
        if re.search(family["models"], model):
            return family
    raise LookupError(f"no family of {provider} has the model {model}")


@functools.cache
def members_of(name: str) -> frozenset[str]:
    """The names in the row `name` of `facts/members.json`: members of a request, or keywords of a schema."""
    (row,) = (each for each in families("members") if each["name"] == name)
    return frozenset(row["members"])


@functools.cache
def families(provider: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((FOLDER / f"{provider}.json").read_text("utf-8"))
    return rows
