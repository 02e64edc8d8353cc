"""The caller of a board route: a parameter `person: PersonDep`."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from fairlead.calls.caller import Caller, CallerDep
from fairlead.errors import Unauthenticated
from fairlead.records.people import Person, find_owner_person, find_person
from fairlead.store.services import Services, ServicesDep


async def person_of(services: Services, caller: Caller) -> Person | None:
    """The person of a session, the owner for the local command line, None for other callers."""
    principal = caller.principal
    if principal.kind == "session" and principal.id is not None:
        user_id = principal.id
        return await services.state.read(lambda con: find_person(con, user_id))
    if principal.kind == "local":
        return await services.state.read(find_owner_person)
    return None


async def _person(services: ServicesDep, caller: CallerDep) -> Person:
    person = await person_of(services, caller)
    if person is None:
        raise Unauthenticated("Sign in first: the board is for people.")
    return person


PersonDep = Annotated[Person, Depends(_person)]
