"""TOML, edited as text.

A member is added after the last one of its table, a table at the end of the file. Removing it again restores
every byte. The file is then parsed with the standard library and compared with the intended content
(`document.py`). A layout that cannot hold the change, such as a table written in one line, is refused and not
broken.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fairlead.coding_tools.formats.change import (
    ABSENT,
    Change,
    DocPath,
    UneditableFile,
    deepest_existing,
    entry_index,
    value_at,
    wrapped,
)

Address = tuple[str | int, ...]
"""A place with the numbers of entries in lists."""

_BLANK_OR_COMMENT = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_TO_LINE_END = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\r?\n)?")
_KEY = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+|[ \t.])+""")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|' + r"'''.*?'{3,5}" + r'|"(?:[^"\\\n]|\\.)*"|' + r"'[^'\n]*'",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Statement:
    """A header or an assignment with its lines, `text[start:end]`; an assignment's value is `text[value:value_end]`."""

    address: Address
    start: int
    end: int
    value: int | None = None
    value_end: int = 0


class TomlText:
    """A parsed file. Raises `UneditableFile` for what is no TOML."""

    def __init__(self, text: str) -> None:
        self._text = text
        try:
            self.value: dict[str, Any] = tomllib.loads(text.replace("\r\n", "\n"))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise UneditableFile(f"it is no valid TOML: {error}.") from None
        self._statements = list(_statements(text))

    def edited(self, change: Change) -> str:
        """The text after one change."""
        doc_path, value = change.doc_path, change.value
        if deepest_existing(self.value, doc_path) == len(doc_path):
            address = self._address(doc_path)
            if value is ABSENT:
                return self._without(address)
            exact = next((each for each in self._assignments() if each.address == address), None)
            if exact is not None and exact.value is not None:
                text = self._text
                return text[: exact.value] + _inline(value) + text[exact.value_end :]
            return TomlText(self._without(address)).edited(change)
        return self._text if value is ABSENT else self._added(doc_path, value)

    def _assignments(self) -> Iterator[_Statement]:
        return (each for each in self._statements if each.value is not None)

    def _address(self, doc_path: DocPath) -> Address:
        address: list[str | int] = []
        for at, step in enumerate(doc_path):
            if isinstance(step, str):
                address.append(step)
            else:
                address.append(entry_index(value_at(self.value, doc_path[:at]), step) or 0)
        return tuple(address)

    def _added(self, doc_path: DocPath, value: Any) -> str:
        step = doc_path[-1]
        if isinstance(step, dict):
            return self._appended(f"[[{_dotted(doc_path[:-1])}]]", value)
        if isinstance(value, dict):
            return self._appended(f"[{_dotted(doc_path)}]", value)
        line = f"{_key(step)} = {_inline(value)}"
        if len(doc_path) == 1:
            before_tables = [each for each in self._assignments() if len(each.address) == 1]
            if not before_tables:
                start = 1 if self._text.startswith("\ufeff") else 0
                return f"{self._text[:start]}{line}\n{self._text[start:]}"
            return self._line_after(before_tables[-1], line)
        known = deepest_existing(self.value, doc_path[:-1])
        if known == len(doc_path) - 1:
            address = self._address(doc_path[:-1])
            own = [
                each
                for each in self._statements
                if (each.address if each.value is None else each.address[:-1]) == address
            ]
            if own:
                return self._line_after(own[-1], line)
        return self._appended(f"[{_dotted(doc_path[:-1])}]", wrapped(doc_path[-1:], value))

    def _line_after(self, statement: _Statement, line: str) -> str:
        text, at = self._text, statement.end
        if not text[:at].endswith("\n"):
            return f"{text[:at]}\n{line}{text[at:]}"
        return f"{text[:at]}{line}\n{text[at:]}"

    def _appended(self, header: str, members: dict[str, Any]) -> str:
        lines = [header, *(f"{_key(name)} = {_inline(value)}" for name, value in members.items())]
        section, text = "\n".join(lines), self._text
        if not text:
            return f"{section}\n"
        return f"{text}\n{section}\n" if text.endswith("\n") else f"{text}\n\n{section}"

    def _without(self, address: Address) -> str:
        """The text without a member, or without a table and all that is in it."""
        owned = [each for each in self._statements if each.address[: len(address)] == address]
        text = self._text
        for group in reversed(_neighbours(self._statements, owned)):
            start, end = group[0].start, group[-1].end
            is_table = group[0].value is None
            if is_table and text[:start].endswith("\n\n"):
                start -= 1
            if not text[:end].endswith("\n") and text[:start].endswith("\n"):
                start -= 1
            text = text[:start] + text[end:]
        return text


