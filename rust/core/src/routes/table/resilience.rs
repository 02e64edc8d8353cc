//! Resilience thresholds, and the failure state of providers, connections and models.

use crate::routes::builders::{management, NO_BODY, RECORD};
use crate::routes::Route;

pub(super) static ROUTES: &[Route] = &[
    management("GET", "/api/resilience", NO_BODY, "Thresholds of resilience, and what is held against whom."),
    management("PATCH", "/api/resilience", RECORD, "Change thresholds of resilience."),
    management("POST", "/api/resilience/reset", RECORD, "Forget failures of connections, providers and models."),
    management("GET", "/api/resilience/model-cooldowns", NO_BODY, "Models that rest, and until when."),
    management("DELETE", "/api/resilience/model-cooldowns", RECORD, "End the rest of one model, or of all."),
];
