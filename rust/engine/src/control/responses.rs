//! Responses that callers asked to store (`store`), and the conversations that requests with a `previous_response_id`
//! continue. A finished response is appended to the worker's spool ([`crate::control::response_spool`]). If that is not
//! possible, control stores it while the caller waits, with a deadline. A response that could not be stored is returned
//! anyway, with a header that says so.

use crate::clock;
use crate::control::forward::{self, LINK};
use crate::control::response_spool::{Appended, MAX_RESPONSE_BYTES, SEAL_AFTER};
use crate::gate::request::Admission;
use crate::shared::Shared;
use crate::upstream::wire::BodySlices;
use bytes::Bytes;
use fairlead_core::json::{self, Kind as JsonKind};
use fairlead_core::{Error, ErrorKind};
use fairlead_dialect::openai::request::ChatRequest;
use fairlead_dialect::Pieces;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Limited};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// Set on a response that was not stored although the caller asked for it.
pub const NOT_STORED: HeaderName = HeaderName::from_static("x-gateway-not-stored");
/// The members of a request that refer to what it continues.
const PREVIOUS: &str = "previous_response_id";
const CONVERSATION: &str = "conversation";
const KEEP: &str = "/internal/responses";
const CONTEXT: &str = "/internal/responses/context";
const KEEP_DEADLINE: Duration = Duration::from_secs(2);
const CONTEXT_DEADLINE: Duration = Duration::from_secs(5);
/// The maximum size of a conversation, and of a stored response.
const MAX_BYTES: usize = 24 * 1024 * 1024;

/// Returns the request with all earlier turns; `None` if it continues nothing.
pub async fn recall(
    shared: &Shared,
    admission: &Admission,
    body: &Bytes,
    parsed: &ChatRequest,
) -> Result<Option<Bytes>, Error> {
    let (named, question) = match (&parsed.conversation, &parsed.previous) {
        (Some(id), _) => (CONVERSATION, json!({"conversation": id, "owner": owner(admission)})),
        (None, Some(id)) => (PREVIOUS, json!({"id": id, "owner": owner(admission)})),
        (None, None) => return Ok(None),
    };
    // The request may continue a response that this worker has just completed.
    shared.responses.seal();
    let question = question.to_string();
    let answer = Box::pin(post(shared, CONTEXT, Pieces::from_iter([Bytes::from(question)])));
    let (status, earlier) = tokio::time::timeout(CONTEXT_DEADLINE, answer).await.map_err(|_| late())??;
    match status {
        StatusCode::OK => splice(body, named, &earlier).map(Some),
        StatusCode::NOT_FOUND => Err(unknown(parsed).about(named)),
        StatusCode::CONFLICT => {
            let message = "The response of `previous_response_id` is still in progress: wait until it ends.";
            Err(Error::client(ErrorKind::InvalidRequest, message).about("previous_response_id"))
        }
        StatusCode::PAYLOAD_TOO_LARGE => {
            let message = format!("The conversation behind `{named}` is too long to continue.");
            Err(Error::client(ErrorKind::TooLarge, message).about(named))
        }
        _ => Err(late()),
    }
}

/// The error for a response or conversation that is not stored for this caller.
fn unknown(parsed: &ChatRequest) -> Error {
    let shown = |id: &str| id.chars().take(100).collect::<String>();
    let message = match (&parsed.conversation, &parsed.previous) {
        (Some(id), _) => format!("There is no conversation `{}`.", shown(id)),
        (None, previous) => {
            format!("There is no response `{}` to continue from.", shown(previous.as_deref().unwrap_or_default()))
        }
    };
    Error::client(ErrorKind::NotFound, message)
}

/// Stores a response if the caller asked for it or if it belongs to a conversation. Returns `false` if storing failed.
pub async fn keep(
    shared: &Arc<Shared>,
    admission: &Admission,
    body: &[u8],
    parsed: &ChatRequest,
    response: Option<&Bytes>,
) -> bool {
    if !parsed.stores && parsed.conversation.is_none() {
        return true;
    }
    let Some(response) = response else { return false };
    let Some(finished) = Finished::read(admission, body, parsed, response) else { return false };
    let version = shared.active.load().snapshot.version;
    match finished.append(shared, version) {
        Appended::Kept { begins_segment } => {
            if begins_segment {
                seal_soon(shared);
            }
            true
        }
        Appended::No => finished.store(shared, version).await,
    }
}

/// Seals a new segment after a short delay, so that control can store its contents soon.
fn seal_soon(shared: &Arc<Shared>) {
    let shared = Arc::clone(shared);
    // The task ends after its sleep. The engine seals the last segment when it stops.
    drop(crate::task::spawn(async move {
        tokio::time::sleep(SEAL_AFTER).await;
        shared.responses.seal();
    }));
}

