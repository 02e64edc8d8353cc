//! An answer that is told as it comes: a stream of typed events, which is followed to its end, or bytes such as sound.
//!
//! Until the first bytes are there nothing is told, so that another connection may still be tried. After that a stream of
//! events ends with an error event if it breaks, and bytes end with the connection, so that nobody takes half for whole.

use crate::call::context::Call;
use crate::call::failover;
use crate::call::guardrails::StreamFilter;
use crate::call::relay::{self, is_begun, judged, size, FinishedStream, EVENT_STREAM};
use crate::exchange::Room;
use crate::observe::settle::Settlement;
use crate::patience::SEND_PATIENCE;
use crate::upstream::failure::AttemptFailure;
use crate::upstream::target::Target;
use crate::upstream::wire::Incoming;
use bytes::Bytes;
use fairlead_core::error::{Error, Kind, Retry};
use fairlead_core::record::Outcome;
use fairlead_dialect::openai::metered::{Ending, Meter};
use fairlead_dialect::openai::stream::terminal_error;
use fairlead_dialect::shapes::ErrorText;
use fairlead_dialect::Pieces;
use http::header::{self, HeaderValue};
use http::Response;
use http_body::Body as _;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

/// What came next of a provider's body.
enum Next {
    Bytes(Bytes),
    Ended,
    Broken(Error),
}

/// The next bytes once the caller has room for them.
async fn next(settlement: &Settlement, body: &mut Incoming, patience: Duration, has_begun: bool) -> Next {
    let (shared, exchange) = (&settlement.shared, &settlement.exchange);
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
pub async fn events(call: &mut Call, target: &Target, mut body: Incoming) -> Result<FinishedStream, AttemptFailure> {
    let timeouts = target.connection.timeouts;
    let mut meter = Meter::default();
    let mut filter = StreamFilter::new(call.settlement.answer_guardrails, true);
    let broken = loop {
        let has_begun = call.is_headed();
        let patience = Duration::from_millis(if has_begun { timeouts.idle_ms } else { timeouts.first_token_ms });
        match next(&call.settlement, &mut body, patience, has_begun).await {
            Next::Bytes(chunk) => {
                let mut passed = meter.push(&chunk);
                call.settlement.usage = meter.usage().unwrap_or_default();
                passed.pieces = match judged(filter.as_mut(), &mut call.settlement, passed.pieces, passed.done) {
                    Ok(pieces) => pieces,
                    Err(fault) => break Some(fault),
                };
                let units = call.settlement.units().updated_with(meter.units());
                call.settlement.set_units(units);
                if meter.has_answered() {
                    call.settlement.first_byte.get_or_insert_with(Instant::now);
                }
                if passed.done {
                    let ending = meter.finish(None);
                    return end(call, target, passed.pieces, ending);
                }
                if meter.has_answered() {
                    send(call, target, &EVENT_STREAM, passed.pieces);
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
        match judged(filter.as_mut(), &mut call.settlement, rest, true) {
            Ok(judged) => last = judged,
            Err(fault) => ending.error = Some(fault),
        }
    }
    end(call, target, last, ending)
}

fn end(call: &mut Call, target: &Target, mut last: Pieces, ending: Ending) -> Result<FinishedStream, AttemptFailure> {
    call.settlement.usage = ending.usage.unwrap_or_default();
    let units = call.settlement.units().updated_with(ending.units);
    call.settlement.set_units(units);
    let Some(error) = ending.error else {
        if !ending.rest.is_empty() {
            last.push(ending.rest);
        }
        send(call, target, &EVENT_STREAM, []);
        call.settlement.bytes_response += size(&last);
        return Ok(finished(Outcome::Completed, None, last));
    };
    let outcome = failover::outcome(error.kind);
    if !is_begun(&call.settlement, &last) {
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
    send(call, target, &EVENT_STREAM, []);
    call.settlement.bytes_response += size(&last);
    Ok(finished(outcome, Some(error), last))
}

/// Passes bytes.
pub async fn bytes(
    call: &mut Call,
    target: &Target,
    response: Response<Incoming>,
) -> Result<FinishedStream, AttemptFailure> {
    let timeouts = target.connection.timeouts;
    let octets = HeaderValue::from_static("application/octet-stream");
    let content_type = response.headers().get(header::CONTENT_TYPE).cloned().unwrap_or(octets);
    let mut body = response.into_body();
    loop {
        let has_begun = call.is_headed();
        let patience = Duration::from_millis(if has_begun { timeouts.idle_ms } else { timeouts.first_token_ms });
        match next(&call.settlement, &mut body, patience, has_begun).await {
            Next::Bytes(chunk) => {
                call.settlement.first_byte.get_or_insert_with(Instant::now);
                send(call, target, &content_type, [chunk]);
            }
            Next::Ended => {
                send(call, target, &content_type, []);
                return Ok(finished(Outcome::Completed, None, Pieces::new()));
            }
            Next::Broken(error) if !has_begun => return Err(error.into()),
            Next::Broken(error) => {
                let outcome = if error.kind == Kind::Draining { Outcome::Drained } else { Outcome::UpstreamFailed };
                return Ok(FinishedStream { is_cut: true, ..finished(outcome, Some(error), Pieces::new()) });
            }
        }
    }
}

/// Sends bytes to the caller, with the head before the first of them.
fn send(call: &mut Call, target: &Target, content_type: &HeaderValue, pieces: impl IntoIterator<Item = Bytes>) {
    let fallbacks = call.failures.len();
    relay::send(&mut call.settlement, target, fallbacks, content_type, pieces.into_iter().collect());
}

/// An answer that came to its end after something was sent.
fn finished(outcome: Outcome, error: Option<Error>, last: Pieces) -> FinishedStream {
    FinishedStream { outcome, error, last, response: None, tail: None, is_cut: false }
}

/// Which of the two silences inside an answer it was.
fn silent(patience: Duration, has_begun: bool) -> Error {
    let waited_ms = patience.as_millis();
    let (kind, message) = if has_begun {
        (Kind::UpstreamIdleTimeout, format!("The provider was silent for {waited_ms} ms inside its answer."))
    } else {
        (Kind::UpstreamFirstTokenTimeout, format!("The provider sent nothing of its answer within {waited_ms} ms."))
    };
    Error::upstream(kind, Retry::Never, message)
}
