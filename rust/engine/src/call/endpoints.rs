//! Every call that passes with only its model changed, in one table: where it goes, what it needs, how its answer is
//! read. The provider must speak OpenAI's dialect, which is the one that has these calls.

use crate::route::choice::Choice;
use fairlead_core::error::{Error, Kind};
use fairlead_core::routes::{Answer, Relayed, Route};
use fairlead_core::snapshot::Dialect;
use fairlead_dialect::embeddings;
use fairlead_dialect::openai::named::Needs;

/// What comes back when all is well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comes {
    /// One JSON object with this member.
    Json(&'static str),
    /// One JSON object with this member, or a text.
    JsonOrText(&'static str),
    /// Bytes, passed on as they come.
    Bytes,
}

/// What such a call is paid for where that is not tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deals {
    Tokens,
    /// Pictures that are made.
    Images,
    /// The length of a recording.
    Audio,
    Pages,
    /// Characters that are read aloud.
    Characters,
    Searches,
}

/// One of the calls.
#[derive(Debug, Clone, Copy)]
pub struct Surface {
    /// Beneath the connection's base URL.
    pub path: &'static str,
    pub needs: Needs,
    pub comes: Comes,
    pub deals: Deals,
    /// It may also be asked for as a stream of events.
    pub may_stream: bool,
    /// As an error names it.
    pub name: &'static str,
}

const fn plain(path: &'static str, member: &'static str, comes: Comes, name: &'static str) -> Surface {
    let needs = Needs { member, usual_model: None, has_stream_options: false, makes_tokens: false };
    Surface { path, needs, comes, deals: Deals::Tokens, may_stream: false, name }
}

const fn dealing(deals: Deals, surface: Surface) -> Surface {
    Surface { deals, ..surface }
}

const fn usually(model: &'static str, surface: Surface) -> Surface {
    Surface { needs: Needs { usual_model: Some(model), ..surface.needs }, ..surface }
}

const fn streamed(surface: Surface) -> Surface {
    Surface { may_stream: true, needs: Needs { makes_tokens: true, ..surface.needs }, ..surface }
}

static COMPLETIONS: Surface = Surface {
    path: "/completions",
    needs: Needs { member: "prompt", usual_model: None, has_stream_options: true, makes_tokens: true },
    comes: Comes::Json("choices"),
    deals: Deals::Tokens,
    may_stream: true,
    name: "text completions",
};
static EMBEDDINGS: Surface = plain("/embeddings", "input", Comes::Json("data"), "embeddings");
/// Google's names for it stand in the address.
static EMBED_CONTENT: Surface = plain("/embeddings", "content", Comes::Json("data"), "embeddings");
static BATCH_EMBED: Surface = plain("/embeddings", "requests", Comes::Json("data"), "embeddings");
static IMAGES: Surface =
    dealing(Deals::Images, streamed(plain("/images/generations", "prompt", Comes::Json("data"), "images")));
static IMAGE_EDITS: Surface =
    dealing(Deals::Images, streamed(plain("/images/edits", "prompt", Comes::Json("data"), "images")));
static MODERATIONS: Surface =
    usually("openai/omni-moderation-latest", plain("/moderations", "input", Comes::Json("results"), "moderations"));
static RERANK: Surface = dealing(Deals::Searches, plain("/rerank", "query", Comes::Json("results"), "reranking"));
static OCR: Surface = dealing(
    Deals::Pages,
    usually("mistral/mistral-ocr-latest", plain("/ocr", "document", Comes::Json("pages"), "OCR")),
);
static SPEECH: Surface = dealing(Deals::Characters, streamed(plain("/audio/speech", "input", Comes::Bytes, "speech")));
static TRANSCRIPTIONS: Surface = dealing(
    Deals::Audio,
    streamed(plain("/audio/transcriptions", "file", Comes::JsonOrText("text"), "transcriptions")),
);
static TRANSLATIONS: Surface = dealing(
    Deals::Audio,
    plain("/audio/translations", "file", Comes::JsonOrText("text"), "translations of recordings"),
);

static REALTIME: Surface = streamed(plain("/realtime", "model", Comes::Bytes, "realtime conversations"));

/// The entry of a call.
pub fn of(kind: Relayed) -> &'static Surface {
    match kind {
        Relayed::Embeddings => &EMBEDDINGS,
        Relayed::EmbedContent => &EMBED_CONTENT,
        Relayed::BatchEmbedContents => &BATCH_EMBED,
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

fn at(route: &Route) -> Option<&'static Surface> {
    match route.answer {
        Answer::Completions => Some(&COMPLETIONS),
        Answer::Relayed(kind) => Some(of(kind)),
        Answer::Realtime => Some(&REALTIME),
        _ => None,
    }
}

/// What a route's body needs; `None` for a conversation, which its dialect reads.
pub fn needs(route: &Route) -> Option<&'static Needs> {
    at(route).map(|surface| &surface.needs)
}

/// In which words a route's callers ask for embeddings.
pub fn embedding(route: &Route) -> Option<embeddings::Form> {
    match route.answer {
        Answer::Relayed(Relayed::Embeddings) => Some(embeddings::Form::OpenAi),
        Answer::Relayed(Relayed::EmbedContent) => Some(embeddings::Form::One),
        Answer::Relayed(Relayed::BatchEmbedContents) => Some(embeddings::Form::Many),
        _ => None,
    }
}

/// Where a text completion goes: it lives as a conversation does, at another endpoint.
pub fn completions_path(route: &Route) -> Option<&'static str> {
    (route.answer == Answer::Completions).then_some(COMPLETIONS.path)
}

/// Leaves the targets that have the route's call; an error when none does. A conversation has them all.
pub fn narrow(route: &Route, choice: &mut Choice) -> Result<(), Error> {
    let Some(surface) = at(route) else { return Ok(()) };
    let is_embedding = embedding(route).is_some();
    let has_it = |at: &usize| match choice.targets[*at].connection.dialect {
        Dialect::Openai => true,
        // Beside responses a provider has OpenAI's other calls, of which embeddings go without them as well.
        Dialect::OpenaiResponses | Dialect::Gemini => is_embedding,
        Dialect::Anthropic => false,
    };
    let places: Vec<usize> = (0..choice.targets.len()).filter(has_it).collect();
    if places.is_empty() {
        let spoken = if is_embedding { "OpenAI's dialect and Google's" } else { "OpenAI's dialect" };
        let message = format!(
            "No connection of this model's provider has {}: they are asked for in {spoken} only.",
            surface.name
        );
        return Err(Error::client(Kind::InvalidRequest, message).about("model"));
    }
    if places.len() < choice.targets.len() {
        *choice = choice.narrowed(&places);
    }
    Ok(())
}
