//! Hedging: if a combo's first target is slow, a second one receives the same request, and the first response wins. The
//! other request is dropped, which also ends it at its provider.
//!
//! Without streaming the complete response decides, with streaming the first byte. The usage of the dropped request is
//! unknown and not counted. Both requests count as attempts.

use crate::call::attempt::failover;
use crate::call::context::Call;
use crate::call::conversation::event_stream::{self, ConversationStream, StartedStream};
use crate::call::conversation::plain;
use crate::call::conversation::translation::Translation;
use crate::call::kind::{CallKind, Reply};
use crate::call::relay;
use crate::call::relay::deadline::within;
use crate::call::relay::stream;
use crate::call::settle;
use crate::route::choice::Choice;
use crate::route::model;
use crate::shared::Shared;
use crate::upstream;
use crate::upstream::attempt::{Contents, Upstream};
use crate::upstream::failure::AttemptFailure;
use crate::upstream::limiter::SlotRequest;
use crate::upstream::slot::{self, Slot};
use crate::upstream::target::Target;
use crate::upstream::target_cap::TargetCap;
use crate::upstream::wire::Incoming;
use bytes::Bytes;
use fairlead_core::strategy::QueueRule;
use fairlead_core::{Error, ErrorKind, Retry, Usage};
use http::{HeaderValue, Response};
use http_body_util::BodyExt as _;
use smallvec::SmallVec;
use std::future::Future;
use std::pin::{pin, Pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the first target has a head start. `None` if the combo does not hedge, or if a target has side effects.
pub fn delay(choice: &Choice) -> Option<Duration> {
    let params = &choice.combo.as_ref()?.params;
    let acts = choice.targets.iter().any(|target| target.connection.sends_session);
    let can = params.hedging && choice.targets.len() > 1 && !acts;
    can.then(|| Duration::from_millis(params.hedge_delay_ms))
}

/// Two targets of a conversation that race.
pub struct Race<'a, K> {
    pub kind: &'a K,
    pub translation: &'a Translation,
    /// The length of the caller's body, from which its tokens are estimated.
    pub request_bytes: u64,
}

