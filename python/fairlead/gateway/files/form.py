"""The fields of an upload to the files API."""

from __future__ import annotations

import mimetypes
from dataclasses import dataclass
from typing import Final, Literal, get_args

from starlette.requests import Request

from fairlead.calls.form import read_form
from fairlead.errors import InvalidRequest

Purpose = Literal["assistants", "batch", "fine-tune", "vision", "user_data", "evals"]
PURPOSES: Final[tuple[str, ...]] = get_args(Purpose)
EXPIRES_MIN_S: Final = 3600
EXPIRES_MAX_S: Final = 30 * 86_400
ANTHROPIC_EXPIRES_MAX_S: Final = 90 * 86_400
# A batch's input is not needed for longer.
BATCH_EXPIRES_S: Final = 30 * 86_400

_KNOWN_ANTHROPIC = {"expires_in_seconds"}
_KNOWN = {"purpose", "expires_after[anchor]", "expires_after[seconds]"}


@dataclass(frozen=True, slots=True)
class Upload:
    """The fields of an upload; `bytes` is the size of the content that follows."""

    file_name: str
    bytes: int
    purpose: str
    expires_after_s: int | None
    mime_type: str | None


def read_upload(request: Request) -> Upload:
    """`InvalidRequest` names the field that is wrong."""
    form = read_form(request)
    fields, name = form.fields, form.name
    _check_names(fields, _KNOWN)
    purpose = fields.get("purpose")
    if purpose not in PURPOSES:
        raise InvalidRequest(f"purpose must be one of {', '.join(PURPOSES)}.", param="purpose")
    if name in ("", ".", ".."):
        raise InvalidRequest("file must have a file name.", param="file")
    return Upload(name, form.bytes, purpose, _expires(fields, purpose), form.mime_type)


def read_anthropic_upload(request: Request) -> Upload:
    """An upload in Anthropic's API, which has no purpose. `InvalidRequest` names the field that is wrong."""
    form = read_form(request)
    _check_names(form.fields, _KNOWN_ANTHROPIC)
    name = form.name.replace("\\", "/").rsplit("/", 1)[-1]
    if name in ("", ".", ".."):
        name = f"unnamed{mimetypes.guess_extension(form.mime_type or '') or ''}"
    text = form.fields.get("expires_in_seconds")
    expires_s = (
        None if text is None else seconds(text, "expires_in_seconds", ANTHROPIC_EXPIRES_MAX_S)
    )
    return Upload(name, form.bytes, "user_data", expires_s, form.mime_type)


def _check_names(fields: dict[str, str], known: set[str]) -> None:
    if unknown := fields.keys() - known:
        field = min(unknown)
        raise InvalidRequest(
            f"{field[:64]} is not a field of this form: remove it or correct its name.",
            param=field[:64],
        )


def _expires(fields: dict[str, str], purpose: str) -> int | None:
    anchor, text = fields.get("expires_after[anchor]"), fields.get("expires_after[seconds]")
    if anchor is None and text is None:
        return BATCH_EXPIRES_S if purpose == "batch" else None
    if anchor != "created_at":
        raise InvalidRequest(
            "expires_after[anchor] must be `created_at`.", param="expires_after[anchor]"
        )
    return seconds(text or "", "expires_after[seconds]", EXPIRES_MAX_S)


def seconds(text: str, param: str, most: int) -> int:
    """A time to live. `InvalidRequest` names `param`."""
    is_number = text.isascii() and text.isdigit() and len(text) < 12
    number = int(text) if is_number else 0
    if not EXPIRES_MIN_S <= number <= most:
        raise InvalidRequest(
            f"{param} must be a whole number from {EXPIRES_MIN_S} to {most}.", param=param
        )
    return number
