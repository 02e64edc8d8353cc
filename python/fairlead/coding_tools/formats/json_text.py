"""JSON with comments and trailing commas, edited as text.

A member is added after the last one of its object and in the layout of that object: on a separate line if the
closing brace has one. Removing it again restores every byte.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead.coding_tools.formats.change import (
    ABSENT,
    Change,
    DocPath,
    Step,
    UneditableFile,
    check_owner,
    wrapped,
)

_DEEPEST: Final = 100
_TRIVIA: Final = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_BLANKS: Final = re.compile(r"\s*\Z")
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_ATOM: Final = re.compile(r"true|false|null|-?[0-9][0-9.eE+-]*")


@dataclass(slots=True)
class _Item:
    """An entry of an object or list: where it begins, its value, and where its comma is, if it has one."""

    start: int
    node: _Node
    name: str | None = None
    comma: int | None = None


@dataclass(slots=True)
class _Node:
    """A value: `text[start:end]`."""

    start: int
    end: int
    value: Any
    items: list[_Item] = field(default_factory=list)


class JsonText:
    """A parsed file. Raises `UneditableFile` for what is no JSON."""

    def __init__(self, text: str) -> None:
        self._text = text
        start = self._skip(1 if text.startswith("\ufeff") else 0)
        if start == len(text):
            # An empty file, or comments alone.
            self._text, start = f"{text}{{\n}}\n", len(text)
        self._root = self._node(start, 0)
        if self._skip(self._root.end) != len(self._text):
            raise self._unreadable(self._root.end)
        self.value: Any = self._root.value

    def edited(self, change: Change) -> str:
        """The text after one change."""
        node, known = self._root, 0
        while (
            known < len(change.doc_path)
            and (item := _find(node, change.doc_path[known])) is not None
        ):
            known += 1
            if known == len(change.doc_path):
                return self._changed(node, item, change.value)
            node = item.node
        if change.value is ABSENT:
            return self._text
        return self._added(node, change.doc_path[known:], change.value, change.doc_path[:known])

    def _changed(self, owner: _Node, item: _Item, value: Any) -> str:
        text = self._text
        if value is not ABSENT:
            rendered = _render(value, self._indent(item.start))
            return text[: item.node.start] + rendered + text[item.node.end :]
        start = len(text[: item.start].rstrip())
        end, at = item.node.end, owner.items.index(item)
        if item.comma is not None:
            return text[:start] + text[end : item.comma] + text[item.comma + 1 :]
        text = text[:start] + text[end:]
        before = owner.items[at - 1].comma if at else None
        return text if before is None else text[:before] + text[before + 1 :]

    def _added(self, owner: _Node, doc_path: DocPath, value: Any, above: DocPath) -> str:
        step = doc_path[0]
        check_owner(owner.value, step, above)
        text, closing = self._text, owner.end - 1
        blank = len(text[:closing].rstrip())
        is_spread = "\n" in text[blank:closing]
        indent = self._indent(closing) + "  "
        if owner.items and is_spread:
            indent = self._indent(owner.items[-1].start)
        rendered = _render(wrapped(doc_path[1:], value), indent)
        if isinstance(step, str):
            rendered = f"{json.dumps(step, ensure_ascii=False)}: {rendered}"
        lead = f"\n{indent}" if is_spread else (" " if owner.items else "")
        if not owner.items:
            return text[:blank] + lead + rendered + text[blank:]
        last = owner.items[-1]
        if last.comma is not None:
            return text[:blank] + lead + rendered + "," + text[blank:]
        end = last.node.end
        return text[:end] + "," + text[end:blank] + lead + rendered + text[blank:]

    def _indent(self, at: int) -> str:
        """The blanks at the beginning of the line of this position."""
        line = self._text[self._text.rfind("\n", 0, at) + 1 : at]
        return line[: len(line) - len(line.lstrip())]

    def _node(self, at: int, depth: int) -> _Node:
        text = self._text
        if depth > _DEEPEST:
            raise UneditableFile(f"it is nested more than {_DEEPEST} deep.")
        if text.startswith("{", at) or text.startswith("[", at):
            return self._composite(at, depth)
        found = _STRING.match(text, at) or _ATOM.match(text, at)
        if found is None:
            raise self._unreadable(at)
        try:
            value = json.loads(found[0])
        except ValueError:
            raise self._unreadable(at) from None
        return _Node(at, found.end(), value)

    def _composite(self, start: int, depth: int) -> _Node:
        text, is_object = self._text, self._text[start] == "{"
        closing = "}" if is_object else "]"
        items: list[_Item] = []
        at = self._skip(start + 1)
        while not text.startswith(closing, at):
            if items and items[-1].comma is None:
                raise self._unreadable(at)
            item_start, name = at, None
            if is_object:
                key = _STRING.match(text, at)
                colon = self._skip(key.end()) if key else at
                if key is None or not text.startswith(":", colon):
                    raise self._unreadable(at)
                name, at = json.loads(key[0]), self._skip(colon + 1)
            node = self._node(at, depth + 1)
            at = self._skip(node.end)
            comma = at if text.startswith(",", at) else None
            items.append(_Item(item_start, node, name, comma))
            at = at if comma is None else self._skip(at + 1)
        names = [item.name for item in items]
        if is_object and len(set(names)) != len(names):
            raise UneditableFile(f"line {text.count(chr(10), 0, start) + 1} has a name twice.")
        value = [item.node.value for item in items]
        document = dict(zip(names, value, strict=True)) if is_object else value
        return _Node(start, at + 1, document, items)

    def _skip(self, at: int) -> int:
        found = _TRIVIA.match(self._text, at)
        return found.end() if found else at

    def _unreadable(self, at: int) -> UneditableFile:
        return UneditableFile(f"line {self._text.count(chr(10), 0, at) + 1} is no valid JSON.")


def _find(node: _Node, step: Step) -> _Item | None:
    for item in node.items:
        if isinstance(step, str):
            if item.name == step:
                return item
        elif isinstance(item.node.value, dict) and step.items() <= item.node.value.items():
            return item
    return None


def _render(value: Any, indent: str) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False).replace("\n", f"\n{indent}")
