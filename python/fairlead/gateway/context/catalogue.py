"""Modes, engines, packs and filters that the engine knows, asked once."""

from __future__ import annotations

from functools import cache
from typing import Any

import orjson

from fairlead import _core
from fairlead.errors import InvalidRequest


@cache
def catalogue() -> dict[str, Any]:
    """The catalogue that `_core.context_catalogue` returns."""
    known: dict[str, Any] = orjson.loads(_core.context_catalogue())
    return known


@cache
def modes() -> dict[str, list[dict[str, str]]]:
    """The stages of each mode."""
    return {mode["mode"]: mode["stages"] for mode in catalogue()["modes"]}


def languages() -> list[str]:
    """Languages that have a pack of phrases."""
    return [pack["language"] for pack in catalogue()["packs"]]


def check_languages(wanted: list[str], param: str) -> None:
    """Raises `InvalidRequest` for a language without a pack."""
    for language in wanted:
        if language not in languages():
            raise InvalidRequest(
                f"{param} names `{language}`, which has no pack: choose of {', '.join(languages())}.",
                param=param,
            )
