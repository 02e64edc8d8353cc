"""Regular expressions of callers that choose addresses.

`AddressPatterns` is data: it goes to a process of the pool (`page.pool`), where `judge_addresses` compiles and
matches it. Nothing of it is compiled in control, whose event loop serves everybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache
from typing import Any, Final

from fairlead import _core
from fairlead.net.url import split_url

# Jobs whose compiled patterns a process keeps. Those of one job take 12 MiB at most.
COMPILED_KEPT: Final = 8
_FAULTS: Final = {
    "unreadable": "The pattern {pattern!r} is not a regular expression of the kind that is read here: "
    "no look-around, no back-references.",
    "too_large": "The pattern {pattern!r} is too large: repeat fewer characters, or write [a-z] in place of \\w.",
    "too_large_together": "The patterns are too large together: send fewer, or write [a-z] in place of \\w.",
}


@dataclass(frozen=True, slots=True)
class AddressPatterns:
    """Which addresses a job or a map takes: path patterns look at the path, the others at the whole address.
    `words` must all be in the address, in any case.

    Without an including pattern all are taken; an excluding one wins.
    """

    include_paths: tuple[str, ...] = ()
    exclude_paths: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def takes_all(self) -> bool:
        return not any(astuple(self))


def judge_addresses(question: dict[str, Any]) -> dict[str, Any]:
    """`{"refused"}` with a sentence where a pattern is not taken; else `{"accepted"}`, the addresses that pass, in
    order.

    `question`: `{"lists", "words", "addresses"}`, where `lists` are the four of `AddressPatterns`. Run in a
    process of the pool: the time grows with patterns and addresses.
    """
    lists = tuple(tuple(patterns) for patterns in question["lists"])
    try:
        compiled = _compiled(lists)
    except ValueError as fault:
        kind, number = fault.args
        pattern = [each for patterns in lists for each in patterns][number]
        return {"refused": _FAULTS[kind].format(pattern=pattern[:60])}
    words = [word.lower() for word in question["words"]]
    return {
        "accepted": [
            url
            for url in question["addresses"]
            if compiled.accepts(url, split_url(url).path) and _has_words(url, words)
        ]
    }


@lru_cache(maxsize=COMPILED_KEPT)
def _compiled(lists: tuple[tuple[str, ...], ...]) -> _core.AddressPatterns:
    return _core.AddressPatterns(*lists)


def _has_words(url: str, words: Sequence[str]) -> bool:
    lower = url.lower() if words else ""
    return all(word in lower for word in words)
