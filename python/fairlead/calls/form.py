"""A form with one file, as the relay read it.

The relay parses the form. It forwards the file as the body and the other fields in a header
(docs/explanation/contracts.md), so that no form is parsed twice.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Final

import orjson
from starlette.requests import Request

from fairlead.errors import Internal

FORM_HEADER: Final = "x-fairlead-form"
MIME_MAX_CHARS: Final = 255


@dataclass(frozen=True, slots=True)
class Form:
    """A form as the relay read it: its fields, and the name, type and size of its file."""

    fields: dict[str, str]
    name: str
    mime_type: str | None
    bytes: int


def read_form(request: Request) -> Form:
    """The form of an upload."""
    try:
        header = orjson.loads(base64.b64decode(request.headers[FORM_HEADER], validate=True))
        file = header["file"]
        content_type = file.get("content_type")
        mime_type = str(content_type)[:MIME_MAX_CHARS] if content_type else None
        return Form(header["fields"], str(file["name"] or ""), mime_type, int(file["bytes"]))
    except (KeyError, TypeError, ValueError, binascii.Error):
        raise Internal("Uploads must go through the relay.") from None
