"""A change to a configuration document: one member set to a value, or removed."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

Step = str | dict[str, str]
"""A member's name in a mapping, or the one field by whose value an entry of a list is found."""
Place = tuple[Step, ...]


class _Absent:
    """The value of a member that is not there."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class Change:
    """`value` is the new value at `place`: strings, numbers, booleans, lists and mappings, or `ABSENT`."""

    place: Place
    value: Any


class UneditableFile(ValueError):
    """A file that cannot be read or edited safely; the text says why, and is for the user."""


def entry_index(entries: Sequence[Any], step: dict[str, str]) -> int | None:
    """The position of the list entry with this field."""
    ((name, value),) = step.items()
    for at, entry in enumerate(entries):
        if isinstance(entry, dict) and entry.get(name) == value:
            return at
    return None


def value_at(document: Any, place: Place) -> Any:
    """The value at a place of a parsed document, or `ABSENT`."""
    found = document
    for step in place:
        if isinstance(step, str):
            if not isinstance(found, dict) or step not in found:
                return ABSENT
            found = found[step]
        else:
            at = entry_index(found, step) if isinstance(found, list) else None
            if at is None:
                return ABSENT
            found = found[at]
    return found


def deepest_existing(document: Any, place: Place) -> int:
    """How many steps of the place the document has."""
    known = 0
    while known < len(place) and value_at(document, place[: known + 1]) is not ABSENT:
        known += 1
    return known


def wrapped(place: Place, value: Any) -> Any:
    """The value within the mappings and lists that lead to it."""
    for step in reversed(place):
        value = {step: value} if isinstance(step, str) else [value]
    return value


def changed_document(document: Any, changes: Sequence[Change]) -> Any:
    """The parsed document after the changes; mappings and lists on the way are made. An empty one is `{}`, whether
    a mapping or a list is to be written into it.
    """
    after = copy.deepcopy(document)
    for change in changes:
        if change.value is ABSENT:
            _remove(after, change.place)
            continue
        if after == {} and not isinstance(change.place[0], str):
            after = []
        _set(after, change.place, copy.deepcopy(change.value))
    return {} if after == [] else after


def _set(document: Any, place: Place, value: Any) -> None:
    known = min(deepest_existing(document, place), len(place) - 1)
    owner, step = value_at(document, place[:known]), place[known]
    rest = wrapped(place[known + 1 :], value)
    check_owner(owner, step, place[:known])
    if isinstance(step, str):
        owner[step] = rest
    elif (at := entry_index(owner, step)) is None:
        owner.append(rest)
    else:
        owner[at] = rest


def check_owner(owner: Any, step: Step, place: Place) -> None:
    """Raises `UneditableFile` where the document has another kind of value than the change needs."""
    wanted: type = dict if isinstance(step, str) else list
    if not isinstance(owner, wanted):
        kind = "a mapping" if wanted is dict else "a list"
        raise UneditableFile(f"{name_of(place)} is not {kind}: correct it, or move it away.")


def name_of(place: Place) -> str:
    """A place for people, such as `provider.fairlead`."""
    steps = (step if isinstance(step, str) else next(iter(step.values())) for step in place)
    return ".".join(steps) or "the document"


def _remove(document: Any, place: Place) -> None:
    owner, step = value_at(document, place[:-1]), place[-1]
    if isinstance(step, str):
        if isinstance(owner, dict):
            owner.pop(step, None)
    elif isinstance(owner, list) and (at := entry_index(owner, step)) is not None:
        del owner[at]


def inverse(before: Any, after: Any, changes: Sequence[Change]) -> list[Change]:
    """The changes that take `changes` back in the present document `after`: a member that still has the value
    that was set becomes what it was in `before`. Mappings and lists that were made for a member go with it when
    they are empty.
    """
    taken_back: list[Change] = []
    present = copy.deepcopy(after)
    for change in reversed(changes):
        now, was = value_at(present, change.place), value_at(before, change.place)
        if now is ABSENT or now != change.value:
            continue
        step = Change(change.place, was)
        if was is ABSENT:
            step = Change(_emptied(before, present, change.place), ABSENT)
        taken_back.append(step)
        present = changed_document(present, [step])
    return taken_back


def _emptied(before: Any, present: Any, place: Place) -> Place:
    """The place, or the outermost of those that lead to it which hold nothing else and were not there before."""
    while len(place) > 1:
        owner = value_at(present, place[:-1])
        if value_at(before, place[:-1]) is not ABSENT or len(owner) > 1:
            break
        place = place[:-1]
    return place
