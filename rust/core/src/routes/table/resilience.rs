//! Resilience thresholds, and the failure state of providers, connections and models.

use crate::routes::builders::{management, JSON_1M, NO_BODY};
use crate::routes::Route;

pub(super) static ROUTES: &[Route] = &[
    management("GET", "/api/resilience", NO_BODY, "Get the resilience thresholds, cooldowns and open breakers."),
    management("PATCH", "/api/resilience", JSON_1M, "Change thresholds of resilience."),
    management("POST", "/api/resilience/reset", JSON_1M, "Reset the failures of connections, providers and models."),
    management("GET", "/api/resilience/model-cooldowns", NO_BODY, "List locked-out models, and until when."),
    management("DELETE", "/api/resilience/model-cooldowns", JSON_1M, "End the lockout of one model or of all models."),
];