/// Sets the header of a response that was not stored.
pub fn note_unstored(is_kept: bool, headers: &mut HeaderMap) {
    if !is_kept {
        headers.insert(NOT_STORED, HeaderValue::from_static("true"));
    }
}

/// The owner of a response, in the form that control derives from the principal.
pub(super) fn owner(admission: &Admission) -> String {
    let id = admission.principal.key().map_or("", |key| key.id.as_str());
    format!("{}:{id}", admission.principal.kind())
}

/// A finished response with the input that it answers.
struct Finished<'a> {
    id: Cow<'a, str>,
    owner: String,
    previous: Option<&'a str>,
    /// The conversation that it belongs to, and whether the response itself is stored.
    conversation: Option<(&'a str, bool)>,
    model: &'a str,
    /// The elements of a JSON list, without brackets.
    items: Vec<u8>,
    response: &'a Bytes,
}

/// The first line of a response in the spool. It gives the lengths of the input and the response that follow; a newline
/// ends the entry.
#[derive(Serialize)]
struct SpoolHead<'a> {
    id: &'a str,
    owner: &'a str,
    previous: Option<&'a str>,
    model: &'a str,
    at_ms: u64,
    input_bytes: usize,
    response_bytes: usize,
}

/// Control's reply after storing a response.
#[derive(Deserialize)]
struct Stored {
    grant_bytes: u64,
}

impl<'a> Finished<'a> {
    fn read(admission: &Admission, body: &[u8], parsed: &'a ChatRequest, response: &'a Bytes) -> Option<Self> {
        let wanted = ["id"];
        let scan = json::scan_object(response, &wanted, json::MAX_DEPTH).ok()?;
        let id = json::as_str(response, scan.get("id")?)?;
        let items = own_items(body)?;
        if items.len() + response.len() > MAX_BYTES {
            return None;
        }
        let previous = parsed.previous.as_deref();
        let conversation = parsed.conversation.as_deref().map(|id| (id, parsed.stores));
        Some(Self { id, owner: owner(admission), previous, conversation, model: &parsed.model, items, response })
    }

    /// Appends the response to the spool, unless control must check it before the caller receives it.
    fn append(&self, shared: &Shared, version: u64) -> Appended {
        // The items of a conversation are added in the order of its responses, so its caller waits for control.
        let is_alone = self.conversation.is_none();
        if !is_alone || self.items.len() + self.response.len() > MAX_RESPONSE_BYTES || !are_objects(&self.items) {
            return Appended::No;
        }
        let head = SpoolHead {
            id: &self.id,
            owner: &self.owner,
            previous: self.previous,
            model: self.model,
            at_ms: clock::unix_ms(),
            input_bytes: self.items.len() + 2,
            response_bytes: self.response.len(),
        };
        let Ok(head) = serde_json::to_vec(&head) else { return Appended::No };
        let parts = [&*head, b"\n[", &*self.items, b"]", self.response, b"\n"];
        shared.responses.append(&self.owner, parts, version)
    }

    /// Asks control to store the response, and records the caller's new grant for the spool.
    async fn store(self, shared: &Shared, version: u64) -> bool {
        let owner = self.owner.clone();
        let Some(pieces) = self.into_pieces() else { return false };
        let request = Box::pin(post(shared, KEEP, pieces));
        let Ok(Ok((StatusCode::OK, reply))) = tokio::time::timeout(KEEP_DEADLINE, request).await else { return false };
        match serde_json::from_slice::<Stored>(&reply) {
            Ok(stored) => shared.responses.grant(&owner, stored.grant_bytes, version),
            Err(error) => tracing::error!(%error, "control's reply to a stored response cannot be read"),
        }
        true
    }

    fn into_pieces(self) -> Option<Pieces> {
        let Self { id, owner, previous, conversation, model, items, response } = self;
        let mut head = json!({"id": id, "owner": owner, "previous": previous, "model": model});
        if let Some((id, stores)) = conversation {
            head["conversation"] = json!({"id": id, "stores": stores});
        }
        let head = head.to_string();
        let head = head.strip_suffix('}')?.to_owned();
        Some(Pieces::from_iter([
            Bytes::from(head),
            Bytes::from_static(b",\"input\":["),
            Bytes::from(items),
            Bytes::from_static(b"],\"response\":"),
            response.clone(),
            Bytes::from_static(b"}"),
        ]))
    }
}

/// Whether the elements of a list, given without brackets, are objects.
fn are_objects(items: &[u8]) -> bool {
    let mut rest = items.trim_ascii_start();
    while !rest.is_empty() {
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<&RawValue>();
        let Some(Ok(value)) = values.next() else { return false };
        if !value.get().starts_with('{') {
            return false;
        }
        rest = rest[values.byte_offset()..].trim_ascii_start();
        rest = rest.strip_prefix(b",").unwrap_or(rest).trim_ascii_start();
    }
    true
}