def _neighbours(statements: list[_Statement], owned: list[_Statement]) -> list[list[_Statement]]:
    """The statements in groups that follow each other; each table begins a group."""
    groups: list[list[_Statement]] = []
    for each in owned:
        at = statements.index(each)
        if groups and each.value is not None and groups[-1][-1] is statements[at - 1]:
            groups[-1].append(each)
        else:
            groups.append([each])
    return groups


def _statements(text: str) -> Iterator[_Statement]:
    """Every header and assignment of a valid document, in order."""
    at = 1 if text.startswith("\ufeff") else 0
    table: Address = ()
    counts: dict[Address, int] = {}
    while True:
        found = _BLANK_OR_COMMENT.match(text, at)
        at = found.end() if found else at
        if at >= len(text):
            return
        start = text.rfind("\n", 0, at) + 1
        if text[at] == "[":
            is_entry = text.startswith("[[", at)
            key = _KEY.match(text, at + (2 if is_entry else 1))
            if key is None:
                raise UneditableFile("it has a table whose name cannot be read.")
            table = _header_address(_names(key[0]), counts, is_entry=is_entry)
            end = _line_end(text, text.index("]", key.end()) + (2 if is_entry else 1))
            yield _Statement(table, start, end)
        else:
            key = _KEY.match(text, at)
            if key is None:
                raise UneditableFile("it has a name that cannot be read.")
            value = text.index("=", key.end()) + 1
            value += len(text[value:]) - len(text[value:].lstrip(" \t"))
            value_end = _value_end(text, value)
            end = _line_end(text, value_end)
            yield _Statement((*table, *_names(key[0])), start, end, value, value_end)
        at = end


def _header_address(
    names: tuple[str, ...], counts: dict[Address, int], *, is_entry: bool
) -> Address:
    """A header's table; a name that is a list of tables means its newest entry."""
    address: Address = ()
    for number, name in enumerate(names):
        address = (*address, name)
        is_last = number == len(names) - 1
        if is_last and is_entry:
            counts[address] = counts.get(address, -1) + 1
        if address in counts:
            address = (*address, counts[address])
    return address


def _names(key: str) -> tuple[str, ...]:
    """The names of a dotted key."""
    document: Any = tomllib.loads(f"{key.strip()} = 0")
    names: list[str] = []
    while isinstance(document, dict):
        ((name, document),) = document.items()
        names.append(name)
    return tuple(names)


def _value_end(text: str, at: int) -> int:
    if text[at] not in "[{":
        if found := _STRING.match(text, at):
            return found.end()
        end = re.compile(r"[^#\r\n]*").match(text, at)
        return at + len(end[0].rstrip()) if end else at
    depth = 0
    while True:
        if found := _STRING.match(text, at):
            at = found.end()
            continue
        if text[at] == "#":
            at = text.find("\n", at)
        depth += (text[at] in "[{") - (text[at] in "]}")
        at += 1
        if depth == 0:
            return at


def _line_end(text: str, at: int) -> int:
    found = _TO_LINE_END.match(text, at)
    return found.end() if found else at


def _dotted(doc_path: DocPath) -> str:
    if not all(isinstance(step, str) for step in doc_path):
        raise UneditableFile("a table within an entry of a list cannot be added.")
    return ".".join(_key(str(step)) for step in doc_path)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _inline(name)


def _inline(value: Any) -> str:
    match value:
        case dict():
            members = (f"{_key(name)} = {_inline(each)}" for name, each in value.items())
            return "{ " + ", ".join(members) + " }"
        case list():
            return "[" + ", ".join(_inline(each) for each in value) + "]"
        case str():
            # JSON's escapes are TOML's, but for the one that JSON leaves as it is.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
        case _:
            return json.dumps(value)
