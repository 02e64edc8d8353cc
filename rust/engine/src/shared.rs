//! The state shared by all requests of this worker.

use crate::active_config::ActiveConfig;
use crate::call::idempotency::recording::Recordings;
use crate::clock;
use crate::config::Config;
use crate::control::response_spool::ResponseSpool;
use crate::leases::Leases;
use crate::observe::capture::CaptureQueue;
use crate::observe::spool::Spool;
use crate::peers::Peers;
use crate::upstream::wire::Pool;
use arc_swap::ArcSwap;
use fairlead_cache::Cache;
use fairlead_core::{Error, ErrorKind, Ledger, Sessions};
use http::HeaderValue;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::runtime::Handle;
use tokio::sync::Notify;

/// The limit of buffered bodies over all requests. Beyond it new requests are refused.
pub const MAX_BUFFERED_BYTES: usize = 1024 * 1024 * 1024;

/// Control holds a poll for 2 s. Without a response for this long it counts as unavailable.
pub const LINK_STALE_MS: u64 = 7_000;

/// The state shared by all requests of this worker: configuration, connection pool, spool, counters, caches.
#[derive(Debug)]
pub struct Shared {
    pub config: Config,
    pub worker_id: String,
    /// The configured version as sent in every response.
    pub version: HeaderValue,
    pub active: ArcSwap<ActiveConfig>,
    pub pool: Pool,
    pub spool: Spool,
    /// Responses that control has not stored yet.
    pub responses: ResponseSpool,
    /// Captured bodies.
    pub captures: Arc<CaptureQueue>,
    pub control: Arc<crate::upstream::connector::Origin>,
    pub counts: Counts,
    pub metrics: crate::observe::metrics::Metrics,
    pub refused_callers: crate::observe::refused_callers::RefusalCounts,
    pub counter_reports: crate::control::counters::CounterReports,
    /// The usage of keys under their limits.
    pub ledger: Ledger,
    /// Set if limits are shared with other nodes.
    pub leases: Option<Leases>,
    /// The other workers with which idempotency keys, cooldowns and session targets are shared.
    pub peers: Option<Peers>,
    pub sessions: Sessions,
    pub idempotency: Recordings,
    pub cache: crate::cache::answers::Answers,
    /// Reasoning that models returned before tool calls.
    pub reasoning: fairlead_cache::reasoning::Reasoning,
    pub commands: crate::control::reports::UnsentReports,
    pub drain: Drain,
    pub affinity: crate::route::affinity::SessionAffinity,
    pub handoff_notes: crate::route::handoff_notes::HandoffNotes,
    pub frozen_sessions: crate::context::sessions::FrozenSessions,
    pub raw_outputs: Arc<crate::context::raw_outputs::RawOutputs>,
    pub threads: crate::observe::threads::Threads,
    /// Monotonic milliseconds of the last successful poll of the link; 0 for never.
    pub link_seen_ms: AtomicU64,
    next_id: AtomicU64,
    /// For fronts, which call from other threads.
    runtime: OnceLock<Handle>,
}

/// Gauges and counters.
#[derive(Debug, Default)]
pub struct Counts {
    pub in_flight: AtomicUsize,
    pub open_streams: AtomicUsize,
    pub buffered_body_bytes: AtomicUsize,
    /// Bodies of forms on disk.
    pub spooled_body_bytes: AtomicUsize,
    pub requests_total: AtomicU64,
    pub shed_total: AtomicU64,
    /// Open and refused connections of callers, if the engine's listener is used.
    pub socket_connections: AtomicUsize,
    pub socket_refused_total: AtomicU64,
}

/// Shutdown in three steps: it is announced, so that load balancers stop sending requests; then new requests are
/// refused; at the deadline open requests are ended.
#[derive(Debug, Default)]
pub struct Drain {
    announced: AtomicBool,
    draining: AtomicBool,
    expired: AtomicBool,
    deadline: Notify,
}

impl Drain {
    /// Announces the shutdown and continues to serve.
    pub fn announce(&self) {
        self.announced.store(true, Ordering::Release);
    }

    pub fn is_announced(&self) -> bool {
        self.announced.load(Ordering::Acquire)
    }

