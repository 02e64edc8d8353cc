"""The values written into a tool's files for one gateway: the entry's texts with address, key and models put in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fairlead.coding_tools.entry import Member, ToolFile
from fairlead.coding_tools.formats.change import Change, DocPath, Step

MODEL_NAME: Final = re.compile(r"""[^\x00-\x20"'`\\%$\x7f]{1,300}""")
"""Names that are valid in every format, also in a JSON text within an environment variable."""

_FIELD: Final = re.compile(r"%(url|key|model|each)%")


@dataclass(frozen=True, slots=True)
class GatewayTarget:
    """The gateway that a tool is pointed at; `models` are all that may be listed, the chosen `model` among them."""

    url: str
    """Without `/v1` and without a slash at its end."""
    key: str
    model: str
    models: tuple[str, ...]


def changes_of(file: ToolFile, target: GatewayTarget) -> list[Change]:
    """The members to set in one file."""
    return [each for member in file.members for each in _changes(member, target)]


def endpoint_of(file: ToolFile, target: GatewayTarget) -> DocPath | None:
    """The position of the gateway's address in the file."""
    return None if file.endpoint is None else _doc_path(file.endpoint, _values(target))


def old_paths(file: ToolFile, target: GatewayTarget) -> list[DocPath]:
    """Members from an older way of configuring the tool."""
    return [_doc_path(place, _values(target)) for place in file.old_members]


def filled_texts(texts: Mapping[str, str], target: GatewayTarget) -> dict[str, str]:
    """Environment variables."""
    return {name: _text(text, _values(target)) for name, text in texts.items()}


def filled_arguments(texts: Sequence[str], target: GatewayTarget) -> list[str]:
    """Arguments of a command."""
    return [_text(text, _values(target)) for text in texts]


def _changes(member: Member, target: GatewayTarget) -> list[Change]:
    names = target.models if member.for_each_model else (target.model,)
    return [
        Change(_doc_path(member.at, values), _filled(member.value, values))
        for values in ({**_values(target), "each": name} for name in names)
    ]


def _values(target: GatewayTarget) -> dict[str, str]:
    return {"url": target.url, "key": target.key, "model": target.model}


def _doc_path(steps: Sequence[Step], values: Mapping[str, str]) -> DocPath:
    return tuple(_filled(step, values) for step in steps)


def _filled(value: Any, values: Mapping[str, str]) -> Any:
    match value:
        case str():
            return _text(value, values)
        case list():
            return [_filled(each, values) for each in value]
        case dict():
            return {_text(name, values): _filled(each, values) for name, each in value.items()}
        case _:
            return value


def _text(text: str, values: Mapping[str, str]) -> str:
    return _FIELD.sub(lambda found: values[found[1]], text)
