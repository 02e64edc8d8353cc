//! Routes that clients of models call.

use crate::routes::builders::{inference, JSON_32M, NO_BODY};
use crate::routes::{Answer, Route, Surface};

pub(super) static ROUTES: &[Route] = &[
    inference("POST", "/v1/chat/completions", Answer::Chat, "chat", JSON_32M, "Chat completion, plain or streamed."),
    inference(
        "GET",
        "/v1/chat/completions",
        Answer::Control,
        "chat",
        NO_BODY,
        "List stored chat completions: always empty.",
    ),
    // `/v1/messages` is a chat completion in the Anthropic dialect, which the surface selects.
    Route {
        surface: Surface::Anthropic,
        ..inference("POST", "/v1/messages", Answer::Chat, "chat", JSON_32M, "Messages, plain or streamed.")
    },
    Route {
        surface: Surface::Anthropic,
        ..inference(
            "POST",
            "/v1/messages/count_tokens",
            Answer::CountTokens,
            "chat",
            JSON_32M,
            "How many tokens a messages request has.",
        )
    },
    inference("GET", "/v1/models", Answer::Models, "models", NO_BODY, "The models that the caller may use."),
    inference("GET", "/v1/models/{*id}", Answer::Model, "models", NO_BODY, "One model."),
];
