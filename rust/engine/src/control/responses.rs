//! Responses that callers asked to be kept (`store`), and what a request goes on from (`previous_response_id`): both with
//! control, over its socket. A request that names no earlier response waits for nobody before its provider is asked, and an
//! answer waits for its keeping no longer than a deadline: then it is told all the same, with a header that says so.

use crate::control::forward::{self, LINK};
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
use serde_json::json;
use std::time::Duration;

/// Told with an answer that was not kept although the caller asked for it.
pub const NOT_STORED: HeaderName = HeaderName::from_static("x-gateway-not-stored");
/// The members of a request that name what it continues.
const PREVIOUS: &str = "previous_response_id";
const CONVERSATION: &str = "conversation";
const KEEP: &str = "/internal/responses";
const CONTEXT: &str = "/internal/responses/context";
const KEEP_DEADLINE: Duration = Duration::from_secs(2);
const CONTEXT_DEADLINE: Duration = Duration::from_secs(5);
/// The most bytes of a conversation, and of one response that is kept.
const MAX_BYTES: usize = 24 * 1024 * 1024;

/// The request with all that it goes on from, read anew; `None` for one that goes on from nothing.
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
    let question = question.to_string();
    let answer = Box::pin(ask(shared, CONTEXT, Pieces::from_iter([Bytes::from(question)])));
    let (status, earlier) = tokio::time::timeout(CONTEXT_DEADLINE, answer).await.map_err(|_| late())??;
    match status {
        StatusCode::OK => splice(body, named, &earlier).map(Some),
        StatusCode::NOT_FOUND => Err(unknown(parsed).about(named)),
        StatusCode::CONFLICT => {
            let message = "The response of `previous_response_id` is still worked on: wait for its end.";
            Err(Error::client(ErrorKind::InvalidRequest, message).about("previous_response_id"))
        }
        StatusCode::PAYLOAD_TOO_LARGE => {
            let message = format!("The conversation behind `{named}` is too long to go on.");
            Err(Error::client(ErrorKind::TooLarge, message).about(named))
        }
        _ => Err(late()),
    }
}

/// The error for a response or a conversation that is not stored for this caller.
fn unknown(parsed: &ChatRequest) -> Error {
    let shown = |id: &str| id.chars().take(100).collect::<String>();
    let message = match (&parsed.conversation, &parsed.previous) {
        (Some(id), _) => format!("There is no conversation `{}`.", shown(id)),
        (None, previous) => {
            format!("There is no response `{}` to go on from.", shown(previous.as_deref().unwrap_or_default()))
        }
    };
    Error::client(ErrorKind::NotFound, message)
}

/// Keeps an answer, if it was asked for or belongs to a conversation. `false` when it was and is not.
pub async fn keep(
    shared: &Shared,
    admission: &Admission,
    body: &[u8],
    parsed: &ChatRequest,
    response: Option<&Bytes>,
) -> bool {
    if !parsed.stores && parsed.conversation.is_none() {
        return true;
    }
    let Some(pieces) = response.and_then(|response| record(admission, body, parsed, response)) else { return false };
    let request = Box::pin(ask(shared, KEEP, pieces));
    matches!(tokio::time::timeout(KEEP_DEADLINE, request).await, Ok(Ok((StatusCode::NO_CONTENT, _))))
}

/// Says in the head that the answer was not kept.
pub fn note_unstored(is_kept: bool, headers: &mut HeaderMap) {
    if !is_kept {
        headers.insert(NOT_STORED, HeaderValue::from_static("true"));
    }
}

/// Whose a response is; as control reads it from the principal.
pub(super) fn owner(admission: &Admission) -> String {
    let id = admission.principal.key().map_or("", |key| key.id.as_str());
    format!("{}:{id}", admission.principal.kind())
}

fn record(admission: &Admission, body: &[u8], parsed: &ChatRequest, response: &Bytes) -> Option<Pieces> {
    let wanted = ["id"];
    let scan = json::scan_object(response, &wanted, json::MAX_DEPTH).ok()?;
    let id = json::as_str(response, scan.get("id")?)?;
    let owner = owner(admission);
    let mut head = json!({"id": id, "owner": owner, "previous": parsed.previous, "model": parsed.model});
    if let Some(conversation) = &parsed.conversation {
        head["conversation"] = json!({"id": conversation, "stores": parsed.stores});
    }
    let head = head.to_string();
    let items = own_items(body)?;
    let head = head.strip_suffix('}')?.to_owned();
    if items.len() + response.len() > MAX_BYTES {
        return None;
    }
    Some(Pieces::from_iter([
        Bytes::from(head),
        Bytes::from_static(b",\"input\":["),
        Bytes::from(items),
        Bytes::from_static(b"],\"response\":"),
        response.clone(),
        Bytes::from_static(b"}"),
    ]))
}

/// The inside of the list that the request's own input is.
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

/// The body with the earlier items before its own, and without the member `named`, which names where they are stored.
fn splice(body: &Bytes, named: &str, earlier: &[u8]) -> Result<Bytes, Error> {
    let broken = || Error::gateway(ErrorKind::Internal, "What was kept of the earlier response cannot be read.");
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

pub(super) async fn ask(shared: &Shared, path: &'static str, pieces: Pieces) -> Result<(StatusCode, Bytes), Error> {
    let mut request = Request::new(());
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from_static(path);
    let headers = request.headers_mut();
    headers.insert(header::HOST, HeaderValue::from_static("control"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(LINK, crate::gate::headers::value(shared.config.link_token.expose()));
    let (head, ()) = request.into_parts();
    let response = forward::ask(shared, &head, BodySlices::new(pieces), CONTEXT_DEADLINE).await?;
    let (head, body) = response.into_parts();
    let body = Limited::new(body, MAX_BYTES + 1024 * 1024).collect().await.map_err(|_| late())?.to_bytes();
    Ok((head.status, body))
}

fn late() -> Error {
    let message =
        "The control plane, which stores responses, did not answer; requests without `previous_response_id` and `conversation` go on.";
    Error::gateway(ErrorKind::ControlUnavailable, message).after_s(1)
}

#[cfg(test)]
mod tests {
    use super::*;

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
