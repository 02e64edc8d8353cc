"""The table of control's routers: which module answers which paths.

Modules are imported on the first request for one of their paths (`router_loader.py`), so they are named by
text. Routes are tried in this order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class RouterEntry:
    """A module with routers: `router`, or several under `ROUTERS`.

    It answers each of `paths` and everything below it; `/` matches the start page alone. Modules may share a
    path: all of them are imported for it.
    """

    module: str
    paths: tuple[str, ...]


def _entry(module: str, *paths: str) -> RouterEntry:
    return RouterEntry(f"fairlead.{module}", paths)


ROUTERS: Final = (
    _entry(
        "identity.routers",
        *("/oauth", "/api/auth", "/api/me", "/api/users", "/", "/login", "/logout", "/setup"),
        *("/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource"),
    ),
    # Before combos: `/api/combos/metrics` is not a combo's id.
    _entry(
        "usage.routers",
        *("/api/usage", "/api/rate-limits", "/api/sessions", "/metrics", "/api/combos/metrics"),
    ),
    _entry("gateway.keys.router", "/api/keys"),
    _entry("groups.router", "/api/groups"),
    _entry("groups.member_router", "/api/me"),
    _entry("gateway.nodes.router", "/api/provider-nodes"),
    _entry("gateway.providers.router", "/api/providers"),
    _entry("gateway.providers.bulk_router", "/api/providers"),
    _entry("gateway.provider_usage.router", "/api/providers"),
    _entry("gateway.models.router", "/api/provider-models"),
    _entry("gateway.models.facts_router", "/api/provider-models/facts"),
    _entry("gateway.models.catalogue_router", "/api/models/catalog"),
    _entry("gateway.sign_in.router", "/api/oauth"),
    _entry("gateway.sign_in.callback_router", "/api/oauth"),
    _entry("gateway.pricing.router", "/api/pricing"),
    _entry("gateway.combos.trial_router", "/api/combos"),
    _entry("gateway.combos.router", "/api/combos"),
    _entry("gateway.combos.mapping_router", "/api/model-combo-mappings"),
    _entry("gateway.combos.defaults_router", "/api/settings/combo-defaults"),
    _entry("gateway.combos.alias_router", "/api/models/alias"),
    _entry("usage.routes.purge_router", "/api/settings/purge-request-history"),
    _entry("coding_tools.routers", "/api/cli-tools"),
    _entry(
        "gateway.context.settings_router",
        *("/api/settings/compression", "/api/settings/thinking-budget"),
        *("/api/settings/system-prompt", "/api/settings/context-window"),
        *("/api/context/caveman", "/api/context/rtk"),
    ),
    _entry("gateway.context.combos_router", "/api/context/combos"),
    _entry("gateway.context.preview_router", "/api/compression", "/api/context/rtk"),
    _entry("gateway.context.raw_output_router", "/api/context/rtk/raw-output"),
    _entry("usage.routes.context_router", "/api/context/analytics"),
    _entry("gateway.outbound.router", "/api/settings/proxy"),
    _entry("gateway.mail.router", "/api/settings/mail"),
    _entry("gateway.ip_filter.router", "/api/settings/ip-filter"),
    _entry("gateway.settings.router", "/api/settings"),
    _entry("gateway.settings.document_router", "/api/settings"),
    _entry("gateway.audit.router", "/api/audit"),
    _entry("gateway.backups.router", "/api/db-backups"),
    _entry("gateway.backups.upload_router", "/api/db-backups"),
    _entry("gateway.resilience.router", "/api/resilience"),
    _entry("gateway.cache.router", "/api/cache"),
    _entry("gateway.cache.reasoning_router", "/api/cache/reasoning"),
    _entry("gateway.guardrails.router", "/api/guardrails"),
    _entry("webhooks.router", "/api/webhooks"),
    _entry("webhooks.service_router", "/v1/webhooks", "/v1beta/webhooks", "/.well-known/jwks.json"),
    _entry(
        "scrape.router",
        *("/api/cache", "/api/extract-schema", "/api/reader", "/api/scrape"),
        *("/api/summarize", "/api/usage"),
    ),
    _entry("scrape.routers", "/api/scrape/openapi.json"),
    _entry("scrape.jobs.crawl_router", "/api/crawl"),
    _entry("scrape.jobs.batch_router", "/api/batch"),
    _entry("scrape.jobs.pages_router", "/api/batch", "/api/crawl"),
    _entry("scrape.css.router", "/api/extract-auto"),
    _entry("scrape.map.router", "/api/map"),
    _entry("scrape.search_router", "/api/search"),
    _entry("scrape.saved.endpoint_router", "/api/endpoints"),
    _entry("scrape.saved.site_router", "/api/sites"),
    _entry("scrape.browser.router", "/api/browser"),
    _entry("scrape.jobs.llmstxt_router", "/api/llmstxt"),
    _entry("scrape.document.router", "/api/parse"),
    _entry("scrape.jobs.extract_router", "/api/extract"),
    _entry("scrape.browser.discover_router", "/api/discover-apis"),
    _entry("scrape.agent.router", "/api/agent"),
    _entry("scrape.firecrawl.page_router", "/v2/scrape", "/v2/map", "/v2/search"),
    _entry("scrape.firecrawl.jobs_router", "/v2/crawl", "/v2/batch"),
    _entry("scrape.firecrawl.extract_router", "/v2/extract"),
    _entry("scrape.firecrawl.parse_router", "/v2/parse"),
    _entry("gateway.health.router", "/api/monitoring"),
    _entry("gateway.cluster.router", "/api/cluster"),
    _entry("gateway.cluster.reseal_router", "/api/settings/reseal"),
    _entry("board.router", "/api/board"),
    _entry("board.pages", "/board"),
    _entry("dashboard.router", "/dashboard"),
    _entry("control.tools", "/mcp"),
    _entry("tasks.router", "/api/tasks", "/mcp/tasks"),
    _entry("agents.routers", "/api/agent-skills", "/api/v1/agents", "/agents"),
    _entry("gateway.session_leases.router", "/v1/session-leases"),
    _entry("gateway.responses.router", "/v1/responses"),
    _entry("gateway.conversations.router", "/v1/conversations"),
    _entry("gateway.completions.router", "/v1/chat/completions"),
    _entry("gateway.responses.creation", "/internal/responses/background"),
    # Before files: `/v1/files/x:download` is not a file's id.
    _entry("gateway.files.google_router", "/v1/files", "/v1beta/files"),
    _entry("gateway.files.router", "/v1/files"),
    _entry("gateway.files.upload_router", "/v1/uploads"),
    _entry(
        "gateway.files.google_files_router",
        *("/upload/v1", "/upload/v1beta", "/v1beta/files"),
    ),
    _entry("gateway.cached_contents.router", "/v1/cachedContents", "/v1beta/cachedContents"),
    _entry("gateway.batches.router", "/v1/batches"),
    _entry("gateway.batches.anthropic_router", "/v1/messages/batches"),
    _entry(
        "gateway.batches.google_router",
        *("/v1/batches", "/v1beta/batches", "/v1/models", "/v1beta/models"),
    ),
    _entry("gateway.videos.router", "/v1/models", "/v1beta/models"),
    _entry("gateway.videos.openai_router", "/v1/videos"),
    _entry("gateway.interactions.router", "/v1/interactions", "/v1beta/interactions"),
    _entry("search.router", "/api/search-providers", "/v1/search"),
    _entry("scrape.web_fetch_router", "/v1/web/fetch"),
    _entry("usage.routes.status_router", "/v1/me/status"),
)
