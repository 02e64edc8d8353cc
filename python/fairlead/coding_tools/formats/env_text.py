"""Files of environment variables (`.env`), edited as text, by the rules of python-dotenv."""

from __future__ import annotations

import io
import re
from typing import Any

from dotenv.parser import Binding, parse_stream

from fairlead.coding_tools.formats.change import ABSENT, Change, UneditableFile

_BLANK_LINES = re.compile(r"(?:[ \t]*\r?\n)*")
_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+,=-]*")


class EnvText:
    """A parsed file. Raises `UneditableFile` for a line that is no assignment."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._bindings = list(parse_stream(io.StringIO(text)))
        broken = next((each for each in self._bindings if each.error), None)
        if broken is not None:
            raise UneditableFile(f"line {broken.original.line} is no assignment.")
        self.value: dict[str, Any] = {
            each.key: each.value for each in self._bindings if each.key is not None
        }

    def edited(self, change: Change) -> str:
        """The text after one change. The last assignment of a name is the one that counts."""
        (name,) = change.doc_path
        if not isinstance(name, str):
            raise UneditableFile("an .env file has no lists.")
        found = [each for each in self._bindings if each.key == name]
        if change.value is ABSENT:
            remaining = "".join(
                _blank_lines(each) if each.key == name else each.original.string
                for each in self._bindings
            )
            was_last = bool(found) and found[-1] is self._bindings[-1]
            is_open = was_last and not self._text.endswith("\n")
            return remaining.removesuffix("\n") if is_open else remaining
        if not found:
            return self._appended(f"{name}={_quoted(str(change.value))}")
        return "".join(
            _replaced(each, str(change.value)) if each is found[-1] else each.original.string
            for each in self._bindings
        )

    def _appended(self, line: str) -> str:
        if not self._text or self._text.endswith("\n"):
            return f"{self._text}{line}\n"
        return f"{self._text}\n{line}"


def _blank_lines(binding: Binding) -> str:
    """The blank lines before an assignment, which the parser counts to it."""
    found = _BLANK_LINES.match(binding.original.string)
    return found[0] if found else ""


def _replaced(binding: Binding, value: str) -> str:
    line = binding.original.string
    head, _, rest = line.partition("=")
    lead = rest[: len(rest) - len(rest.lstrip(" \t"))]
    quoted = re.match(r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s#]*)""", rest, re.DOTALL)
    tail = rest[quoted.end() :] if quoted else "\n"
    return f"{head}={lead}{_quoted(value)}{tail}"


def _quoted(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
