"""A configuration file in its own format: what it says, and its text after changes.

Every edit is proved before it counts: the new text is parsed again, and says what the old one said with the changes
and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, Protocol

from fairlead.coding_tools.formats.change import (
    Change,
    UneditableFile,
    changed_document,
    name_of,
    value_at,
)
from fairlead.coding_tools.formats.env_text import EnvText
from fairlead.coding_tools.formats.json_text import JsonText
from fairlead.coding_tools.formats.toml_text import TomlText
from fairlead.coding_tools.formats.yaml_text import YamlText

Format = Literal["json", "toml", "yaml", "env"]

MAX_BYTES: Final = 1_048_576
"""A larger file is no configuration that somebody writes."""


class _Text(Protocol):
    value: Any

    def edited(self, change: Change) -> str: ...


_READERS: Final[dict[Format, Callable[[str], _Text]]] = {
    "json": JsonText,
    "toml": TomlText,
    "yaml": YamlText,
    "env": EnvText,
}


def parse(kind: Format, content: bytes) -> Any:
    """The content of the file, as mappings, lists and scalars. Raises `UneditableFile`."""
    return _read(kind, _decoded(content)).value


def edit(kind: Format, content: bytes, changes: Sequence[Change]) -> bytes:
    """The file after the changes, the rest byte for byte. Raises `UneditableFile` where the layout cannot take one."""
    text = _decoded(content)
    meant = changed_document(_read(kind, text).value, changes)
    for change in changes:
        document = _read(kind, text)
        if value_at(document.value, change.doc_path) == change.value:
            continue
        try:
            text = document.edited(change)
            after = _read(kind, text).value
        except UneditableFile as error:
            raise UneditableFile(f"{name_of(change.doc_path)} cannot be set: {error}") from None
        if after != changed_document(document.value, [change]):
            raise UneditableFile(
                f"{name_of(change.doc_path)} cannot be set without changing something else: write it by hand."
            )
    if _read(kind, text).value != meant:
        raise UneditableFile("the changes contradict each other.")
    return text.encode()


def _read(kind: Format, text: str) -> _Text:
    return _READERS[kind](text)


def _decoded(content: bytes) -> str:
    if len(content) > MAX_BYTES:
        raise UneditableFile(f"it is larger than {MAX_BYTES} bytes.")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise UneditableFile("it is not UTF-8.") from None
