//! The state of a call during its phases: admit, choose, attempt, relay, settle.

use crate::observe::settle::Settlement;
use crate::route::choice::Choice;
use crate::shared::{GaugePermit, Shared};
use crate::upstream::failure::AttemptFailure;
use std::sync::Arc;

/// Permits for a request in flight and for its body's bytes. They are returned when the last holder drops them.
pub type RequestPermits = Arc<(GaugePermit, Option<GaugePermit>)>;

/// A call to a model, from its admission to its record. If it is dropped early, it is settled as if the caller had
/// left.
///
/// Fields are dropped in order, so the record is written before the reserved capacity is returned.
#[derive(Debug)]
pub struct Call {
    /// The record in progress, with the caller's admission and the exchange that receives the response.
    pub settlement: Settlement,
    /// The targets that may serve the call; empty until they are chosen.
    pub choice: Choice,
    /// The index in `choice` of the last target that received the request.
    pub last_target: usize,
    /// The failed attempts, each with its target's index in `choice`, because one connection may be several targets.
    pub failures: Vec<(usize, AttemptFailure)>,
    /// The number of failures in earlier rounds, if all targets are tried again.
    pub earlier_failures: usize,
    /// The permit of an open stream.
    pub stream_permit: Option<GaugePermit>,
    /// The permits of a request in flight, if the call may outlive its caller.
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

    /// The state shared by all requests of this worker, for code that outlives a borrow of the call.
    pub fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.settlement.shared)
    }

    /// The number of failed attempts.
    pub fn fallbacks(&self) -> usize {
        self.earlier_failures + self.failures.len()
    }

    /// Whether a response head was sent to the caller. Afterwards a failure is reported in the body.
    pub fn is_headed(&self) -> bool {
        self.settlement.exchange.is_headed()
    }

    /// Records which target of the choice receives the request.
    pub fn name_target(&mut self, at: usize) {
        self.last_target = at;
        self.settlement.target = self.choice.targets.get(at).cloned();
        self.settlement.upstream_model = Some(self.choice.upstream_model(at).to_owned());
        self.settlement.priced_model = Some(self.choice.model(at).to_owned());
    }
}
