"""The dependency `attempt: AttemptDep`, by which routes get the sign-in of a request."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from fairlead.calls.caller import CallerDep
from fairlead.identity.sign_in import Attempt, SignIn
from fairlead.store.services import ServicesDep


async def _attempt(request: Request, services: ServicesDep, caller: CallerDep) -> Attempt:
    sign_in: SignIn = request.app.state.sign_in
    return Attempt(services, sign_in, request, caller)


AttemptDep = Annotated[Attempt, Depends(_attempt)]
