//! A responses request that is to be worked on in the background goes to control as it came: control keeps it, asks for it
//! again as its owner, and tells what comes of it (`docs/explanation/contracts.md`).

use crate::admission::{Forward, Whole};
use crate::answer;
use fairlead_core::json;
use fairlead_core::routes::Answer;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::Method;

const PATH: &str = "/internal/responses/background";
const CONNECTION: HeaderName = HeaderName::from_static("x-gateway-connection");
const SESSION_TAG: HeaderName = HeaderName::from_static("x-gateway-session-id");
const SESSION: HeaderName = HeaderName::from_static("x-session-id");
const MODEL: HeaderName = HeaderName::from_static("x-route-model");

/// Whether the request asks for it. Most bodies are told apart by one search.
pub(crate) fn is_asked(answer: Answer, body: &[u8]) -> bool {
    if answer != Answer::Responses || memchr::memmem::find(body, b"\"background\"").is_none() {
        return false;
    }
    let wanted = ["background"];
    json::scan_object(body, &wanted, json::MAX_DEPTH)
        .is_ok_and(|scan| scan.get("background").and_then(|value| value.as_bool()) == Some(true))
}

/// The request for control, with what its caller said in the head.
pub(crate) fn forwarded(mut whole: Box<Whole>) -> Box<Whole> {
    let admission = &whole.admission;
    let said = [
        (CONNECTION, &admission.pin),
        (SESSION_TAG, &admission.session_tag),
        (SESSION, &admission.session_id),
        (MODEL, &admission.route_model),
    ];
    let mut headers = HeaderMap::with_capacity(12);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, text) in said {
        if let Some(text) = text {
            headers.insert(name, answer::value(text.as_str()));
        }
    }
    whole.forward = Some(Forward {
        method: Method::POST,
        path_and_query: PATH.to_owned(),
        headers,
        peer: None,
        is_tls: false,
        host: None,
        is_unread: false,
    });
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_wish_of_the_request_itself_counts() {
        for (body, is) in [
            (r#"{"background":true}"#, true),
            (r#"{"background" : false}"#, false),
            (r#"{"background":null}"#, false),
            (r#"{"background":"true"}"#, false),
            (r#"{"input":"\"background\":true"}"#, false),
            (r#"{"metadata":{"background":true}}"#, false),
            (r#"{"background":true"#, false),
        ] {
            assert_eq!(is_asked(Answer::Responses, body.as_bytes()), is, "{body}");
            assert!(!is_asked(Answer::Chat, body.as_bytes()));
        }
    }
}
