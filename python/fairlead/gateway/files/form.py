"""The fields of an upload, as the relay read them.

The relay reads the form and hands over its one file as the body and its fields in a header
(docs/explanation/contracts.md): nobody reads a form twice.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Final, Literal, get_args

import orjson
from starlette.requests import Request

from fairlead.errors import Internal, InvalidRequest

FORM_HEADER: Final = "x-fairlead-form"
Purpose = Literal["assistants", "batch", "fine-tune", "vision", "user_data", "evals"]
PURPOSES: Final[tuple[str, ...]] = get_args(Purpose)
EXPIRES_MIN_S: Final = 3600
EXPIRES_MAX_S: Final = 30 * 86_400
# A batch's input is not needed for longer.
BATCH_EXPIRES_S: Final = 30 * 86_400

_KNOWN = {"purpose", "expires_after[anchor]", "expires_after[seconds]"}


@dataclass(frozen=True, slots=True)
class Upload:
    """The fields of an upload; `bytes` is the size of the content that follows."""

    file_name: str
    bytes: int
    purpose: str
    expires_after_s: int | None


def read_upload(request: Request) -> Upload:
    """`InvalidRequest` names the field that is wrong."""
    try:
        header = orjson.loads(base64.b64decode(request.headers[FORM_HEADER], validate=True))
        fields: dict[str, str] = header["fields"]
        name, size = str(header["file"]["name"] or ""), int(header["file"]["bytes"])
    except (KeyError, TypeError, ValueError, binascii.Error):
        raise Internal("The upload did not come through the relay.") from None
    if unknown := fields.keys() - _KNOWN:
        field = min(unknown)
        raise InvalidRequest(
            f"{field[:64]} is not a field of this form: remove it or correct its name.",
            param=field[:64],
        )
    purpose = fields.get("purpose")
    if purpose not in PURPOSES:
        raise InvalidRequest(f"purpose must be one of {', '.join(PURPOSES)}.", param="purpose")
    if name in ("", ".", ".."):
        raise InvalidRequest("file must have a file name.", param="file")
    return Upload(name, size, purpose, _expires(fields, purpose))


def _expires(fields: dict[str, str], purpose: str) -> int | None:
    anchor, text = fields.get("expires_after[anchor]"), fields.get("expires_after[seconds]")
    if anchor is None and text is None:
        return BATCH_EXPIRES_S if purpose == "batch" else None
    if anchor != "created_at":
        raise InvalidRequest(
            "expires_after[anchor] must be `created_at`.", param="expires_after[anchor]"
        )
    is_number = text is not None and text.isascii() and text.isdigit() and len(text) < 12
    seconds = int(text or "0") if is_number else 0
    if not EXPIRES_MIN_S <= seconds <= EXPIRES_MAX_S:
        raise InvalidRequest(
            f"expires_after[seconds] must be a whole number from {EXPIRES_MIN_S} to {EXPIRES_MAX_S}.",
            param="expires_after[seconds]",
        )
    return seconds
