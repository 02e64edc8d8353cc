//! Injects faults into the calls of a key with `chaosModeEnabled`. This happens before any provider is involved, so no
//! provider is blamed or paid. The record and the response head name the fault.

use crate::clock;
use crate::observe::settle::Settlement;
use fairlead_core::strategy::Random;
use fairlead_core::{random_bytes, Chaos, Error};
use std::sync::Arc;
use std::time::Duration;

/// Injects a fault with the configured probability. An error ends the call.
pub async fn inject(settlement: &mut Settlement) -> Result<(), Error> {
    let Some(chaos) = settlement.admission.principal.key().and_then(|key| key.chaos.clone()) else { return Ok(()) };
    // Boxed to keep the future of other keys' calls small.
    Box::pin(inject_fault(chaos, settlement)).await
}

async fn inject_fault(chaos: Chaos, settlement: &mut Settlement) -> Result<(), Error> {
    let seed = random_bytes::<8>().map_or_else(|_| clock::unix_ms(), u64::from_ne_bytes);
    let Some(fault) = chaos.draw(&mut Random::seeded(seed)) else { return Ok(()) };
    settlement.set_chaos(fault);
    if fault.waits() {
        let exchange = Arc::clone(&settlement.exchange);
        tokio::select! {
            biased;
            // The next step handles a caller that left and a shutdown.
            () = exchange.gone() => {}
            () = settlement.shared.drain.expired() => {}
            () = tokio::time::sleep(Duration::from_millis(chaos.latency_ms)) => {}
        }
    }
    fault.error().map_or(Ok(()), Err)
}