impl<K: CallKind> Race<'_, K> {
    /// Runs a race of the first two targets; the second starts after the delay. Returns `None` if one of them served
    /// the call, and otherwise the targets that were tried.
    pub async fn run(&self, call: &mut Call, delay: Duration) -> Option<SmallVec<[usize; 2]>> {
        let contestants = contestants(call);
        if self.kind.is_stream() {
            self.race_streams(call, delay, &contestants).await
        } else {
            self.race_answers(call, delay, &contestants).await
        }
    }

    /// Runs a race for a complete response. Returns `None` if a target served the call, and otherwise the targets that
    /// were tried.
    async fn race_answers(
        &self,
        call: &mut Call,
        delay: Duration,
        contestants: &[Contestant],
    ) -> Option<SmallVec<[usize; 2]>> {
        let Some((at, won)) = race(call, delay, false, |at| self.take_answer(&contestants[at])).await else {
            return Some(call.failures.iter().map(|(at, _)| *at).collect());
        };
        let RacedAnswer { answer, usage, began } = won;
        call.name_target(at);
        call.settlement.usage = usage;
        call.settlement.first_byte.get_or_insert_with(Instant::now);
        settle::finish(call, self.kind, at, Reply::Complete(answer), Some(began)).await;
        None
    }

    /// Runs a race for a stream and relays the winner's stream to its end. Returns `None` in that case, and otherwise
    /// the targets that were tried.
    async fn race_streams(
        &self,
        call: &mut Call,
        delay: Duration,
        contestants: &[Contestant],
    ) -> Option<SmallVec<[usize; 2]>> {
        let may_comment = !self.translation.holds_streams();
        let Some((at, started)) = race(call, delay, may_comment, |at| self.start_stream(&contestants[at])).await else {
            return Some(call.failures.iter().map(|(at, _)| *at).collect());
        };
        let began = started.began;
        call.name_target(at);
        match event_stream::resume(call, at, self.translation, started).await {
            Ok(finished) => {
                settle::finish(call, self.kind, at, Reply::Stream(finished), Some(began)).await;
                None
            }
            Err(failed) => {
                drop_racer(call, at, failed);
                Some(call.failures.iter().map(|(at, _)| *at).collect())
            }
        }
    }

    /// Requests a complete response from one target.
    async fn take_answer(&self, contestant: &Contestant) -> Result<RacedAnswer, AttemptFailure> {
        let began = Instant::now();
        let read = |response| plain::take(&contestant.target, response, self.translation, &contestant.upstream_model);
        let ((answer, usage), mut slot) = self.send(contestant, read).await?;
        slot.settle(&usage);
        Ok(RacedAnswer { answer, usage, began })
    }

    /// Sends the request to one target and waits for the first bytes of its stream.
    async fn start_stream(&self, contestant: &Contestant) -> Result<StartedStream, AttemptFailure> {
        let began = Instant::now();
        let patience = Duration::from_millis(contestant.target.connection.timeouts.first_token_ms);
        let begin = |response: Response<Incoming>| async move {
            let (mut body, events) =
                event_stream::begin(response, &contestant.target, (self.translation, &contestant.upstream_model))
                    .await?;
            if let Some(events) = events {
                return Ok((body, events));
            }
            let first = tokio::time::timeout(patience, first_bytes(&mut body)).await;
            let first = first
                .map_err(|_| AttemptFailure::from(stream::silent::<ConversationStream<'_>>(patience, false)))??;
            Ok((body, first))
        };
        let ((body, first), slot) = self.send(contestant, begin).await?;
        Ok(StartedStream { body, first, began, slot })
    }

    /// Sends the request to one target once its connection has capacity, and reads the part of the response that
    /// decides the race. The combo's time limit applies.
    async fn send<T, F>(
        &self,
        contestant: &Contestant,
        read: impl FnOnce(Response<Incoming>) -> F,
    ) -> Result<(T, Slot), AttemptFailure>
    where
        F: Future<Output = Result<T, AttemptFailure>>,
    {
        let Contestant { shared, target, upstream_model, betas, session, limit, .. } = contestant;
        let tokens = model::estimate(self.request_bytes);
        let slot_request = SlotRequest { model: upstream_model, tokens, queue: contestant.queue, cap: contestant.cap };
        let slot = slot::acquire(&contestant.shared, target, &slot_request, &mut Duration::default()).await?;
        let asking = async {
            let is_stream = self.kind.is_stream();
            let request = Upstream {
                uri: &self.translation.uri(target, upstream_model, is_stream)?,
                model: upstream_model,
                betas: betas.as_ref(),
                session: session.as_ref(),
                body: Contents::Json(self.translation.body(target, upstream_model)),
                is_stream,
            };
            read(upstream::attempt::send(&shared.pool, target, request).await?).await
        };
        tokio::select! {
            biased;
            answer = within(*limit, asking) => Ok((answer?, slot)),
            () = shared.drain.expired() => Err(shared.drain.error().into()),
        }
    }
}

/// Runs a race of the first two targets. Returns the winner's index in the choice and its result, or `None` if both
/// failed. The failures are added to the call, in the order of the choice.
///
/// Callers of streams (`is_stream`) receive comments meanwhile. The head before the first comment names the first
/// target, whichever target wins.
pub async fn race<T, F>(
    call: &mut Call,
    delay: Duration,
    is_stream: bool,
    send: impl Fn(usize) -> F,
) -> Option<(usize, T)>
where
    F: Future<Output = Result<T, AttemptFailure>>,
{
    if is_stream {
        call.name_target(0);
    }
    call.settlement.attempts += 1;
    let mut first = pin!(send(0));
    match waiting(call, is_stream, pin!(tokio::time::timeout(delay, first.as_mut()))).await {
        Ok(Ok(won)) => return Some((0, won)),
        Ok(Err(failed)) => {
            drop_racer(call, 0, failed);
            return None;
        }
        Err(_) => call.settlement.attempts += 1,
    }
    let mut second = pin!(send(1));
    let either = async {
        tokio::select! {
            biased;
            outcome = first.as_mut() => (0, outcome),
            outcome = second.as_mut() => (1, outcome),
        }
    };
    let (at, failed) = match waiting(call, is_stream, pin!(either)).await {
        (at, Ok(won)) => return Some((at, won)),
        (at, Err(failed)) => (at, failed),
    };
    let may_go_on = failover::may_go_on(&call.choice, &failed);
    note_loss(call, at, &failed);
    if !may_go_on {
        call.failures.push((at, failed));
        return None;
    }
    let other = 1 - at;
    let rest = if other == 0 { first } else { second };
    match waiting(call, is_stream, rest).await {
        Ok(won) => {
            call.failures.push((at, failed));
            Some((other, won))
        }
        Err(last) => {
            note_loss(call, other, &last);
            let (last, failed) = ((other, last), (at, failed));
            call.failures.extend(if other == 0 { [last, failed] } else { [failed, last] });
            None
        }
    }
}

/// Waits for `pending`. The caller of a stream receives comments meanwhile.
async fn waiting<T>(call: &mut Call, is_stream: bool, mut pending: Pin<&mut impl Future<Output = T>>) -> T {
    if !is_stream {
        return pending.await;
    }
    let every = Duration::from_millis(call.settlement.shared.config.heartbeat_ms);
    loop {
        match tokio::time::timeout(every, pending.as_mut()).await {
            Ok(done) => return done,
            Err(_) => relay::send_heartbeat(&mut call.settlement, &call.choice.targets[0]),
        }
    }
}

/// Records the failure of a racing target.
fn drop_racer(call: &mut Call, at: usize, failed: AttemptFailure) {
    note_loss(call, at, &failed);
    call.failures.push((at, failed));
}

fn note_loss(call: &mut Call, at: usize, failed: &AttemptFailure) {
    call.name_target(at);
    call.record_failure(at, failed);
}

/// One of two racing targets, with its request.
struct Contestant {
    shared: Arc<Shared>,
    target: Arc<Target>,
    upstream_model: String,
    betas: Option<HeaderValue>,
    session: Option<HeaderValue>,
    /// The time limit that the combo gives it.
    limit: Option<Duration>,
    queue: QueueRule,
    cap: Option<TargetCap>,
}

/// The requests to the first two targets.
fn contestants(call: &Call) -> SmallVec<[Contestant; 2]> {
    let betas = &call.settlement.admission.anthropic_beta;
    let session = call.settlement.admission.session();
    let contestant = |at: usize| Contestant {
        shared: call.shared(),
        target: Arc::clone(&call.choice.targets[at]),
        upstream_model: call.choice.upstream_model(at).to_owned(),
        betas: betas.clone(),
        session: session.clone(),
        limit: call.time_for(at),
        queue: call.choice.queue(),
        cap: call.choice.cap(at),
    };
    (0..call.choice.targets.len().min(2)).map(contestant).collect()
}

/// The response of a racing target.
struct RacedAnswer {
    answer: plain::Answer,
    usage: Usage,
    /// When the request was sent.
    began: Instant,
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
    Err(Error::upstream(ErrorKind::UpstreamReset, Retry::Elsewhere, message))
}
