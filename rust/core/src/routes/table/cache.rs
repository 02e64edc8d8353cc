//! The response cache.

use crate::routes::builders::{session, NO_BODY};
use crate::routes::Route;

pub(super) static ROUTES: &[Route] = &[
    session("GET", "/api/cache", NO_BODY, "Get an overview of the response cache."),
    session("GET", "/api/cache/stats", NO_BODY, "Statistics of the caches."),
    session("DELETE", "/api/cache/stats", NO_BODY, "Clear the caches."),
    session("GET", "/api/cache/entries", NO_BODY, "List cached answers, newest first."),
    session("DELETE", "/api/cache/entries", NO_BODY, "Delete the cached answers that match."),
    session("GET", "/api/cache/reasoning", NO_BODY, "List stored reasoning, newest first."),
    session("DELETE", "/api/cache/reasoning", NO_BODY, "Delete stored reasoning of one call, one provider, or all."),
];
