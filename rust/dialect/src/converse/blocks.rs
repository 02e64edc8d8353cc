//! Writes the instructions, turns and content blocks of a `Converse` request.

use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use fairlead_core::{Error, NameRule};

use crate::model::{unsupported, Content, Format, Part, Request, Role, Source};
use crate::portable_id::{fitted_id, is_blank};
use crate::text::{Text, Writer};

/// Sent with a document alone, because Bedrock requires a text beside documents.
const DOCUMENT_TEXT: &str = "See the attached document.";
/// Stands for the empty output of a tool.
const NO_OUTPUT: &str = "(no output)";
/// There is no general JSON mode, so JSON is requested through an instruction.
const ANY_JSON: &str = "Answer with one JSON object and nothing else.";
const MAX_NAME_CHARS: usize = 200;

/// How blocks are written for one model.
pub(super) struct Blocks<'d> {
    pub(super) model: &'d str,
    pub(super) call_ids: NameRule,
    /// Whether the model accepts `cachePoint`.
    pub(super) cached: bool,
}

impl Blocks<'_> {
    pub(super) fn system(&self, out: &mut Writer, request: &Request<'_>) -> Result<(), Error> {
        let wants_json = matches!(request.format, Some(Format::Json));
        if !wants_json && !request.system.iter().any(|part| self.is_sent(part)) {
            return Ok(());
        }
        out.key("system").open(b'[');
        self.parts(out, request.system.iter(), &mut 0)?;
        if wants_json {
            out.open(b'{').key("text").str(ANY_JSON).close(b'}');
        }
        out.close(b']');
        Ok(())
    }

    /// Writes the turns. Consecutive turns of one role become one message, because roles must alternate.
    pub(super) fn messages(&self, out: &mut Writer, request: &Request<'_>) -> Result<(), Error> {
        let mut documents = 0;
        out.key("messages").open(b'[');
        for run in request.turns.chunk_by(|one, next| one.role == next.role) {
            let [first, ..] = run else { continue };
            let parts = || run.iter().flat_map(|turn| &turn.parts);
            if !parts().any(|part| self.is_sent(part)) {
                continue;
            }
            let role = if first.role == Role::User { "user" } else { "assistant" };
            out.open(b'{').key("role").str(role).key("content").open(b'[');
            let is_document = |part: &Part<'_>| matches!(part.content, Content::Document { .. } | Content::Note { .. });
            let is_text = |part: &Part<'_>| matches!(part.content, Content::Text(_)) && self.is_sent(part);
            if parts().any(is_document) && !parts().any(is_text) {
                out.open(b'{').key("text").str(DOCUMENT_TEXT).close(b'}');
            }
            self.parts(out, parts(), &mut documents)?;
            out.close(b']').close(b'}');
        }
        out.close(b']');
        Ok(())
    }

    fn parts<'r, 'a: 'r>(
        &self,
        out: &mut Writer,
        parts: impl Iterator<Item = &'r Part<'a>>,
        documents: &mut usize,
    ) -> Result<(), Error> {
        for part in parts.filter(|part| self.is_sent(part)) {
            out.open(b'{');
            self.block(out, part, documents)?;
            out.close(b'}');
            if let Some(mark) = part.cache.filter(|_| self.cached) {
                out.open(b'{').key("cachePoint").open(b'{').key("type").raw(r#""default""#);
                if mark.contains(r#""1h""#) {
                    out.key("ttl").raw(r#""1h""#);
                }
                out.close(b'}').close(b'}');
            }
        }
        Ok(())
    }

    /// Whether a part is sent. Blank texts are rejected. Reasoning is accepted only by the maker that signed it.
    fn is_sent(&self, part: &Part<'_>) -> bool {
        match &part.content {
            Content::Text(text) | Content::Refusal(text) => !is_blank(text),
            Content::Thinking { signature, .. } => {
                self.is_claude() && signature.as_ref().is_some_and(crate::signature::is_anthropics)
            }
            Content::Redacted(_) => self.is_claude(),
            _ => true,
        }
    }

    fn is_claude(&self) -> bool {
        self.model.contains("anthropic.")
    }

    fn block(&self, out: &mut Writer, part: &Part<'_>, documents: &mut usize) -> Result<(), Error> {
        match &part.content {
            Content::Text(text) | Content::Refusal(text) => drop(out.member("text", text)),
            Content::Image(Source::Base64 { media_type, data }) => {
                let format = image_format(media_type).ok_or_else(|| unsupported(&part.path))?;
                source(out.key("image").open(b'{'), format, data);
                out.close(b'}');
            }
            Content::Document { source: Source::Base64 { media_type, data }, title } => {
                let format = document_format(media_type).ok_or_else(|| unsupported(&part.path))?;
                document(out, format, title.as_ref(), data, documents);
            }
            Content::Note { text, title } => {
                document(out, "txt", title.as_ref(), &STANDARD.encode(text.decode().as_bytes()), documents);
            }
            Content::Image(Source::Url(_)) | Content::Document { source: Source::Url(_), .. } => {
                return Err(unsupported(&part.path));
            }
            Content::Audio { .. } => return Err(unsupported(&part.path)),
            Content::Thinking { text, signature } => {
                out.key("reasoningContent").open(b'{').key("reasoningText").open(b'{').member("text", text);
                if let Some(signature) = signature {
                    out.member("signature", signature);
                }
                out.close(b'}').close(b'}');
            }
            Content::Redacted(data) => {
                out.key("reasoningContent").open(b'{').member("redactedContent", data).close(b'}');
            }
            Content::Call(call) => {
                out.key("toolUse").open(b'{').member("toolUseId", &fitted_id(&call.id, self.call_ids));
                out.member("name", &call.name).key("input").raw(&call.arguments).close(b'}');
            }
            Content::Result { id, parts, is_error } => {
                out.key("toolResult").open(b'{').member("toolUseId", &fitted_id(id, self.call_ids));
                out.key("content").open(b'[');
                if parts.iter().any(|part| self.is_sent(part)) {
                    let unmarked = Blocks { cached: false, ..*self };
                    unmarked.parts(out, parts.iter(), documents)?;
                } else {
                    out.open(b'{').key("text").str(NO_OUTPUT).close(b'}');
                }
                out.close(b']');
                // Other makers reject the member.
                if *is_error && (self.is_claude() || self.model.contains("nova")) {
                    out.key("status").raw(r#""error""#);
                }
                out.close(b'}');
            }
        }
        Ok(())
    }
}

/// Whether the request has a mark for the provider's prompt cache.
pub(super) fn has_marks(request: &Request<'_>) -> bool {
    let turns = request.turns.iter().flat_map(|turn| &turn.parts);
    let is_tool = request.tools.iter().any(|tool| tool.cache.is_some());
    is_tool || request.system.iter().chain(turns).any(|part| part.cache.is_some())
}

fn source(out: &mut Writer, format: &str, data: &str) {
    out.key("format").str(format).key("source").open(b'{').key("bytes").str(data).close(b'}');
}

/// Writes a document. Bedrock requires a name, and rejects two documents of one name in a conversation.
fn document(out: &mut Writer, format: &str, title: Option<&Text<'_>>, data: &str, documents: &mut usize) {
    *documents += 1;
    let name = document_name(title.map(Text::decode).as_deref(), *documents);
    source(out.key("document").open(b'{').key("name").str(&name), format, data);
    out.close(b'}');
}

/// A name of the characters that Bedrock accepts: letters, digits, single spaces, `-`, `(`, `)`, `[` and `]`.
fn document_name(title: Option<&str>, number: usize) -> String {
    let mut name = String::new();
    for char in title.unwrap_or("Document").chars().take(MAX_NAME_CHARS - 10) {
        let fits = char.is_ascii_alphanumeric() || "-()[]".contains(char);
        if fits {
            name.push(char);
        } else if !name.is_empty() && !name.ends_with(' ') {
            name.push(' ');
        }
    }
    let name = name.trim_end();
    let name = if name.is_empty() { "Document" } else { name };
    if number == 1 {
        return name.to_owned();
    }
    format!("{name} {number}")
}

fn image_format(media_type: &str) -> Option<&'static str> {
    match media_type {
        "image/png" => Some("png"),
        "image/jpeg" | "image/jpg" => Some("jpeg"),
        "image/gif" => Some("gif"),
        "image/webp" => Some("webp"),
        _ => None,
    }
}

fn document_format(media_type: &str) -> Option<&'static str> {
    match media_type {
        "application/pdf" => Some("pdf"),
        "text/csv" => Some("csv"),
        "application/msword" => Some("doc"),
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => Some("docx"),
        "application/vnd.ms-excel" => Some("xls"),
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => Some("xlsx"),
        "text/html" => Some("html"),
        "text/plain" => Some("txt"),
        "text/markdown" => Some("md"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_a_name_that_bedrock_accepts() {
        assert_eq!(document_name(Some("Q3 report_v2 (final).pdf"), 1), "Q3 report v2 (final) pdf");
        assert_eq!(document_name(Some("帳簿"), 2), "Document 2");
        assert_eq!(document_name(None, 1), "Document");
        assert!(document_name(Some(&"a".repeat(400)), 12).len() <= MAX_NAME_CHARS);
    }
}
