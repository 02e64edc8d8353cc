//! Jobs in Google's API: batches, videos, files, cached contents, and interactions.

use crate::routes::builders::{delegated, inference, of_tier, JSON_1M, JSON_32M, NO_BODY};
use crate::routes::{Answer, Body, Route, Surface, Tier};

/// A job belongs to a key, because without one it has no owner.
const fn owned(
    method: &'static str,
    path: &'static str,
    answer: Answer,
    endpoint: &'static str,
    body: Body,
    summary: &'static str,
) -> Route {
    let route = inference(method, path, answer, endpoint, body, summary);
    Route { surface: Surface::Gemini, ..of_tier(Tier::Key, route) }
}

const fn batch(method: &'static str, path: &'static str, body: Body, summary: &'static str) -> Route {
    owned(method, path, Answer::Control, "batches", body, summary)
}

const fn interaction(method: &'static str, path: &'static str, body: Body, summary: &'static str) -> Route {
    owned(method, path, Answer::Control, "chat", body, summary)
}

const fn file(method: &'static str, path: &'static str, body: Body, summary: &'static str) -> Route {
    owned(method, path, Answer::Control, "files", body, summary)
}

const fn cached(method: &'static str, path: &'static str, body: Body, summary: &'static str) -> Route {
    owned(method, path, Answer::Control, "chat", body, summary)
}

/// The address of an upload is a secret, which the caller uses instead of a key.
const fn piece(path: &'static str) -> Route {
    Route { surface: Surface::Gemini, endpoint: "files", ..delegated("POST", path, JSON_32M, PIECE) }
}

const PIECE: &str = "Upload a piece of a file to the URL that the start returned.";
const UPLOAD_512M: &str = "Start a resumable file upload.";
const CACHE: &str = "Store the beginning of requests.";
const CACHES: &str = "The caller's cached contents, newest first.";
const CACHED: &str = "One cached content, without what is stored.";
const PROLONG: &str = "Change when a cached content expires.";
const UNCACHE: &str = "Delete a cached content.";
const BEGIN: &str = "Begin an interaction.";
const READ: &str = "One interaction.";
const END: &str = "Stop an interaction.";
const FORGET: &str = "Delete an interaction.";
const GENERATE: &str = "Run many generateContent requests within a day.";
const CANCEL: &str = "Stop a batch of Google's kind.";
const DELETE: &str = "Delete a batch of Google's kind that has ended.";
const VIDEO: &str = "Begin a video.";
const DOWNLOAD: &str = "Download an artifact of a job.";
const OPERATION: &str = "The progress of a video.";

pub(super) static ROUTES: &[Route] = &[
    batch("POST", "/v1beta/models/{*id}:batchGenerateContent", JSON_32M, GENERATE),
    batch("GET", "/v1beta/batches", NO_BODY, "The caller's batches of Google's kind, newest first."),
    batch("GET", "/v1beta/batches/{id}", NO_BODY, "One batch as an operation, with its answers."),
    batch("POST", "/v1beta/batches/{*id}:cancel", JSON_1M, CANCEL),
    batch("DELETE", "/v1beta/batches/{id}", NO_BODY, DELETE),
    // In version 1 the paths of the list and of one batch are OpenAI's.
    batch("POST", "/v1/models/{*id}:batchGenerateContent", JSON_32M, GENERATE),
    batch("POST", "/v1/batches/{*id}:cancel", JSON_1M, CANCEL),
    batch("DELETE", "/v1/batches/{id}", NO_BODY, DELETE),
    // The control plane calls the provider.
    owned("POST", "/v1beta/models/{*id}:predictLongRunning", Answer::Video, "video", JSON_32M, VIDEO),
    owned("POST", "/v1/models/{*id}:predictLongRunning", Answer::Video, "video", JSON_32M, VIDEO),
    owned("GET", "/v1beta/files/{*id}:download", Answer::Control, "files", NO_BODY, DOWNLOAD),
    owned("GET", "/v1/files/{*id}:download", Answer::Control, "files", NO_BODY, DOWNLOAD),
    file("POST", "/upload/v1beta/files", JSON_1M, UPLOAD_512M),
    file("POST", "/upload/v1/files", JSON_1M, UPLOAD_512M),
    piece("/upload/v1beta/sessions/{id}"),
    file("GET", "/v1beta/files", NO_BODY, "The caller's files, newest first."),
    file("GET", "/v1beta/files/{id}", NO_BODY, "One file."),
    file("DELETE", "/v1beta/files/{id}", NO_BODY, "Delete a file."),
    cached("POST", "/v1beta/cachedContents", JSON_32M, CACHE),
    cached("GET", "/v1beta/cachedContents", NO_BODY, CACHES),
    cached("GET", "/v1beta/cachedContents/{id}", NO_BODY, CACHED),
    cached("PATCH", "/v1beta/cachedContents/{id}", JSON_1M, PROLONG),
    cached("DELETE", "/v1beta/cachedContents/{id}", NO_BODY, UNCACHE),
    cached("POST", "/v1/cachedContents", JSON_32M, CACHE),
    cached("GET", "/v1/cachedContents", NO_BODY, CACHES),
    cached("GET", "/v1/cachedContents/{id}", NO_BODY, CACHED),
    cached("PATCH", "/v1/cachedContents/{id}", JSON_1M, PROLONG),
    cached("DELETE", "/v1/cachedContents/{id}", NO_BODY, UNCACHE),
    interaction("POST", "/v1beta/interactions", JSON_32M, BEGIN),
    interaction("GET", "/v1beta/interactions/{id}", NO_BODY, READ),
    interaction("POST", "/v1beta/interactions/{id}/cancel", JSON_1M, END),
    interaction("POST", "/v1beta/interactions/{*id}:cancel", JSON_1M, END),
    interaction("DELETE", "/v1beta/interactions/{id}", NO_BODY, FORGET),
    interaction("POST", "/v1/interactions", JSON_32M, BEGIN),
    interaction("GET", "/v1/interactions/{id}", NO_BODY, READ),
    interaction("POST", "/v1/interactions/{id}/cancel", JSON_1M, END),
    interaction("POST", "/v1/interactions/{*id}:cancel", JSON_1M, END),
    interaction("DELETE", "/v1/interactions/{id}", NO_BODY, FORGET),
];

/// Searched before the routes of models, because the names of models may contain slashes.
pub(super) static OPERATIONS: &[Route] = &[
    owned("GET", "/v1beta/models/{*id}/operations/{operation}", Answer::Control, "video", NO_BODY, OPERATION),
    owned("GET", "/v1/models/{*id}/operations/{operation}", Answer::Control, "video", NO_BODY, OPERATION),
];
