//! Liveness and readiness of the gateway.

use crate::routes::builders::{public, NO_BODY};
use crate::routes::{Answer, Route};

pub(super) static ROUTES: &[Route] = &[
    public("GET", "/healthz", Answer::Health, NO_BODY, "Whether the relay is alive."),
    public("GET", "/readyz", Answer::Ready, NO_BODY, "Get whether the relay can serve, and its link to control."),
];
