//! Limits that several nodes hold together, over a Redis 7 or Valkey: `store` (its connection and scripts), `keeper` (the task that
//! asks it), `presence` (by which control knows that a worker is gone). What is asked and what an answer means is decided in `fairlead_core::lease`.

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

/// Beyond the deadline of one question, for the one that is under way before it.
const QUEUED: u32 = 2;

/// The leases of this node: what callers wait for, and what is told of them.
#[derive(Debug)]
pub struct Leases {
    pub terms: Arc<LeaseTerms>,
    pub config: StoreConfig,
    /// Somebody waits, or a lease is low.
    wake: Notify,
    /// Rounds that have begun, and the last one that is over.
    begun: AtomicU64,
    over: watch::Sender<u64>,
    trips: AtomicU64,
    losses: AtomicU64,
    nodes: Mutex<Nodes>,
}

#[derive(Debug, Default)]
struct Nodes {
    /// Heard of by the store of late.
    present: BTreeSet<String>,
    /// When this node learnt of each last, monotonic milliseconds: a store that was emptied hears of them one after the other.
    seen_ms: BTreeMap<String, u64>,
    /// Not heard of any more, with leases that are not accounted for.
    orphans: BTreeSet<String>,
}

/// The leases as this worker reports them to control.
#[derive(Debug, Serialize)]
pub struct LeaseStats {
    /// Whether the store answers.
    connected: bool,
    /// Nodes that it hears of.
    nodes: Vec<String>,
    limits: usize,
    limits_in_use: usize,
    /// Questions to the store, each one round trip, since the start.
    round_trips: u64,
    /// How often it went away.
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

    /// Waits for the store's answer to what was asked of the ledger before this call, or until it is late. The ledger knows more
    /// afterwards: that there is room, that there is none, or that the store is lost.
    pub async fn answered(&self) {
        let mut over = self.over.subscribe();
        let mine = self.begun.load(Ordering::Acquire) + 1;
        self.wake.notify_one();
        let waiting = over.wait_for(|round| *round >= mine);
        if tokio::time::timeout(self.config.deadline() * QUEUED, waiting).await.is_err() {
            tracing::debug!("the shared store is late");
        }
    }

    /// Asks the store soon where a lease got low.
    pub fn nudge(&self) {
        if self.terms.take_low() {
            self.wake.notify_one();
        }
    }

    /// The nodes of which control may have records that the store does not.
    pub fn known_nodes(&self) -> Vec<String> {
        let nodes = self.nodes.lock();
        // Control knows workers by their ids. A node in a window that its clock came back to has another name, and no records.
        let is_worker = |name: &&String| name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let all: BTreeSet<&String> = nodes.seen_ms.keys().chain(&nodes.orphans).filter(is_worker).collect();
        all.into_iter().cloned().collect()
    }

    /// Control has told all that these used.
    pub fn forget_ended<'n>(&self, ended: impl Iterator<Item = &'n str>) {
        let mut nodes = self.nodes.lock();
        for node in ended {
            nodes.orphans.remove(node);
        }
    }

    /// The epoch as this node trusts it. Where the store hears of fewer nodes than there are, one of these may have leases of a
    /// store that was emptied, and not have noticed yet: who is new here could not know.
    fn trusted(&self, epoch: &Epoch) -> Epoch {
        Epoch { is_careful: epoch.is_careful || self.is_short(), ..epoch.clone() }
    }

    /// Whether the store, when it was asked last, had heard of fewer nodes than there are workers here.
    fn is_short(&self) -> bool {
        (self.nodes.lock().present.len() as u64) < self.config.workers
    }

    /// The store has told which nodes it hears of.
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
