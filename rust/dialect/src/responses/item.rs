//! Writes the items of an output, for complete and streamed answers.

use crate::text::Writer;

/// The status of an item.
pub(super) const COMPLETED: &str = "completed";
pub(super) const IN_PROGRESS: &str = "in_progress";

/// Writes a message. `content` holds list elements without the brackets.
pub(super) fn message(id: &str, status: &str, content: &[u8]) -> Vec<u8> {
    let mut out = Writer::with_capacity(content.len() + 96);
    out.open(b'{').key("id").str(id).key("type").raw(r#""message""#).key("status").str(status);
    out.key("role").raw(r#""assistant""#).key("content").open(b'[').spliced(content).close(b']').close(b'}').take()
}

/// Writes a text part. In all functions here, `text` is an escaped string without its quotes.
pub(super) fn text_part(text: &[u8], logprobs: &[u8]) -> Vec<u8> {
    let mut out = Writer::with_capacity(text.len() + 64);
    out.open(b'{').key("type").raw(r#""output_text""#).key("text").inner(text).key("annotations").raw("[]");
    out.key("logprobs").open(b'[').spliced(logprobs).close(b']').close(b'}').take()
}

pub(super) fn refusal_part(text: &[u8]) -> Vec<u8> {
    let mut out = Writer::with_capacity(text.len() + 32);
    out.open(b'{').key("type").raw(r#""refusal""#).key("refusal").inner(text).close(b'}').take()
}

pub(super) fn summary_part(text: &[u8]) -> Vec<u8> {
    let mut out = Writer::with_capacity(text.len() + 32);
    out.open(b'{').key("type").raw(r#""summary_text""#).key("text").inner(text).close(b'}').take()
}

/// Writes a reasoning item. An empty `text` means no summary.
pub(super) fn reasoning(id: &str, text: &[u8], encrypted: Option<&str>) -> Vec<u8> {
    let mut out = Writer::with_capacity(text.len() + 96);
    out.open(b'{').key("id").str(id).key("type").raw(r#""reasoning""#).key("summary").open(b'[');
    if !text.is_empty() {
        out.spliced(&summary_part(text));
    }
    out.close(b']');
    if let Some(encrypted) = encrypted {
        out.key("encrypted_content").str(encrypted);
    }
    out.close(b'}').take()
}
