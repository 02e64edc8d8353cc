//! Faults on purpose, for the calls of a key whose `chaosModeEnabled` is set: before anybody is asked, so that no provider is
//! blamed and none is paid. The record and the answer's head name the fault.

use crate::clock;
use crate::observe::settle::Settlement;
use fairlead_core::strategy::Random;
use fairlead_core::{random_bytes, Chaos, Error};
use std::sync::Arc;
use std::time::Duration;

/// Gives the call a fault, by chance. An error: the call ends with it.
pub async fn strike(settlement: &mut Settlement) -> Result<(), Error> {
    let Some(chaos) = settlement.admission.principal.key().and_then(|key| key.chaos.clone()) else { return Ok(()) };
    // On the heap, so that calls of other keys do not carry its size.
    Box::pin(strike_by(chaos, settlement)).await
}

async fn strike_by(chaos: Chaos, settlement: &mut Settlement) -> Result<(), Error> {
    let seed = random_bytes::<8>().map_or_else(|_| clock::unix_ms(), u64::from_ne_bytes);
    let Some(fault) = chaos.draw(&mut Random::seeded(seed)) else { return Ok(()) };
    settlement.set_chaos(fault);
    if fault.waits() {
        let exchange = Arc::clone(&settlement.exchange);
        tokio::select! {
            biased;
            // The next step finds that the caller has left, or that the gateway goes down.
            () = exchange.gone() => {}
            () = settlement.shared.drain.expired() => {}
            () = tokio::time::sleep(Duration::from_millis(chaos.latency_ms)) => {}
        }
    }
    fault.error().map_or(Ok(()), Err)
}
