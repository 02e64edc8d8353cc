//! An answer that is told as it comes: a stream of typed events, which is followed to its end, or bytes such as sound.
//!
//! Until the first bytes are there nothing is told, so that another connection may still be tried. After that a stream of
//! events ends with an error event if it breaks, and bytes end with the connection, so that nobody takes half for whole.

use crate::call::failover;
use crate::call::guardrails::StreamFilter;
use crate::call::plain::head_headers;
use crate::call::stream::{is_begun, judged, EVENT_STREAM, NO_BUFFERING};
use crate::exchange::{Exchange, Head, Room};
use crate::observe::settle::Settlement;
use crate::patience::SEND_PATIENCE;
use crate::shared::Shared;
use crate::upstream::failure::Failed;
use crate::upstream::target::Target;
use crate::upstream::wire::Incoming;
use bytes::Bytes;
use fairlead_core::error::{Error, Kind, Retry};
use fairlead_core::record::Outcome;
use fairlead_dialect::openai::metered::Meter;
use fairlead_dialect::openai::stream::terminal_error;
use fairlead_dialect::shapes::ErrorText;
use fairlead_dialect::Pieces;
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use http_body::Body as _;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// An answer that came to an end after something was told.
#[derive(Debug)]
pub struct Passed {
    pub outcome: Outcome,
    pub error: Option<Error>,
    /// The last bytes for the caller.
    pub last: Pieces,
    /// The connection must be broken: the answer stops short and has no way to say so.
    pub is_cut: bool,
}

/// What came next of a provider's body.
enum Next {
    Bytes(Bytes),
    Ended,
    Broken(Error),
}

/// The next bytes once the caller has room for them.
async fn next(shared: &Shared, exchange: &Exchange, body: &mut Incoming, patience: Duration, has_begun: bool) -> Next {
    let room = poll_fn(|cx| match exchange.poll_room(cx) {
        Poll::Ready(Room::Free) => Poll::Ready(()),
        // The caller's own task is dropped by whoever watches for it.
        _ => Poll::Pending,
    });
    tokio::select! {
        biased;
        () = room => {}
        () = tokio::time::sleep(SEND_PATIENCE) => exchange.cancel(),
        () = shared.drain.expired() => return Next::Broken(shared.drain.error()),
    }
    let reading = async {
        loop {
            match poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Next::Bytes(data);
                    }
                }
                Some(Err(_)) => {
                    let message = "The provider cut its answer off.";
                    return Next::Broken(Error::upstream(Kind::UpstreamReset, Retry::Elsewhere, message));
                }
                None => return Next::Ended,
            }
        }
    };
    tokio::select! {
        biased;
        next = reading => next,
        () = tokio::time::sleep(patience) => Next::Broken(silent(patience, has_begun)),
        () = shared.drain.expired() => Next::Broken(shared.drain.error()),
    }
}

/// Passes a stream of typed events.
pub async fn events(
    shared: &Shared,
    exchange: &Arc<Exchange>,
    settlement: &mut Settlement,
    target: &Target,
    mut body: Incoming,
    fallbacks: usize,
) -> Result<Passed, Failed> {
    let timeouts = target.connection.timeouts;
    let mut meter = Meter::default();
    let mut filter = StreamFilter::new(settlement.answer_guardrails, true);
    let broken = loop {
        let has_begun = exchange.is_headed();
        let patience = Duration::from_millis(if has_begun { timeouts.idle_ms } else { timeouts.first_token_ms });
        match next(shared, exchange, &mut body, patience, has_begun).await {
            Next::Bytes(chunk) => {
                let mut passed = meter.push(&chunk);
                settlement.usage = meter.usage().unwrap_or_default();
                passed.pieces = match judged(filter.as_mut(), settlement, passed.pieces, passed.done) {
                    Ok(pieces) => pieces,
                    Err(fault) => break Some(fault),
                };
                let units = settlement.units().told(meter.units());
                settlement.set_units(units);
                if meter.has_answered() {
                    settlement.first_byte.get_or_insert_with(Instant::now);
                }
                if passed.done {
                    let ending = meter.finish(None);
                    return end(shared, exchange, settlement, target, fallbacks, passed.pieces, ending);
                }
                if meter.has_answered() {
                    tell(shared, exchange, settlement, target, fallbacks, &EVENT_STREAM, passed.pieces);
                }
            }
            Next::Ended => break None,
            Next::Broken(error) => break Some(error),
        }
    };
    let mut ending = meter.finish(broken);
    let mut last = Pieces::new();
    if ending.error.is_none() {
        // What came last may lack its end.
        let rest = Pieces::from_iter([std::mem::take(&mut ending.rest)]);
        match judged(filter.as_mut(), settlement, rest, true) {
            Ok(judged) => last = judged,
            Err(fault) => ending.error = Some(fault),
        }
    }
    end(shared, exchange, settlement, target, fallbacks, last, ending)
}