    pub fn begin(&self) {
        self.announce();
        self.draining.store(true, Ordering::Release);
    }

    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Ends everything that is still running.
    pub fn expire(&self) {
        self.expired.store(true, Ordering::Release);
        self.deadline.notify_waiters();
    }

    /// The error for requests that are refused or ended early by the shutdown. It starts no cooldown and no retry.
    #[expect(clippy::unused_self, reason = "callers have the drain that ends their work at hand")]
    pub fn error(&self) -> Error {
        Error::gateway(ErrorKind::Draining, "The gateway is shutting down.").after_s(1)
    }

    /// Completes when the deadline has passed.
    pub async fn expired(&self) {
        let notified = self.deadline.notified();
        if !self.expired.load(Ordering::Acquire) {
            notified.await;
        }
    }
}

impl Shared {
    pub fn new(config: Config, worker_id: String, pool: Pool, spool: Spool, cache: Cache) -> Self {
        let control = Arc::new(crate::upstream::connector::Origin::Unix(config.control_socket.clone()));
        let peers = config.shared_store.clone().map(|store| Peers::new(store, worker_id.clone()));
        let leases = config.shared_store.clone().map(Leases::new);
        let affinity = crate::route::affinity::SessionAffinity::new(peers.is_some());
        let version = crate::gate::headers::value(config.version.as_str());
        let raw_outputs = crate::context::raw_outputs::RawOutputs::new(&config.data_dir, config.sealer.clone());
        let responses = ResponseSpool::new(&config.data_dir, &worker_id);
        Self {
            config,
            version,
            worker_id,
            active: ArcSwap::default(),
            pool,
            spool,
            responses,
            captures: Arc::default(),
            control,
            counts: Counts::default(),
            metrics: crate::observe::metrics::Metrics::default(),
            refused_callers: crate::observe::refused_callers::RefusalCounts::default(),
            counter_reports: crate::control::counters::CounterReports::default(),
            ledger: leases.as_ref().map_or_else(Ledger::default, |leases| Ledger::shared(Arc::clone(&leases.terms))),
            sessions: leases
                .as_ref()
                .map_or_else(Sessions::default, |leases| Sessions::shared(Arc::clone(&leases.terms))),
            leases,
            peers,
            idempotency: Recordings::default(),
            cache: crate::cache::answers::Answers::new(cache),
            reasoning: fairlead_cache::reasoning::Reasoning::default(),
            commands: crate::control::reports::UnsentReports::default(),
            drain: Drain::default(),
            affinity,
            handoff_notes: crate::route::handoff_notes::HandoffNotes::default(),
            frozen_sessions: crate::context::sessions::FrozenSessions::default(),
            raw_outputs: Arc::new(raw_outputs),
            threads: crate::observe::threads::Threads::default(),
            link_seen_ms: AtomicU64::new(0),
            next_id: AtomicU64::new(1),
            runtime: OnceLock::new(),
        }
    }

    pub fn set_runtime(&self, handle: Handle) {
        // Only the engine sets it, once.
        let _set = self.runtime.set(handle);
    }

    /// The runtime of the calling thread, or else that of the engine; `None` before the engine runs.
    pub fn runtime(&self) -> Option<Handle> {
        Handle::try_current().ok().or_else(|| self.runtime.get().cloned())
    }

    /// Wakes the task for the shared store if a lease of this worker is low.
    pub fn wake_lease_keeper(&self) {
        if let Some(leases) = &self.leases {
            leases.nudge();
        }
    }

    pub fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Deletes responses of idempotency keys and stored reasoning, which are separate from the response cache.
    pub fn forget_for_repeats(&self) {
        self.idempotency.forget();
        self.reasoning.forget(&fairlead_cache::reasoning::ReasoningFilter::default());
    }

    /// Whether control has recently responded on the link.
    pub fn control_is_connected(&self) -> bool {
        let seen_ms = self.link_seen_ms.load(Ordering::Relaxed);
        seen_ms > 0 && clock::monotonic_ms().saturating_sub(seen_ms) < LINK_STALE_MS
    }
}

