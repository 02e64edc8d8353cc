//! The response cache.

use crate::routes::builders::{session, NO_BODY};
use crate::routes::Route;

pub(super) static ROUTES: &[Route] = &[
    session("GET", "/api/cache", NO_BODY, "The response cache at a glance."),
    session("GET", "/api/cache/stats", NO_BODY, "Statistics of the caches."),
    session("DELETE", "/api/cache/stats", NO_BODY, "Clear the caches."),
    session("GET", "/api/cache/entries", NO_BODY, "Kept answers, newest first."),
    session("DELETE", "/api/cache/entries", NO_BODY, "Forget the kept answers that fit."),
    session("GET", "/api/cache/thresholds", NO_BODY, "How near questions must be, where the cache has learnt it."),
    session("DELETE", "/api/cache/thresholds", NO_BODY, "Forget what one partition, or all, have learnt."),
    session("GET", "/api/cache/near-misses", NO_BODY, "Questions that were nearly answered from the cache."),
    session("DELETE", "/api/cache/near-misses", NO_BODY, "Forget the questions that were nearly answered."),
    session("GET", "/api/cache/reasoning", NO_BODY, "What is kept of models' reasoning, newest first."),
    session("DELETE", "/api/cache/reasoning", NO_BODY, "Forget kept reasoning: of one call, one provider, or all."),
];
