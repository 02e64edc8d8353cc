"""Every router and every background task of the control plane, by name."""

from __future__ import annotations

from fastapi import APIRouter

from fairlead.gateway.batches.router import router as batches
from fairlead.gateway.batches.tasks import TASKS as BATCH_TASKS
from fairlead.gateway.combos.alias_router import router as aliases
from fairlead.gateway.combos.router import router as combos
from fairlead.gateway.files.router import router as files
from fairlead.gateway.health.router import router as health
from fairlead.gateway.health.turns import TASKS as HEALTH_TASKS
from fairlead.gateway.keys.router import router as keys
from fairlead.gateway.models.catalogue_router import router as model_catalogue
from fairlead.gateway.models.router import router as provider_models
from fairlead.gateway.nodes.router import router as nodes
from fairlead.gateway.providers.many import router as many_providers
from fairlead.gateway.providers.router import router as providers
from fairlead.gateway.settings.router import router as settings
from fairlead.identity.routers import ROUTERS as IDENTITY
from fairlead.identity.tasks import TASKS as IDENTITY_TASKS
from fairlead.scrape.jobs.router import router as scrape_jobs
from fairlead.scrape.router import router as scrape
from fairlead.scrape.site_router import router as scrape_sites
from fairlead.scrape.tasks import TASKS as SCRAPE_TASKS
from fairlead.search.router import router as search
from fairlead.store.services import BackgroundTask
from fairlead.usage.router import router as usage
from fairlead.usage.tasks import TASKS as USAGE_TASKS
from fairlead.usage.token_limits.router import router as token_limits
from fairlead.webhooks.router import router as webhooks
from fairlead.webhooks.tasks import TASKS as WEBHOOK_TASKS

ROUTERS: tuple[APIRouter, ...] = (
    *IDENTITY,
    keys,
    nodes,
    providers,
    many_providers,
    provider_models,
    model_catalogue,
    combos,
    aliases,
    settings,
    usage,
    token_limits,
    webhooks,
    scrape,
    scrape_jobs,
    scrape_sites,
    health,
    files,
    batches,
    search,
)
TASKS: tuple[BackgroundTask, ...] = (
    *IDENTITY_TASKS,
    *USAGE_TASKS,
    *HEALTH_TASKS,
    *WEBHOOK_TASKS,
    *SCRAPE_TASKS,
    *BATCH_TASKS,
)
