//! Relay: what every answer that is passed on as it comes has in common, whatever is in it: the head before the first bytes,
//! comments while nothing comes, guardrails on the way, and one end.

use crate::call::guardrails::StreamFilter;
use crate::call::head;
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

/// How long the end of a provider's body is waited for after its last event, to keep the connection.
const TAIL_DEADLINE: Duration = Duration::from_millis(500);

/// A stream that came to an end after something was sent.
#[derive(Debug)]
pub struct FinishedStream {
    pub outcome: Outcome,
    pub error: Option<Error>,
    /// The last bytes for the caller, to be sent once the record is written.
    pub last: Pieces,
    /// The whole response, where it is to be kept.
    pub response: Option<Bytes>,
    /// The rest of the provider's body after its last event, which is read so that the connection can be kept.
    pub tail: Option<Incoming>,
    /// The stream is made of events, so that a comment may stand behind them.
    pub is_events: bool,
    /// The caller's connection must be broken: the answer stops short and has no way to say so.
    pub is_cut: bool,
}

impl FinishedStream {
    /// Reads the provider's body to its end, within bounds, so that the connection can be kept.
    pub async fn keep_connection(self) {
        let Some(mut body) = self.tail else { return };
        let drained = tokio::time::timeout(TAIL_DEADLINE, async { while let Some(Ok(_)) = body.frame().await {} });
        // Read to its end or not, nothing more is owed to anybody.
        let _late = drained.await;
    }
}

/// A comment for a caller whose stream has not begun, with the head before the first.
pub fn send_heartbeat(settlement: &mut Settlement, target: &Target) {
    let is_list = settlement.admission.reads_list;
    let comment = fairlead_dialect::stream::heartbeat(settlement.admission.dialect, is_list);
    send(settlement, target, 0, &stream_type(!is_list), Pieces::from_iter([comment]));
}

/// Sends bytes to the caller, with the head before the first of them. `fallbacks`: how many attempts failed before.
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
    let may_tell_progress = !matches!(settlement.admission.route.answer, Answer::Relayed(_));
    if settlement.admission.wants_progress && may_tell_progress {
        headers.insert(headers::PROGRESS, HeaderValue::from_static("enabled"));
    }
    settlement.exchange.start(Head { status: StatusCode::OK, headers }, pieces);
}

/// The bytes of all pieces.
pub fn size(pieces: &Pieces) -> u64 {
    pieces.iter().map(|piece| piece.len() as u64).sum()
}

/// Passes bytes through the guardrails; at the end, everything that they held back.
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

/// Whether the caller is told of a fault inside its answer. Events that were read with the fault are told like those that were
/// read before it: where a provider's bytes were cut on their way must not decide what a caller gets.
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

/// The content type of a stream of a conversation: events, or one JSON list that grows.
pub fn stream_type(is_events: bool) -> HeaderValue {
    if is_events {
        EVENT_STREAM
    } else {
        HeaderValue::from_static("application/json")
    }
}
