//! Message batches, in Anthropic's API.

use crate::routes::builders::{inference, of_tier, JSON_1M, JSON_32M, NO_BODY};
use crate::routes::{Answer, Body, Route, Surface, Tier};

/// A batch belongs to a key, because without one it has no owner.
const fn batch(method: &'static str, path: &'static str, body: Body, summary: &'static str) -> Route {
    let route = inference(method, path, Answer::Control, "batches", body, summary);
    Route { surface: Surface::Anthropic, ..of_tier(Tier::Key, route) }
}

pub(super) static ROUTES: &[Route] = &[
    batch("GET", "/v1/messages/batches", NO_BODY, "The caller's message batches, newest first."),
    batch("POST", "/v1/messages/batches", JSON_32M, "Run many messages requests within a day."),
    batch("GET", "/v1/messages/batches/{id}", NO_BODY, "One message batch and its counts."),
    batch("DELETE", "/v1/messages/batches/{id}", NO_BODY, "Delete a message batch that has ended."),
    batch("POST", "/v1/messages/batches/{id}/cancel", JSON_1M, "Cancel a message batch."),
    batch("GET", "/v1/messages/batches/{id}/results", NO_BODY, "The results of a message batch, one a line."),
];
