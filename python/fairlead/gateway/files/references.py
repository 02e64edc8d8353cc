"""The places in which a request names a file, in each dialect, and the form in which its content replaces the
name.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from fairlead.errors import InvalidRequest

IMAGES: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")
# At the end of the URL; the part before it is some address of the gateway.
_GOOGLE_URI = re.compile(r"(?:^|/)files/(?P<id>file[-_][A-Za-z0-9]{1,60})$")

Filler = Callable[[str, str, bytes], None]


@dataclass(frozen=True, slots=True)
class Reference:
    """A place of a request that names a file; `fill` writes the name, media type and content of the file there."""

    file_id: str
    fill: Filler


def references(dialect: str, body: dict[str, Any]) -> Iterator[Reference]:
    """The references of a request, in no order."""
    find = _FINDERS[dialect]
    waiting: list[Any] = [body]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, dict):
            if (reference := find(value)) is not None:
                yield reference
            else:
                waiting.extend(value.values())


def _of_anthropic(block: dict[str, Any]) -> Reference | None:
    """`{"type": "image" or "document", "source": {"type": "file", "file_id"}}`."""
    source = block.get("source")
    if block.get("type") not in ("image", "document") or not isinstance(source, dict):
        return None
    file_id = source.get("file_id")
    if source.get("type") != "file" or not isinstance(file_id, str):
        return None

    def fill(_name: str, mime_type: str, content: bytes) -> None:
        kind = _plain(mime_type)
        if block["type"] == "image" and kind not in IMAGES:
            raise InvalidRequest(
                f"The file {file_id} is `{kind}`: an image must be one of {', '.join(IMAGES)}."
            )
        if block["type"] == "document" and (kind.startswith("text/") or kind in _TEXTS):
            block["source"] = {"type": "text", "media_type": "text/plain", "data": _text(content)}
        else:
            block["source"] = {"type": "base64", "media_type": kind, "data": _base64(content)}

    return Reference(file_id, fill)


def _of_responses(part: dict[str, Any]) -> Reference | None:
    """`{"type": "input_file" or "input_image", "file_id"}`."""
    file_id = part.get("file_id")
    kind = part.get("type")
    if kind not in ("input_file", "input_image") or not isinstance(file_id, str):
        return None

    def fill(name: str, mime_type: str, content: bytes) -> None:
        del part["file_id"]
        if kind == "input_image":
            part["image_url"] = _data_url(mime_type, content)
        else:
            part.setdefault("filename", name)
            part["file_data"] = _data_url(mime_type, content)

    return Reference(file_id, fill)


def _of_chat(part: dict[str, Any]) -> Reference | None:
    """`{"type": "file", "file": {"file_id"}}`."""
    file = part.get("file")
    if part.get("type") != "file" or not isinstance(file, dict):
        return None
    file_id = file.get("file_id")
    if not isinstance(file_id, str):
        return None

    def fill(name: str, mime_type: str, content: bytes) -> None:
        part["file"] = {"filename": name, "file_data": _data_url(mime_type, content)}

    return Reference(file_id, fill)


def _of_gemini(part: dict[str, Any]) -> Reference | None:
    """`{"fileData": {"fileUri": ".../files/<id>", "mimeType"}}`."""
    name = next((each for each in ("fileData", "file_data") if each in part), None)
    data = part.get(name) if name is not None else None
    if name is None or not isinstance(data, dict):
        return None
    uri = data.get("fileUri", data.get("file_uri"))
    found = _GOOGLE_URI.search(uri) if isinstance(uri, str) else None
    if found is None:
        return None
    own_type = data.get("mimeType", data.get("mime_type"))

    def fill(_name: str, mime_type: str, content: bytes) -> None:
        del part[name]
        kind = own_type if isinstance(own_type, str) and own_type else _plain(mime_type)
        part["inlineData"] = {"mimeType": kind, "data": _base64(content)}

    return Reference(found["id"], fill)


_TEXTS: Final = frozenset({"application/json", "application/xml", "application/x-yaml"})
_FINDERS: Final[dict[str, Callable[[dict[str, Any]], Reference | None]]] = {
    "anthropic": _of_anthropic,
    "responses": _of_responses,
    "openai": _of_chat,
    "gemini": _of_gemini,
}


def _plain(mime_type: str) -> str:
    return mime_type.partition(";")[0].strip().lower()


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _data_url(mime_type: str, content: bytes) -> str:
    return f"data:{_plain(mime_type)};base64,{_base64(content)}"


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise InvalidRequest("A text file must be UTF-8.") from None
