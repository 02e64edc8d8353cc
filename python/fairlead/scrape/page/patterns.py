"""Regular expressions of callers, matched by an engine of linear time (Rust's, through polars)."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

import polars as pl

from fairlead.errors import InvalidRequest


def is_readable_pattern(pattern: str) -> bool:
    """Whether the engine reads the pattern: it has no look-around and no back-references."""
    try:
        pl.Series(["x"]).str.contains(pattern)
    except pl.exceptions.PolarsError:
        return False
    return True


def matches_pattern(pattern: str, text: str) -> bool:
    """Whether a readable pattern is found in the text."""
    return bool(pl.Series([text]).str.contains(pattern)[0])


class Patterns:
    """Which addresses a job or a map takes: path patterns look at the path, the others at the whole address.

    Without an including pattern all are taken; an excluding one wins.
    """

    def __init__(
        self,
        include_paths: Sequence[str] = (),
        exclude_paths: Sequence[str] = (),
        include_patterns: Sequence[str] = (),
        exclude_patterns: Sequence[str] = (),
    ) -> None:
        self._include = [(p, True) for p in include_paths] + [(p, False) for p in include_patterns]
        self._exclude = [(p, True) for p in exclude_paths] + [(p, False) for p in exclude_patterns]

    def check(self) -> None:
        """`InvalidRequest` for a pattern that the engine does not read."""
        for pattern, _ in self._include + self._exclude:
            if not is_readable_pattern(pattern):
                raise InvalidRequest(
                    f"The pattern {pattern[:60]!r} is not a regular expression of the kind that is "
                    "read here: no look-around, no back-references."
                )

    def accepted(self, urls: Sequence[str]) -> list[str]:
        """The addresses that pass, in order."""
        if not urls or not (self._include or self._exclude):
            return list(urls)
        whole = pl.Series(urls, dtype=pl.String)
        paths = pl.Series([urlsplit(url).path for url in urls], dtype=pl.String)
        keep = pl.repeat(not self._include, len(urls), eager=True, dtype=pl.Boolean)
        for pattern, on_path in self._include:
            keep |= (paths if on_path else whole).str.contains(pattern)
        for pattern, on_path in self._exclude:
            keep &= ~(paths if on_path else whole).str.contains(pattern)
        return whole.filter(keep).to_list()
