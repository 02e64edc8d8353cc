//! Routes for the settings of sent conversations: compression, reasoning, the system prompt.

use crate::policy::OWN_USAGE;
use crate::routes::builders::{admin, management, JSON_1M, NO_BODY};
use crate::routes::{Route, Tier};

pub(super) static ROUTES: &[Route] = &[
    management("GET", "/api/settings/compression", NO_BODY, "Get the pipeline that compresses conversations."),
    admin("PUT", "/api/settings/compression", JSON_1M, "Choose the pipeline that compresses conversations."),
    management(
        "GET",
        "/api/settings/thinking-budget",
        NO_BODY,
        "Get how requests with reasoning settings are rewritten.",
    ),
    admin("PUT", "/api/settings/thinking-budget", JSON_1M, "Set how requests with reasoning settings are rewritten."),
    management("GET", "/api/settings/system-prompt", NO_BODY, "Get the text that is added to callers' system prompts."),
    admin("PUT", "/api/settings/system-prompt", JSON_1M, "Set the text around callers' system prompts."),
    management(
        "GET",
        "/api/settings/context-window",
        NO_BODY,
        "Get how requests longer than a model's context window are handled.",
    ),
    admin("PUT", "/api/settings/context-window", JSON_1M, "Set what becomes of requests longer than a model's window."),
    management("POST", "/api/compression/preview", JSON_1M, "Preview a pipeline on a conversation."),
    management("GET", "/api/compression/language-packs", NO_BODY, "List the languages with known filler phrases."),
    management("GET", "/api/compression/rules", NO_BODY, "List the filler phrases that are removed, by language."),
    management("GET", "/api/context/caveman/config", NO_BODY, "Get the languages in which filler phrases are removed."),
    admin("PUT", "/api/context/caveman/config", JSON_1M, "Set in which languages phrases go."),
    management("GET", "/api/context/rtk/config", NO_BODY, "Get the level of output filters, and your custom filters."),
    admin("PUT", "/api/context/rtk/config", JSON_1M, "Set the level of output filters, and your custom filters."),
    management("GET", "/api/context/rtk/filters", NO_BODY, "The filters for outputs of commands."),
    management("POST", "/api/context/rtk/test", JSON_1M, "Preview a filter on an output."),
    // The key's own data, so a key is required.
    Route {
        tier: Tier::Key,
        endpoint: OWN_USAGE,
        ..management(
            "GET",
            "/api/context/rtk/raw-output/{id}",
            NO_BODY,
            "Get an output of the calling key before it was compressed.",
        )
    },
    management("GET", "/api/context/combos", NO_BODY, "List your pipelines."),
    management("POST", "/api/context/combos", JSON_1M, "Create a pipeline."),
    management("GET", "/api/context/combos/{id}", NO_BODY, "One pipeline."),
    management("PUT", "/api/context/combos/{id}", JSON_1M, "Change a pipeline."),
    management("DELETE", "/api/context/combos/{id}", NO_BODY, "Delete a pipeline."),
    management("GET", "/api/context/combos/{id}/assignments", NO_BODY, "List the routing combos that use a pipeline."),
    management(
        "PUT",
        "/api/context/combos/{id}/assignments",
        JSON_1M,
        "Set the routing combos that a pipeline is for.",
    ),
    management(
        "GET",
        "/api/context/analytics",
        NO_BODY,
        "Get the savings of compression by pipeline, key, model or day.",
    ),
];
