//! Models beside chat: completions, embeddings, images, audio, moderations, rerank, OCR.

use crate::routes::doors::{inference, PROMPT, UPLOAD};
use crate::routes::{Answer, Relayed, Route};

const fn relayed(path: &'static str, kind: Relayed, endpoint: &'static str, summary: &'static str) -> Route {
    let limit = match kind {
        Relayed::ImageEdits | Relayed::Transcriptions | Relayed::Translations => UPLOAD,
        _ => PROMPT,
    };
    inference("POST", path, Answer::Relayed(kind), endpoint, limit, summary)
}

pub(super) static ROUTES: &[Route] = &[
    inference("POST", "/v1/completions", Answer::Completions, "chat", PROMPT, "Text completion, plain or streamed."),
    relayed("/v1/embeddings", Relayed::Embeddings, "embeddings", "Embeddings of texts or tokens."),
    relayed("/v1/images/generations", Relayed::Images, "images", "Images from a prompt."),
    relayed("/v1/images/edits", Relayed::ImageEdits, "images", "Images from images and a prompt."),
    relayed("/v1/moderations", Relayed::Moderations, "moderations", "What a text or an image is held to be."),
    relayed("/v1/rerank", Relayed::Rerank, "rerank", "Documents in the order in which they answer a query."),
    relayed("/v1/ocr", Relayed::Ocr, "ocr", "The text of a document, page by page."),
    relayed("/v1/audio/speech", Relayed::Speech, "audio", "Speech from a text, as it is made."),
    relayed("/v1/audio/transcriptions", Relayed::Transcriptions, "audio", "The words of a recording."),
    relayed("/v1/audio/translations", Relayed::Translations, "audio", "The words of a recording, in English."),
];
