//! Routes that clients of models call.

use crate::routes::builders::{inference, NO_BODY, PROMPT};
use crate::routes::{Answer, Route, Surface};

pub(super) static ROUTES: &[Route] = &[
    inference("POST", "/v1/chat/completions", Answer::Chat, "chat", PROMPT, "Chat completion, plain or streamed."),
    inference(
        "GET",
        "/v1/chat/completions",
        Answer::Control,
        "chat",
        NO_BODY,
        "Stored chat completions: there are none.",
    ),
    // `/v1/messages` is a chat completion in the Anthropic dialect, which the surface selects.
    Route {
        surface: Surface::Anthropic,
        ..inference("POST", "/v1/messages", Answer::Chat, "chat", PROMPT, "Messages, plain or streamed.")
    },
    Route {
        surface: Surface::Anthropic,
        ..inference(
            "POST",
            "/v1/messages/count_tokens",
            Answer::CountTokens,
            "chat",
            PROMPT,
            "How many tokens a messages request has.",
        )
    },
    inference("GET", "/v1/models", Answer::Models, "models", NO_BODY, "The models that the caller may use."),
    inference("GET", "/v1/models/{*id}", Answer::Model, "models", NO_BODY, "One model."),
];
