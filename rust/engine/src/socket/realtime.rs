//! `/v1/realtime`: a conversation in events over a WebSocket, passed through to the provider whose model is asked for.
//!
//! The caller's connection passes the gate once; until a provider has taken its side another connection may be tried. From then
//! on the [`Session`] passes events. The whole conversation is one record.

use crate::call::chaos;
use crate::call::choose::{admit_model, choose_for_endpoint};
use crate::call::failover;
use crate::exchange::Wake;
use crate::gate::limits;
use crate::gate::request::Whole;
use crate::observe::settle::Settlement;
use crate::route::choice::Choice;
use crate::shared::{Gauge, GaugePermit, Shared, MAX_BUFFERED_BYTES};
use crate::socket::assembly::Assembly;
use crate::socket::handshake::connect;
use crate::socket::outbox::{Drawn, Outbox};
use crate::socket::provider::ProviderSocket;
use crate::socket::query::model_of;
use crate::socket::requests::FrameConnection;
use crate::socket::session::{CallerSide, Session, Sides, NOT_ALLOWED, TRY_AGAIN_LATER};
use crate::upstream::slot;
use fairlead_core::{Error, ErrorKind, Outcome};
use fairlead_dialect::openai::named;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// The most bytes that a caller may send ahead of the provider's reading.
const MAX_WAITING_BYTES: usize = 4 * 1024 * 1024;

/// A conversation under way. Dropped, it ends.
#[derive(Debug)]
pub struct Realtime {
    outbox: Arc<Outbox>,
    shared: Arc<Shared>,
    texts: mpsc::UnboundedSender<(String, GaugePermit)>,
    waiting_bytes: Arc<AtomicUsize>,
    assembly: Arc<Assembly>,
}

/// The task of a conversation.
struct Conversation {
    caller: CallerSide,
    model: String,
    /// Not made yet where the shared store is to be asked for room first.
    choice: Option<Choice>,
    _permits: (GaugePermit, GaugePermit),
}

