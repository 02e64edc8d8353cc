//! Hedging: a combo's first target that takes long is joined by the second, and the first to answer wins. The other call is dropped,
//! which ends it at its provider as well.
//!
//! For answers in one piece the answer decides, for streams the first byte. What the dropped call came to is not known and not
//! counted; both count as attempts.

use crate::call::context::Call;
use crate::call::failover;
use crate::call::relay;
use crate::route::choice::Choice;
use crate::upstream::failure::AttemptFailure;
use std::future::Future;
use std::pin::{pin, Pin};
use std::sync::Arc;
use std::time::Duration;

/// How long the first target is waited for alone; `None` where the combo does not hedge, or cannot: what acts is asked once.
pub fn delay(choice: &Choice) -> Option<Duration> {
    let params = &choice.combo.as_ref()?.params;
    let acts = choice.targets.iter().any(|target| target.connection.sends_session);
    let can = params.hedging && choice.targets.len() > 1 && !acts;
    can.then(|| Duration::from_millis(params.hedge_delay_ms))
}

/// Lets the first two targets race: who won, by its place in the choice, and what it said. The failures of the call are those
/// that were asked and failed, in the order of the choice; nobody won where it is `None`.
///
/// The callers of streams hear comments meanwhile (`is_stream`). The head that goes before the first comment names the first
/// target, whoever comes to serve.
pub async fn race<T, F>(
    call: &mut Call,
    delay: Duration,
    is_stream: bool,
    ask: impl Fn(usize) -> F,
) -> Option<(usize, T)>
where
    F: Future<Output = Result<T, AttemptFailure>>,
{
    if is_stream {
        call.name_target(0);
    }
    call.settlement.attempts += 1;
    let mut first = pin!(ask(0));
    match waiting(call, is_stream, pin!(tokio::time::timeout(delay, first.as_mut()))).await {
        Ok(Ok(won)) => return Some((0, won)),
        Ok(Err(failed)) => {
            lose(call, 0, failed);
            return None;
        }
        Err(_) => call.settlement.attempts += 1,
    }
    let mut second = pin!(ask(1));
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
    let target = Arc::clone(&call.choice.targets[at]);
    if !may_go_on {
        call.failures.push((target, failed));
        return None;
    }
    let other = 1 - at;
    let rest = if other == 0 { first } else { second };
    match waiting(call, is_stream, rest).await {
        Ok(won) => {
            call.failures.push((target, failed));
            Some((other, won))
        }
        Err(last) => {
            note_loss(call, other, &last);
            let last = (Arc::clone(&call.choice.targets[other]), last);
            call.failures.extend(if other == 0 { [last, (target, failed)] } else { [(target, failed), last] });
            None
        }
    }
}

/// Waits, with comments for the caller of a stream now and then.
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

/// A target that was in a race has failed.
pub fn lose(call: &mut Call, at: usize, failed: AttemptFailure) {
    note_loss(call, at, &failed);
    call.failures.push((Arc::clone(&call.choice.targets[at]), failed));
}

fn note_loss(call: &mut Call, at: usize, failed: &AttemptFailure) {
    call.name_target(at);
    call.record_failure(at, failed);
}
