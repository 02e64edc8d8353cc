//! Parses provider errors in all known formats: OpenAI's `type`, `code` and `param`, Anthropic's `type`, Google's
//! `status` and `details`, and those of compatible servers with different error formats.

use fairlead_core::json::{self, JsonFault, Kind, Value};
use serde_json::Value as Json;
use std::num::NonZeroU64;

use crate::lenient;

/// The maximum characters stored of a message.
pub const MAX_MESSAGE_CHARS: usize = 4096;
/// The maximum characters stored of other members.
const MAX_NAME_CHARS: usize = 128;

/// The members of a provider's error object. They are untrusted, and the message can contain a prompt or a credential.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpstreamError {
    /// Only the first line.
    pub message: String,
    /// The member `type`.
    pub kind: Option<String>,
    /// A numeric code is stored as digits. Google's reason (`API_KEY_INVALID`) is stored here as well.
    pub code: Option<String>,
    pub param: Option<String>,
    /// The member `status`, Google's kind of error, such as `INVALID_ARGUMENT`.
    pub status: Option<Box<str>>,
    /// The time to wait before a retry, if the body has it.
    pub retry_ms: Option<NonZeroU64>,
    /// `details.error_code`, which tells Anthropic's clients how to proceed.
    pub detail: Option<String>,
}

impl UpstreamError {
    /// Creates an error from a plain text body.
    pub fn of_text(text: &str) -> Self {
        Self { message: first_line(text), ..Self::default() }
    }
}

/// Parses `{"error": {...}}`, `{"error": "text"}`, `{"message": "text", ...}`, `{"detail": ...}` and
/// `{"base_resp": {...}}`, and each of them as the only element of a list. Returns `None` for any other body.
pub fn error_fields(body: &[u8]) -> Option<UpstreamError> {
    match body.trim_ascii_start().first() {
        Some(b'[') => match lenient::value(body)? {
            Json::Array(list) => error_fields(&serde_json::to_vec(list.first().filter(|one| one.is_object())?).ok()?),
            _ => None,
        },
        _ => lenient::read(body, read_fields).ok()?,
    }
}

fn read_fields(body: &[u8]) -> Result<Option<UpstreamError>, JsonFault> {
    let wanted = ["error", "message", "detail", "base_resp", "code"];
    let scan = json::scan_object(body, &wanted, json::MAX_DEPTH)?;
    if let Some(error) = scan.get("error").filter(|error| is_error(*error)) {
        let read = read(body, error);
        // xAI has the code beside the text.
        let code = || scan.get("code").and_then(|code| json::as_str(body, code)).map(|code| cut(&code, MAX_NAME_CHARS));
        return Ok(Some(UpstreamError { code: read.code.clone().or_else(code), ..read }));
    }
    if scan.get("message").is_some_and(|message| message.kind == Kind::String) {
        return Ok(Some(members(body)));
    }
    let part = |name| scan.get(name).and_then(|value| body.get(value.span())).and_then(lenient::value);
    Ok(part("detail").and_then(|detail| of_detail(&detail)).or_else(|| of_base_resp(&part("base_resp")?)))
}

/// Parses the `FastAPI` format: a text, or a list of errors with locations.
fn of_detail(detail: &Json) -> Option<UpstreamError> {
    let fault = detail.get(0).unwrap_or(detail);
    let text = |name: &str| fault.get(name).and_then(Json::as_str);
    let message = fault.as_str().or_else(|| text("msg")).or_else(|| text("message"))?;
    let location =
        fault.get("loc").and_then(Json::as_array).and_then(|location| location.last()).and_then(Json::as_str);
    Some(UpstreamError {
        message: first_line(message),
        code: text("type").map(|code| cut(code, MAX_NAME_CHARS)),
        param: location.map(|location| cut(location, MAX_NAME_CHARS)),
        ..UpstreamError::default()
    })
}

/// Parses the `MiniMax` format.
fn of_base_resp(status: &Json) -> Option<UpstreamError> {
    let code = status.get("status_code").and_then(Json::as_i64).filter(|code| *code != 0)?;
    let message = status.get("status_msg").and_then(Json::as_str).unwrap_or_default();
    Some(UpstreamError { message: first_line(message), code: Some(code.to_string()), ..UpstreamError::default() })
}

/// Returns whether a top-level `error` member reports an error: a non-empty object, or a text.
pub(crate) fn is_error(value: Value) -> bool {
    match value.kind {
        Kind::Object => value.elements > 0,
        Kind::String => value.end - value.start > 2,
        _ => false,
    }
}

/// Parses the value of an `error` member.
pub(super) fn read(body: &[u8], error: Value) -> UpstreamError {
    match json::as_str(body, error) {
        Some(text) => UpstreamError::of_text(&text),
        None => members(body.get(error.span()).unwrap_or_default()),
    }
}

fn members(object: &[u8]) -> UpstreamError {
    lenient::read(object, read_members).unwrap_or_default()
}

