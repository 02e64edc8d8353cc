//! The only task that talks to the shared store about limits and sessions of keys. It sends the ledger's requests:
//! immediately if a caller waits for one, and otherwise about four times a second if any are due.

use super::store::{Epoch, Greeting, Store, StoreAnswers, StoreFault, StoreQuestions};
use super::Leases;
use crate::clock;
use crate::shared::Shared;
use fairlead_core::{hex, random_bytes, LeaseAnswer, LeaseQuestion};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

const TICK: Duration = Duration::from_millis(250);
/// The maximum number of limits in one round trip.
const MAX_QUESTIONS: usize = 256;
/// How often the sessions in use are checked for those that must be reported.
const REPORT_SESSIONS_MS: u64 = 5_000;
/// How often a node announces its presence within the lifetime of a lease.
const GREETINGS: u64 = 3;
/// How often an unavailable store is logged.
const WARN_EVERY_MS: u64 = 60_000;
/// The announcement interval while the store does not know all workers. Until then it grants nothing whose usage it
/// cannot know.
const GREETING_WHILE_SHORT_MS: u64 = 500;

/// Maintains the leases until the runtime ends.
pub async fn run(shared: Arc<Shared>) {
    let Some(leases) = shared.leases.as_ref() else { return };
    let mut keeper = Keeper::new(&shared, leases);
    loop {
        // The tick and a wake-up have the same effect.
        let _woken = tokio::time::timeout(TICK, leases.wake.notified()).await;
        keeper.round().await;
    }
}

/// Returns unused leases, within the store's deadline.
pub async fn leave(shared: &Arc<Shared>) {
    let Some(leases) = shared.leases.as_ref() else { return };
    if leases.terms.is_lost() {
        return;
    }
    leases.terms.leave();
    let mut keeper = Keeper::new(shared, leases);
    keeper.is_leaving = true;
    keeper.is_back = false;
    let leaving = keeper.round();
    if tokio::time::timeout(leases.config.deadline(), leaving).await.is_err() {
        tracing::warn!("the shared store did not confirm that this node ends; its leases will expire");
    }
}

struct Keeper<'a> {
    shared: &'a Arc<Shared>,
    leases: &'a Leases,
    store: Option<Store>,
    epoch: Epoch,
    greeted_ms: Option<u64>,
    sessions_reported_ms: u64,
    /// The time of the last warning about an unavailable store.
    warned_ms: Option<u64>,
    /// The store was lost or emptied, and must receive everything again.
    is_back: bool,
    is_leaving: bool,
}

impl<'a> Keeper<'a> {
    fn new(shared: &'a Arc<Shared>, leases: &'a Leases) -> Self {
        Self {
            shared,
            leases,
            store: None,
            epoch: Epoch::default(),
            greeted_ms: None,
            sessions_reported_ms: 0,
            warned_ms: None,
            is_back: true,
            is_leaving: false,
        }
    }

    /// Sends all due requests to the store, and notifies the waiting callers.
    async fn round(&mut self) {
        let number = self.leases.begun.fetch_add(1, Ordering::AcqRel) + 1;
        if let Err(fault) = self.exchange_all().await {
            self.store = None;
            self.is_back = true;
            self.mark_lost(&fault);
        }
        self.leases.over.send_replace(number);
    }

    /// Marks the store as lost. This is logged at once and every minute, so that a wrong address is noticed.
    fn mark_lost(&mut self, fault: &StoreFault) {
        let terms = &self.leases.terms;
        if !terms.is_lost() {
            self.leases.losses.fetch_add(1, Ordering::Relaxed);
            self.warned_ms = None;
        }
        terms.set_lost(true);
        let now_ms = clock::monotonic_ms();
        if self.warned_ms.is_none_or(|at_ms| now_ms.saturating_sub(at_ms) >= WARN_EVERY_MS) {
            self.warned_ms = Some(now_ms);
            let address = self.leases.config.address();
            tracing::warn!(
                %fault,
                address,
                "the shared store (FAIRLEAD_SHARED_URL) does not answer: each worker enforces the limits of keys alone"
            );
        }
    }

    async fn exchange_all(&mut self) -> Result<(), StoreFault> {
        let now_ms = clock::monotonic_ms();
        let usual_ms = self.leases.config.lease_ms / GREETINGS;
        let every_ms = if self.leases.is_short() { GREETING_WHILE_SHORT_MS.min(usual_ms) } else { usual_ms };
        let is_greeting_due = self.greeted_ms.is_none_or(|at_ms| now_ms.saturating_sub(at_ms) >= every_ms);
        if self.store.is_none() || self.epoch.name.is_empty() || is_greeting_due {
            self.greet().await?;
        }
        let is_all = std::mem::take(&mut self.is_back);
        self.exchange_leases(is_all).await?;
        self.exchange_sessions(is_all).await?;
        self.found();
        Ok(())
    }

