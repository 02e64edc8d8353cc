"""YAML, edited as text.

The parser gives the position of each value; a member is added after the last one of its mapping, an entry after
the last one of its list. Removing it again restores every byte. Values are written as JSON, which is YAML.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import yaml

from fairlead.coding_tools.formats.change import (
    ABSENT,
    Change,
    DocPath,
    Step,
    UneditableFile,
    check_owner,
    wrapped,
)

_MOST_ALIASES: Final = 20
"""Each may double what the document unfolds to."""
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_WORDS: Final = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}


class YamlText:
    """A parsed file. Raises `UneditableFile` for what is no single document of plain YAML."""

    def __init__(self, text: str) -> None:
        self._text = text
        try:
            aliases = sum(isinstance(each, yaml.AliasEvent) for each in yaml.parse(text))
            if aliases > _MOST_ALIASES:
                raise UneditableFile(f"it has more than {_MOST_ALIASES} aliases.")
            self._root = yaml.compose(text, yaml.SafeLoader)
            value = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            if isinstance(error, UneditableFile):
                raise
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UneditableFile(f"it is no YAML that can be edited: {first}.") from None
        self.value: Any = {} if value is None or value == [] else value

    def edited(self, change: Change) -> str:
        """The text after one change."""
        node, known = self._root, 0
        while node is not None and known < len(change.doc_path):
            child = _child(node, change.doc_path[known])
            if child is None:
                break
            known += 1
            if known == len(change.doc_path):
                return self._changed(node, *child, change.value)
            node = child[1]
        if change.value is ABSENT:
            return self._text
        return self._added(node, change.doc_path[known:], change.value, change.doc_path[:known])

    def _changed(self, owner: yaml.Node, first: yaml.Node, node: yaml.Node, value: Any) -> str:
        text = self._text
        if owner.flow_style:
            raise UneditableFile(f"line {first.start_mark.line + 1} holds a mapping in one line.")
        is_line = isinstance(node, yaml.ScalarNode) and node.style not in ("|", ">")
        if is_line and value is not ABSENT and not isinstance(value, dict | list):
            start, end = node.start_mark.index, node.end_mark.index
            lead = "" if start == 0 or text[start - 1].isspace() else " "
            return text[:start] + lead + _scalar(value) + text[end:]
        start = text.rfind("\n", 0, first.start_mark.index) + 1
        end = self._line_end(_content_end(node, text))
        if value is not ABSENT:
            indent = first.start_mark.column
            if isinstance(owner, yaml.MappingNode):
                lines = _lines({str(first.value): value}, indent)
                return text[:start] + lines + text[end:]
            dash = text[start : first.start_mark.index]
            lines = _lines([value], len(dash) - len(dash.lstrip()))
            return text[:start] + lines + text[end:]
        if not text[:end].endswith("\n") and start:
            start -= 1
        return text[:start] + text[end:]

    def _added(self, owner: yaml.Node | None, doc_path: DocPath, value: Any, above: DocPath) -> str:
        content = (
            {doc_path[0]: wrapped(doc_path[1:], value)} if isinstance(doc_path[0], str) else None
        )
        new: Any = [wrapped(doc_path[1:], value)] if content is None else content
        if owner is None:
            return self._with_lines(len(self._text), _lines(new, 0))
        text = self._text
        check_owner(
            {} if isinstance(owner, yaml.MappingNode) else _list_or_none(owner), doc_path[0], above
        )
        if owner.flow_style:
            closing = owner.end_mark.index - 1
            comma = ", " if owner.value else ""
            end = len(text[:closing].rstrip(" \t"))
            written = json.dumps(new, ensure_ascii=False)[1:-1]
            return text[:end] + comma + written + text[end:]
        last = owner.value[-1]
        last_value = last[1] if isinstance(last, tuple) else last
        column = owner.start_mark.column
        return self._with_lines(self._line_end(_content_end(last_value, text)), _lines(new, column))

    def _with_lines(self, at: int, lines: str) -> str:
        text = self._text
        if at and text[at - 1] != "\n":
            return text[:at] + "\n" + lines.removesuffix("\n") + text[at:]
        return text[:at] + lines + text[at:]

    def _line_end(self, at: int) -> int:
        """The position after the line on which a value ends."""
        if at and self._text[at - 1] == "\n":
            return at
        end = self._text.find("\n", at)
        return len(self._text) if end == -1 else end + 1


def _list_or_none(node: yaml.Node) -> list[Any] | None:
    return [] if isinstance(node, yaml.SequenceNode) else None


def _child(node: yaml.Node, step: Step) -> tuple[yaml.Node, yaml.Node] | None:
    """The member's name and value, or the entry twice."""
    if isinstance(step, str):
        if isinstance(node, yaml.MappingNode):
            for name, value in node.value:
                if name.value == step:
                    return name, value
        return None
    ((field, wanted),) = step.items()
    for entry in node.value if isinstance(node, yaml.SequenceNode) else []:
        found = _child(entry, field)
        if found is not None and found[1].value == wanted:
            return entry, entry
    return None


def _content_end(node: yaml.Node, text: str) -> int:
    """The position of the last character of a value, without the comments and blank lines that follow it."""
    while not isinstance(node, yaml.ScalarNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    end: int = node.end_mark.index
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
        return len(text[:end].rstrip("\n ")) + 1 if text[:end].endswith(("\n", " ")) else end
    return end


def _lines(value: Any, indent: int) -> str:
    """A mapping or list in block style, one scalar a line."""
    blank = " " * indent
    if isinstance(value, dict):
        return "".join(
            f"{blank}{_name(name)}:{_rest(each, indent)}" for name, each in value.items()
        )
    lines = []
    for each in value:
        if isinstance(each, dict) and each:
            members = _lines(each, indent + 2)
            lines.append(f"{blank}- {members[indent + 2 :]}")
        else:
            lines.append(f"{blank}- {_scalar(each)}\n")
    return "".join(lines)


def _rest(value: Any, indent: int) -> str:
    if isinstance(value, dict | list) and value:
        return "\n" + _lines(value, indent + 2)
    return f" {_scalar(value)}\n"


def _name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) and name.lower() not in _WORDS else _scalar(name)


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
