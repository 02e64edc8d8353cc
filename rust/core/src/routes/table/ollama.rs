//! Routes of Ollama clients, at the base URL `/ollama`.

use crate::routes::builders::{inference, JSON_32M, JSON_64K, NO_BODY};
use crate::routes::{Answer, Body, Ollama, Route, Surface};

const fn ollama(
    method: &'static str,
    path: &'static str,
    call: Ollama,
    endpoint: &'static str,
    body: Body,
    summary: &'static str,
) -> Route {
    Route { surface: Surface::Ollama, ..inference(method, path, Answer::Ollama(call), endpoint, body, summary) }
}

pub(super) static ROUTES: &[Route] = &[
    ollama("POST", "/ollama/api/chat", Ollama::Chat, "chat", JSON_32M, "Ollama's chat, whole or in lines of JSON."),
    ollama("POST", "/ollama/api/generate", Ollama::Generate, "chat", JSON_32M, "Ollama's answer to one prompt."),
    ollama(
        "POST",
        "/ollama/api/embed",
        Ollama::Embed,
        "embeddings",
        JSON_32M,
        "Embeddings of texts, as Ollama has them.",
    ),
    ollama(
        "POST",
        "/ollama/api/embeddings",
        Ollama::Embeddings,
        "embeddings",
        JSON_32M,
        "The embedding of one prompt: Ollama's older call.",
    ),
    ollama("GET", "/ollama/api/tags", Ollama::Tags, "models", NO_BODY, "The models that the caller may talk to."),
    ollama("POST", "/ollama/api/show", Ollama::Show, "models", JSON_64K, "One model, as Ollama shows it."),
    ollama("GET", "/ollama/api/version", Ollama::Version, "models", NO_BODY, "The gateway's version."),
];
