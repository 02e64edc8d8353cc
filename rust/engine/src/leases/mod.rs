//! Limits shared by several nodes through Redis 7 or Valkey: `store` (the connection and scripts), `keeper` (the task
//! that sends requests) and `presence` (how control detects that a worker is gone). `fairlead_core::lease` decides what
//! to request and how to interpret the replies.

pub mod keeper;
pub mod presence;
pub mod store;

use self::store::Epoch;
use crate::observe::metrics::Sample;
use crate::shared_store::StoreConfig;
use fairlead_core::{LeaseSummary, LeaseTerms};
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use tokio::sync::{watch, Notify};

/// A multiple of the deadline, for the current request and the one before it.
const QUEUED: u32 = 2;

/// The leases of this node: the state that callers wait for, and its statistics.
#[derive(Debug)]
pub struct Leases {
    pub terms: Arc<LeaseTerms>,
    pub config: StoreConfig,
    /// Notified when a caller waits or a lease is low.
    wake: Notify,
    /// The number of rounds started, and the last finished round.
    begun: AtomicU64,
    over: watch::Sender<u64>,
    trips: AtomicU64,
    losses: AtomicU64,
    nodes: Mutex<Nodes>,
}

#[derive(Debug, Default)]
struct Nodes {
    /// Nodes that recently announced themselves to the store.
    present: BTreeSet<String>,
    /// When this node last saw each node, in monotonic milliseconds. A store that was emptied learns of the nodes one
    /// by one.
    seen_ms: BTreeMap<String, u64>,
    /// Nodes that no longer announce themselves and have unsettled leases.
    orphans: BTreeSet<String>,
}

/// The leases as this worker reports them to control.
#[derive(Debug, Serialize)]
pub struct LeaseStats {
    /// Whether the store is available.
    connected: bool,
    /// The nodes known to the store.
    nodes: Vec<String>,
    limits: usize,
    limits_in_use: usize,
    /// Requests to the store since the start, each one round trip.
    round_trips: u64,
    /// How often the store became unavailable.
    losses: u64,
}

impl Leases {
    #[must_use]
    pub fn new(config: StoreConfig) -> Self {
        let terms = Arc::new(LeaseTerms::new(config.lease_ms, config.on_loss.into()));
        terms.set_nodes(config.workers);
        let over = watch::Sender::new(0);
        Self {
            terms,
            config,
            wake: Notify::new(),
            begun: AtomicU64::new(0),
            over,
            trips: AtomicU64::new(0),
            losses: AtomicU64::new(0),
            nodes: Mutex::default(),
        }
    }

    /// Waits for the store's reply to all requests that the ledger queued before this call, or for the deadline.
    /// Afterwards the ledger knows whether there is capacity or whether the store is lost.
    pub async fn answered(&self) {
        let mut over = self.over.subscribe();
        let mine = self.begun.load(Ordering::Acquire) + 1;
        self.wake.notify_one();
        let waiting = over.wait_for(|round| *round >= mine);
        if tokio::time::timeout(self.config.deadline() * QUEUED, waiting).await.is_err() {
            tracing::debug!("the shared store is late");
        }
    }

    /// Wakes the keeper if a lease is low.
    pub fn nudge(&self) {
        if self.terms.take_low() {
            self.wake.notify_one();
        }
    }

    /// The nodes for which control may have records that the store does not have.
    pub fn known_nodes(&self) -> Vec<String> {
        let nodes = self.nodes.lock();
        // Control knows workers by their ids. A node whose clock moved back to an earlier window has a different name
        // and no records.
        let is_worker = |name: &&String| name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let all: BTreeSet<&String> = nodes.seen_ms.keys().chain(&nodes.orphans).filter(is_worker).collect();
        all.into_iter().cloned().collect()
    }

    /// Forgets nodes whose usage control has reported in full.
    pub fn forget_ended<'n>(&self, ended: impl Iterator<Item = &'n str>) {
        let mut nodes = self.nodes.lock();
        for node in ended {
            nodes.orphans.remove(node);
        }
    }

    /// The epoch with this node's trust in it. If the store knows fewer nodes than exist, one of them may hold leases
    /// from before the store was emptied, which a new node cannot know.
    fn trusted(&self, epoch: &Epoch) -> Epoch {
        Epoch { is_careful: epoch.is_careful || self.is_short(), ..epoch.clone() }
    }

    /// Whether the store last knew fewer nodes than there are workers.
    fn is_short(&self) -> bool {
        (self.nodes.lock().present.len() as u64) < self.config.workers
    }

    /// Updates the nodes that the store knows.
    fn note_nodes(&self, names: BTreeSet<String>, now_ms: u64) {
        self.terms.set_nodes(self.config.workers.max(names.len() as u64));
        let mut nodes = self.nodes.lock();
        let ttl_ms = self.config.lease_ms;
        nodes.seen_ms.retain(|_, seen_ms| now_ms.saturating_sub(*seen_ms) < ttl_ms);
        nodes.seen_ms.extend(names.iter().map(|node| (node.clone(), now_ms)));
        nodes.present = names;
    }

    pub fn round_trips(&self) -> u64 {
        self.trips.load(Ordering::Relaxed)
    }

    /// Counters for `GET /metrics`.
    pub fn samples(&self) -> [Sample; 2] {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
        [
            ("fairlead_shared_store_round_trips_total", Vec::new(), count(&self.trips)),
            ("fairlead_shared_store_losses_total", Vec::new(), count(&self.losses)),
        ]
    }

    pub fn stats(&self, summary: LeaseSummary) -> LeaseStats {
        LeaseStats {
            connected: !self.terms.is_lost(),
            nodes: self.nodes.lock().present.iter().cloned().collect(),
            limits: summary.leases,
            limits_in_use: summary.in_use,
            round_trips: self.round_trips(),
            losses: self.losses.load(Ordering::Relaxed),
        }
    }
}
