"""Identity services for other packages: confirming that an operator asks, and setting their
password.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import SecretStr
from starlette.requests import Request

from fairlead.calls.caller import Caller
from fairlead.errors import Forbidden
from fairlead.identity.sign_in import Attempt, SignIn
from fairlead.identity.users import find_owner
from fairlead.store.database import Transaction
from fairlead.store.services import Services


@dataclass(frozen=True, slots=True)
class SignedInOperator:
    """`fairlead.store.services.Operator`, over users and their passwords."""

    services: Services
    sign_in: SignIn

    async def confirm(
        self, request: Request, caller: Caller, current_password: SecretStr | None
    ) -> None:
        """Confirms that a person asks who knows their password (`Attempt.confirm`)."""
        await Attempt(self.services, self.sign_in, request, caller).confirm(current_password)

    async def new_password(
        self, request: Request, caller: Caller, password: SecretStr
    ) -> Transaction[None]:
        """The write that stores the caller's new password (`Attempt.new_password`)."""
        return await Attempt(self.services, self.sign_in, request, caller).new_password(password)

    async def check_owner(self, caller: Caller) -> None:
        """`Forbidden` for the session of anybody but the owner."""
        user_id = caller.principal.id
        if caller.principal.kind != "session":
            return
        owner = await self.services.state.read(find_owner)
        if owner is None or owner.id != user_id:
            raise Forbidden("Only the owner, or the local command line, may do this.")
