//! Error bodies, in the format of each surface.

use bytes::Bytes;
pub(crate) use fairlead_core::routes::Surface;
use fairlead_core::Error;
use serde_json::{json, Value};

/// The contents of an error body, independent of its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorText<'a> {
    /// The HTTP status of the response.
    pub status: u16,
    pub message: &'a str,
    /// OpenAI's `type`.
    pub kind: &'a str,
    pub code: Option<&'a str>,
    /// The field or header that the message is about.
    pub param: Option<&'a str>,
    /// A more specific code than `code`, which Anthropic's clients evaluate.
    pub detail: Option<&'a str>,
    /// The result of every target of a combo, as a JSON object.
    pub diagnostics: Option<&'a str>,
}

/// Writes the JSON body. `request_id` is included if the surface has a member for it. It is empty inside a stream,
/// whose response headers already contain it.
pub fn error_body(surface: Surface, text: &ErrorText<'_>, request_id: &str) -> Bytes {
    let mut body = match surface {
        Surface::OpenAi => json!({ "error": openai(text) }),
        Surface::Management => json!({ "error": openai(text), "requestId": request_id }),
        Surface::Anthropic => json!({
            "type": "error",
            "error": { "type": anthropic_type(text.status), "message": text.message },
            "request_id": request_id,
        }),
        Surface::Ollama => json!({ "error": text.message }),
        Surface::Scraping => json!({ "success": false, "error": text.message }),
        Surface::OAuth => json!({ "error": oauth_code(text.status), "error_description": oauth_text(text.message) }),
        Surface::Quota => json!({ "allowed": false, "error": { "message": text.message } }),
        Surface::Gemini => json!({
            "error": { "code": text.status, "message": text.message, "status": gemini_status(text.status) },
        }),
    };
    if request_id.is_empty() {
        body.as_object_mut().map(|members| members.remove("request_id"));
    }
    let has_url_params = matches!(surface, Surface::OpenAi | Surface::Anthropic | Surface::Gemini);
    if surface == Surface::Anthropic && text.param == Some(THREAD) && text.status == 400 {
        body["error"]["details"] = json!({ "error_code": "thread_unsupported_request", "unsupported": [THREAD] });
    }
    if let Some(code) = text.detail.filter(|_| surface == Surface::Anthropic) {
        body["error"]["details"] = json!({ "error_code": code });
    }
    if let Some(diagnostics) = text.diagnostics.filter(|_| has_url_params) {
        body["diagnostics"] = serde_json::from_str(diagnostics).unwrap_or_default();
    }
    Bytes::from(body.to_string())
}

impl<'a> From<&'a Error> for ErrorText<'a> {
    fn from(error: &'a Error) -> Self {
        Self {
            status: error.kind.status(),
            message: &error.message,
            kind: error.kind.wire_type(),
            code: Some(error.kind.code()),
            param: error.param.as_deref(),
            detail: None,
            diagnostics: error.diagnostics(),
        }
    }
}

fn openai(text: &ErrorText<'_>) -> Value {
    json!({ "message": text.message, "type": text.kind, "param": text.param, "code": text.code })
}

/// The member of a messages request that stores the conversation at the provider. Anthropic's tool runners add it
/// automatically, and retry without it if the error has these details.
const THREAD: &str = "thread";

/// Anthropic's closed list of error types.
pub fn anthropic_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 | 529 => "overloaded_error",
        504 => "timeout_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    }
}

/// The RFC 6749 section 5.2 code for errors that occur before the authorization server handles the request.
fn oauth_code(status: u16) -> &'static str {
    match status {
        503 => "temporarily_unavailable",
        500..=599 => "server_error",
        _ => "invalid_request",
    }
}

/// RFC 6749 allows visible ASCII without quotes and backslashes.
fn oauth_text(message: &str) -> String {
    message.replace(['"', '\\'], "'")
}

/// Google's names for HTTP statuses.
fn gemini_status(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        409 => "ABORTED",
        429 => "RESOURCE_EXHAUSTED",
        499 => "CANCELLED",
        400..=499 => "INVALID_ARGUMENT",
        503 | 529 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        _ => "INTERNAL",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_core::ErrorKind;

    fn body(surface: Surface, error: &Error) -> Value {
        let bytes = error_body(surface, &ErrorText::from(error), "req-1");
        serde_json::from_slice(&bytes).expect("JSON")
    }

    #[test]
    fn each_surface_has_its_own_shape() {
        let error = Error::client(ErrorKind::InvalidRequest, "say \"model\"").about("model");

        let inner = json!({
            "message": "say \"model\"", "type": "invalid_request_error", "param": "model", "code": "invalid_request",
        });
        assert_eq!(json!({ "error": inner }), body(Surface::OpenAi, &error));
        assert_eq!(json!({ "error": inner, "requestId": "req-1" }), body(Surface::Management, &error));
        assert_eq!(json!({ "success": false, "error": "say \"model\"" }), body(Surface::Scraping, &error));
        assert_eq!(json!({ "error": "say \"model\"" }), body(Surface::Ollama, &error));
        assert_eq!(
            json!({ "error": "invalid_request", "error_description": "say 'model'" }),
            body(Surface::OAuth, &error)
        );
        assert_eq!(
            json!({
                "type": "error", "request_id": "req-1",
                "error": { "type": "invalid_request_error", "message": "say \"model\"" },
            }),
            body(Surface::Anthropic, &error)
        );
        assert_eq!(
            json!({ "error": { "code": 400, "message": "say \"model\"", "status": "INVALID_ARGUMENT" } }),
            body(Surface::Gemini, &error)
        );
    }

    #[test]
    fn a_refused_thread_tells_clients_to_go_on_without_it() {
        let error = Error::client(ErrorKind::InvalidRequest, "`thread` cannot be expressed.").about("thread");
        let details = json!({ "error_code": "thread_unsupported_request", "unsupported": ["thread"] });
        assert_eq!(body(Surface::Anthropic, &error)["error"]["details"], details);
        assert_eq!(body(Surface::OpenAi, &error)["error"].get("details"), None);
    }

    #[test]
    fn an_error_inside_of_a_stream_claims_no_empty_id() {
        let error = Error::gateway(ErrorKind::UpstreamReset, "cut");
        let bytes = error_body(Surface::Anthropic, &ErrorText::from(&error), "");
        let document: Value = serde_json::from_slice(&bytes).expect("JSON");
        assert_eq!(document, json!({ "type": "error", "error": { "type": "api_error", "message": "cut" } }));
    }

    #[test]
    fn every_kind_has_a_name_on_every_surface() {
        for kind in ErrorKind::ALL {
            let error = Error::gateway(*kind, "text");
            let anthropic = body(Surface::Anthropic, &error);
            let gemini = body(Surface::Gemini, &error);
            let ours = kind.status() >= 500;
            assert_eq!(
                ours,
                ["api_error", "overloaded_error", "timeout_error"].iter().any(|own| anthropic["error"]["type"] == *own)
            );
            assert_eq!(
                ours,
                ["INTERNAL", "UNAVAILABLE", "DEADLINE_EXCEEDED"].iter().any(|own| gemini["error"]["status"] == *own)
            );
        }
    }
}
