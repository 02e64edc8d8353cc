//! A plain response: buffered up to a limit, inspected for usage, and sent unchanged with its cost.

use crate::call::conversation::reasoning;
use crate::call::conversation::translation::Translation;
use crate::call::guardrails;
use crate::call::relay::head;
use crate::call::relay::is_event_stream;
use crate::exchange::Head;
use crate::gate::headers;
use crate::observe::settle::Settlement;
use crate::upstream::failure::AttemptFailure;
use crate::upstream::target::Target;
use crate::upstream::wire::Incoming;
use bytes::{Bytes, BytesMut};
use fairlead_core::{Error, ErrorKind, Retry, Usage};
use fairlead_dialect::openai::reasoning::Reasoning;
use fairlead_dialect::whole_of_stream;
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use std::time::{Duration, Instant};

/// The largest plain response that is buffered.
const MAX_ANSWER_BYTES: usize = 32 * 1024 * 1024;

/// A provider's complete response.
#[derive(Debug)]
pub struct Answer {
    pub body: Bytes,
    /// The content type of a plain text response, such as a transcript; `None` for JSON.
    pub text_type: Option<HeaderValue>,
    /// Reasoning before tool calls, for providers that expect it back.
    pub reasoning: Option<Reasoning>,
}

impl From<Bytes> for Answer {
    fn from(body: Bytes) -> Self {
        Self { body, text_type: None, reasoning: None }
    }
}

/// Reads the response. A 200 with an error or without a response in its body is a failure.
pub async fn read(
    target: &Target,
    response: Response<Incoming>,
    (wording, upstream_model): (&Translation, &str),
    settlement: &mut Settlement,
) -> Result<Answer, AttemptFailure> {
    settlement.first_byte = Some(Instant::now());
    let (answer, usage) = take(target, response, wording, upstream_model).await?;
    settlement.usage = usage;
    Ok(answer)
}

/// Reads a response and its usage without recording them.
pub async fn take(
    target: &Target,
    response: Response<Incoming>,
    wording: &Translation,
    upstream_model: &str,
) -> Result<(Answer, Usage), AttemptFailure> {
    let has_type = |is_it: fn(&HeaderValue) -> bool| response.headers().get(header::CONTENT_TYPE).is_some_and(is_it);
    let (is_json, is_stream) = (has_type(is_json), has_type(is_event_stream));
    if !is_json && !is_stream {
        return Err(invalid("The provider's answer is not JSON.").into());
    }
    let idle = Duration::from_millis(target.connection.timeouts.idle_ms);
    let mut body = read_body(response.into_body(), idle).await?;
    if is_stream {
        // Some servers stream although no stream was requested.
        let whole = whole_of_stream(target.connection.dialect, &body);
        body = whole.ok_or_else(|| {
            let message = "The provider ended its stream before the answer was complete.";
            Error::upstream(ErrorKind::UpstreamReset, Retry::Elsewhere, message)
        })?;
    }
    let whole = wording.answer(target, upstream_model, &body)?;
    let reasoning = reasoning::reasoning_of_answer(target, &body);
    Ok((Answer { body: whole.body, text_type: None, reasoning }, whole.usage.unwrap_or_default()))
}

/// Buffers a whole body up to a limit.
pub async fn read_body(mut body: Incoming, idle: Duration) -> Result<Bytes, Error> {
    read_to_end(&mut body, idle).await
}

/// Buffers the remaining bytes of a body, up to a limit.
pub async fn read_to_end(body: &mut Incoming, idle: Duration) -> Result<Bytes, Error> {
    if body.size_hint().lower() > MAX_ANSWER_BYTES as u64 {
        return Err(too_large());
    }
    let mut first: Option<Bytes> = None;
    let mut rest = BytesMut::new();
    loop {
        let frame = tokio::time::timeout(idle, body.frame()).await.map_err(|_| {
            Error::upstream(
                ErrorKind::UpstreamIdleTimeout,
                Retry::Never,
                format!("The provider was silent for {} ms inside its answer.", idle.as_millis()),
            )
        })?;
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|_| {
            Error::upstream(ErrorKind::UpstreamReset, Retry::Elsewhere, "The provider cut its answer off.")
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if first.as_ref().map_or(0, Bytes::len) + rest.len() + data.len() > MAX_ANSWER_BYTES {
            return Err(too_large());
        }
        // A single frame is the common case and is returned without a copy.
        match &first {
            None => first = Some(data),
            Some(head) => {
                if rest.is_empty() {
                    rest.reserve(head.len() + data.len() + body.size_hint().lower() as usize);
                    rest.extend_from_slice(head);
                    first = Some(Bytes::new());
                }
                rest.extend_from_slice(&data);
            }
        }
    }
    Ok(if rest.is_empty() { first.unwrap_or_default() } else { rest.freeze() })
}

/// Prepares the response for the caller, with its cost if it is JSON; an error if a guardrail withholds it.
pub fn answer(
    settlement: &mut Settlement,
    target: &Target,
    answer: Answer,
    fallbacks: usize,
) -> Result<(Head, Bytes), Error> {
    let Answer { body, text_type, reasoning } = answer;
    let body = guardrails::judge_answer(settlement, &body, text_type.is_some())?;
    reasoning::keep(settlement, target, reasoning);
    settlement.status = StatusCode::OK.as_u16();
    settlement.bytes_response = body.len() as u64;
    let mut headers = head::headers(settlement, target, fallbacks);
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    if let Some(text_type) = text_type {
        headers.insert(header::CONTENT_TYPE, text_type);
        headers.remove(headers::RESPONSE_LATENCY);
    } else {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(headers::CACHE, HeaderValue::from_static("MISS"));
        headers.insert(headers::TOKENS_IN, headers::number(settlement.total_usage().input));
        headers.insert(headers::TOKENS_OUT, headers::number(settlement.total_usage().output));
        headers.insert(headers::RESPONSE_COST, headers::value(settlement.cost().usd_text()));
        if settlement.is_unpriced() {
            headers.insert(headers::UNPRICED, HeaderValue::from_static("true"));
        }
    }
    Ok((Head { status: StatusCode::OK, headers }, body))
}

pub(crate) fn is_json(value: &HeaderValue) -> bool {
    let essence = value.as_bytes().split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
    essence.eq_ignore_ascii_case(b"application/json") || essence.ends_with(b"+json")
}

pub(crate) fn invalid(message: &'static str) -> Error {
    Error::upstream(ErrorKind::UpstreamInvalid, Retry::Elsewhere, message)
}

fn too_large() -> Error {
    Error::upstream(
        ErrorKind::UpstreamInvalid,
        Retry::Never,
        "The provider's answer is larger than 32 MiB; ask for a stream.",
    )
}
