//! Webhooks for the jobs of a key, in Google's API.

use crate::routes::builders::{inference, of_tier, public, JSON_1M, NO_BODY};
use crate::routes::{Answer, Body, Route, Surface, Tier};

/// A webhook belongs to a key, because without one it has no owner. Its category is that of the events: a key that may
/// run batches may receive their events.
const fn owned(method: &'static str, path: &'static str, body: Body, summary: &'static str) -> Route {
    let route = inference(method, path, Answer::Control, "batches", body, summary);
    Route { surface: Surface::Gemini, ..of_tier(Tier::Key, route) }
}

const LIST: &str = "The caller's webhooks.";
const CREATE: &str = "Make a webhook; its secret is shown once.";
const ONE: &str = "One webhook.";
const CHANGE: &str = "Change what the update mask names.";
const DELETE: &str = "Delete a webhook with its history.";
const PING: &str = "Send a test event now.";
const ROTATE: &str = "Make a new signing secret; it is shown once.";
const HISTORY: &str = "Deliveries of a webhook, newest first.";
const AGAIN: &str = "Redeliver one message or a range.";

pub(super) static ROUTES: &[Route] = &[
    owned("GET", "/v1/webhooks", NO_BODY, LIST),
    owned("POST", "/v1/webhooks", JSON_1M, CREATE),
    owned("GET", "/v1/webhooks/{id}/deliveries", NO_BODY, HISTORY),
    owned("POST", "/v1/webhooks/{id}/rotate_secret", JSON_1M, ROTATE),
    owned("POST", "/v1/webhooks/{*id}:ping", JSON_1M, PING),
    owned("POST", "/v1/webhooks/{*id}:redeliver", JSON_1M, AGAIN),
    owned("POST", "/v1/webhooks/{*id}:rotateSigningSecret", JSON_1M, ROTATE),
    owned("GET", "/v1/webhooks/{id}", NO_BODY, ONE),
    owned("PATCH", "/v1/webhooks/{id}", JSON_1M, CHANGE),
    owned("DELETE", "/v1/webhooks/{id}", NO_BODY, DELETE),
    // Older Google clients call the previous version.
    owned("GET", "/v1beta/webhooks", NO_BODY, LIST),
    owned("POST", "/v1beta/webhooks", JSON_1M, CREATE),
    owned("GET", "/v1beta/webhooks/{id}/deliveries", NO_BODY, HISTORY),
    owned("POST", "/v1beta/webhooks/{id}/rotate_secret", JSON_1M, ROTATE),
    owned("POST", "/v1beta/webhooks/{*id}:ping", JSON_1M, PING),
    owned("POST", "/v1beta/webhooks/{*id}:redeliver", JSON_1M, AGAIN),
    owned("POST", "/v1beta/webhooks/{*id}:rotateSigningSecret", JSON_1M, ROTATE),
    owned("GET", "/v1beta/webhooks/{id}", NO_BODY, ONE),
    owned("PATCH", "/v1beta/webhooks/{id}", JSON_1M, CHANGE),
    owned("DELETE", "/v1beta/webhooks/{id}", NO_BODY, DELETE),
    public(
        "GET",
        "/.well-known/jwks.json",
        Answer::Control,
        NO_BODY,
        "The keys that deliveries to a job's own listeners are signed with.",
    ),
];
