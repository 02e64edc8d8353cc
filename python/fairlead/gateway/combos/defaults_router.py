"""`/api/settings/combo-defaults`: deadlines and repetitions of combos that do not set their own."""

from __future__ import annotations

from fastapi import APIRouter

from fairlead.gateway.combos.defaults import ComboDefaults, read_defaults, write_defaults
from fairlead.store.services import ServicesDep

router = APIRouter(prefix="/api/settings/combo-defaults", tags=["combos"])


@router.get("", summary="Defaults for every combo")
async def show(services: ServicesDep) -> ComboDefaults:
    """The defaults of all combos, and of single providers."""
    return await services.state.read(read_defaults)


@router.put("", summary="Replace the defaults of combos")
async def replace(body: ComboDefaults, services: ServicesDep) -> ComboDefaults:
    """In force in every relay worker when it is answered."""
    await services.state.commit(lambda con: write_defaults(con, body))
    return body