fn end(
    shared: &Shared,
    exchange: &Arc<Exchange>,
    settlement: &mut Settlement,
    target: &Target,
    fallbacks: usize,
    mut last: Pieces,
    ending: fairlead_dialect::openai::metered::Ending,
) -> Result<Passed, Failed> {
    settlement.usage = ending.usage.unwrap_or_default();
    let units = settlement.units().told(ending.units);
    settlement.set_units(units);
    let Some(error) = ending.error else {
        if !ending.rest.is_empty() {
            last.push(ending.rest);
        }
        tell(shared, exchange, settlement, target, fallbacks, &EVENT_STREAM, []);
        settlement.bytes_response += size(&last);
        return Ok(Passed { outcome: Outcome::Completed, error: None, last, is_cut: false });
    };
    let outcome = failover::outcome(error.kind);
    if !is_begun(exchange, settlement, &last) {
        let retry = if outcome == Outcome::UpstreamFailed { Retry::Elsewhere } else { Retry::Never };
        return Err(Error { retry, ..error }.into());
    }
    if ending.is_told {
        let whole = last.concat();
        if target.is_told_in(&whole) {
            last = Pieces::from_iter([Bytes::from(target.mask(&String::from_utf8_lossy(&whole)))]);
        }
    } else {
        last.push(Bytes::from_static(b"\n\n"));
        last.push(terminal_error(&ErrorText::from(&error)));
    }
    tell(shared, exchange, settlement, target, fallbacks, &EVENT_STREAM, []);
    settlement.bytes_response += size(&last);
    Ok(Passed { outcome, error: Some(error), last, is_cut: false })
}

/// Passes bytes.
pub async fn bytes(
    shared: &Shared,
    exchange: &Arc<Exchange>,
    settlement: &mut Settlement,
    target: &Target,
    response: Response<Incoming>,
    fallbacks: usize,
) -> Result<Passed, Failed> {
    let timeouts = target.connection.timeouts;
    let octets = HeaderValue::from_static("application/octet-stream");
    let content_type = response.headers().get(header::CONTENT_TYPE).cloned().unwrap_or(octets);
    let mut body = response.into_body();
    loop {
        let has_begun = exchange.is_headed();
        let patience = Duration::from_millis(if has_begun { timeouts.idle_ms } else { timeouts.first_token_ms });
        match next(shared, exchange, &mut body, patience, has_begun).await {
            Next::Bytes(chunk) => {
                settlement.first_byte.get_or_insert_with(Instant::now);
                tell(shared, exchange, settlement, target, fallbacks, &content_type, [chunk]);
            }
            Next::Ended => {
                tell(shared, exchange, settlement, target, fallbacks, &content_type, []);
                return Ok(Passed { outcome: Outcome::Completed, error: None, last: Pieces::new(), is_cut: false });
            }
            Next::Broken(error) if !has_begun => return Err(error.into()),
            Next::Broken(error) => {
                let outcome = if error.kind == Kind::Draining { Outcome::Drained } else { Outcome::UpstreamFailed };
                return Ok(Passed { outcome, error: Some(error), last: Pieces::new(), is_cut: true });
            }
        }
    }
}

/// Tells bytes, with the head before the first of them.
fn tell(
    shared: &Shared,
    exchange: &Exchange,
    settlement: &mut Settlement,
    target: &Target,
    fallbacks: usize,
    content_type: &HeaderValue,
    pieces: impl IntoIterator<Item = Bytes>,
) {
    let pieces: Pieces = pieces.into_iter().collect();
    settlement.bytes_response += size(&pieces);
    if settlement.status != 0 {
        return exchange.push(pieces);
    }
    settlement.status = StatusCode::OK.as_u16();
    let mut headers = head_headers(shared, settlement, target, fallbacks, content_type.clone());
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(NO_BUFFERING, HeaderValue::from_static("no"));
    exchange.start(Head { status: StatusCode::OK, headers }, pieces);
}

fn size(pieces: &Pieces) -> u64 {
    pieces.iter().map(|piece| piece.len() as u64).sum()
}

fn silent(patience: Duration, has_begun: bool) -> Error {
    let waited_ms = patience.as_millis();
    let (kind, message) = if has_begun {
        (Kind::UpstreamIdleTimeout, format!("The provider was silent for {waited_ms} ms inside its answer."))
    } else {
        (Kind::UpstreamFirstTokenTimeout, format!("The provider sent nothing of its answer within {waited_ms} ms."))
    };
    Error::upstream(kind, Retry::Never, message)
}
