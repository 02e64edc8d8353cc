"""A change to a configuration document: one member set to a value, or removed."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

Step = str | dict[str, str]
"""A member's name in a mapping, or the one field by whose value an entry of a list is found."""
DocPath = tuple[Step, ...]


class _Absent:
    """The value of a member that is not there."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class Change:
    """`value` is the new value at `doc_path`: strings, numbers, booleans, lists and mappings, or `ABSENT`."""

    doc_path: DocPath
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


def value_at(document: Any, doc_path: DocPath) -> Any:
    """The value at a place of a parsed document, or `ABSENT`."""
    found = document
    for step in doc_path:
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


def deepest_existing(document: Any, doc_path: DocPath) -> int:
    """How many steps of the place the document has."""
    known = 0
    while known < len(doc_path) and value_at(document, doc_path[: known + 1]) is not ABSENT:
        known += 1
    return known


def wrapped(doc_path: DocPath, value: Any) -> Any:
    """The value within the mappings and lists that lead to it."""
    for step in reversed(doc_path):
        value = {step: value} if isinstance(step, str) else [value]
    return value


def changed_document(document: Any, changes: Sequence[Change]) -> Any:
    """The parsed document after the changes; mappings and lists on the way are made. An empty one is `{}`, whether
    a mapping or a list is to be written into it.
    """
    after = copy.deepcopy(document)
    for change in changes:
        if change.value is ABSENT:
            _remove(after, change.doc_path)
            continue
        if after == {} and not isinstance(change.doc_path[0], str):
            after = []
        _set(after, change.doc_path, copy.deepcopy(change.value))
    return {} if after == [] else after


def _set(document: Any, doc_path: DocPath, value: Any) -> None:
    known = min(deepest_existing(document, doc_path), len(doc_path) - 1)
    owner, step = value_at(document, doc_path[:known]), doc_path[known]
    rest = wrapped(doc_path[known + 1 :], value)
    check_owner(owner, step, doc_path[:known])
    if isinstance(step, str):
        owner[step] = rest
    elif (at := entry_index(owner, step)) is None:
        owner.append(rest)
    else:
        owner[at] = rest


def check_owner(owner: Any, step: Step, doc_path: DocPath) -> None:
    """Raises `UneditableFile` where the document has another kind of value than the change needs."""
    wanted: type = dict if isinstance(step, str) else list
    if not isinstance(owner, wanted):
        kind = "a mapping" if wanted is dict else "a list"
        raise UneditableFile(f"{name_of(doc_path)} is not {kind}: correct it, or move it away.")


def name_of(doc_path: DocPath) -> str:
    """A place for people, such as `provider.fairlead`."""
    steps = (step if isinstance(step, str) else next(iter(step.values())) for step in doc_path)
    return ".".join(steps) or "the document"


def _remove(document: Any, doc_path: DocPath) -> None:
    owner, step = value_at(document, doc_path[:-1]), doc_path[-1]
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
        now, was = value_at(present, change.doc_path), value_at(before, change.doc_path)
        if now is ABSENT or now != change.value:
            continue
        step = Change(change.doc_path, was)
        if was is ABSENT:
            step = Change(_emptied(before, present, change.doc_path), ABSENT)
        taken_back.append(step)
        present = changed_document(present, [step])
    return taken_back


def _emptied(before: Any, present: Any, doc_path: DocPath) -> DocPath:
    """The place, or the outermost of those that lead to it which hold nothing else and were not there before."""
    while len(doc_path) > 1:
        owner = value_at(present, doc_path[:-1])
        if value_at(before, doc_path[:-1]) is not ABSENT or len(owner) > 1:
            break
        doc_path = doc_path[:-1]
    return doc_path