/// The request's own input as list elements without brackets.
fn own_items(body: &[u8]) -> Option<Vec<u8>> {
    let wanted = ["input"];
    let scan = json::scan_object(body, &wanted, json::MAX_DEPTH).ok()?;
    let input = scan.get("input")?;
    let raw = body.get(input.span())?;
    Some(match input.kind {
        JsonKind::Array => raw.get(1..raw.len().saturating_sub(1))?.trim_ascii().to_vec(),
        _ => [b"{\"role\":\"user\",\"content\":", raw, b"}"].concat(),
    })
}

/// Returns the body with the earlier items before its own, and without the member `named`, which refers to them.
fn splice(body: &Bytes, named: &str, earlier: &[u8]) -> Result<Bytes, Error> {
    let broken = || Error::gateway(ErrorKind::Internal, "The stored items of the earlier response cannot be read.");
    let wanted = ["items"];
    let scan = json::scan_object(earlier, &wanted, json::MAX_DEPTH).map_err(|_| broken())?;
    let items = scan.get("items").and_then(|items| earlier.get(items.start + 1..items.end - 1)).ok_or_else(broken)?;
    let own = own_items(body).ok_or_else(broken)?;
    let comma: &[u8] = if items.trim_ascii().is_empty() || own.is_empty() { b"" } else { b"," };
    let whole = [b"[", items, comma, &*own, b"]"].concat();

    let wanted = ["input", named];
    let scan = json::scan_object(body, &wanted, json::MAX_DEPTH).map_err(|_| broken())?;
    let (Some(input), Some(previous)) = (scan.get("input"), scan.get(named)) else {
        return Err(broken());
    };
    let mut edits = [(input.span(), whole.as_slice()), (previous.span(), b"null".as_slice())];
    edits.sort_by_key(|(span, _)| span.start);
    let mut out = Vec::with_capacity(body.len() + whole.len());
    let mut copied_to = 0;
    for (span, text) in edits {
        out.extend_from_slice(body.get(copied_to..span.start).unwrap_or_default());
        out.extend_from_slice(text);
        copied_to = span.end;
    }
    out.extend_from_slice(body.get(copied_to..).unwrap_or_default());
    Ok(Bytes::from(out))
}

pub(super) async fn post(shared: &Shared, path: &'static str, pieces: Pieces) -> Result<(StatusCode, Bytes), Error> {
    let mut request = Request::new(());
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from_static(path);
    let headers = request.headers_mut();
    headers.insert(header::HOST, HeaderValue::from_static("control"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(LINK, crate::gate::headers::value(shared.config.link_token.expose()));
    let (head, ()) = request.into_parts();
    let response = forward::call_control(shared, &head, BodySlices::new(pieces), CONTEXT_DEADLINE).await?;
    let (head, body) = response.into_parts();
    let body = Limited::new(body, MAX_BYTES + 1024 * 1024).collect().await.map_err(|_| late())?.to_bytes();
    Ok((head.status, body))
}

fn late() -> Error {
    let message =
        "The control plane, which stores responses, did not answer; requests without `previous_response_id` and `conversation` still work.";
    Error::gateway(ErrorKind::ControlUnavailable, message).after_s(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lists_of_objects_go_to_the_spool() {
        for (items, is) in [
            (r#"{"a":1} , {"b":"},{"}"#, true),
            ("", true),
            (r#"{"a":1},"text""#, false),
            ("1", false),
            ("null", false),
        ] {
            assert_eq!(are_objects(items.as_bytes()), is, "{items}");
        }
    }

    #[test]
    fn a_request_goes_on_from_what_was_said() {
        let body = Bytes::from_static(br#"{"previous_response_id" : "resp_1", "model":"m","input": "more","x":1.50}"#);
        let earlier = br#"{"items":[{"role":"user","content":"first"},{"type":"message"}]}"#;
        let whole = splice(&body, PREVIOUS, earlier).expect("whole");
        assert_eq!(
            whole,
            &br#"{"previous_response_id" : null, "model":"m","input": [{"role":"user","content":"first"},{"type":"message"},{"role":"user","content":"more"}],"x":1.50}"#[..]
        );
        let body = Bytes::from_static(br#"{"input":[ ],"previous_response_id":"resp_1"}"#);
        let whole = splice(&body, PREVIOUS, br#"{"items":[{"a":1}]}"#).expect("whole");
        assert_eq!(whole, &br#"{"input":[{"a":1}],"previous_response_id":null}"#[..]);
        assert!(splice(&body, PREVIOUS, b"{}").is_err());
    }
}
