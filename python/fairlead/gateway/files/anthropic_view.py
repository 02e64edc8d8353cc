"""Files as Anthropic's API has them."""

from __future__ import annotations

import mimetypes
from collections.abc import Sequence
from typing import Any, Final

from fairlead.errors import InvalidRequest
from fairlead.gateway.files.table import StoredFile
from fairlead.gateway.list_ends import list_ends
from fairlead.moment import iso, moment_of

UNKNOWN_TYPE: Final = "application/octet-stream"
_PAGE: Final = "page_"


def anthropic_file(file: StoredFile) -> dict[str, Any]:
    """The file's metadata. Every file can be downloaded from the gateway."""
    return {
        "id": file.id,
        "type": "file",
        "filename": file.file_name,
        "mime_type": media_type(file),
        "size_bytes": file.bytes,
        "created_at": iso(moment_of(file.created_at_ms)),
        "downloadable": True,
        "expires_at": None if file.expires_at_ms is None else iso(moment_of(file.expires_at_ms)),
    }


def anthropic_page(files: Sequence[StoredFile], *, has_more: bool) -> dict[str, Any]:
    """A list, with both ways to ask for the next page: `page`, or `after_id` and `before_id`."""
    return {
        "data": [anthropic_file(file) for file in files],
        "has_more": has_more,
        **list_ends([file.id for file in files]),
        "next_page": f"{_PAGE}{files[-1].id}" if files and has_more else None,
    }


def last_seen(page: str) -> str:
    """The id of the last file of the page before, from `next_page`; `InvalidRequest` for any other text."""
    if not page.startswith(_PAGE):
        raise InvalidRequest("page must be the next_page of the page before.", param="page")
    return page.removeprefix(_PAGE)


def media_type(file: StoredFile) -> str:
    """The media type that the file was uploaded with, or the one that its name tells."""
    known = file.mime_type
    if known is None or known == UNKNOWN_TYPE:
        known, _ = mimetypes.guess_type(file.file_name, strict=True)
    return known or UNKNOWN_TYPE
