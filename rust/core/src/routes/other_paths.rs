//! Other paths of routes: where clients look for a route when their base URL is written in another usual way.
//!
//! An other path is rewritten to the path in the table, once, before the table is searched. So it is the same route, and
//! every rule of that route holds: who may call it, the category of a key, limits, origins and metrics.

use super::decode;
use std::borrow::Cow;

/// First segments that are dropped where a version follows: `/openai/v1/models` is `/v1/models`.
const FOLDERS: &[&str] = &["/api", "/v1", "/v1beta", "/openai", "/anthropic", "/google", "/gemini", "/ollama"];
/// The versions that follow them.
const VERSIONS: &[&str] = &["/v1/", "/v1beta/"];

/// First segments of the calls of OpenAI's, Anthropic's and rerank clients below `/v1`.
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
/// Calls of Ollama's clients below `/ollama/api`. No management route has these names.
const OLLAMA_CALLS: &[&str] = &["chat", "generate", "tags", "show", "embed", "embeddings", "ps", "version"];
/// Methods of Google's models, which a path names behind a colon.
const ACTIONS: &[&str] = &[
    "generateContent",
    "streamGenerateContent",
    "countTokens",
    "embedContent",
    "batchEmbedContents",
    "batchGenerateContent",
    "predictLongRunning",
];

/// What must follow the first part of an other path.
#[derive(Debug, Clone, Copy)]
enum Rest {
    /// One of these segments, and whatever is below it.
    Call(&'static [&'static str]),
    /// A model and one of Google's methods, without the folder `models/`.
    Action,
    /// Nothing.
    End,
}

/// A first part of a path, what must follow it, and the first part that takes its place.
static MOVED: &[(&str, Rest, &str)] = &[
    ("/", Rest::Call(CALLS), "/v1/"),
    ("/openai/", Rest::Call(CALLS), "/v1/"),
    ("/anthropic/", Rest::Call(&["messages"]), "/v1/"),
    ("/v1beta/openai/", Rest::Call(CALLS), "/v1/"),
    ("/api/", Rest::Call(OLLAMA_CALLS), "/ollama/api/"),
    ("/v1beta/", Rest::Action, "/v1beta/models/"),
    ("/v1/", Rest::Action, "/v1/models/"),
    // Cohere's clients.
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

/// Whether this is a model and a method of Google's, and the model is in no folder of models yet.
fn is_action(rest: &str) -> bool {
    let Some((model, action)) = rest.rsplit_once(':') else { return false };
    ACTIONS.contains(&action) && decode(model).is_some_and(|model| !model.starts_with("models/"))
}

/// The rest of a path behind a dropped first segment. It is a part of `path`, so a second name that many use
/// (`/api/v1/...`) costs no allocation.
pub(super) fn dropped(path: &str) -> impl Iterator<Item = &str> {
    FOLDERS.iter().filter_map(move |folder| {
        let rest = path.strip_prefix(folder)?;
        VERSIONS.iter().any(|version| rest.starts_with(version)).then_some(rest)
    })
}

/// The path with another first part.
pub(super) fn moved(path: &str) -> impl Iterator<Item = String> + '_ {
    MOVED.iter().filter_map(move |&(first, follows, own)| {
        let rest = path.strip_prefix(first)?;
        follows.admits(rest).then(|| format!("{own}{rest}"))
    })
}

/// Every path by which the table may have what a caller asks for by this one.
pub(super) fn rewritten(path: &str) -> impl Iterator<Item = Cow<'_, str>> {
    dropped(path).map(Cow::Borrowed).chain(moved(path).map(Cow::Owned))
}