    async fn exchange_leases(&mut self, mut is_all: bool) -> Result<(), StoreFault> {
        loop {
            let max = if is_all { usize::MAX } else { MAX_QUESTIONS };
            let questions = self.shared.ledger.lease_questions(clock::moment(), self.epoch.since_ms, max, is_all);
            let is_last = is_all || questions.len() < MAX_QUESTIONS;
            for some in questions.chunks(MAX_QUESTIONS) {
                if !self.exchange_batch(some).await? {
                    // The store was emptied after the announcement.
                    self.is_back = true;
                    self.greet().await?;
                }
            }
            is_all = false;
            if is_last {
                return Ok(());
            }
        }
    }

    /// Reports waiting sessions and, from time to time, those in use. They are in the store before the next limits are
    /// requested.
    async fn exchange_sessions(&mut self, is_all: bool) -> Result<(), StoreFault> {
        let now_ms = clock::monotonic_ms();
        let is_due = is_all || now_ms.saturating_sub(self.sessions_reported_ms) >= REPORT_SESSIONS_MS;
        let mut reports = Vec::new();
        if is_due {
            self.sessions_reported_ms = now_ms;
            reports = self.shared.sessions.take_reports(now_ms, is_all);
        }
        let mut questions = self.shared.sessions.take_questions();
        while !questions.is_empty() || !reports.is_empty() {
            let later = questions.split_off(questions.len().min(MAX_QUESTIONS));
            let reports_later = reports.split_off(reports.len().min(MAX_QUESTIONS));
            let batch = StoreQuestions { sessions: &questions, session_reports: &reports, ..StoreQuestions::default() };
            let answers = self.exchange(batch, false).await?;
            self.shared.sessions.take_answers(questions, &answers.sessions, clock::monotonic_ms());
            (questions, reports) = (later, reports_later);
        }
        Ok(())
    }

    fn found(&self) {
        if self.leases.terms.is_lost() {
            tracing::info!("the shared store answers: limits are held together with the other nodes");
            self.leases.terms.set_lost(false);
        }
    }

    /// Announces the node. If the store started a new epoch, it must receive everything again.
    async fn greet(&mut self) -> Result<(), StoreFault> {
        let answers = self.exchange(StoreQuestions::default(), true).await?;
        let Some(epoch) = answers.epoch else { return Err(StoreFault::Unreadable) };
        if epoch != self.epoch {
            self.is_back |= !self.epoch.name.is_empty();
            self.epoch = epoch;
        }
        self.greeted_ms = Some(clock::monotonic_ms());
        self.leases.note_nodes(answers.nodes, clock::monotonic_ms());
        Ok(())
    }

    /// Requests some limits. Returns whether the store still has the epoch that is known here.
    async fn exchange_batch(&mut self, questions: &[LeaseQuestion]) -> Result<bool, StoreFault> {
        let answers = self.exchange(StoreQuestions::of_leases(questions), false).await?;
        if answers.leases.len() != questions.len() {
            return Err(StoreFault::Unreadable);
        }
        {
            let mut nodes = self.leases.nodes.lock();
            let gone: Vec<String> = answers.orphans.difference(&nodes.present).cloned().collect();
            nodes.orphans.extend(gone);
        }
        let known: Option<Vec<LeaseAnswer>> = answers.leases.into_iter().collect();
        let is_known = known.is_some();
        if let Some(known) = known {
            self.shared.ledger.take_leases(questions, &known, clock::moment());
        }
        Ok(is_known)
    }

    /// Makes one round trip, and a second one if the connection was closed in the meantime.
    async fn exchange(&mut self, questions: StoreQuestions<'_>, is_greeting: bool) -> Result<StoreAnswers, StoreFault> {
        let is_old = self.store.is_some();
        match self.exchange_once(questions, is_greeting).await {
            Err(StoreFault::Redis(_)) if is_old => {
                self.store = None;
                self.exchange_once(questions, is_greeting).await
            }
            done => done,
        }
    }

    async fn exchange_once(
        &mut self,
        questions: StoreQuestions<'_>,
        is_greeting: bool,
    ) -> Result<StoreAnswers, StoreFault> {
        let (leases, node) = (self.leases, self.shared.worker_id.as_str());
        let ttl_ms = leases.config.lease_ms;
        let new_epoch = if is_greeting { self.new_epoch() } else { String::new() };
        if self.store.is_none() {
            self.store = Some(Store::connect(&leases.config).await?);
        }
        let Some(store) = self.store.as_mut() else { return Err(StoreFault::Unreadable) };
        let greeting = is_greeting.then_some(Greeting {
            node,
            epoch: &self.epoch,
            new_epoch: &new_epoch,
            ttl_ms,
            is_leaving: self.is_leaving,
        });
        leases.trips.fetch_add(1, Ordering::Relaxed);
        store.exchange(greeting, node, &leases.trusted(&self.epoch), ttl_ms, questions).await
    }

    fn new_epoch(&self) -> String {
        random_bytes::<8>().map_or_else(|_| self.shared.worker_id.clone(), |bytes| hex(&bytes))
    }
}
