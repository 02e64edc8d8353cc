"""The owner of responses and conversations: the caller, by kind and id. An anonymous caller has them too."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from fairlead.calls.caller import caller_of


async def _owner(request: Request) -> str:
    principal = caller_of(request).principal
    return f"{principal.kind}:{principal.id or ''}"


OwnerDep = Annotated[str, Depends(_owner)]
"""The caller's kind and id, as the relay writes them."""
