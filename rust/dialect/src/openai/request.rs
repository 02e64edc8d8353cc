//! Reads the routing data of a chat completion request and writes the body for the provider.
//!
//! Only two things change: the model's name, and `stream_options.include_usage`, which is added to streams whose client
//! did not ask for usage, because requests are billed by usage. Every other byte passes unchanged.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use fairlead_core::json::{self, FaultKind, JsonFault, Kind, Value};
use fairlead_core::{Error, ErrorKind, ServiceTier};

use super::usage::service_of;
use crate::fit::Edits;
use crate::provider_members::{self, Purpose};
use crate::url_params::UrlParams;
use crate::Pieces;

/// The maximum nesting of a request body.
pub const MAX_DEPTH: usize = json::MAX_DEPTH;
pub const MAX_MODEL_CHARS: usize = 300;
pub const MAX_MESSAGES: usize = 10_000;

/// The routing data of a chat body. Its spans are valid only for that body.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "independent wishes of the caller")]
pub struct ChatRequest {
    /// The model name in the request.
    pub model: String,
    pub stream: bool,
    /// The caller asked for the usage chunk.
    pub requests_usage: bool,
    /// The number of messages.
    pub messages: usize,
    /// The requested maximum output per choice.
    pub max_output_tokens: Option<u64>,
    /// `n`: the number of choices.
    pub choices: u64,
    /// The requested service tier. The standard tier if the provider may choose.
    pub service: ServiceTier,
    /// The response that this request continues. Only in the responses dialect.
    pub previous: Option<String>,
    /// The stored conversation that this request continues and extends. Only in the responses dialect.
    pub conversation: Option<String>,
    /// The answer is stored for a later request. Only in the responses dialect.
    pub stores: bool,
    /// The caller reads the stream as a JSON array. Only in the Gemini dialect.
    pub reads_list: bool,
    /// A text completion, which has other names for some members.
    pub(crate) is_completion: bool,
    /// Empty if the URL names the model.
    pub(crate) model_span: Range<usize>,
    /// The edit that makes the body ask for usage. `None` if it already does or is not a stream.
    pub(super) request_usage: Option<Splice>,
}

/// Text that replaces a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Splice {
    span: Range<usize>,
    text: &'static str,
}

impl ChatRequest {
    /// Returns whether the request continues something stored.
    pub fn continues(&self) -> bool {
        self.previous.is_some() || self.conversation.is_some()
    }

    /// Returns this request, read from a rewritten body, with the model and the references of the original request.
    #[must_use]
    pub fn continued_from(self, named: Self) -> Self {
        Self { model: named.model, previous: named.previous, conversation: named.conversation, ..self }
    }

    /// Disables the usage edit, for dialects without `stream_options` that always report usage.
    pub(crate) fn pass_options(&mut self) {
        self.request_usage = None;
    }
}

