//! The state that one call carries through its phases: admit, choose, attempt, relay, settle.

use crate::observe::settle::Settlement;
use crate::route::choice::Choice;
use crate::shared::{GaugePermit, Shared};
use crate::upstream::failure::AttemptFailure;
use std::sync::Arc;

/// Permits of the gauges of requests in flight and of body bytes; given back when the last holder drops them.
pub type RequestPermits = Arc<(GaugePermit, Option<GaugePermit>)>;

/// One call of a model, from its admission to its record. Dropped, it settles as one whose caller left.
///
/// The fields are dropped in their order: the record is written before the room that the call took is given back.
#[derive(Debug)]
pub struct Call {
    /// The record that is being made, with the caller's admission and the exchange that the answer goes to.
    pub settlement: Settlement,
    /// The targets that may serve it; empty until they are chosen.
    pub choice: Choice,
    /// Where in the choice the target stands that was asked last.
    pub last_target: usize,
    /// The attempts that failed, each with its target's place in the choice: one connection may be several targets.
    pub failures: Vec<(usize, AttemptFailure)>,
    /// Failures of rounds before this one, where all targets are tried again.
    pub earlier_failures: usize,
    /// The call's place among the open streams, if it is one.
    pub stream_permit: Option<GaugePermit>,
    /// The call's place among the requests in flight, where it may outlive the caller.
    pub request_permits: Option<RequestPermits>,
}

impl Call {
    pub fn new(settlement: Settlement) -> Self {
        Self {
            settlement,
            choice: Choice::default(),
            last_target: 0,
            failures: Vec::new(),
            earlier_failures: 0,
            stream_permit: None,
            request_permits: None,
        }
    }

    /// The state that all requests of this worker share, for parts that outlive a borrow of the call.
    pub fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.settlement.shared)
    }

    /// How many attempts have failed.
    pub fn fallbacks(&self) -> usize {
        self.earlier_failures + self.failures.len()
    }

    /// Whether the caller has the head of an answer: from then on a failure is told in the body.
    pub fn is_headed(&self) -> bool {
        self.settlement.exchange.is_headed()
    }

    /// Notes in the record which target of the choice is asked.
    pub fn name_target(&mut self, at: usize) {
        self.last_target = at;
        self.settlement.target = self.choice.targets.get(at).cloned();
        self.settlement.upstream_model = Some(self.choice.upstream_model(at).to_owned());
        self.settlement.priced_model = Some(self.choice.model(at).to_owned());
    }
}
