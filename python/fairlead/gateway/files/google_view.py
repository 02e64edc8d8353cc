"""Files as Google's API has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Depends, Header

from fairlead.gateway.files.anthropic_view import media_type
from fairlead.gateway.files.table import StoredFile
from fairlead.moment import iso, moment_of


async def _is_google(
    client: Annotated[
        str | None, Header(alias="x-goog-api-client", include_in_schema=False)
    ] = None,
) -> bool:
    return client is not None


IsGoogle = Annotated[bool, Depends(_is_google)]
"""Whether the caller is a client of Google's, whose version 1 has addresses that are OpenAI's too."""


def google_file(file: StoredFile, base: str) -> dict[str, Any]:
    """The file's metadata. `base` is the gateway's address for this caller; requests name a file by its `uri`."""
    created = iso(moment_of(file.created_at_ms))
    shown = {
        "name": f"files/{file.id}",
        "displayName": file.file_name,
        "mimeType": media_type(file),
        # Numbers of 64 bits are texts in Google's JSON.
        "sizeBytes": str(file.bytes),
        "createTime": created,
        "updateTime": created,
        "uri": f"{base}/v1beta/files/{file.id}",
        "downloadUri": f"{base}/v1beta/files/{file.id}:download?alt=media",
        "state": "ACTIVE",
        "source": "UPLOADED",
    }
    if file.expires_at_ms is not None:
        shown["expirationTime"] = iso(moment_of(file.expires_at_ms))
    return shown


def google_files(files: Sequence[StoredFile], base: str, *, has_more: bool) -> dict[str, Any]:
    """A page of files."""
    shown: dict[str, Any] = {"files": [google_file(file, base) for file in files]}
    return shown | ({"nextPageToken": files[-1].id} if has_more else {})
