//! Routes for the settings of sent conversations: compression, reasoning, the system prompt.

use crate::policy::OWN_USAGE;
use crate::routes::builders::{admin, management, NO_BODY, RECORD};
use crate::routes::{Route, Tier};

pub(super) static ROUTES: &[Route] = &[
    management("GET", "/api/settings/compression", NO_BODY, "Which pipeline makes conversations shorter."),
    admin("PUT", "/api/settings/compression", RECORD, "Choose the pipeline that makes conversations shorter."),
    management("GET", "/api/settings/thinking-budget", NO_BODY, "How requests that say how to think are rewritten."),
    admin("PUT", "/api/settings/thinking-budget", RECORD, "Set how requests that say how to think are rewritten."),
    management("GET", "/api/settings/system-prompt", NO_BODY, "The text around callers' system prompts."),
    admin("PUT", "/api/settings/system-prompt", RECORD, "Set the text around callers' system prompts."),
    management(
        "GET",
        "/api/settings/context-window",
        NO_BODY,
        "What becomes of requests longer than a model's window.",
    ),
    admin("PUT", "/api/settings/context-window", RECORD, "Set what becomes of requests longer than a model's window."),
    management("POST", "/api/compression/preview", RECORD, "What a pipeline makes of a conversation."),
    management("GET", "/api/compression/language-packs", NO_BODY, "Languages in which empty phrases are known."),
    management("GET", "/api/compression/rules", NO_BODY, "The phrases that go, by language."),
    management("GET", "/api/context/caveman/config", NO_BODY, "In which languages phrases go."),
    admin("PUT", "/api/context/caveman/config", RECORD, "Set in which languages phrases go."),
    management(
        "GET",
        "/api/context/rtk/config",
        NO_BODY,
        "The level of filters for outputs, and the filters of your own.",
    ),
    admin(
        "PUT",
        "/api/context/rtk/config",
        RECORD,
        "Set the level of filters for outputs, and the filters of your own.",
    ),
    management("GET", "/api/context/rtk/filters", NO_BODY, "The filters for outputs of commands."),
    management("POST", "/api/context/rtk/test", RECORD, "What a filter makes of an output."),
    // The key's own data, so a key is required.
    Route {
        tier: Tier::Key,
        endpoint: OWN_USAGE,
        ..management(
            "GET",
            "/api/context/rtk/raw-output/{id}",
            NO_BODY,
            "An output of the calling key's as it was before a filter made it shorter.",
        )
    },
    management("GET", "/api/context/combos", NO_BODY, "Pipelines of your own."),
    management("POST", "/api/context/combos", RECORD, "Make a pipeline of your own."),
    management("GET", "/api/context/combos/{id}", NO_BODY, "One pipeline."),
    management("PUT", "/api/context/combos/{id}", RECORD, "Change a pipeline."),
    management("DELETE", "/api/context/combos/{id}", NO_BODY, "Delete a pipeline."),
    management("GET", "/api/context/combos/{id}/assignments", NO_BODY, "The routing combos that a pipeline is for."),
    management("PUT", "/api/context/combos/{id}/assignments", RECORD, "Set the routing combos that a pipeline is for."),
    management("GET", "/api/context/analytics", NO_BODY, "What compression saved, by pipeline, key, model or day."),
];