fn read_members(object: &[u8]) -> Result<UpstreamError, JsonFault> {
    let wanted = ["message", "type", "code", "param", "status", "details", "metadata"];
    let scan = json::scan_object(object, &wanted, json::MAX_DEPTH)?;
    let text = |name| scan.get(name).and_then(|value| json::as_str(object, value));
    let name = |name| text(name).map(|text| cut(&text, MAX_NAME_CHARS));
    let number = || {
        let code = scan.get("code").filter(|code| code.kind == Kind::Number)?;
        let digits = std::str::from_utf8(object.get(code.span())?).ok()?;
        Some(cut(digits, MAX_NAME_CHARS))
    };
    let part = |name| scan.get(name).and_then(|value| object.get(value.span())).and_then(lenient::value);
    let details = part("details");
    let detail = details.as_ref().and_then(|details| details.get("error_code")).and_then(Json::as_str);
    let detail = detail.map(|code| cut(code, MAX_NAME_CHARS));
    let details = details.map(|details| details_of(&details)).unwrap_or_default();
    let error = UpstreamError {
        detail,
        message: text("message").map(|text| first_line(&text)).unwrap_or_default(),
        kind: name("type"),
        code: details.reason.or_else(|| name("code")).or_else(number),
        param: name("param"),
        status: name("status").map(String::into_boxed_str),
        retry_ms: details.retry_ms.and_then(NonZeroU64::new),
    };
    Ok(part("metadata").and_then(|metadata| behind(&metadata)).unwrap_or(error))
}

/// The relevant data of Google's list of details.
#[derive(Default)]
struct Details {
    reason: Option<String>,
    retry_ms: Option<u64>,
}

fn details_of(details: &Json) -> Details {
    let each = || details.as_array().into_iter().flatten();
    let text = |name: &'static str| each().find_map(move |one| one.get(name).and_then(Json::as_str));
    let seconds = text("retryDelay").and_then(|delay| delay.strip_suffix('s')?.parse::<f64>().ok());
    Details {
        reason: text("reason").map(|reason| cut(reason, MAX_NAME_CHARS)),
        retry_ms: seconds.filter(|seconds| *seconds > 0.0).map(|seconds| (seconds * 1_000.0).ceil() as u64),
    }
}

/// Parses the original provider's error, which a router such as OpenRouter embeds as text.
fn behind(metadata: &Json) -> Option<UpstreamError> {
    let raw = metadata.get("raw").and_then(Json::as_str).filter(|raw| !raw.is_empty())?;
    let plain = || UpstreamError { message: first_line(raw), ..UpstreamError::default() };
    // Text with a nested member of this kind is not parsed as JSON, so the recursion ends after one level.
    let is_nested = raw.contains("\"raw\"");
    if is_nested {
        return Some(plain());
    }
    Some(error_fields(raw.as_bytes()).unwrap_or_else(plain))
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
    fn reads_the_forms_of_other_dialects() {
        let anthropic = error_fields(br#"{"type":"error","error":{"type":"not_found_error","message":"model: x"}}"#);
        assert_eq!(Some("not_found_error"), anthropic.expect("an error").kind.as_deref());
        let google = br#"[{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[
            {"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"},{"retryDelay":"45.5s"}]}}]"#;
        let google = error_fields(google).expect("an error");
        assert_eq!(
            (Some("API_KEY_INVALID"), Some("INVALID_ARGUMENT")),
            (google.code.as_deref(), google.status.as_deref())
        );
        assert_eq!(Some(45_500), google.retry_ms.map(NonZeroU64::get));
        let fastapi =
            br#"{"detail":[{"type":"extra_forbidden","loc":["body","seed"],"msg":"Extra inputs are not permitted"}]}"#;
        let fastapi = error_fields(fastapi).expect("an error");
        assert_eq!((Some("extra_forbidden"), Some("seed")), (fastapi.code.as_deref(), fastapi.param.as_deref()));
        assert_eq!("no", error_fields(br#"{"detail":"no"}"#).expect("an error").message);
        let xai = error_fields(br#"{"code":"invalid-argument","error":"too long"}"#).expect("an error");
        assert_eq!(("too long", Some("invalid-argument")), (&*xai.message, xai.code.as_deref()));
        let minimax =
            error_fields(br#"{"base_resp":{"status_code":2013,"status_msg":"context window"}}"#).expect("an error");
        assert_eq!(Some("2013"), minimax.code.as_deref());
        let router = br#"{"error":{"message":"Provider returned error","code":400,
            "metadata":{"raw":"{\"error\":{\"message\":\"too long\",\"code\":\"context_length_exceeded\"}}"}}}"#;
        let router = error_fields(router).expect("an error");
        assert_eq!(("too long", Some("context_length_exceeded")), (&*router.message, router.code.as_deref()));
        let nested = format!(
            r#"{{"error":{{"message":"m","metadata":{{"raw":{:?}}}}}}}"#,
            r#"{"error":{"metadata":{"raw":"x"}}}"#
        );
        assert_eq!(r#"{"error":{"metadata":{"raw":"x"}}}"#, error_fields(nested.as_bytes()).expect("an error").message);
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
