//! The table of passthrough calls, which change only the model: their path, required members and response type. Most
//! require a provider with OpenAI's dialect, which defines these calls. Some also exist in other dialects.

use crate::route::choice::Choice;
use fairlead_core::routes::{Answer, Ollama, Relayed, Route, Surface};
use fairlead_core::{Dialect, Error, ErrorKind};
use fairlead_dialect::embeddings;
use fairlead_dialect::openai::named::Needs;

/// The type of a successful response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseKind {
    /// One JSON object with this member.
    Json(&'static str),
    /// One JSON object with this member, or text.
    JsonOrText(&'static str),
    /// Bytes, relayed as they arrive.
    Bytes,
}

/// The unit by which a call is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BillingUnit {
    Tokens,
    /// Generated images.
    Images,
    /// The duration of a recording.
    Audio,
    Pages,
    /// Characters of synthesized speech.
    Characters,
    Searches,
}

/// One of the passthrough calls.
#[derive(Debug, Clone, Copy)]
pub struct Endpoint {
    /// The path below the connection's base URL.
    pub path: &'static str,
    pub needs: Needs,
    pub response: ResponseKind,
    pub billing: BillingUnit,
    /// Whether the response may also be requested as an event stream.
    pub may_stream: bool,
    /// The name of the calls in errors.
    pub name: &'static str,
}

const fn plain(path: &'static str, member: &'static str, response: ResponseKind, name: &'static str) -> Endpoint {
    let needs = Needs { member, usual_model: None, has_stream_options: false, makes_tokens: false };
    Endpoint { path, needs, response, billing: BillingUnit::Tokens, may_stream: false, name }
}

const fn billed_by(billing: BillingUnit, endpoint: Endpoint) -> Endpoint {
    Endpoint { billing, ..endpoint }
}

const fn with_default_model(model: &'static str, endpoint: Endpoint) -> Endpoint {
    Endpoint { needs: Needs { usual_model: Some(model), ..endpoint.needs }, ..endpoint }
}

const fn made_of_tokens(endpoint: Endpoint) -> Endpoint {
    Endpoint { needs: Needs { makes_tokens: true, ..endpoint.needs }, ..endpoint }
}

const fn streamed(endpoint: Endpoint) -> Endpoint {
    Endpoint { may_stream: true, ..made_of_tokens(endpoint) }
}

static COMPLETIONS: Endpoint = Endpoint {
    path: "/completions",
    needs: Needs { member: "prompt", usual_model: None, has_stream_options: true, makes_tokens: true },
    response: ResponseKind::Json("choices"),
    billing: BillingUnit::Tokens,
    may_stream: true,
    name: "text completions",
};
static EMBEDDINGS: Endpoint = plain("/embeddings", "input", ResponseKind::Json("data"), "embeddings");
/// Google puts the model's name into the URL.
static EMBED_CONTENT: Endpoint = plain("/embeddings", "content", ResponseKind::Json("data"), "embeddings");
static BATCH_EMBED: Endpoint = plain("/embeddings", "requests", ResponseKind::Json("data"), "embeddings");
static COMPACT: Endpoint =
    made_of_tokens(plain("/responses/compact", "input", ResponseKind::Json("output"), "compaction of conversations"));
static IMAGES: Endpoint = billed_by(
    BillingUnit::Images,
    streamed(plain("/images/generations", "prompt", ResponseKind::Json("data"), "images")),
);
static IMAGE_EDITS: Endpoint =
    billed_by(BillingUnit::Images, streamed(plain("/images/edits", "prompt", ResponseKind::Json("data"), "images")));
static MODERATIONS: Endpoint = with_default_model(
    "openai/omni-moderation-latest",
    plain("/moderations", "input", ResponseKind::Json("results"), "moderations"),
);
static CLASSIFY: Endpoint = plain("/classify", "input", ResponseKind::Json("data"), "classification");
static MUSIC: Endpoint = plain("/music/generations", "prompt", ResponseKind::Json("data"), "music");
static RERANK: Endpoint =
    billed_by(BillingUnit::Searches, plain("/rerank", "query", ResponseKind::Json("results"), "reranking"));
static OCR: Endpoint = billed_by(
    BillingUnit::Pages,
    with_default_model("mistral/mistral-ocr-latest", plain("/ocr", "document", ResponseKind::Json("pages"), "OCR")),
);
static SPEECH: Endpoint =
    billed_by(BillingUnit::Characters, streamed(plain("/audio/speech", "input", ResponseKind::Bytes, "speech")));
static TRANSCRIPTIONS: Endpoint = billed_by(
    BillingUnit::Audio,
    streamed(plain("/audio/transcriptions", "file", ResponseKind::JsonOrText("text"), "transcriptions")),
);
static TRANSLATIONS: Endpoint = billed_by(
    BillingUnit::Audio,
    plain("/audio/translations", "file", ResponseKind::JsonOrText("text"), "translations of recordings"),
);

static REALTIME: Endpoint = streamed(plain("/realtime", "model", ResponseKind::Bytes, "realtime conversations"));

