//! A request's body: fed to the engine as it comes, and given up when it comes too slowly.

use crate::flight::Flight;
use bytes::Bytes;
use fairlead_engine::engine::{Engine, FedHere};
use fairlead_engine::gate::body::Pending;
use fairlead_engine::patience::MIN_BODY_BYTES_PER_S;
use fairlead_engine::task;
use http_body::Body as _;
use hyper::body::Incoming;
use std::future::{poll_fn, Future as _};
use std::io::ErrorKind;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::time::{sleep_until, timeout, Sleep};

/// How long, and how far, what a caller still sends of a body is read that has had its answer.
const LINGER: Duration = Duration::from_secs(3);
const LINGER_BYTES: usize = 8 * 1024 * 1024;

/// The caller left inside its body.
#[derive(Debug, Clone, Copy)]
pub struct Left;

enum Came {
    Piece(Bytes),
    End,
    /// The body's chunks are not what HTTP says.
    Malformed,
    Left,
    Late,
}

/// How long the next piece may take. Armed only for a body that does not come with its head.
struct Patience {
    idle: Duration,
    since: Instant,
    fed_bytes: u64,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Patience {
    /// A piece has come.
    fn rearm(&mut self) {
        let slowest = self.since + self.idle + Duration::from_secs(self.fed_bytes / MIN_BODY_BYTES_PER_S);
        if let Some(timer) = &mut self.timer {
            timer.as_mut().reset(slowest.min(Instant::now() + self.idle).into());
        }
    }

    fn poll_late(&mut self, cx: &mut std::task::Context<'_>) -> Poll<()> {
        let (since, idle) = (self.since, self.idle);
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until((since + idle).into())));
        timer.as_mut().poll(cx)
    }
}

/// Reads the body and begins the work. Where it returns without work the exchange has its answer.
pub async fn read(
    engine: &Engine,
    pending: &mut Pending,
    flight: &mut Flight,
    body: &mut Incoming,
) -> Result<(), Left> {
    let idle = Duration::from_millis(engine.body_idle_ms());
    let mut patience = Patience { idle, since: Instant::now(), fed_bytes: 0, timer: None };
    loop {
        let (piece, more) = match next(body, &mut patience).await {
            Came::Piece(piece) => (piece, true),
            Came::End => (Bytes::new(), false),
            Came::Malformed => {
                pending.refuse_framing();
                return Ok(());
            }
            Came::Left => return Err(Left),
            Came::Late => {
                pending.time_out();
                return Ok(());
            }
        };
        patience.fed_bytes += piece.len() as u64;
        match engine.feed_here(pending, &piece, more) {
            FedHere::More => {}
            FedHere::Work(work) => {
                flight.begin(work);
                return Ok(());
            }
            FedHere::Answered => return Ok(()),
        }
        if pending.is_upload() {
            let exchange = flight.exchange();
            let before = Instant::now();
            poll_fn(|cx| exchange.poll_room_to_give(cx)).await;
            // A provider that takes its time is no slow caller.
            patience.since += before.elapsed();
        }
        patience.rearm();
    }
}

/// Reads on for a little while and forgets it: a stream of HTTP/2 that is reset right behind its answer takes the answer away
/// from callers that are still writing (RFC 9113, 8.1 allows the reset, and clients stumble over it).
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
    // It ends with its body, with its connection, or soon.
    drop(task::spawn(timeout(LINGER, forget)));
}

/// Whether bytes came that are no body, rather than none any more.
fn is_malformed(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<std::io::Error>());
    cause.is_some_and(|cause| matches!(cause.kind(), ErrorKind::InvalidInput | ErrorKind::InvalidData))
}

async fn next(body: &mut Incoming, patience: &mut Patience) -> Came {
    poll_fn(|cx| loop {
        match Pin::new(&mut *body).poll_frame(cx) {
            Poll::Ready(None) => return Poll::Ready(Came::End),
            Poll::Ready(Some(Ok(frame))) => {
                // Trailers are no part of a body.
                if let Ok(piece) = frame.into_data() {
                    return Poll::Ready(Came::Piece(piece));
                }
            }
            Poll::Ready(Some(Err(error))) if is_malformed(&error) => return Poll::Ready(Came::Malformed),
            Poll::Ready(Some(Err(_))) => return Poll::Ready(Came::Left),
            Poll::Pending => return patience.poll_late(cx).map(|()| Came::Late),
        }
    })
    .await
}