/// A number of units of a gauge, returned on drop.
#[derive(Debug)]
pub struct GaugePermit {
    shared: Arc<Shared>,
    gauge: Gauge,
    amount: usize,
}

/// The gauge that a [`GaugePermit`] counts in.
#[derive(Debug, Clone, Copy)]
pub enum Gauge {
    InFlight,
    OpenStreams,
    BodyBytes,
    SpooledBytes,
}

impl Gauge {
    fn of(self, counts: &Counts) -> &AtomicUsize {
        match self {
            Self::InFlight => &counts.in_flight,
            Self::OpenStreams => &counts.open_streams,
            Self::BodyBytes => &counts.buffered_body_bytes,
            Self::SpooledBytes => &counts.spooled_body_bytes,
        }
    }
}

impl GaugePermit {
    /// Reserves an open stream; an error if the limit is reached.
    pub fn for_stream(shared: &Arc<Shared>) -> Result<Self, Error> {
        Self::take(shared, Gauge::OpenStreams, 1, shared.config.max_open_streams).ok_or_else(|| {
            let message = "The gateway has as many streams open as it takes; try again shortly.";
            Error::gateway(ErrorKind::Overloaded, message).after_s(1)
        })
    }

    /// Reserves a request in flight; an error if the limit is reached.
    pub fn for_request(shared: &Arc<Shared>, limit: usize) -> Result<Self, Error> {
        Self::take(shared, Gauge::InFlight, 1, limit).ok_or_else(|| {
            let message = "The gateway has as many requests open as it takes; try again shortly.";
            Error::gateway(ErrorKind::Overloaded, message).after_s(1)
        })
    }

    /// Reserves an amount; `None` if the gauge would exceed `limit`.
    pub fn take(shared: &Arc<Shared>, gauge: Gauge, amount: usize, limit: usize) -> Option<Self> {
        count(shared, gauge, amount, limit).then(|| Self { shared: Arc::clone(shared), gauge, amount })
    }

    /// Adds an amount to the permit. Returns `false` and changes nothing if the gauge would exceed `limit`.
    pub fn grow(&mut self, amount: usize, limit: usize) -> bool {
        let is_counted = count(&self.shared, self.gauge, amount, limit);
        if is_counted {
            self.amount += amount;
        }
        is_counted
    }

    /// Sets the permit's amount. Returns `false` and changes nothing if the gauge would exceed `limit`.
    pub fn set(&mut self, amount: usize, limit: usize) -> bool {
        if amount >= self.amount {
            return amount == self.amount || self.grow(amount - self.amount, limit);
        }
        self.gauge.of(&self.shared.counts).fetch_sub(self.amount - amount, Ordering::AcqRel);
        self.amount = amount;
        true
    }
}

fn count(shared: &Shared, gauge: Gauge, amount: usize, limit: usize) -> bool {
    let counter = gauge.of(&shared.counts);
    let before = counter.fetch_add(amount, Ordering::AcqRel);
    let fits = before + amount <= limit;
    if !fits {
        counter.fetch_sub(amount, Ordering::AcqRel);
    }
    fits
}

impl Drop for GaugePermit {
    fn drop(&mut self) {
        self.gauge.of(&self.shared.counts).fetch_sub(self.amount, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::assembly::Assembly;
    use crate::testing::shared;

    #[test]
    fn messages_that_are_put_together_count_as_bodies_and_stop_at_their_bound() {
        let shared = shared("assembly");
        let buffered = || shared.counts.buffered_body_bytes.load(Ordering::Relaxed);
        let (one, other) = (Assembly::new(&shared), Assembly::new(&shared));
        assert!(one.grow(Assembly::UNCOUNTED_BYTES) && buffered() == 0, "most messages come in one piece");
        assert!(one.grow(1) && buffered() == Assembly::UNCOUNTED_BYTES + 1);
        assert!(one.set(MAX_BUFFERED_BYTES - 1_000_000) && other.set(900_000));
        assert!(!other.grow(200_000) && other.is_over() && !one.is_over());
        assert_eq!(buffered(), MAX_BUFFERED_BYTES - 100_000, "what has no room is not counted");
        assert!(one.set(0) && other.grow(0));
        drop(other);
        assert_eq!(buffered(), 0);
    }
}
