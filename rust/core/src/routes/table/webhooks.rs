//! Webhook subscriptions.

use crate::routes::builders::{session, NO_BODY, RECORD};
use crate::routes::Route;

pub(super) static ROUTES: &[Route] = &[
    session("GET", "/api/webhooks", NO_BODY, "List webhook subscriptions."),
    session("POST", "/api/webhooks", RECORD, "Create a webhook subscription; its secret is shown once."),
    session("GET", "/api/webhooks/events", NO_BODY, "The events that can be subscribed to."),
    session("GET", "/api/webhooks/{id}", NO_BODY, "One webhook subscription."),
    session("PUT", "/api/webhooks/{id}", RECORD, "Change a webhook subscription."),
    session("DELETE", "/api/webhooks/{id}", NO_BODY, "Delete a webhook subscription with its history."),
    session("GET", "/api/webhooks/{id}/deliveries", NO_BODY, "Deliveries of a webhook, newest first."),
    session("POST", "/api/webhooks/{id}/redeliver", RECORD, "Deliver one or a range of messages again."),
    session("POST", "/api/webhooks/{id}/rotate-secret", RECORD, "Make a new signing secret; it is shown once."),
    session("POST", "/api/webhooks/{id}/test", RECORD, "Send a test event now."),
];
