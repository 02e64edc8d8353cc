//! Estimates the tokens of a request for providers without a counting endpoint.

use fairlead_core::{Dialect, Error};

use crate::model::{Content, Part, Request};
use crate::text::Text;
use crate::translate::read_request;

/// The average of common tokenizers for text in most languages and for code.
const BYTES_PER_TOKEN: usize = 4;
/// Roles and separators of a message.
const TOKENS_PER_TURN: usize = 4;
/// An image of average size.
const TOKENS_PER_IMAGE: usize = 1_500;
/// The text of a document. The number of pages is unknown, so the size is used.
const BYTES_PER_DOCUMENT_TOKEN: usize = 40;
/// Speech at 16 KB per second has about 32 tokens per second. Base64 adds a third to the size.
const BYTES_PER_AUDIO_TOKEN: usize = 680;

/// Estimates the tokens of a request. Only members that the model receives are counted.
pub fn estimate_tokens(form: Dialect, body: &[u8]) -> Result<u64, Error> {
    Ok(tokens(&read_request(form, body, false)?) as u64)
}

fn tokens(request: &Request<'_>) -> usize {
    let turns: usize = request.turns.iter().map(|turn| TOKENS_PER_TURN + parts(&turn.parts)).sum();
    let tool = |tool: &crate::model::Tool<'_>| {
        let description = tool.description.as_ref().map_or(0, text);
        TOKENS_PER_TURN
            + text(&tool.name)
            + description
            + counted_bytes(tool.schema.as_ref().map_or(0, |schema| schema.len()))
    };
    let tools: usize = request.tools.iter().map(tool).sum();
    parts(&request.system) + turns + tools
}

fn parts(parts: &[Part<'_>]) -> usize {
    parts.iter().map(|part| of(&part.content)).sum()
}

fn of(content: &Content<'_>) -> usize {
    use crate::model::Source;
    match content {
        Content::Text(words) | Content::Refusal(words) | Content::Thinking { text: words, .. } => text(words),
        Content::Note { text: words, title } => text(words) + title.as_ref().map_or(0, text),
        Content::Document { source: Source::Base64 { data, .. }, .. } => {
            TOKENS_PER_IMAGE + data.len() / BYTES_PER_DOCUMENT_TOKEN
        }
        Content::Image(_) | Content::Document { .. } => TOKENS_PER_IMAGE,
        Content::Call(call) => TOKENS_PER_TURN + text(&call.name) + counted_bytes(call.arguments.len()),
        Content::Result { parts: inner, .. } => TOKENS_PER_TURN + parts(inner),
        Content::Audio { data, .. } => data.len() / BYTES_PER_AUDIO_TOKEN,
        Content::Redacted(_) => 0,
    }
}

fn text(text: &Text<'_>) -> usize {
    counted_bytes(text.decode().len())
}

/// Estimates the tokens of a text of this many bytes.
pub fn counted_bytes(length: usize) -> usize {
    length.div_ceil(BYTES_PER_TOKEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_text_is_more_tokens() {
        let body = |words: &str| format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{words}"}}]}}"#);
        let count = |words: &str| estimate_tokens(Dialect::Anthropic, body(words).as_bytes()).expect("a request");
        assert_eq!(count("Good morning"), 7);
        assert_eq!(count("\\u00e9\\u00e9"), 5, "what is said counts, not how it is escaped");
        assert!(count(&"word ".repeat(1_000)) > 1_000);
    }

    #[test]
    fn tools_and_images_count() {
        let body = br#"{"model":"m","system":"12345678","tools":[{"name":"tide","input_schema":{"type":"object"}}],
            "messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x"}}]}]}"#;
        assert_eq!(estimate_tokens(Dialect::Anthropic, body).expect("a request"), 2 + 4 + 1 + 5 + 4 + 1_500);
    }
}
