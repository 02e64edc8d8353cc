//! `/v1/realtime`: a conversation of events over a WebSocket, relayed to the provider of the requested model.
//!
//! The caller's connection is admitted and then waits: its handshake is accepted once a provider has accepted ours.
//! Until then another connection may be tried, and a refusal is an HTTP response. Afterwards the [`Session`] relays
//! events. The whole conversation is one record.

use crate::call::attempt::failover;
use crate::call::chaos;
use crate::call::choose::{admit_model, choose_for_endpoint};
use crate::exchange::{Exchange, Wake};
use crate::gate::request::BufferedRequest;
use crate::gate::{answer, limits};
use crate::observe::settle::Settlement;
use crate::route::choice::Choice;
use crate::shared::{Gauge, GaugePermit, Shared, MAX_BUFFERED_BYTES};
use crate::socket::assembly::Assembly;
use crate::socket::handshake::connect;
use crate::socket::outbox::{Drawn, Handshake, Outbox};
use crate::socket::provider::ProviderSocket;
use crate::socket::query::model_of;
use crate::socket::requests::FrameConnection;
use crate::socket::review::NOT_ALLOWED;
use crate::socket::session::{CallerSide, Session, Sides, TRY_AGAIN_LATER};
use crate::upstream::failure::AttemptFailure;
use crate::upstream::slot;
use fairlead_core::{Error, ErrorKind, Outcome};
use fairlead_dialect::openai::named;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// The maximum number of bytes from the caller that the provider has not read.
const MAX_WAITING_BYTES: usize = 4 * 1024 * 1024;

/// A conversation in progress. Dropping it ends the conversation.
#[derive(Debug)]
pub struct Realtime {
    /// Has the response of a refused handshake.
    exchange: Arc<Exchange>,
    outbox: Arc<Outbox>,
    shared: Arc<Shared>,
    texts: mpsc::UnboundedSender<(String, GaugePermit)>,
    waiting_bytes: Arc<AtomicUsize>,
    assembly: Arc<Assembly>,
}

/// The task of a conversation.
struct Conversation {
    caller: CallerSide,
    exchange: Arc<Exchange>,
    model: String,
    /// `None` if the shared store must be asked for capacity first.
    choice: Option<Choice>,
    _permits: (GaugePermit, GaugePermit),
}

impl Realtime {
    /// Opens a conversation for an admitted head. A refusal is settled here.
    pub fn open(
        shared: &Arc<Shared>,
        incoming: BufferedRequest,
        query: &[u8],
        wake: Arc<dyn Wake>,
    ) -> Result<Self, Error> {
        let BufferedRequest { exchange, admission, in_flight, .. } = incoming;
        let id = exchange.id();
        let mut settlement = Settlement::open(shared, &exchange, admission, 0);
        let choice = model_of(query).and_then(|model| match choose(shared, &mut settlement, &model) {
            Ok(choice) => Ok((model, Some(choice))),
            // The conversation's task asks the shared store, because this function must not wait.
            Err(fault) if is_of_store(shared, &fault) => Ok((model, None)),
            Err(fault) => Err(fault),
        });
        let opened = choice.and_then(|choice| {
            let slot = GaugePermit::for_stream(shared)?;
            let runtime =
                shared.runtime().ok_or_else(|| Error::gateway(ErrorKind::Internal, "The engine does not run."))?;
            Ok((choice, slot, runtime))
        });
        let ((model, choice), slot, runtime) = match opened {
            Ok(opened) => opened,
            Err(fault) => {
                settlement.status = fault.kind.status();
                let outcome = if fault.kind == ErrorKind::Overloaded { Outcome::Shed } else { Outcome::Refused };
                settlement.settle(outcome, Some(&fault));
                return Err(fault);
            }
        };
        let outbox = Outbox::pending(id, wake);
        let (sender, texts) = mpsc::unbounded_channel();
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let caller = CallerSide {
            shared: Arc::clone(shared),
            outbox: Arc::clone(&outbox),
            texts,
            waiting_bytes: Arc::clone(&waiting_bytes),
        };
        let permits = (in_flight, slot);
        let conversation = Conversation { caller, exchange: Arc::clone(&exchange), model, choice, _permits: permits };
        // The task ends when either side leaves. Its settlement records the outcome, also when it is dropped.
        drop(runtime.spawn(conversation.run(settlement)));
        let (shared, assembly) = (Arc::clone(shared), Assembly::new(shared));
        Ok(Self { exchange, outbox, shared, texts: sender, waiting_bytes, assembly })
    }
}

impl FrameConnection for Realtime {
    fn id(&self) -> u64 {
        self.outbox.id()
    }

    fn handshake(&self) -> Handshake {
        self.outbox.handshake()
    }

    fn refusal(&self) -> Option<Arc<Exchange>> {
        Some(Arc::clone(&self.exchange))
    }

    fn take(&self) -> Option<Drawn> {
        self.outbox.take()
    }

    fn is_idle(&self) -> bool {
        self.outbox.is_closed()
    }

    fn is_closed(&self) -> bool {
        self.outbox.is_closed()
    }

    fn receive(&self, text: Option<&str>) {
        let Some(text) = text else { return self.outbox.close(1003, "Only texts pass.") };
        let waiting = self.waiting_bytes.fetch_add(text.len(), Ordering::AcqRel) + text.len();
        if waiting > MAX_WAITING_BYTES {
            return self.outbox.close(NOT_ALLOWED, "The caller sends more than the provider reads.");
        }
        let Some(permit) = GaugePermit::take(&self.shared, Gauge::BodyBytes, text.len(), MAX_BUFFERED_BYTES) else {
            self.shared.counts.shed_total.fetch_add(1, Ordering::Relaxed);
            return self.outbox.close(TRY_AGAIN_LATER, "There is no room for another event.");
        };
        // Nobody receives the text after the end.
        let _unheard = self.texts.send((text.to_owned(), permit));
    }

