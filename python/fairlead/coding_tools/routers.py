"""The routers of the package."""

from __future__ import annotations

from fairlead.coding_tools import mitm_router, router

ROUTERS = (router.router, mitm_router.router)
