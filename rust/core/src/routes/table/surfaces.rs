//! Models other than chat: completions, embeddings, images, audio, moderations, rerank, OCR; files, batches and search.

use crate::policy::OWN_USAGE;
use crate::routes::builders::{
    inference, management, of_tier, FORM_24M, JSON_1M, JSON_32M, JSON_64K, NO_BODY, UPLOAD_512M,
};
use crate::routes::{Answer, Body, Relayed, Route, Tier};

const fn relayed(path: &'static str, kind: Relayed, endpoint: &'static str, summary: &'static str) -> Route {
    let body = if kind.is_form() { UPLOAD_512M } else { JSON_32M };
    inference("POST", path, Answer::Relayed(kind), endpoint, body, summary)
}

/// Files, batches and videos belong to a key, because without one they have no owner.
const fn owned(
    method: &'static str,
    path: &'static str,
    answer: Answer,
    endpoint: &'static str,
    body: Body,
    summary: &'static str,
) -> Route {
    of_tier(Tier::Key, inference(method, path, answer, endpoint, body, summary))
}

pub(super) static ROUTES: &[Route] = &[
    inference("POST", "/v1/completions", Answer::Completions, "chat", JSON_32M, "Text completion, plain or streamed."),
    relayed("/v1/embeddings", Relayed::Embeddings, "embeddings", "Embeddings of texts or tokens."),
    relayed("/v1/images/generations", Relayed::Images, "images", "Images from a prompt."),
    relayed("/v1/images/edits", Relayed::ImageEdits, "images", "Images from images and a prompt."),
    relayed("/v1/moderations", Relayed::Moderations, "moderations", "Moderate texts or images."),
    relayed("/v1/classify", Relayed::Classify, "moderations", "Classify texts or pictures by given labels."),
    relayed("/v1/music/generations", Relayed::Music, "music", "Music from a prompt."),
    relayed("/v1/rerank", Relayed::Rerank, "rerank", "Rank documents by relevance to a query."),
    relayed("/v1/ocr", Relayed::Ocr, "ocr", "The text of a document, page by page."),
    relayed("/v1/audio/speech", Relayed::Speech, "audio", "Speech from a text, as it is made."),
    relayed("/v1/audio/transcriptions", Relayed::Transcriptions, "audio", "Transcribe a recording."),
    relayed(
        "/v1/audio/translations",
        Relayed::Translations,
        "audio",
        "Transcribe a recording and translate it into English.",
    ),
    inference("GET", "/v1/ws", Answer::Socket, "chat", NO_BODY, "Chat completions as frames over a WebSocket."),
    inference("GET", "/v1/realtime", Answer::Realtime, "audio", NO_BODY, "A realtime conversation over a WebSocket."),
    inference("GET", "/v1/search", Answer::Control, "search", NO_BODY, "The search providers."),
    inference("POST", "/v1/search", Answer::Search, "search", JSON_1M, "Search the web."),
    owned("POST", "/v1/web/fetch", Answer::Control, "web-fetch", JSON_1M, "Fetch a page of the web."),
    owned(
        "GET",
        "/v1/me/status",
        Answer::Control,
        OWN_USAGE,
        NO_BODY,
        "Get the permissions and the usage of the calling key.",
    ),
    owned("POST", "/v1/session-leases", Answer::Control, "chat", JSON_64K, "Lease a connection for one session."),
    inference("GET", "/v1/combos", Answer::Combos, "models", NO_BODY, "The combos that the caller may use."),
    inference(
        "GET",
        "/v1/auto-combo/{name}/candidates",
        Answer::Candidates,
        "models",
        NO_BODY,
        "List the models that a channel of `auto` chooses from now.",
    ),
    management("GET", "/api/search-providers", NO_BODY, "List search providers."),
    management("POST", "/api/search-providers", JSON_1M, "Add a search provider."),
    management("GET", "/api/search-providers/{id}", NO_BODY, "One search provider."),
    management("PATCH", "/api/search-providers/{id}", JSON_1M, "Change a search provider."),
    management("DELETE", "/api/search-providers/{id}", NO_BODY, "Delete a search provider."),
    owned("POST", "/v1/videos", Answer::Video, "video", FORM_24M, "Begin a video from a prompt."),
    owned("POST", "/v1/videos/generations", Answer::Video, "video", FORM_24M, "The same, by its other name."),
    owned("GET", "/v1/videos", Answer::Control, "video", NO_BODY, "The caller's videos, newest first."),
    owned("GET", "/v1/videos/{id}", Answer::Control, "video", NO_BODY, "One video and how far it is."),
    owned("DELETE", "/v1/videos/{id}", Answer::Control, "video", NO_BODY, "Delete a video that has ended."),
    owned("GET", "/v1/videos/{id}/content", Answer::Control, "video", NO_BODY, "A video that was made, as bytes."),
    owned("POST", "/v1/videos/{id}/remix", Answer::Control, "video", JSON_1M, "Begin a video that changes another."),
    owned("GET", "/v1/files", Answer::Control, "files", NO_BODY, "The caller's files, newest first."),
    owned("POST", "/v1/files", Answer::Upload, "files", UPLOAD_512M, "Upload a file."),
    owned("GET", "/v1/files/{id}", Answer::Control, "files", NO_BODY, "One file."),
    owned("DELETE", "/v1/files/{id}", Answer::Control, "files", NO_BODY, "Delete a file."),
    owned("GET", "/v1/files/{id}/content", Answer::Control, "files", NO_BODY, "A file's content, whole or a range."),
    owned("POST", "/v1/uploads", Answer::Control, "files", JSON_1M, "Start a file upload in parts."),
    owned("POST", "/v1/uploads/{id}/parts", Answer::Upload, "files", UPLOAD_512M, "Upload a part of a file."),
    owned("POST", "/v1/uploads/{id}/complete", Answer::Control, "files", JSON_1M, "Make a file of the parts."),
    owned(
        "POST",
        "/v1/uploads/{id}/cancel",
        Answer::Control,
        "files",
        JSON_1M,
        "Cancel a file upload and delete its parts.",
    ),
    owned("GET", "/v1/batches", Answer::Control, "batches", NO_BODY, "The caller's batches, newest first."),
    owned("POST", "/v1/batches", Answer::Control, "batches", JSON_1M, "Run every line of a file."),
    owned(
        "POST",
        "/v1/batches/delete-completed",
        Answer::Control,
        "batches",
        JSON_1M,
        "Delete the caller's batches that are completed.",
    ),
    owned("GET", "/v1/batches/{id}", Answer::Control, "batches", NO_BODY, "One batch and its counts."),
    owned("POST", "/v1/batches/{id}/cancel", Answer::Control, "batches", JSON_1M, "Stop a batch."),
];
