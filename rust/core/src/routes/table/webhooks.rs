//! Webhook subscriptions.

use crate::routes::builders::{session, JSON_1M, NO_BODY};
use crate::routes::Route;

pub(super) static ROUTES: &[Route] = &[
    session("GET", "/api/webhooks", NO_BODY, "List webhook subscriptions."),
    session("POST", "/api/webhooks", JSON_1M, "Create a webhook subscription; its secret is shown once."),
    session("GET", "/api/webhooks/events", NO_BODY, "The events that can be subscribed to."),
    session("GET", "/api/webhooks/{id}", NO_BODY, "One webhook subscription."),
    session("PUT", "/api/webhooks/{id}", JSON_1M, "Change a webhook subscription."),
    session("DELETE", "/api/webhooks/{id}", NO_BODY, "Delete a webhook subscription with its history."),
    session("GET", "/api/webhooks/{id}/deliveries", NO_BODY, "Deliveries of a webhook, newest first."),
    session("POST", "/api/webhooks/{id}/redeliver", JSON_1M, "Redeliver one message or a range."),
    session("POST", "/api/webhooks/{id}/rotate-secret", JSON_1M, "Make a new signing secret; it is shown once."),
    session("POST", "/api/webhooks/{id}/test", JSON_1M, "Send a test event now."),
];
