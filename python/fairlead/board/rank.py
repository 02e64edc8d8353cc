"""Ranks: texts that sort, so that a todo is moved by writing one row.

A rank is base 62 in ASCII order and never ends in the smallest digit, so there is a rank between
any two. Ranks at an end are made by counting on in the first six digits, which keeps them short;
ranks in between get longer by a digit for about six moves into the same gap.
"""

from __future__ import annotations

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
BASE = len(DIGITS)
HEAD = 6
STEP = BASE**2
MIDDLE = BASE**HEAD // 2
# Characters. Before a rank becomes longer, all todos of the project get new ranks.
RANK_MAX = 40


class RanksExhausted(ValueError):
    """No rank is left at an end: all todos of the project need new ranks."""


def rank_between(low: str | None, high: str | None) -> str:
    """A rank after `low` and before `high`; None stands for the end of the order. `RanksExhausted`
    where that end is full.
    """
    if low is None and high is None:
        return _spell(MIDDLE)
    if high is None:
        return _spell(_head(low or "") + STEP)
    if low is None:
        return _spell(_head(high) - STEP)
    if low >= high:
        raise ValueError("the ranks are not in order")
    return _middle(low, high)


def spread(count: int) -> list[str]:
    """`count` ranks, in order and far apart."""
    first = MIDDLE - count // 2 * STEP
    return [_spell(first + number * STEP) for number in range(count)]


def _middle(low: str, high: str) -> str:
    digits: list[str] = []
    bounded = True
    place = 0
    while True:
        least = DIGITS.index(low[place]) if place < len(low) else 0
        most = DIGITS.index(high[place]) if bounded and place < len(high) else BASE
        middle = (least + most) // 2
        if middle > least:
            return "".join(digits) + DIGITS[middle]
        digits.append(DIGITS[least])
        # From the first place where they differ, only `low` bounds what follows.
        bounded = bounded and least == most
        place += 1


def _head(rank: str) -> int:
    value = 0
    for digit in rank[:HEAD].ljust(HEAD, DIGITS[0]):
        value = value * BASE + DIGITS.index(digit)
    return value


def _spell(value: int) -> str:
    if not 0 < value < BASE**HEAD:
        raise RanksExhausted
    digits = ""
    for _ in range(HEAD):
        value, digit = divmod(value, BASE)
        digits = DIGITS[digit] + digits
    return digits.rstrip(DIGITS[0])
