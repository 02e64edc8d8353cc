"""The owner of files and batches: the calling key."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from fairlead.calls.caller import caller_of
from fairlead.errors import Unauthenticated


async def _owner(request: Request) -> str:
    principal = caller_of(request).principal
    if principal.kind != "key" or principal.id is None:
        raise Unauthenticated(
            "Files and batches belong to an API key: send `Authorization: Bearer sk-fl-...`."
        )
    return principal.id


OwnerDep = Annotated[str, Depends(_owner)]
"""The id of the calling key."""
