//! Text that is sent as base64: documents of plain text, and data URLs.

use super::lossy::lossy;
use super::text::judge_text;
use super::{merge, Actions, Findings};
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::DecodePaddingMode;
use base64::Engine;

/// Reads base64 with and without padding, and writes it with padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);
const SCHEME: &[u8] = b"data:";
/// The bytes at the start of a file that show whether it is text.
const SHOWN_BYTES: usize = 192;

/// The content of a string that may be a data URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// Not a data URL.
    NoData,
    /// A data URL of a picture, sound, or another file that is not text.
    Other,
    /// A data URL of text.
    Text,
}

/// The content of a string, by its first bytes.
pub(super) fn content_of(head: &[u8]) -> Content {
    if !head.get(..SCHEME.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(SCHEME)) {
        return Content::NoData;
    }
    let media = &head[SCHEME.len()..];
    let end = media.iter().position(|byte| matches!(byte, b';' | b',')).unwrap_or(media.len());
    // A data URL without a type is plain text.
    if end == 0 || is_text_media(&media[..end]) {
        Content::Text
    } else {
        Content::Other
    }
}

/// Whether files of this MIME type are text.
pub(super) fn is_text_media(media: &[u8]) -> bool {
    let media = String::from_utf8_lossy(media).to_ascii_lowercase();
    let kind = media.split(';').next().unwrap_or_default().trim();
    if kind.starts_with("text/") {
        return true;
    }
    let Some(name) = kind.strip_prefix("application/") else { return kind.ends_with("+xml") };
    name.ends_with("+json") || name.ends_with("+xml") || TEXT_FORMATS.contains(&name.trim_start_matches("x-"))
}

/// Formats of text that are registered as applications.
const TEXT_FORMATS: &[&str] = &[
    "csv",
    "ecmascript",
    "graphql",
    "javascript",
    "json",
    "json5",
    "jsonl",
    "jsonlines",
    "latex",
    "ndjson",
    "python",
    "rtf",
    "sh",
    "sql",
    "tex",
    "toml",
    "typescript",
    "xml",
    "yaml",
];

/// Judges the text in a data URL or in base64. Returns the string to send instead, or `None` if it is unchanged or no
/// text. A provider cannot decode invalid base64 either.
pub(super) fn judge_encoded(value: &str, actions: Actions, findings: &mut Findings) -> Option<String> {
    let is_url = content_of(value.as_bytes()) != Content::NoData;
    let (start, data) = match value.split_once(',').filter(|_| is_url) {
        Some((start, data)) => (start, data),
        None => ("", value),
    };
    if is_url && !start.to_ascii_lowercase().trim_end().ends_with(";base64") {
        let judged = judge_text(value, actions);
        merge(findings, judged.findings);
        return judged.redacted;
    }
    if !is_url && !looks_like_text(data) {
        return None;
    }
    let bytes = decoded(data)?;
    let judged = judge_text(&lossy(&bytes), actions);
    merge(findings, judged.findings);
    let redacted = judged.redacted?;
    let comma = if is_url { "," } else { "" };
    Some([start, comma, &BASE64.encode(redacted)].concat())
}

fn decoded(data: &str) -> Option<Vec<u8>> {
    let plain = |byte: u8| match byte {
        b'-' => b'+',
        b'_' => b'/',
        other => other,
    };
    let data: Vec<u8> = data.bytes().filter(|byte| !byte.is_ascii_whitespace()).map(plain).collect();
    BASE64.decode(data).ok()
}

/// Whether a file without a type is text, by its first bytes.
fn looks_like_text(data: &str) -> bool {
    let head: String = data.chars().filter(|character| !character.is_whitespace()).take(SHOWN_BYTES / 3 * 4).collect();
    let Some(bytes) = decoded(&head) else { return false };
    let is_control = |byte: &u8| *byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b'\x1b');
    let is_utf8 = match std::str::from_utf8(&bytes) {
        Ok(_) => true,
        // The last character may be cut off.
        Err(error) => error.error_len().is_none(),
    };
    is_utf8 && !bytes.iter().any(is_control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guardrail::Action;

    const REDACT: Actions =
        Actions { pii_masker: Action::Redact, prompt_injection: Action::Off, credential_masker: Action::Off };

    fn judged(value: &str) -> Option<String> {
        judge_encoded(value, REDACT, &mut Findings::new())
    }

    #[test]
    fn text_in_base64_is_judged_and_encoded_again() {
        let text = "write to ada@example.org, \u{e9}";
        let redacted = BASE64.encode("write to [REDACTED:email], \u{e9}");
        let plain = BASE64.encode(text);
        assert_eq!(judged(&plain), Some(redacted.clone()));
        assert_eq!(judged(plain.trim_end_matches('=')), Some(redacted.clone()));
        let lines: Vec<&str> =
            plain.as_bytes().chunks(8).map(|line| std::str::from_utf8(line).expect("ASCII")).collect();
        assert_eq!(judged(&lines.join("\r\n")), Some(redacted.clone()));
        for start in ["data:text/plain;base64", "data:;base64", "DATA:application/json;charset=utf-8;BASE64"] {
            assert_eq!(judged(&format!("{start},{plain}")), Some(format!("{start},{redacted}")));
        }
        assert_eq!(judged("data:,ada%40example.org").as_deref(), Some("data:,[REDACTED:email]"));
    }

    #[test]
    fn files_that_are_not_text_stay() {
        for bytes in [&b"\x89PNG\r\n\x1a\n ada@example.org"[..], b"%PDF-1.7\n%\xe2\xe3 ada@example.org", b"PK\x03\x04"]
        {
            assert_eq!(judged(&BASE64.encode(bytes)), None);
        }
        assert_eq!(judged("no base64 of ada@example.org"), None);
    }

    #[test]
    fn types_of_text_are_known() {
        for media in
            ["text/plain", "Text/CSV; charset=utf-8", "application/json", "application/x-yaml", "image/svg+xml"]
        {
            assert!(is_text_media(media.as_bytes()), "{media}");
        }
        for media in ["image/png", "application/pdf", "audio/wav", "", "application/zip"] {
            assert!(!is_text_media(media.as_bytes()), "{media}");
        }
    }
}