    fn assembly(&self) -> Arc<Assembly> {
        Arc::clone(&self.assembly)
    }

    fn close(&self) {
        self.outbox.close(1000, "");
    }
}

impl Drop for Realtime {
    fn drop(&mut self) {
        self.close();
    }
}

/// Whether a request was refused because the shared store has not replied yet.
fn is_of_store(shared: &Shared, fault: &Error) -> bool {
    fault.kind == ErrorKind::LimitsUnknown && shared.leases.as_ref().is_some_and(|leases| !leases.terms.is_lost())
}

fn choose(shared: &Shared, settlement: &mut Settlement, model: &str) -> Result<Choice, Error> {
    let active = shared.active.load_full();
    let mut parsed = admit_model(&active, settlement, named::of_form(model, true, 1)?)?;
    // The length of the first response is unknown.
    parsed.max_output_tokens = None;
    settlement.model = Some(parsed.model.clone());
    settlement.stream = true;
    choose_for_endpoint(&active, settlement, &parsed, b"")
}

impl Conversation {
    /// Tries the targets in order until one accepts the conversation.
    ///
    /// This loop differs from [`crate::call::attempt`]: the duration of a conversation does not affect later choices.
    // Long: one loop over targets, each with its slot, handshake and end.
    async fn run(mut self, mut settlement: Settlement) {
        limits::throttle(&settlement).await;
        if let Err(error) = chaos::inject(&mut settlement).await {
            return self.end_unserved(settlement, Outcome::Refused, &error);
        }
        let shared = Arc::clone(&self.caller.shared);
        let choice = match self.decide(&shared, &mut settlement).await {
            Ok(choice) => choice,
            Err(error) => return self.end_unserved(settlement, Outcome::Refused, &error),
        };
        let (mut last, mut queued) = (None, Duration::ZERO);
        for (at, target) in choice.targets.clone().iter().enumerate() {
            // The provider reports tokens with each response, so none are estimated here.
            let slot = match slot::acquire(&shared, target, &choice.slot_request(at, 0), &mut queued).await {
                Ok(slot) => slot,
                Err(busy) if busy.error.kind == ErrorKind::AccountsBusy => {
                    last = Some(busy.error);
                    continue;
                }
                Err(failed) => {
                    last = Some(failed.error);
                    break;
                }
            };
            settlement.attempts += 1;
            settlement.target = Some(Arc::clone(target));
            settlement.upstream_model = Some(choice.upstream_model(at).to_owned());
            settlement.priced_model = Some(choice.model(at).to_owned());
            let began = Instant::now();
            let connected = tokio::select! {
                biased;
                connected = connect(&shared, target, choice.upstream_model(at)) => connected,
                () = shared.drain.expired() => Err(shared.drain.error()),
                // The caller has left before its handshake was accepted.
                () = self.caller.outbox.closed() => return settlement.settle(Outcome::ClientGone, None),
            };
            match connected {
                Ok((stream, early)) => {
                    target.served(began.elapsed(), began.elapsed());
                    settlement.status = 101;
                    self.caller.outbox.decide(Handshake::Accepted);
                    let provider = ProviderSocket::new(&shared, stream, early).await;
                    let sides = Sides { caller: &mut self.caller, provider, slot: &slot };
                    let end = Session::new(sides, &mut settlement, &choice).run().await;
                    if let Some(error) = end.error.as_ref().filter(|error| error.kind == ErrorKind::UpstreamReset) {
                        target.blame(error.kind, None);
                    }
                    settlement.settle(end.outcome, end.error.as_ref());
                    let reason = end.error.as_ref().map_or("", |error| &error.message);
                    return self.caller.outbox.close(end.code, reason);
                }
                Err(error) => {
                    let may_go_on = match error.kind {
                        ErrorKind::Draining => false,
                        // The other targets of a combo have different models, which may support conversations.
                        ErrorKind::InvalidRequest => choice.combo.is_some(),
                        _ => true,
                    };
                    let failed = AttemptFailure::from(error);
                    target.hold_against(choice.upstream_model(at), &failed);
                    last = Some(failed.error);
                    if !may_go_on {
                        break;
                    }
                }
            }
        }
        let error = last.unwrap_or_else(|| Error::gateway(ErrorKind::NoRoute, "No connection is available."));
        self.end_unserved(settlement, failover::outcome(error.kind), &error);
    }

    async fn decide(&mut self, shared: &Shared, settlement: &mut Settlement) -> Result<Choice, Error> {
        match self.choice.take() {
            Some(choice) => Ok(choice),
            None => limits::retry_until_limits_known(shared, || choose(shared, settlement, &self.model)).await,
        }
    }

    /// Refuses the caller's handshake after no provider accepted the conversation.
    fn end_unserved(self, mut settlement: Settlement, outcome: Outcome, error: &Error) {
        let shared = &self.caller.shared;
        let admission = &settlement.admission;
        answer::refuse(shared, &self.exchange, admission.route.surface, &admission.request_id, error);
        settlement.status = error.kind.status();
        settlement.settle(outcome, Some(error));
        self.caller.outbox.decide(Handshake::Refused);
    }
}
