//! Usage, prices and metrics.

use crate::policy::OWN_USAGE;
use crate::routes::builders::{management, public, session, JSON_1M, JSON_64K, NO_BODY};
use crate::routes::{Answer, Reach, Route, Surface, Tier};

pub(super) static ROUTES: &[Route] = &[
    Route {
        endpoint: "on-this-machine",
        reach: Reach::ThisMachine,
        ..public("GET", "/metrics", Answer::Control, NO_BODY, "Metrics in Prometheus' text format.")
    },
    // A key reads its own usage.
    Route {
        tier: Tier::Key,
        surface: Surface::Quota,
        endpoint: OWN_USAGE,
        ..management(
            "GET",
            "/api/usage/om-usage",
            NO_BODY,
            "Get the remaining quota of the calling key and its providers.",
        )
    },
    management("GET", "/api/usage/model-latency-stats", NO_BODY, "Latencies of each provider's models."),
    management("GET", "/api/usage/cache-health", NO_BODY, "Get the hit rates of the providers' prompt caches."),
    management(
        "GET",
        "/api/usage/unpriced",
        NO_BODY,
        "Requests whose cost is not known, because a model has no price.",
    ),
    management(
        "GET",
        "/api/usage/refused-callers",
        NO_BODY,
        "Count requests that were refused because of their key or address.",
    ),
    management("GET", "/api/usage/logs/{id}/body", NO_BODY, "Get the stored bodies of a request."),
    management("GET", "/api/usage/logs/{id}/headers", NO_BODY, "Get the stored headers of a request."),
    management("GET", "/api/usage/{id}", NO_BODY, "Usage of one provider connection."),
    management("GET", "/api/sessions", NO_BODY, "Sessions of the last minutes."),
    management("GET", "/api/rate-limits", NO_BODY, "Get the limits of each connection and key."),
    management("GET", "/api/combos/metrics", NO_BODY, "Combos and their targets, compared."),
    session(
        "POST",
        "/api/settings/purge-request-history",
        JSON_64K,
        "Delete the log of requests, and keep their sums.",
    ),
    management("GET", "/api/pricing", NO_BODY, "Prices of models, and which of them the operator set."),
    management("PUT", "/api/pricing", JSON_1M, "Set prices of models."),
    management("PATCH", "/api/pricing", JSON_1M, "Set prices of models, leaving the others."),
    management("DELETE", "/api/pricing", NO_BODY, "Remove prices that the operator set."),
];
