"""The routers of this package."""

from __future__ import annotations

from fastapi import APIRouter

from fairlead.agents.endpoint import router as endpoint
from fairlead.agents.operator_router import router as operator
from fairlead.agents.skill_router import router as skills

ROUTERS: tuple[APIRouter, ...] = (skills, operator, endpoint)
