"""Only the owner replaces the state by a file: whoever wrote the file decides who is the owner afterwards."""

from __future__ import annotations

from fairlead.calls.caller import Caller
from fairlead.errors import Internal
from fairlead.store.services import Services


async def check_owner(services: Services, caller: Caller) -> None:
    """`Forbidden` for an admin, who may not change the owner's account."""
    if services.operator is None:
        raise Internal("The check of operators is not available.")
    await services.operator.check_owner(caller)
