//! Model calls in the OpenAI Responses and Gemini dialects. The address of a Gemini call names the model.

use crate::routes::builders::{inference, JSON_1M, JSON_32M, NO_BODY};
use crate::routes::{Answer, Body, Relayed, Route, Surface};

pub(super) static ROUTES: &[Route] = &[
    inference("POST", "/v1/responses", Answer::Responses, "chat", JSON_32M, "Response, plain or streamed."),
    inference(
        "POST",
        "/v1/responses/input_tokens",
        Answer::CountTokens,
        "chat",
        JSON_32M,
        "How many tokens the input of a response has.",
    ),
    inference(
        "POST",
        "/v1/responses/compact",
        Answer::Relayed(Relayed::Compact),
        "chat",
        JSON_32M,
        "Compact a conversation into fewer items for the next response.",
    ),
    stored_response("GET", "/v1/responses/{id}", NO_BODY, "Get a stored response."),
    stored_response("DELETE", "/v1/responses/{id}", NO_BODY, "Delete a response that was kept."),
    stored_response("POST", "/v1/responses/{id}/cancel", JSON_1M, "Cancel a response that works in the background."),
    stored_response("GET", "/v1/responses/{id}/input_items", NO_BODY, "List the input items of a stored response."),
    stored_response("POST", "/v1/conversations", JSON_32M, "Create a conversation that responses are added to."),
    stored_response("GET", "/v1/conversations/{id}", NO_BODY, "One conversation."),
    stored_response("POST", "/v1/conversations/{id}", JSON_1M, "Change the metadata of a conversation."),
    stored_response("DELETE", "/v1/conversations/{id}", NO_BODY, "Delete a conversation with its items."),
    stored_response("GET", "/v1/conversations/{id}/items", NO_BODY, "The items of a conversation."),
    stored_response("POST", "/v1/conversations/{id}/items", JSON_32M, "Add items to a conversation."),
    stored_response("GET", "/v1/conversations/{id}/items/{item}", NO_BODY, "One item of a conversation."),
    stored_response("DELETE", "/v1/conversations/{id}/items/{item}", NO_BODY, "Delete an item of a conversation."),
    gemini(
        "POST",
        "/v1beta/models/{*id}:generateContent",
        Answer::Generate,
        "chat",
        JSON_32M,
        "Gemini's generateContent.",
    ),
    gemini(
        "POST",
        "/v1beta/models/{*id}:streamGenerateContent",
        Answer::StreamGenerate,
        "chat",
        JSON_32M,
        "The same streamed: events with `alt=sse`, else one JSON list.",
    ),
    gemini(
        "POST",
        "/v1beta/models/{*id}:countTokens",
        Answer::CountTokens,
        "chat",
        JSON_32M,
        "How many tokens a generateContent request has.",
    ),
    gemini(
        "GET",
        "/v1beta/models",
        Answer::GeminiModels,
        "models",
        NO_BODY,
        "The models that the caller may use, as Gemini lists them.",
    ),
    gemini("GET", "/v1beta/models/{*id}", Answer::GeminiModel, "models", NO_BODY, "One of them."),
    // Newer Google clients call the stable version `/v1`. The list routes there have OpenAI's paths.
    gemini(
        "POST",
        "/v1/models/{*id}:generateContent",
        Answer::Generate,
        "chat",
        JSON_32M,
        "Gemini's generateContent, version 1.",
    ),
    gemini(
        "POST",
        "/v1/models/{*id}:streamGenerateContent",
        Answer::StreamGenerate,
        "chat",
        JSON_32M,
        "The same streamed, version 1.",
    ),
    gemini(
        "POST",
        "/v1/models/{*id}:countTokens",
        Answer::CountTokens,
        "chat",
        JSON_32M,
        "How many tokens a generateContent request has, version 1.",
    ),
    embed("/v1beta/models/{*id}:embedContent", Relayed::EmbedContent, "The embedding of a text, as Gemini has it."),
    embed("/v1beta/models/{*id}:batchEmbedContents", Relayed::BatchEmbedContents, "Embeddings of texts."),
    embed("/v1/models/{*id}:embedContent", Relayed::EmbedContent, "The embedding of a text, version 1."),
    embed("/v1/models/{*id}:batchEmbedContents", Relayed::BatchEmbedContents, "Embeddings of texts, version 1."),
];

const fn stored_response(method: &'static str, path: &'static str, body: Body, summary: &'static str) -> Route {
    inference(method, path, Answer::Control, "chat", body, summary)
}

const fn embed(path: &'static str, kind: Relayed, summary: &'static str) -> Route {
    gemini("POST", path, Answer::Relayed(kind), "embeddings", JSON_32M, summary)
}

const fn gemini(
    method: &'static str,
    path: &'static str,
    answer: Answer,
    endpoint: &'static str,
    body: Body,
    summary: &'static str,
) -> Route {
    Route { surface: Surface::Gemini, ..inference(method, path, answer, endpoint, body, summary) }
}
