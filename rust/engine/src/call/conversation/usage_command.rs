//! The chat command `@@om-usage`. A conversation whose last message is the command receives the remaining quota of its
//! key and of the key's providers instead of a model's response. It works for keys with `allowUsageCommand`; for other
//! keys it is ordinary text.

use crate::call::context::Call;
use crate::call::conversation::translation;
use crate::clock;
use crate::control::forward::{self, NoControlAnswer};
use crate::exchange::Head;
use crate::gate::answer;
use crate::gate::headers;
use crate::gate::limits;
use crate::gate::request::Forward;
use crate::upstream::wire::BodySlices;
use bytes::Bytes;
use fairlead_core::{random_name, Cost, Dialect, Error, ErrorKind};
use fairlead_dialect::openai::request::ChatRequest;
use fairlead_dialect::translate::{self, Pair};
use fairlead_dialect::AnswerContext;
use fairlead_dialect::{replay, Pieces};
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use serde_json::{json, Map, Value};

const COMMAND: &str = "@@om-usage";
const PATH: &str = "/api/usage/om-usage";
const MAX_TEXT_BYTES: usize = 256 * 1024;

/// Answers the command. Returns `false` if the request is not the command.
pub async fn run(call: &mut Call, body: &Bytes, request: &ChatRequest) -> Result<bool, Error> {
    let may = call.settlement.admission.principal.key().is_some_and(|key| key.allow_usage_command);
    if !may || memchr::memmem::find(body, COMMAND.as_bytes()).is_none() {
        return Ok(false);
    }
    // Boxed to keep the future of conversations small.
    Box::pin(answer_command(call, body, request)).await
}

async fn answer_command(call: &mut Call, body: &Bytes, request: &ChatRequest) -> Result<bool, Error> {
    let dialect = call.settlement.admission.dialect;
    // A request that cannot be converted to a chat completion is not the command. The next parser reports what is wrong
    // with it.
    let Ok(Some(members)) = translation::chat_members(dialect, body, request) else { return Ok(false) };
    if last_words(&members).as_deref().map(str::trim) != Some(COMMAND) {
        return Ok(false);
    }
    let shared = call.shared();
    let settlement = &mut call.settlement;
    limits::retry_until_limits_known(&shared, || limits::reserve_request(&shared, settlement, &request.model)).await?;
    let text = send(call).await?;
    let body = render_answer(dialect, request, &text)?;
    let settlement = &mut call.settlement;
    settlement.status = StatusCode::OK.as_u16();
    settlement.bytes_response = body.len() as u64;
    let mut head = answer::base_headers(&shared, &settlement.admission.request_id);
    let kind = match (request.stream, request.reads_list) {
        (true, false) => "text/event-stream",
        _ => "application/json",
    };
    head.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    head.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    head.insert(headers::RESPONSE_COST, headers::value(Cost::default().usd_text()));
    call.give(Ok((Head { status: StatusCode::OK, headers: head }, body)));
    Ok(true)
}

/// The text of the last message, if its role is user.
fn last_words(members: &Map<String, Value>) -> Option<String> {
    let last = members.get("messages")?.as_array()?.last()?;
    if last["role"] != "user" {
        return None;
    }
    match &last["content"] {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) if parts.len() == 1 => Some(parts[0]["text"].as_str()?.to_owned()),
        _ => None,
    }
}

/// Fetches the text from control.
async fn send(call: &Call) -> Result<String, Error> {
    let shared = call.shared();
    let mut forward = Forward {
        method: Method::GET,
        path_and_query: PATH.to_owned(),
        headers: HeaderMap::new(),
        peer: None,
        is_tls: false,
        host: None,
        is_unread: true,
    };
    forward::dress(&shared, &call.settlement.admission, &mut forward);
    let answered = forward::call(&shared, forward, BodySlices::new(Pieces::new())).await;
    let (parts, body) = answered.map_err(|NoControlAnswer { error, .. }| error)?.into_parts();
    let body = Limited::new(body, MAX_TEXT_BYTES).collect().await.map_err(|_| silent())?.to_bytes();
    let text = String::from_utf8(body.to_vec()).map_err(|_| silent())?;
    if parts.status == StatusCode::OK {
        Ok(text)
    } else {
        Err(silent())
    }
}

fn silent() -> Error {
    Error::gateway(ErrorKind::ControlUnavailable, "The control plane did not say what the key has left.").after_s(1)
}

/// Formats the text as a model's response in the caller's dialect.
fn render_answer(caller: Dialect, request: &ChatRequest, text: &str) -> Result<Bytes, Error> {
    let broken = || Error::gateway(ErrorKind::Internal, "The answer cannot be said in this dialect.");
    let id = random_name().map_err(|_| Error::gateway(ErrorKind::Internal, "The system has no random numbers."))?;
    let created_s = clock::unix_ms() / 1_000;
    let chat = json!({
        "id": format!("chatcmpl-{id}"), "object": "chat.completion", "created": created_s, "model": request.model,
        "choices": [{
            "index": 0, "finish_reason": "stop", "logprobs": null,
            "message": {"role": "assistant", "content": text, "refusal": null},
        }],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    });
    let context = AnswerContext { created_s, requests_usage: request.requests_usage, id, ..AnswerContext::default() };
    let pair = Pair { caller, provider: Dialect::Openai };
    let whole = translate::answer(pair, &Bytes::from(chat.to_string()), &context).map_err(Error::from)?.body;
    if !request.stream {
        return Ok(whole);
    }
    let events = replay::as_stream(caller, &whole, request.requests_usage, created_s).ok_or_else(broken)?;
    Ok(if request.reads_list { replay::list_of(&events) } else { events })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_are_the_users() {
        let words = |body: Value| last_words(body.as_object().expect("an object"));
        let user = |content: Value| json!({"messages": [{"role": "user", "content": content}]});
        assert_eq!(words(user(json!("@@om-usage"))).as_deref(), Some("@@om-usage"));
        assert_eq!(words(user(json!([{"type": "text", "text": "x"}]))).as_deref(), Some("x"));
        assert_eq!(words(user(json!([{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]))), None);
        assert_eq!(words(json!({"messages": [{"role": "assistant", "content": "x"}]})), None);
        assert_eq!(words(json!({"messages": []})), None);
    }
}