/// Returns the entry of a call.
pub fn of(kind: Relayed) -> &'static Endpoint {
    match kind {
        Relayed::Embeddings => &EMBEDDINGS,
        Relayed::EmbedContent => &EMBED_CONTENT,
        Relayed::BatchEmbedContents => &BATCH_EMBED,
        Relayed::Compact => &COMPACT,
        Relayed::Classify => &CLASSIFY,
        Relayed::Music => &MUSIC,
        Relayed::Images => &IMAGES,
        Relayed::ImageEdits => &IMAGE_EDITS,
        Relayed::Moderations => &MODERATIONS,
        Relayed::Rerank => &RERANK,
        Relayed::Ocr => &OCR,
        Relayed::Speech => &SPEECH,
        Relayed::Transcriptions => &TRANSCRIPTIONS,
        Relayed::Translations => &TRANSLATIONS,
    }
}

fn at(route: &Route) -> Option<&'static Endpoint> {
    match route.answer {
        Answer::Completions => Some(&COMPLETIONS),
        Answer::Relayed(kind) => Some(of(kind)),
        Answer::Ollama(Ollama::Embed | Ollama::Embeddings) => Some(&EMBEDDINGS),
        Answer::Realtime => Some(&REALTIME),
        _ => None,
    }
}

/// The members that a route's body must have; `None` for a conversation, which its dialect parses.
pub fn needs(route: &Route) -> Option<&'static Needs> {
    at(route).map(|endpoint| &endpoint.needs)
}

/// The form in which a route's callers request embeddings.
pub fn embedding(route: &Route) -> Option<embeddings::EmbeddingCall> {
    match route.answer {
        // Ollama's requests have been converted to OpenAI's form at this point.
        Answer::Relayed(Relayed::Embeddings) | Answer::Ollama(Ollama::Embed | Ollama::Embeddings) => {
            Some(embeddings::EmbeddingCall::OpenAi)
        }
        Answer::Relayed(Relayed::EmbedContent) => Some(embeddings::EmbeddingCall::One),
        Answer::Relayed(Relayed::BatchEmbedContents) => Some(embeddings::EmbeddingCall::Many),
        _ => None,
    }
}

/// The path of a text completion, which is otherwise handled like a conversation.
pub fn completions_path(route: &Route) -> Option<&'static str> {
    (route.answer == Answer::Completions).then_some(COMPLETIONS.path)
}

/// The name of a route's call in a model's `supportedEndpoints`.
fn operators_name(route: &Route) -> &'static str {
    match (route.answer, route.surface) {
        (Answer::Completions, _) => "completions",
        (Answer::Responses, _) => "responses",
        (_, Surface::Anthropic) => "messages",
        _ => route.endpoint,
    }
}

/// Removes targets whose model does not support the route's call according to the operator; an error if none is left.
fn narrow_to_supported(route: &Route, choice: &mut Choice) -> Result<(), Error> {
    let name = operators_name(route);
    let takes = |at: &usize| {
        let stated = choice.targets[*at].connection.endpoints_of(choice.upstream_model(*at));
        // A conversation is the same call in every dialect.
        let is_conversation = matches!(name, "responses" | "messages");
        stated.is_none_or(|all| all.iter().any(|one| one == name || is_conversation && one == "chat"))
    };
    let indices: Vec<usize> = (0..choice.targets.len()).filter(takes).collect();
    if indices.len() == choice.targets.len() {
        return Ok(());
    }
    if indices.is_empty() {
        let message = format!(
            "`{}` does not accept this call: `{name}` is not among the calls that its `supportedEndpoints` or `type` \
             allow. Call another model, or change these fields (PUT /api/provider-models).",
            choice.model(0)
        );
        return Err(Error::client(ErrorKind::InvalidRequest, message).about("model"));
    }
    *choice = choice.narrowed(&indices);
    Ok(())
}

/// Removes targets that do not support the route's call; an error if none is left. Every target supports conversations,
/// unless the operator excludes them for a model.
pub fn narrow(route: &Route, choice: &mut Choice) -> Result<(), Error> {
    narrow_to_supported(route, choice)?;
    let Some(endpoint) = at(route) else { return Ok(()) };
    let is_embedding = embedding(route).is_some();
    let is_compaction = route.answer == Answer::Relayed(Relayed::Compact);
    let has_it = |at: &usize| match choice.targets[*at].connection.dialect {
        Dialect::Openai if is_compaction => choice.needs_responses(*at),
        dialect if is_compaction => dialect == Dialect::OpenaiResponses,
        Dialect::Openai => true,
        // A provider with the responses dialect also has OpenAI's other calls; embeddings exist even without them.
        Dialect::OpenaiResponses | Dialect::Gemini => is_embedding,
        Dialect::Anthropic => false,
    };
    let indices: Vec<usize> = (0..choice.targets.len()).filter(has_it).collect();
    if indices.is_empty() {
        let spoken = match (is_embedding, is_compaction) {
            (true, _) => "OpenAI's dialect and Google's",
            (_, true) => "the dialect of OpenAI's responses",
            _ => "OpenAI's dialect",
        };
        let message = format!(
            "No connection of this model's provider has {}: they are asked for in {spoken} only.",
            endpoint.name
        );
        return Err(Error::client(ErrorKind::InvalidRequest, message).about("model"));
    }
    if indices.len() < choice.targets.len() {
        *choice = choice.narrowed(&indices);
    }
    Ok(())
}
