"""Files that a page offers for download, safe to open in a spreadsheet."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

# A cell that a spreadsheet would take for a formula.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def attachment(name: str, content: str | bytes, media: str) -> Response:
    """A file that the browser stores under this name."""
    headers = {
        "content-disposition": f'attachment; filename="{name}"',
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
    }
    return Response(content, 200, headers, media)


def inert(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text
