//! An upstream's own words about its failure.

use fairlead_core::json::{self, JsonFault, Kind, Value};

use crate::lenient;

/// Characters kept of a message.
pub const MAX_MESSAGE_CHARS: usize = 4096;
/// Characters kept of the other members.
const MAX_NAME_CHARS: usize = 128;

/// The members of an upstream's error object. They are the upstream's words: nothing in them is trusted, and the message
/// may repeat a prompt or a credential.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpstreamError {
    /// First line only.
    pub message: String,
    /// The member `type`.
    pub kind: Option<String>,
    /// A number is told as its digits.
    pub code: Option<String>,
    pub param: Option<String>,
    /// `details.error_code`, by which Anthropic's clients know what to do next.
    pub detail: Option<String>,
}

/// Reads `{"error": {...}}`, `{"error": "text"}` and `{"message": "text", ...}`; `None` when the body is none of them.
pub fn error_fields(body: &[u8]) -> Option<UpstreamError> {
    lenient::read(body, read_fields).ok()?
}

fn read_fields(body: &[u8]) -> Result<Option<UpstreamError>, JsonFault> {
    let scan = json::scan_object(body, &["error", "message"], json::MAX_DEPTH)?;
    let error = scan.get("error").filter(|error| is_error(*error));
    Ok(match (error, scan.get("message")) {
        (Some(error), _) => Some(read(body, error)),
        (None, Some(message)) if message.kind == Kind::String => Some(members(body)),
        _ => None,
    })
}

/// Whether a top-level `error` member says that something failed: an object with members, or a text.
pub(crate) fn is_error(value: Value) -> bool {
    match value.kind {
        Kind::Object => value.elements > 0,
        Kind::String => value.end - value.start > 2,
        _ => false,
    }
}

/// Reads the value of an `error` member.
pub(super) fn read(body: &[u8], error: Value) -> UpstreamError {
    match json::as_str(body, error) {
        Some(text) => UpstreamError { message: first_line(&text), ..UpstreamError::default() },
        None => members(body.get(error.span()).unwrap_or_default()),
    }
}

fn members(object: &[u8]) -> UpstreamError {
    lenient::read(object, read_members).unwrap_or_default()
}

fn read_members(object: &[u8]) -> Result<UpstreamError, JsonFault> {
    let wanted = ["message", "type", "code", "param", "details"];
    let scan = json::scan_object(object, &wanted, json::MAX_DEPTH)?;
    let text = |name| scan.get(name).and_then(|value| json::as_str(object, value));
    let name = |name| text(name).map(|text| cut(&text, MAX_NAME_CHARS));
    let number = || {
        let code = scan.get("code").filter(|code| code.kind == Kind::Number)?;
        let digits = std::str::from_utf8(object.get(code.span())?).ok()?;
        Some(cut(digits, MAX_NAME_CHARS))
    };
    let detail = || {
        let details = scan.get("details").filter(|details| details.kind == Kind::Object)?;
        let inner = object.get(details.span())?;
        let scan = json::scan_object(inner, &["error_code"], json::MAX_DEPTH).ok()?;
        json::as_str(inner, scan.get("error_code")?).map(|code| cut(&code, MAX_NAME_CHARS))
    };
    Ok(UpstreamError {
        detail: detail(),
        message: text("message").map(|text| first_line(&text)).unwrap_or_default(),
        kind: name("type"),
        code: name("code").or_else(number),
        param: name("param"),
    })
}

fn first_line(text: &str) -> String {
    cut(text.trim_start().lines().next().unwrap_or_default(), MAX_MESSAGE_CHARS)
}

fn cut(text: &str, max_chars: usize) -> String {
    text.chars().take(max_chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_object_form() {
        let body = br#"{"error":{"message":"Too long.\nsecond","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#;

        let error = error_fields(body).expect("an error");
        assert_eq!("Too long.", error.message);
        assert_eq!(Some("invalid_request_error"), error.kind.as_deref());
        assert_eq!(Some("messages"), error.param.as_deref());
        assert_eq!(Some("context_length_exceeded"), error.code.as_deref());
    }

    #[test]
    fn reads_the_code_in_the_details() {
        let body = br#"{"type":"error","error":{"type":"not_found_error","message":"no","details":{"error_code":"thread_not_found","x":1}}}"#;
        assert_eq!(Some("thread_not_found"), error_fields(body).expect("an error").detail.as_deref());
        let other = error_fields(br#"{"error":{"message":"no","details":["x"]}}"#).expect("an error");
        assert_eq!(None, other.detail);
    }

    #[test]
    fn reads_the_text_and_flat_forms() {
        assert_eq!("no", error_fields(br#"{"error":"no"}"#).expect("an error").message);
        let flat = error_fields(br#"{"object":"error","message":"no","code":404}"#).expect("an error");
        let half = error_fields(br#"{"error":{"message":"no \ud83d","message":"no \ude00"}}"#).expect("an error");
        assert_eq!("no \u{fffd}", half.message);
        assert_eq!(("no", Some("404")), (&*flat.message, flat.code.as_deref()));
    }

    #[test]
    fn is_none_when_the_body_tells_no_error() {
        for body in
            ["", "<html>", "[]", "{}", r#"{"error":null}"#, r#"{"error":{}}"#, r#"{"error":""}"#, r#"{"message":1}"#]
        {
            assert_eq!(None, error_fields(body.as_bytes()), "{body}");
        }
    }

    #[test]
    fn keeps_a_bounded_part() {
        let body = format!(r#"{{"error":{{"message":"{}","code":"{}"}}}}"#, "é".repeat(9000), "c".repeat(9000));

        let error = error_fields(body.as_bytes()).expect("an error");
        assert_eq!(MAX_MESSAGE_CHARS, error.message.chars().count());
        assert_eq!(Some(128), error.code.map(|code| code.len()));
    }
}
