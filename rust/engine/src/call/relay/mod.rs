//! Code that all relayed streams share, whatever their content: the head before the first bytes, comments during
//! silence, guardrails, and the end of the stream.
//!
//! [`stream`] relays every stream, with [`stream_judge`] for a combo's rules, [`progress`] events, and [`stream_error`]
//! for the format of an error. [`head`] writes the response head, and [`deadline`] enforces the time limits of a combo.

pub(crate) mod deadline;
pub(crate) mod head;
pub(crate) mod progress;
pub(crate) mod stream;
pub(crate) mod stream_error;
pub(crate) mod stream_judge;

use crate::call::guardrails::StreamFilter;
use crate::exchange::Head;
use crate::gate::headers;
use crate::observe::settle::Settlement;
use crate::upstream::target::Target;
use crate::upstream::wire::Incoming;
use bytes::Bytes;
use fairlead_core::routes::Answer;
use fairlead_core::{Error, Outcome};
use fairlead_dialect::Pieces;
use http::header::{self, HeaderName, HeaderValue};
use http::StatusCode;
use http_body_util::BodyExt as _;
use std::time::Duration;

pub const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// How long to wait for the end of a provider's body after its last event, so that the connection can be reused.
const TAIL_DEADLINE: Duration = Duration::from_millis(500);

/// A stream that ended after something was sent.
#[derive(Debug)]
pub struct FinishedStream {
    pub outcome: Outcome,
    pub error: Option<Error>,
    /// The last bytes for the caller, which are sent after the record is written.
    pub last: Pieces,
    /// The complete response, if it will be stored.
    pub response: Option<Bytes>,
    /// The provider's body after its last event, which is read so that the connection can be reused.
    pub tail: Option<Incoming>,
    /// The stream consists of events, so a comment may follow them.
    pub is_events: bool,
    /// The response is incomplete and its format cannot express an error, so the caller's connection must be reset.
    pub is_cut: bool,
}

impl FinishedStream {
    /// Reads the provider's body to its end within a time limit, so that the connection can be reused.
    pub async fn keep_connection(self) {
        let Some(mut body) = self.tail else { return };
        let drained = tokio::time::timeout(TAIL_DEADLINE, async { while let Some(Ok(_)) = body.frame().await {} });
        // The result does not matter, because the caller has everything.
        let _late = drained.await;
    }
}

/// Sends a comment to a caller whose stream has not started, with the head before the first comment.
pub fn send_heartbeat(settlement: &mut Settlement, target: &Target) {
    let is_list = settlement.admission.reads_list;
    let comment = fairlead_dialect::stream::heartbeat(settlement.admission.dialect, is_list);
    send(settlement, target, 0, &stream_type(!is_list), Pieces::from_iter([comment]));
}

/// Sends bytes to the caller, with the head before the first of them. `fallbacks` is the number of failed attempts.
pub fn send(
    settlement: &mut Settlement,
    target: &Target,
    fallbacks: usize,
    content_type: &HeaderValue,
    pieces: Pieces,
) {
    settlement.bytes_response += size(&pieces);
    if settlement.status != 0 {
        return settlement.exchange.push(pieces);
    }
    settlement.status = StatusCode::OK.as_u16();
    let mut headers = head::headers(settlement, target, fallbacks);
    headers.insert(header::CONTENT_TYPE, content_type.clone());
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(NO_BUFFERING, HeaderValue::from_static("no"));
    headers.remove(headers::RESPONSE_LATENCY);
    let may_send_progress = !matches!(settlement.admission.route.answer, Answer::Relayed(_));
    if settlement.admission.wants_progress && may_send_progress {
        headers.insert(headers::PROGRESS, HeaderValue::from_static("enabled"));
    }
    settlement.exchange.start(Head { status: StatusCode::OK, headers }, pieces);
}

/// The total size of all pieces.
pub fn size(pieces: &Pieces) -> u64 {
    pieces.iter().map(|piece| piece.len() as u64).sum()
}

/// Filters bytes through the guardrails. At the end this includes everything that they buffered.
pub fn judged(
    filter: Option<&mut StreamFilter>,
    settlement: &mut Settlement,
    out: Pieces,
    is_end: bool,
) -> Result<Pieces, Error> {
    let Some(filter) = filter else { return Ok(out) };
    let passed = filter.push(&out).and_then(|mut passed| {
        if is_end {
            passed.extend(filter.finish()?);
        }
        Ok(passed)
    });
    settlement.note_answer_findings(filter.findings());
    passed
}

/// Whether the caller receives an error inside its response. Events that were read together with the error are treated
/// like earlier ones, because the result must not depend on how the provider's bytes were split.
pub fn is_begun(settlement: &Settlement, last: &Pieces) -> bool {
    settlement.exchange.is_headed() || (settlement.first_byte.is_some() && !last.is_empty())
}

pub fn is_event_stream(value: &HeaderValue) -> bool {
    value
        .as_bytes()
        .split(|&byte| byte == b';')
        .next()
        .unwrap_or_default()
        .trim_ascii()
        .eq_ignore_ascii_case(b"text/event-stream")
}

/// The content type of a conversation's stream: events, or one growing JSON list.
pub fn stream_type(is_events: bool) -> HeaderValue {
    if is_events {
        EVENT_STREAM
    } else {
        HeaderValue::from_static("application/json")
    }
}
