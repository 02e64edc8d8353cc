//! Passes a request's body to the engine as it arrives, and aborts it when it arrives too slowly.

use crate::flight::Flight;
use bytes::Bytes;
use fairlead_engine::patience::MIN_BODY_BYTES_PER_S;
use fairlead_engine::{task, Engine, Pending, PolledBodyState};
use http_body::Body as _;
use hyper::body::Incoming;
use std::future::{poll_fn, Future as _};
use std::io::ErrorKind;
use std::pin::Pin;
use std::task::{ready, Context, Poll};
use std::time::{Duration, Instant};
use tokio::time::{sleep_until, timeout, Sleep};

/// How long, and how many bytes, of a body are read after its answer was sent.
const LINGER: Duration = Duration::from_secs(3);
const LINGER_BYTES: usize = 8 * 1024 * 1024;

/// The caller left before the end of its body.
#[derive(Debug, Clone, Copy)]
pub struct CallerGone;

/// The result of reading a body.
#[derive(Debug)]
pub enum BodyEvent {
    Piece {
        piece: Bytes,
        /// Whether the body is known to end with this piece.
        is_last: bool,
    },
    End,
    /// The body has invalid chunked framing.
    Malformed,
    /// The caller left before the end of its body.
    Gone,
    Late,
}

/// The timer of a body: a maximum pause between pieces, and a minimum rate over its length. Used only if the body does
/// not arrive together with its head.
struct BodyTimer {
    idle: Duration,
    since: Instant,
    fed_bytes: u64,
    timer: Option<Pin<Box<Sleep>>>,
}

impl BodyTimer {
    /// Resets the timer after a piece.
    fn rearm(&mut self) {
        let slowest = self.since + self.idle + Duration::from_secs(self.fed_bytes / MIN_BODY_BYTES_PER_S);
        if let Some(timer) = &mut self.timer {
            timer.as_mut().reset(slowest.min(Instant::now() + self.idle).into());
        }
    }

    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (since, idle) = (self.since, self.idle);
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until((since + idle).into())));
        timer.as_mut().poll(cx)
    }
}

/// Reads the body and starts the work. If it returns no work, the exchange has its answer.
pub async fn read(
    engine: &Engine,
    pending: &mut Pending,
    flight: &mut Flight,
    mut poll_next: impl FnMut(&mut Context<'_>) -> Poll<BodyEvent>,
) -> Result<(), CallerGone> {
    let idle = Duration::from_millis(engine.body_idle_ms());
    let mut patience = BodyTimer { idle, since: Instant::now(), fed_bytes: 0, timer: None };
    loop {
        let next = poll_fn(|cx| match poll_next(cx) {
            Poll::Ready(came) => Poll::Ready(came),
            Poll::Pending => patience.poll_late(cx).map(|()| BodyEvent::Late),
        });
        let (piece, more) = match next.await {
            BodyEvent::Piece { piece, is_last } => (piece, !is_last),
            BodyEvent::End => (Bytes::new(), false),
            BodyEvent::Malformed => {
                pending.refuse_framing();
                return Ok(());
            }
            BodyEvent::Gone => return Err(CallerGone),
            BodyEvent::Late => {
                pending.time_out();
                return Ok(());
            }
        };
        patience.fed_bytes += piece.len() as u64;
        match engine.feed_here(pending, &piece, more) {
            PolledBodyState::More => {}
            PolledBodyState::Work(work) => {
                flight.begin(work);
                return Ok(());
            }
            PolledBodyState::Answered => return Ok(()),
        }
        if pending.is_upload() {
            let exchange = flight.exchange();
            let before = Instant::now();
            poll_fn(|cx| exchange.poll_body_capacity(cx)).await;
            // The time that a provider takes does not count as the caller's.
            patience.since += before.elapsed();
        }
        patience.rearm();
    }
}

/// Reads and discards the remaining body for a short time. If an HTTP/2 stream were reset right after its answer,
/// callers that are still writing would lose the answer. RFC 9113, 8.1 allows the reset, but some clients fail on it.
pub fn linger(mut body: Incoming) {
    let forget = async move {
        let mut left = LINGER_BYTES;
        while let Some(Ok(frame)) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            left = match frame.data_ref().map_or(Some(left), |piece| left.checked_sub(piece.len())) {
                Some(left) => left,
                None => return,
            };
        }
    };
    // The task ends with its body, with its connection, or after the timeout.
    drop(task::spawn(timeout(LINGER, forget)));
}

/// Whether hyper's error means an invalid body, and not a caller that left.
fn is_malformed(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<std::io::Error>());
    cause.is_some_and(|cause| matches!(cause.kind(), ErrorKind::InvalidInput | ErrorKind::InvalidData))
}

/// The next piece of an HTTP/2 body.
pub fn poll_incoming(body: &mut Incoming, cx: &mut Context<'_>) -> Poll<BodyEvent> {
    loop {
        return Poll::Ready(match ready!(Pin::new(&mut *body).poll_frame(cx)) {
            None => BodyEvent::End,
            Some(Ok(frame)) => match frame.into_data() {
                Ok(piece) => BodyEvent::Piece { piece, is_last: false },
                // Trailers are not part of a body.
                Err(_) => continue,
            },
            Some(Err(error)) if is_malformed(&error) => BodyEvent::Malformed,
            Some(Err(_)) => BodyEvent::Gone,
        });
    }
}
