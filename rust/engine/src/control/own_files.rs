//! Requests that refer to files, cached contents or items stored by the gateway. Control inserts the contents into the
//! body, so that every provider can read it.
//!
//! Control leaves an unknown id unchanged. The caller of [`fill`] refuses it, unless the key may use such objects of the
//! provider's account.

use crate::control::responses::{owner, post};
use crate::gate::request::Admission;
use crate::shared::Shared;
use bytes::Bytes;
use fairlead_core::{Dialect, Error, ErrorKind};
use fairlead_dialect::Pieces;
use http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use std::borrow::Cow;
use std::time::Duration;

const FILL: &str = "/internal/files/fill";
const DEADLINE: Duration = Duration::from_secs(30);

/// Control's refusal.
#[derive(Deserialize)]
struct Refusal<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    message: Cow<'a, str>,
    #[serde(borrow, default)]
    param: Option<Cow<'a, str>>,
}

/// Returns the body with the contents of its files; `None` if it refers to none of this caller's files.
pub async fn fill(shared: &Shared, admission: &Admission, body: &Bytes) -> Result<Option<Bytes>, Error> {
    // Files belong to keys, and responses to any caller.
    if admission.principal.key().is_none() && admission.dialect != Dialect::OpenaiResponses {
        return Ok(None);
    }
    let head = json!({"owner": owner(admission), "dialect": name_of(admission.dialect)}).to_string();
    let head = head.strip_suffix('}').unwrap_or_default().to_owned();
    let pieces = Pieces::from_iter([
        Bytes::from(head),
        Bytes::from_static(b",\"body\":"),
        body.clone(),
        Bytes::from_static(b"}"),
    ]);
    let answer = Box::pin(post(shared, FILL, pieces));
    let (status, filled) = tokio::time::timeout(DEADLINE, answer).await.map_err(|_| late())??;
    match status {
        StatusCode::OK => Ok(Some(filled)),
        StatusCode::NO_CONTENT => Ok(None),
        _ => Err(refusal(&filled).unwrap_or_else(late)),
    }
}

fn name_of(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Openai => "openai",
        Dialect::OpenaiResponses => "responses",
        Dialect::Anthropic => "anthropic",
        Dialect::Gemini => "gemini",
    }
}

fn refusal(body: &[u8]) -> Option<Error> {
    let refusal: Refusal<'_> = serde_json::from_slice(body).ok()?;
    let kind = ErrorKind::ALL.iter().find(|kind| kind.code() == refusal.kind)?;
    let error = if kind.status() < 500 { Error::client } else { Error::gateway };
    let error = error(*kind, refusal.message.into_owned());
    Some(match refusal.param {
        Some(param) => error.about(param.into_owned()),
        None => error,
    })
}

fn late() -> Error {
    let message = "The control plane, which stores files, did not answer; requests without files still work.";
    Error::gateway(ErrorKind::ControlUnavailable, message).after_s(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_control_is_passed_on() {
        let error = refusal(br#"{"kind":"too_large","message":"It is \"large\".","param":"messages"}"#).expect("one");
        assert_eq!((error.kind, &*error.message), (ErrorKind::TooLarge, "It is \"large\"."));
        assert_eq!(error.param.as_deref(), Some("messages"));
        assert!(refusal(b"{}").is_none());
    }
}
