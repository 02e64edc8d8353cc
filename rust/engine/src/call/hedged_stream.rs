//! Hedging of streams: a combo's first target that sends nothing for long is joined by the second, and the first byte decides who
//! serves. The other call is dropped, which ends it at its provider as well; both count as attempts, and what the dropped one
//! came to is not known and not counted. From the first byte on the stream is one target's, as any other.

use crate::call::failover;
use crate::call::hedge::{lost, name};
use crate::call::stream::{self, is_event_stream, Begun};
use crate::call::translation::Wording;
use crate::exchange::Exchange;
use crate::observe::settle::Settlement;
use crate::route::choice::Choice;
use crate::shared::Shared;
use crate::upstream::attempt;
use crate::upstream::failure::Failed;
use crate::upstream::target::{InFlightGuard, Target};
use crate::upstream::wire::Incoming;
use bytes::Bytes;
use fairlead_core::error::{Error, Kind, Retry};
use http::header;
use http::HeaderValue;
use http_body_util::BodyExt as _;
use std::future::Future;
use std::pin::{pin, Pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An error is what those that were asked came to, in the order of the choice: the first, or both.
pub async fn race(
    shared: &Arc<Shared>,
    exchange: &Exchange,
    settlement: &mut Settlement,
    choice: &Choice,
    wording: &Wording,
    delay: Duration,
) -> Result<Begun, Vec<(Arc<Target>, Failed)>> {
    let betas = settlement.admission.anthropic_beta.clone();
    name(settlement, choice, 0);
    settlement.attempts += 1;
    let mut first = pin!(begin(shared, choice, 0, wording, betas.as_ref()));
    match beating(shared, exchange, settlement, choice, pin!(tokio::time::timeout(delay, first.as_mut()))).await {
        Ok(Ok(begun)) => return Ok(begun),
        Ok(Err(failed)) => return Err(vec![lost(shared, settlement, choice, 0, failed)]),
        Err(_) => settlement.attempts += 1,
    }
    let mut second = pin!(begin(shared, choice, 1, wording, betas.as_ref()));
    let either = async {
        tokio::select! {
            biased;
            outcome = first.as_mut() => (0, outcome),
            outcome = second.as_mut() => (1, outcome),
        }
    };
    let (at, outcome) = beating(shared, exchange, settlement, choice, pin!(either)).await;
    let failed = match outcome {
        Ok(begun) => return Ok(begun),
        Err(failed) => lost(shared, settlement, choice, at, failed),
    };
    if !failover::may_go_on(choice, &failed.1) {
        return Err(vec![failed]);
    }
    let other = 1 - at;
    let outcome = if other == 0 {
        beating(shared, exchange, settlement, choice, first).await
    } else {
        beating(shared, exchange, settlement, choice, second).await
    };
    match outcome {
        Ok(begun) => Ok(Begun { failures: vec![failed], ..begun }),
        Err(last) => {
            let last = lost(shared, settlement, choice, other, last);
            Err(if other == 0 { vec![last, failed] } else { vec![failed, last] })
        }
    }
}

/// Tells the caller now and then that somebody is at work. The head that goes before the first comment names the first target,
/// whoever comes to serve.
async fn beating<T>(
    shared: &Shared,
    exchange: &Exchange,
    settlement: &mut Settlement,
    choice: &Choice,
    mut work: Pin<&mut impl Future<Output = T>>,
) -> T {
    let every = Duration::from_millis(shared.config.heartbeat_ms);
    loop {
        match tokio::time::timeout(every, work.as_mut()).await {
            Ok(done) => return done,
            Err(_) => stream::beat(shared, exchange, settlement, &choice.targets[0]),
        }
    }
}

/// Asks one target and waits for its first bytes.
async fn begin(
    shared: &Shared,
    choice: &Choice,
    at: usize,
    wording: &Wording,
    betas: Option<&HeaderValue>,
) -> Result<Begun, Failed> {
    let began = Instant::now();
    let target = &choice.targets[at];
    let in_flight = InFlightGuard::new(&target.hot);
    let work = async {
        let upstream_model = choice.upstream_model(at);
        let body = wording.body(target, upstream_model);
        let uri = wording.uri(target, upstream_model, true)?;
        let response = attempt::send(&shared.pool, target, &uri, betas, body, true).await?;
        if !response.headers().get(header::CONTENT_TYPE).is_some_and(is_event_stream) {
            return Err(Failed::from(stream::no_events()));
        }
        let mut body = response.into_body();
        let patience = Duration::from_millis(target.connection.timeouts.first_token_ms);
        let first = tokio::time::timeout(patience, first_bytes(&mut body)).await;
        let first = first.map_err(|_| Failed::from(stream::silent(patience, false)))??;
        Ok((body, first))
    };
    let (body, first) = tokio::select! {
        biased;
        begun = work => begun?,
        () = shared.drain.expired() => return Err(shared.drain.error().into()),
    };
    Ok(Begun { at, body, first, began, failures: Vec::new(), in_flight })
}

async fn first_bytes(body: &mut Incoming) -> Result<Bytes, Error> {
    while let Some(frame) = body.frame().await {
        match frame.map(http_body::Frame::into_data) {
            Ok(Ok(data)) if !data.is_empty() => return Ok(data),
            Ok(_) => {}
            Err(_) => break,
        }
    }
    let message = "The provider ended its stream before it said anything.";
    Err(Error::upstream(Kind::UpstreamReset, Retry::Elsewhere, message))
}