impl Realtime {
    /// Opens one for a head that has passed the gate. A refusal is settled here.
    pub fn open(shared: &Arc<Shared>, whole: Whole, query: &[u8], wake: Arc<dyn Wake>) -> Result<Self, Error> {
        let Whole { exchange, admission, in_flight, .. } = whole;
        let id = exchange.id();
        let mut settlement = Settlement::open(shared, &exchange, admission, 0);
        let choice = model_of(query).and_then(|model| match choose(shared, &mut settlement, &model) {
            Ok(choice) => Ok((model, Some(choice))),
            // The handshake does not wait for the shared store: a refusal then is the conversation's first event.
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
        let outbox = Outbox::new(id, wake);
        let (sender, texts) = mpsc::unbounded_channel();
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let caller = CallerSide {
            shared: Arc::clone(shared),
            outbox: Arc::clone(&outbox),
            texts,
            waiting_bytes: Arc::clone(&waiting_bytes),
        };
        let conversation = Conversation { caller, model, choice, _permits: (in_flight, slot) };
        // It ends when either side leaves; its settlement tells how, also when it is dropped.
        drop(runtime.spawn(conversation.run(settlement)));
        Ok(Self { outbox, shared: Arc::clone(shared), texts: sender, waiting_bytes, assembly: Assembly::new(shared) })
    }
}

impl FrameConnection for Realtime {
    fn id(&self) -> u64 {
        self.outbox.id()
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
        let Some(text) = text else { return self.outbox.close(1003) };
        let waiting = self.waiting_bytes.fetch_add(text.len(), Ordering::AcqRel) + text.len();
        if waiting > MAX_WAITING_BYTES {
            return self.outbox.close(1008);
        }
        let Some(permit) = GaugePermit::take(&self.shared, Gauge::BodyBytes, text.len(), MAX_BUFFERED_BYTES) else {
            self.shared.counts.shed_total.fetch_add(1, Ordering::Relaxed);
            return self.outbox.close(TRY_AGAIN_LATER);
        };
        // After the end nobody hears it.
        let _unheard = self.texts.send((text.to_owned(), permit));
    }

    fn assembly(&self) -> Arc<Assembly> {
        Arc::clone(&self.assembly)
    }

    fn close(&self) {
        self.outbox.close(1000);
    }
}

impl Drop for Realtime {
    fn drop(&mut self) {
        self.close();
    }
}

/// Whether a refusal is for want of what the shared store can tell.
fn is_of_store(shared: &Shared, fault: &Error) -> bool {
    fault.kind == ErrorKind::LimitsUnknown && shared.leases.as_ref().is_some_and(|leases| !leases.terms.is_lost())
}

fn choose(shared: &Shared, settlement: &mut Settlement, model: &str) -> Result<Choice, Error> {
    let live = shared.live.load_full();
    let mut parsed = admit_model(&live, settlement, named::of_form(model, true, 1)?)?;
    // Nobody says beforehand how long the first answer may be.
    parsed.max_output_tokens = None;
    settlement.model = Some(parsed.model.clone());
    settlement.stream = true;
    choose_for_endpoint(&live, settlement, &parsed, b"")
}

impl Conversation {
    /// Tries one target after another until one takes the conversation.
    ///
    /// The loop is not that of [`crate::call::attempt`]: the caller's side is open before anybody is asked, so a failure is an
    /// event and a close code rather than an answer, and nothing is learnt for later choices from how long a conversation lasts.
    async fn run(mut self, mut settlement: Settlement) {
        limits::throttle(&settlement).await;
        if let Err(error) = chaos::strike(&mut settlement).await {
            return self.end_unserved(settlement, Outcome::Refused, &error);
        }
        let shared = Arc::clone(&self.caller.shared);
        let choice = match self.decide(&shared, &mut settlement).await {
            Ok(choice) => choice,
            Err(error) => return self.end_unserved(settlement, Outcome::Refused, &error),
        };
        let (mut last, mut queued) = (None, Duration::ZERO);
        for (at, target) in choice.targets.clone().iter().enumerate() {
            // Tokens are counted as the provider tells of them, answer by answer.
            let slot = match slot::acquire(&shared, target, &choice.entrant(at, 0), &mut queued).await {
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
            };
            match connected {
                Ok((stream, early)) => {
                    target.served(began.elapsed(), began.elapsed());
                    settlement.status = 101;
                    let provider = ProviderSocket::new(&shared, stream, early).await;
                    let sides = Sides { caller: &mut self.caller, provider, slot: &slot };
                    let end = Session::new(sides, &mut settlement, &choice).run().await;
                    if let Some(error) = end.error.as_ref().filter(|error| error.kind == ErrorKind::UpstreamReset) {
                        target.blame(error.kind, None);
                    }
                    settlement.settle(end.outcome, end.error.as_ref());
                    return self.caller.outbox.close(end.code);
                }
                Err(error) => {
                    target.blame(error.kind, None);
                    let may_go_on = error.kind != ErrorKind::Draining && error.kind != ErrorKind::InvalidRequest;
                    last = Some(error);
                    if !may_go_on {
                        break;
                    }
                }
            }
        }
        let error = last.unwrap_or_else(|| Error::gateway(ErrorKind::NoRoute, "There is no connection to try."));
        self.end_unserved(settlement, failover::outcome(error.kind), &error);
    }

    async fn decide(&mut self, shared: &Shared, settlement: &mut Settlement) -> Result<Choice, Error> {
        match self.choice.take() {
            Some(choice) => Ok(choice),
            None => limits::ask_until_known(shared, || choose(shared, settlement, &self.model)).await,
        }
    }

    /// Tells the caller why nobody takes the conversation.
    fn end_unserved(self, mut settlement: Settlement, outcome: Outcome, error: &Error) {
        self.caller.send_error(error);
        let code = match error.kind {
            ErrorKind::Draining => 1001,
            ErrorKind::AccountsBusy
            | ErrorKind::LimitsUnknown
            | ErrorKind::UpstreamRateLimited
            | ErrorKind::UpstreamOverloaded => TRY_AGAIN_LATER,
            ErrorKind::RateLimited | ErrorKind::BudgetExceeded | ErrorKind::TokenLimitExceeded => NOT_ALLOWED,
            _ => 1011,
        };
        settlement.status = error.kind.status();
        settlement.settle(outcome, Some(error));
        self.caller.outbox.close(code);
    }
}
