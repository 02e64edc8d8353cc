"""Files of a chat message: pictures and PDF documents as data, text as text."""

from __future__ import annotations

import base64
import mimetypes
from pathlib import Path
from typing import Any, Final

from fairlead.cli.failure import CommandFailed

_MAX_BYTES: Final = 20 * 2**20
_PICTURES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
_DOCUMENT: Final = "application/pdf"


def attachment(path: Path) -> dict[str, Any]:
    """A part of a message's content, as OpenAI's chat completions have it. Raises `CommandFailed`."""
    content = _read(path)
    kind = mimetypes.guess_type(path.name)[0]
    if kind in _PICTURES:
        return {"type": "image_url", "image_url": {"url": _data_address(kind, content)}}
    if kind == _DOCUMENT:
        file = {"filename": path.name, "file_data": _data_address(kind, content)}
        return {"type": "file", "file": file}
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise CommandFailed(
            f"{path} is neither text nor a picture (PNG, JPEG, GIF, WebP) nor a PDF document."
        ) from None
    return {"type": "text", "text": f"File {path.name}:\n\n{text}"}


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise CommandFailed(f"{path} cannot be read ({error.strerror}).") from None
    if len(content) > _MAX_BYTES:
        raise CommandFailed(
            f"{path} is larger than {_MAX_BYTES // 2**20} MiB: send a smaller file."
        )
    return content


def _data_address(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
