//! Additional paths of routes, for clients whose base URL is written in another usual way.
//!
//! An additional path is rewritten to the path in the table, once, before the table is searched. It leads to the same
//! route, so every rule of the route applies: who may call it, the key category, limits, origins and metrics.

use super::decode;
use std::borrow::Cow;

/// First segments that are dropped before a version: `/openai/v1/models` becomes `/v1/models`.
const FOLDERS: &[&str] = &["/api", "/v1", "/v1beta", "/openai", "/anthropic", "/google", "/gemini", "/ollama"];
/// The versions that may follow them.
const VERSIONS: &[&str] = &["/v1/", "/v1beta/"];

/// First segments below `/v1` that OpenAI, Anthropic and rerank clients call.
const CALLS: &[&str] = &[
    "chat",
    "completions",
    "responses",
    "conversations",
    "embeddings",
    "images",
    "audio",
    "moderations",
    "rerank",
    "models",
    "messages",
    "files",
    "uploads",
    "batches",
    "realtime",
    "videos",
];
/// Calls of Ollama clients below `/ollama/api`. No management route has these names.
const OLLAMA_CALLS: &[&str] = &["chat", "generate", "tags", "show", "embed", "embeddings", "ps", "version"];
/// Methods of Google's models, which follow a colon in the path.
const ACTIONS: &[&str] = &[
    "generateContent",
    "streamGenerateContent",
    "countTokens",
    "embedContent",
    "batchEmbedContents",
    "batchGenerateContent",
    "predictLongRunning",
];

/// The part that must follow the first part of an additional path.
#[derive(Debug, Clone, Copy)]
enum Rest {
    /// One of these segments, with any path below it.
    Call(&'static [&'static str]),
    /// A model and one of Google's methods, without the folder `models/`.
    Action,
    /// Nothing.
    End,
}

/// The first part of a path, what must follow it, and its replacement.
static MOVED: &[(&str, Rest, &str)] = &[
    ("/", Rest::Call(CALLS), "/v1/"),
    ("/openai/", Rest::Call(CALLS), "/v1/"),
    ("/anthropic/", Rest::Call(&["messages"]), "/v1/"),
    ("/v1beta/openai/", Rest::Call(CALLS), "/v1/"),
    ("/api/", Rest::Call(OLLAMA_CALLS), "/ollama/api/"),
    ("/v1beta/", Rest::Action, "/v1beta/models/"),
    ("/v1/", Rest::Action, "/v1/models/"),
    // For Cohere clients.
    ("/v2/rerank", Rest::End, "/v1/rerank"),
];

impl Rest {
    fn admits(self, rest: &str) -> bool {
        match self {
            Self::Call(calls) => calls.contains(&rest.split('/').next().unwrap_or_default()),
            Self::Action => is_action(rest),
            Self::End => rest.is_empty(),
        }
    }
}

/// Whether this is a model and one of Google's methods, without a folder of models.
fn is_action(rest: &str) -> bool {
    let Some((model, action)) = rest.rsplit_once(':') else { return false };
    ACTIONS.contains(&action) && decode(model).is_some_and(|model| !model.starts_with("models/"))
}

/// The path without a dropped first segment. The result borrows from `path`, so the common form `/api/v1/...` costs no
/// allocation.
pub(super) fn dropped(path: &str) -> impl Iterator<Item = &str> {
    FOLDERS.iter().filter_map(move |folder| {
        let rest = path.strip_prefix(folder)?;
        VERSIONS.iter().any(|version| rest.starts_with(version)).then_some(rest)
    })
}

/// The path with its first part replaced.
pub(super) fn moved(path: &str) -> impl Iterator<Item = String> + '_ {
    MOVED.iter().filter_map(move |&(first, follows, own)| {
        let rest = path.strip_prefix(first)?;
        follows.admits(rest).then(|| format!("{own}{rest}"))
    })
}

/// Every path in the table that this path may stand for.
pub(super) fn rewritten(path: &str) -> impl Iterator<Item = Cow<'_, str>> {
    dropped(path).map(Cow::Borrowed).chain(moved(path).map(Cow::Owned))
}
