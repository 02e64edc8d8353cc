//! The peer of a connection, and the engine as seen by the connections of one thread.

use crate::connection_limit::Permit;
use crate::connection_state::ConnectionState;
use fairlead_engine::{Admitted, Engine, Exchange, Inbound, Wake};
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// The engine as the connections of one thread call it.
#[derive(Debug)]
pub struct EngineHandle {
    pub engine: Arc<Engine>,
    wake: Arc<dyn Wake>,
}

impl EngineHandle {
    pub fn new(engine: Arc<Engine>) -> Self {
        Self { engine, wake: Arc::new(NoWake) }
    }

    /// Admits a request head for a front that polls.
    pub fn admit(&self, inbound: &Inbound<'_>) -> Admitted {
        self.engine.admit(inbound, Arc::clone(&self.wake))
    }
}

/// A front that polls exchanges itself needs no wake-up.
#[derive(Debug)]
struct NoWake;

impl Wake for NoWake {
    fn wake(&self, _: u64) {}
}

/// The peer of a connection. The connection counts as open until the last part of it is dropped.
#[derive(Debug)]
pub struct Caller {
    pub peer: IpAddr,
    pub is_tls: bool,
    pub state: Arc<ConnectionState>,
    #[expect(dead_code, reason = "counts the connection until the caller is dropped")]
    pub permits: (Permit, OpenConnection),
}

/// The exchange of a request that was admitted or answered.
pub(crate) fn exchange_of(admitted: &Admitted) -> Arc<Exchange> {
    Arc::clone(match admitted {
        Admitted::Answered(exchange) => exchange,
        Admitted::Pending(pending) => &pending.exchange,
    })
}

/// Counts one connection as open in its worker, until it is dropped.
#[derive(Debug)]
pub struct OpenConnection(Arc<AtomicUsize>);

impl OpenConnection {
    /// `open` is the worker's counter, which already includes this connection.
    pub fn new(open: Arc<AtomicUsize>) -> Self {
        Self(open)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
