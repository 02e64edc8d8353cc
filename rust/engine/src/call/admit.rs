//! The admit phase: a request with its body starts as a call. A request that repeats another under its idempotency key
//! receives that request's response instead.

use crate::call::context::Call;
use crate::call::conversation;
use crate::call::idempotency::{lead, repeat, Part};
use crate::call::passthrough;
use crate::call::settle::refuse;
use crate::gate::answer::EndGuard;
use crate::gate::request::BufferedRequest;
use crate::observe::settle::Settlement;
use crate::shared::Shared;
use bytes::Bytes;
use fairlead_core::routes::{Answer, Ollama, Relayed};
use fairlead_core::Outcome;
use std::future::Future;
use std::sync::Arc;

/// Serves one call. Dropping the future cancels the call: the upstream request ends and the call is settled.
///
/// The settlement opens before the first poll, so work that is dropped before it starts is settled too.
pub fn serve(shared: &Arc<Shared>, incoming: Box<BufferedRequest>) -> impl Future<Output = ()> {
    incoming.capture(shared);
    let BufferedRequest { exchange, admission, body, in_flight, buffered, .. } = *incoming;
    let end = EndGuard::new(shared, &exchange, &admission);
    let part = Part::of(shared, &exchange, &admission, &body);
    // The leader's work also serves its followers, so it does not end with the leader's caller.
    let source = if let Part::Leader(leader) = &part { &leader.source } else { &exchange };
    let mut settlement = Settlement::open(shared, source, admission, body.len() as u64);
    async move {
        let permits = Arc::new((in_flight, buffered));
        match part {
            Part::Alone => run(Call { request_permits: Some(permits), ..Call::new(settlement) }, &body).await,
            Part::Refused(fault) => refuse(&mut settlement, Outcome::Refused, &fault),
            Part::Follower(recording) => {
                repeat(&mut settlement, recording, &body).await;
                drop(permits);
            }
            Part::Leader(leader) => {
                let call = Call { request_permits: Some(permits), ..Call::new(settlement) };
                let own = body.clone();
                // Boxed, because few requests have an idempotency key.
                Box::pin(lead(leader, &exchange, call, &own, move |call| async move { run(call, &body).await })).await;
            }
        }
        drop(end);
    }
}

async fn run(call: Call, body: &Bytes) {
    match call.settlement.admission.route.answer {
        // Boxed to keep the future of conversations small.
        Answer::Relayed(kind) => Box::pin(passthrough::run(call, kind, body)).await,
        Answer::Ollama(Ollama::Embed | Ollama::Embeddings) => {
            Box::pin(passthrough::run(call, Relayed::Embeddings, body)).await;
        }
        _ => conversation::run(call, body).await,
    }
}

#[cfg(test)]
mod tests {
    fn size<A, B, F>(_: impl Fn(A, B) -> F) -> usize {
        std::mem::size_of::<F>()
    }

    #[test]
    fn an_open_stream_carries_little() {
        // Ten thousand of these futures may wait for providers at once.
        assert!(size(super::serve) <= 8 * 1024, "{}", size(super::serve));
    }
}
