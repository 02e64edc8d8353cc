"""Every router and every background task of the control plane, by name."""

from __future__ import annotations

from fastapi import APIRouter

from fairlead.agents.routers import ROUTERS as AGENTS
from fairlead.agents.tasks import TASKS as AGENT_TASKS
from fairlead.board.pages import router as board_pages
from fairlead.board.router import router as board
from fairlead.control.tools import ROUTERS as TOOL_ENDPOINTS
from fairlead.gateway.backups.router import router as backups
from fairlead.gateway.batches.google_router import router as google_batches
from fairlead.gateway.batches.router import router as batches
from fairlead.gateway.batches.tasks import TASKS as BATCH_TASKS
from fairlead.gateway.cache.reasoning_router import router as reasoning
from fairlead.gateway.cache.router import router as cache
from fairlead.gateway.combos.alias_router import router as aliases
from fairlead.gateway.combos.router import router as combos
from fairlead.gateway.files.google_router import router as google_files
from fairlead.gateway.files.router import router as files
from fairlead.gateway.guardrails.router import router as guardrails
from fairlead.gateway.health.router import router as health
from fairlead.gateway.health.turns import TASKS as HEALTH_TASKS
from fairlead.gateway.interactions.router import router as interactions
from fairlead.gateway.keys.router import router as keys
from fairlead.gateway.models.catalogue_router import router as model_catalogue
from fairlead.gateway.models.router import router as provider_models
from fairlead.gateway.nodes.router import router as nodes
from fairlead.gateway.pricing.router import router as pricing
from fairlead.gateway.providers.many import router as many_providers
from fairlead.gateway.providers.router import router as providers
from fairlead.gateway.resilience.router import router as resilience
from fairlead.gateway.resilience.watch import TASKS as RESILIENCE_TASKS
from fairlead.gateway.responses.background import TASKS as RESPONSE_TASKS
from fairlead.gateway.responses.router import router as responses
from fairlead.gateway.settings.document_router import router as settings_document
from fairlead.gateway.settings.router import router as settings
from fairlead.gateway.videos.router import router as videos
from fairlead.gateway.videos.runner import TASKS as VIDEO_TASKS
from fairlead.identity.routers import ROUTERS as IDENTITY
from fairlead.identity.tasks import TASKS as IDENTITY_TASKS
from fairlead.scrape.routers import ROUTERS as SCRAPE
from fairlead.scrape.tasks import TASKS as SCRAPE_TASKS
from fairlead.search.router import router as search
from fairlead.store.services import BackgroundTask
from fairlead.tasks.router import ROUTERS as REVERSE_TASKS
from fairlead.usage.routers import ROUTERS as USAGE
from fairlead.usage.tasks import TASKS as USAGE_TASKS
from fairlead.webhooks.router import router as webhooks
from fairlead.webhooks.service_router import ROUTERS as SERVICE_WEBHOOKS
from fairlead.webhooks.tasks import TASKS as WEBHOOK_TASKS

ROUTERS: tuple[APIRouter, ...] = (
    *IDENTITY,
    # Before combos: `/api/combos/metrics` is no combo.
    *USAGE,
    keys,
    nodes,
    providers,
    many_providers,
    provider_models,
    model_catalogue,
    pricing,
    combos,
    aliases,
    settings,
    settings_document,
    backups,
    resilience,
    cache,
    reasoning,
    guardrails,
    webhooks,
    *SERVICE_WEBHOOKS,
    *SCRAPE,
    health,
    board,
    board_pages,
    *TOOL_ENDPOINTS,
    *REVERSE_TASKS,
    *AGENTS,
    responses,
    # Before files: `/v1/files/x:download` is no file's id.
    google_files,
    files,
    batches,
    google_batches,
    videos,
    interactions,
    search,
)
TASKS: tuple[BackgroundTask, ...] = (
    *IDENTITY_TASKS,
    *USAGE_TASKS,
    *HEALTH_TASKS,
    *RESILIENCE_TASKS,
    *WEBHOOK_TASKS,
    *SCRAPE_TASKS,
    *AGENT_TASKS,
    *BATCH_TASKS,
    *RESPONSE_TASKS,
    *VIDEO_TASKS,
)
