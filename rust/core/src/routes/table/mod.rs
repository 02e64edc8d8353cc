//! The table, one file for each part of the gateway.
//!
//! `inference`, `dialects`, `surfaces`, `ollama` and `anthropic` hold the calls to models. `gateway`, `resilience`,
//! `health`, `usage`, `cache`, `context`, `backups` and `audit` are for management, and `identity`, `oauth` and
//! `service` for authentication and webhooks of callers. The others are `agents`, `tasks`, `board`, `dashboard`,
//! `jobs`, `scraping`, `firecrawl`, `coding_tools` and `webhooks`.

use super::Route;

mod agents;
mod anthropic;
mod audit;
mod backups;
mod board;
mod cache;
mod coding_tools;
mod context;
mod dashboard;
mod dialects;
mod firecrawl;
mod gateway;
mod health;
mod identity;
mod inference;
mod jobs;
mod oauth;
mod ollama;
mod resilience;
mod scraping;
mod service;
mod surfaces;
mod tasks;
mod usage;
mod webhooks;

/// Every part, with the most frequent routes first.
pub(super) static TABLES: &[&[Route]] = &[
    jobs::OPERATIONS,
    inference::ROUTES,
    dialects::ROUTES,
    jobs::ROUTES,
    surfaces::ROUTES,
    ollama::ROUTES,
    anthropic::ROUTES,
    health::ROUTES,
    gateway::ROUTES,
    identity::ROUTES,
    webhooks::ROUTES,
    service::ROUTES,
    scraping::ROUTES,
    firecrawl::ROUTES,
    board::ROUTES,
    dashboard::ROUTES,
    tasks::ROUTES,
    oauth::ROUTES,
    backups::ROUTES,
    audit::ROUTES,
    agents::ROUTES,
    usage::ROUTES,
    resilience::ROUTES,
    cache::ROUTES,
    coding_tools::ROUTES,
    context::ROUTES,
];
