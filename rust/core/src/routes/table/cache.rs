//! The response cache.

use crate::routes::builders::{session, NO_BODY};
use crate::routes::Route;

pub(super) static ROUTES: &[Route] = &[
    session("GET", "/api/cache", NO_BODY, "Get an overview of the response cache."),
    session("GET", "/api/cache/stats", NO_BODY, "Statistics of the caches."),
    session("DELETE", "/api/cache/stats", NO_BODY, "Clear the caches."),
    session("GET", "/api/cache/entries", NO_BODY, "List cached answers, newest first."),
    session("DELETE", "/api/cache/entries", NO_BODY, "Delete the cached answers that match."),
    session("GET", "/api/cache/thresholds", NO_BODY, "List the similarity thresholds that the cache has learnt."),
    session("DELETE", "/api/cache/thresholds", NO_BODY, "Reset the learnt thresholds of one partition or of all."),
    session("GET", "/api/cache/near-misses", NO_BODY, "List the near misses of the cache."),
    session("DELETE", "/api/cache/near-misses", NO_BODY, "Delete the near misses."),
    session("GET", "/api/cache/reasoning", NO_BODY, "List stored reasoning, newest first."),
    session("DELETE", "/api/cache/reasoning", NO_BODY, "Delete stored reasoning of one call, one provider, or all."),
];
