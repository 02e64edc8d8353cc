//! References to objects in the provider's account: vector stores, containers, stored prompts, files and others.
//!
//! A provider finds such an object with the operator's credential. A caller that knows an id could therefore read
//! objects of the operator, or of another caller. [`first`] finds the first reference in a body that the caller may not
//! use. `names` has the members, `walk` visits the body.

mod names;
#[cfg(test)]
mod tests;
mod walk;

use fairlead_core::Dialect;
use memchr::memmem;
use regex::bytes::Regex;
use std::sync::LazyLock;

/// A reference to an object that the caller may not use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The path of the member, in the caller's dialect.
    pub path: String,
    /// The id, cut to 64 characters.
    pub id: String,
    pub kind: ObjectKind,
}

/// The kind of an object. It decides how a caller can use the objects that it created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    /// A file or cached content, which the gateway stores too. It inserts those of the caller into the body.
    File,
    /// A URL that may name a file of the gateway. A provider reads it without the operator's credential.
    MaybeFile,
    /// An item of a stored response. The gateway inserts those of the caller's own responses.
    Item,
    /// Any other object, which only the provider stores.
    Other,
}

/// A body to search.
#[derive(Debug, Clone, Copy)]
pub struct Searched<'b> {
    pub body: &'b [u8],
    pub dialect: Dialect,
    /// Ids of items name items of an open session, as in a realtime conversation.
    pub is_session: bool,
}

/// Every reference contains one of these texts. An escape may hide a letter of a name, and so counts as one.
static MARKS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let names = [
        "audio",
        "cachedContent",
        "cached_content",
        "collection_ids",
        "connector_id",
        "container",
        "container_id",
        "data_sources",
        "file_id",
        "file_ids",
        "fileUri",
        "file_uri",
        "item_reference",
        "prompt",
        "retrieval",
        "skill_id",
        "tunnel_id",
        "vector_store_ids",
        "voice",
    ];
    let mut marks: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    let texts = ["\"fileSearch", "\"file_search", "\"gs:", "\"GS:", "\"s3:", "\"S3:", "\"file:", ":///", ":\\/\\/\\/"];
    marks.extend(texts.map(str::to_owned));
    marks.extend(
        ["/files/", "\\/files\\/", "\\u002", "\\u003", "\\u004", "\\u005", "\\u006", "\\u007"].map(str::to_owned),
    );
    let marks: Vec<String> = marks.iter().map(|mark| regex::escape(mark)).collect();
    Regex::new(&format!("(?-u){}", marks.join("|"))).ok()
});

/// Whether the body may have a reference. Most bodies have none, which one search for texts detects.
pub fn may_have(searched: Searched<'_>) -> bool {
    let Searched { body, dialect, is_session } = searched;
    // An item that consists of an id refers to a stored item.
    let has_ids = dialect == Dialect::OpenaiResponses && !is_session && memmem::find(body, b"\"id\"").is_some();
    has_ids || MARKS.as_ref().is_none_or(|marks| marks.is_match(body))
}

/// Returns the first reference for which `is_refused` is true, given its kind and id.
pub fn first(searched: Searched<'_>, is_refused: impl Fn(ObjectKind, &str) -> bool) -> Option<Reference> {
    walk::Walk::new(searched, &is_refused).run()
}

/// Whether the body names a file, cached content or item that the gateway may store.
pub fn has_stored(searched: Searched<'_>) -> bool {
    first(searched, |kind, _| kind != ObjectKind::Other).is_some()
}