/// Scans a conversation's body for the wanted members and checks the size of the others.
fn scanned<'w, const N: usize>(body: &[u8], wanted: &'w [&'w str; N]) -> Result<json::Scan<'w, N>, Error> {
    let scan = json::scan_object(body, wanted, MAX_DEPTH).map_err(|fault| broken(&fault))?;
    provider_members::check(body, &scan, Purpose::Conversation)?;
    Ok(scan)
}

/// Reads a body. An error has the kind `invalid_request` and names the member.
pub fn read(body: &[u8]) -> Result<ChatRequest, Error> {
    if body.is_empty() {
        return Err(invalid("The body is empty; expected a JSON object."));
    }
    let wanted =
        ["model", "messages", "stream", "stream_options", "max_completion_tokens", "max_tokens", "n", "service_tier"];
    let scan = scanned(body, &wanted)?;
    let (model, model_span) = model(body, scan.get("model"))?;
    let messages = messages(scan.get("messages"))?;
    let stream = match scan.get("stream") {
        None => false,
        Some(value) if value.is_null() => false,
        Some(value) => value.as_bool().ok_or_else(|| wrong("stream", "must be a boolean"))?,
    };
    let (requests_usage, splice) = usage_option(body, scan.get("stream_options"), scan.close())?;
    // A value that is not a count is left for the provider to reject.
    let count = |value: Option<Value>| std::str::from_utf8(body.get(value?.span())?).ok()?.parse::<u64>().ok();
    Ok(ChatRequest {
        model,
        stream,
        requests_usage,
        messages,
        max_output_tokens: count(scan.get("max_completion_tokens")).or_else(|| count(scan.get("max_tokens"))),
        choices: count(scan.get("n")).unwrap_or(1).max(1),
        service: service_of(body, scan.get("service_tier")),
        previous: None,
        conversation: None,
        stores: false,
        reads_list: false,
        is_completion: false,
        model_span,
        request_usage: splice.filter(|_| stream),
    })
}

/// Reads the body of a responses request. [`read`] does the same for a chat completion.
pub(crate) fn read_responses(body: &[u8]) -> Result<ChatRequest, Error> {
    if body.is_empty() {
        return Err(invalid("The body is empty; expected a JSON object."));
    }
    let wanted = [
        "model",
        "input",
        "stream",
        "max_output_tokens",
        "previous_response_id",
        "conversation",
        "store",
        "service_tier",
    ];
    let scan = scanned(body, &wanted)?;
    let (model, model_span) = model(body, scan.get("model"))?;
    let member = |name| scan.get(name).filter(|value: &Value| !value.is_null());
    let flag = |name, otherwise| match member(name) {
        None => Ok(otherwise),
        Some(value) => value.as_bool().ok_or_else(|| wrong(name, "must be a boolean")),
    };
    let previous = match member("previous_response_id") {
        None => None,
        Some(value) => Some(
            json::as_str(body, value)
                .map(Cow::into_owned)
                .ok_or_else(|| wrong("previous_response_id", "must be a string"))?,
        ),
    };
    let conversation = member("conversation").map(|value| conversation(body, value)).transpose()?;
    if previous.is_some() && conversation.is_some() {
        return Err(wrong("conversation", "and `previous_response_id` exclude each other: send one of them"));
    }
    let messages = match member("input") {
        Some(value) if value.kind == Kind::Array => value.elements,
        Some(value) if value.kind == Kind::String => 1,
        Some(_) => return Err(wrong("input", "must be a string or an array")),
        None => return Err(missing("input")),
    };
    if messages > MAX_MESSAGES {
        return Err(wrong("input", "must have at most 10,000 elements"));
    }
    let most = member("max_output_tokens").and_then(|value| json::as_u64(body, value));
    Ok(ChatRequest {
        model,
        stream: flag("stream", false)?,
        requests_usage: false,
        messages,
        max_output_tokens: most,
        choices: 1,
        service: service_of(body, scan.get("service_tier")),
        previous,
        conversation,
        stores: flag("store", true)?,
        reads_list: false,
        is_completion: false,
        model_span,
        request_usage: None,
    })
}

/// Returns the id of a conversation, given as a string or an object.
fn conversation(body: &[u8], value: Value) -> Result<String, Error> {
    let wrong = || wrong("conversation", "must be the id of a conversation, or an object with its `id`");
    if value.kind != Kind::Object {
        return json::as_str(body, value).map(Cow::into_owned).ok_or_else(wrong);
    }
    let inner = body.get(value.span()).unwrap_or_default();
    let scan = json::scan_object(inner, &["id"], MAX_DEPTH).map_err(|fault| broken(&fault))?;
    scan.get("id").and_then(|id| json::as_str(inner, id)).map(Cow::into_owned).ok_or_else(wrong)
}

/// Reads the body of a generateContent request. The URL names the model and selects streaming.
pub(crate) fn read_gemini(body: &[u8], url_params: UrlParams<'_>) -> Result<ChatRequest, Error> {
    if body.is_empty() {
        return Err(invalid("The body is empty; expected a JSON object."));
    }
    let model = url_params.model.strip_prefix("models/").unwrap_or(url_params.model);
    if model.is_empty() || model.chars().count() > MAX_MODEL_CHARS || model.chars().any(char::is_control) {
        return Err(wrong("model", "must be 1 to 300 characters without control characters"));
    }
    let wanted = ["contents", "generationConfig", "generation_config", "model", "serviceTier", "service_tier"];
    let scan = scanned(body, &wanted)?;
    let messages = match scan.get("contents") {
        None => return Err(missing("contents")),
        Some(value) if value.kind != Kind::Array => return Err(wrong("contents", "must be an array")),
        Some(value) if value.elements == 0 => return Err(wrong("contents", "must not be empty")),
        Some(value) if value.elements > MAX_MESSAGES => {
            return Err(wrong("contents", "must have at most 10,000 elements"));
        }
        Some(value) => value.elements,
    };
    let config = scan.get("generationConfig").or_else(|| scan.get("generation_config"));
    let config = config.filter(|config| config.kind == Kind::Object);
    let inner = config.and_then(|config| body.get(config.span())).unwrap_or(b"{}");
    let wanted = ["maxOutputTokens", "max_output_tokens", "candidateCount", "candidate_count"];
    let limits = json::scan_object(inner, &wanted, MAX_DEPTH).map_err(|fault| broken(&fault))?;
    let count = |one, other| json::as_u64(inner, limits.get(one).or_else(|| limits.get(other))?);
    Ok(ChatRequest {
        model: model.to_owned(),
        stream: url_params.stream,
        requests_usage: false,
        messages,
        max_output_tokens: count("maxOutputTokens", "max_output_tokens"),
        choices: count("candidateCount", "candidate_count").unwrap_or(1).max(1),
        service: service_of(body, scan.get("serviceTier").or_else(|| scan.get("service_tier"))),
        previous: None,
        conversation: None,
        stores: false,
        reads_list: url_params.is_list,
        is_completion: false,
        // The body can repeat the model in the URL. It is overwritten, so that the checked model is the one that is
        // sent.
        model_span: scan.get("model").map_or(0..0, |model| model.span()),
        request_usage: None,
    })
}

/// Writes the body for the provider: slices of `body` around the few bytes that change.
pub fn rewrite(body: &Bytes, request: &ChatRequest, upstream_model: &str) -> Pieces {
    rewrite_with(body, request, upstream_model, Edits::new(), true)
}

/// Writes a body with other edits, which must not overlap. `requests_usage`: the provider reports usage in streams on
/// request.
pub(crate) fn rewrite_with(
    body: &Bytes,
    request: &ChatRequest,
    upstream_model: &str,
    mut edits: Edits,
    requests_usage: bool,
) -> Pieces {
    if !request.model_span.is_empty() {
        let model = Bytes::from(serde_json::Value::from(upstream_model).to_string());
        edits.push((request.model_span.clone(), model));
    }
    if let Some(splice) = request.request_usage.as_ref().filter(|_| requests_usage) {
        edits.push((splice.span.clone(), Bytes::from_static(splice.text.as_bytes())));
    }
    if edits.is_empty() {
        return Pieces::from_iter([body.clone()]);
    }
    // The sort is stable, so insertions at one offset keep their order.
    edits.sort_by_key(|(span, _)| span.start);
    let mut pieces = Pieces::new();
    let mut copied_to = 0;
    for (span, text) in edits {
        pieces.push(body.slice(copied_to..span.start));
        pieces.push(text);
        copied_to = span.end;
    }
    pieces.push(body.slice(copied_to..));
    pieces
}

pub(super) fn model(body: &[u8], value: Option<Value>) -> Result<(String, Range<usize>), Error> {
    let Some(value) = value else {
        return Err(missing("model"));
    };
    let model = json::as_str(body, value).map(Cow::into_owned);
    let model = model.ok_or_else(|| wrong("model", "must be a string"))?;
    check_model(&model)?;
    Ok((model, value.span()))
}

/// Checks that a model name is valid.
pub(crate) fn check_model(model: &str) -> Result<(), Error> {
    if model.is_empty() {
        return Err(wrong("model", "must not be empty"));
    }
    if model.chars().count() > MAX_MODEL_CHARS {
        return Err(wrong("model", "must have at most 300 characters"));
    }
    // The name appears in headers and logs.
    if model.chars().any(char::is_control) {
        return Err(wrong("model", "must not contain control characters"));
    }
    Ok(())
}

fn messages(value: Option<Value>) -> Result<usize, Error> {
    match value {
        None => Err(missing("messages")),
        Some(value) if value.kind != Kind::Array => Err(wrong("messages", "must be an array")),
        Some(value) if value.elements == 0 => Err(wrong("messages", "must not be empty")),
        Some(value) if value.elements > MAX_MESSAGES => Err(wrong("messages", "must have at most 10,000 elements")),
        Some(value) => Ok(value.elements),
    }
}

/// Returns whether the body asks for usage, and otherwise the edit that adds it. `close` is the offset of the body's
/// closing brace.
pub(super) fn usage_option(body: &[u8], options: Option<Value>, close: usize) -> Result<(bool, Option<Splice>), Error> {
    let Some(options) = options else {
        // The body has a model, so the comma is valid.
        let text = r#","stream_options":{"include_usage":true}"#;
        return Ok((false, Some(Splice { span: close..close, text })));
    };
    if options.is_null() {
        return Ok((false, Some(Splice { span: options.span(), text: r#"{"include_usage":true}"# })));
    }
    if options.kind != Kind::Object {
        return Err(wrong("stream_options", "must be an object"));
    }
    let inner = body.get(options.span()).unwrap_or_default();
    let scan = json::scan_object(inner, &["include_usage"], MAX_DEPTH).map_err(|fault| {
        Error::client(ErrorKind::InvalidRequest, format!("`stream_options`: {fault}.")).about("stream_options")
    })?;
    match scan.get("include_usage") {
        Some(value) if value.as_bool() == Some(true) => Ok((true, None)),
        Some(value) if value.is_null() || value.as_bool().is_some() => {
            let Range { start, end } = value.span();
            let url_params = options.start + start..options.start + end;
            Ok((false, Some(Splice { span: url_params, text: "true" })))
        }
        Some(_) => Err(wrong("stream_options.include_usage", "must be a boolean")),
        None => {
            let url_params = options.end - 1;
            let text = if scan.is_empty() { r#""include_usage":true"# } else { r#","include_usage":true"# };
            Ok((false, Some(Splice { span: url_params..url_params, text })))
        }
    }
}

pub(crate) fn broken(fault: &JsonFault) -> Error {
    let error = invalid(match fault.kind {
        FaultKind::NotAnObject => "The body must be a JSON object.".to_owned(),
        _ => format!("The body is not valid JSON: {fault}."),
    });
    if fault.field.is_empty() {
        error
    } else {
        error.about(fault.field.clone())
    }
}

pub(crate) fn missing(field: &'static str) -> Error {
    wrong(field, "is required")
}

pub(super) fn wrong(field: &'static str, rule: &str) -> Error {
    invalid(format!("`{field}` {rule}.")).about(field)
}

fn invalid(message: impl Into<Cow<'static, str>>) -> Error {
    Error::client(ErrorKind::InvalidRequest, message)
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
