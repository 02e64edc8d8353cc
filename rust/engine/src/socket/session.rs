//! A realtime conversation in progress. Events are relayed unchanged in both directions, and are checked and counted as
//! they arrive.
//!
//! The usage in `response.done` is charged to the key's limits immediately. The caller is checked again after each
//! response and every two seconds. The conversation ends with an error event and the code 1008 if the caller's
//! credential, address or permissions would no longer be admitted, or if its key has no capacity for another response.

use crate::call::account_objects;
use crate::call::choose::admit_aliases;
use crate::call::guardrails::EventGuard;
use crate::clock;
use crate::gate::admission_proof::REVIEW_EVERY;
use crate::gate::body::too_many_bytes;
use crate::gate::limits;
use crate::observe::settle::Settlement;
use crate::route::choice::Choice;
use crate::route::permission;
use crate::shared::{GaugePermit, Shared};
use crate::socket::outbox::Outbox;
use crate::socket::provider::{ProviderMessage, ProviderSocket, ReadFault};
use crate::socket::review::{longest, GOING_AWAY, NOT_ALLOWED};
use crate::upstream::slot::Slot;
use fairlead_core::{policy, Error, ErrorKind, Outcome, Retry};
use fairlead_dialect::openai::metered;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

/// Close codes (RFC 6455, section 7.4.1).
const NORMAL: u16 = 1000;
const FAILED: u16 = 1011;
/// A close code of the registry of RFC 6455, section 11.7.
pub const TRY_AGAIN_LATER: u16 = 1013;
const PING_EVERY: Duration = Duration::from_secs(20);
/// A provider that answers no ping for this long counts as gone.
const SILENCE: Duration = Duration::from_secs(60);

/// Texts of the caller that were not sent to the provider yet, each with its permit for buffered bytes.
pub type CallerTexts = mpsc::UnboundedReceiver<(String, GaugePermit)>;

/// The caller's side of a conversation.
#[derive(Debug)]
pub struct CallerSide {
    pub shared: Arc<Shared>,
    pub outbox: Arc<Outbox>,
    pub texts: CallerTexts,
    pub waiting_bytes: Arc<AtomicUsize>,
}

impl CallerSide {
    /// Sends an error as an event of the protocol.
    pub fn send_error(&self, error: &Error) {
        let details = json!({"type": error.kind.wire_type(), "code": error.kind.code(), "message": error.message});
        self.outbox.push(json!({"type": "error", "error": details}).to_string());
    }

    fn push_all(&self, texts: impl IntoIterator<Item = String>) {
        texts.into_iter().for_each(|text| self.outbox.push(text));
    }
}

/// The end of a conversation.
#[derive(Debug)]
pub struct SessionEnd {
    pub outcome: Outcome,
    pub error: Option<Error>,
    /// The close code for the caller.
    pub code: u16,
}

impl SessionEnd {
    fn completed() -> Self {
        Self { outcome: Outcome::Completed, error: None, code: NORMAL }
    }
}

/// The two sides of a conversation, and its slot at the connection.
#[derive(Debug)]
pub struct Sides<'a> {
    pub caller: &'a mut CallerSide,
    pub provider: ProviderSocket,
    pub slot: &'a Slot,
}

/// A conversation between a caller and the provider that accepted it.
#[derive(Debug)]
pub struct Session<'a> {
    caller: &'a mut CallerSide,
    provider: ProviderSocket,
    slot: &'a Slot,
    settlement: &'a mut Settlement,
    choice: &'a Choice,
    guard: EventGuard,
    /// When the provider last sent something.
    active: Instant,
    /// The size of an incomplete message at the last ping.
    held_bytes: usize,
}

impl<'a> Session<'a> {
    pub fn new(sides: Sides<'a>, settlement: &'a mut Settlement, choice: &'a Choice) -> Self {
        let Sides { caller, provider, slot } = sides;
        let guard = EventGuard::new(&caller.shared.active.load(), &settlement.admission);
        Self { caller, provider, slot, settlement, choice, guard, active: Instant::now(), held_bytes: 0 }
    }

    /// Relays events until either side ends the conversation, or the caller loses access.
    pub async fn run(mut self) -> SessionEnd {
        let shared = Arc::clone(&self.caller.shared);
        let mut ping = tokio::time::interval(PING_EVERY);
        let mut review = tokio::time::interval(REVIEW_EVERY);
        review.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let longest = longest(&shared);
        let until = tokio::time::Instant::now() + longest;
        loop {
            self.caller.outbox.wait_for_capacity().await;
            if self.caller.outbox.is_closed() {
                return self.leave().await;
            }
            let ended = tokio::select! {
                message = self.provider.next() => self.receive(message).await,
                text = self.caller.texts.recv() => match text {
                    Some((text, _permit)) => self.pass_on(text).await.err(),
                    None => Some(self.leave().await),
                },
                _ = ping.tick() => self.ping().await.err(),
                _ = review.tick() => match self.review() {
                    Ok(()) => None,
                    Err(fault) => Some(self.end(fault).await),
                },
                () = tokio::time::sleep_until(until) => {
                    let message = format!("A conversation lasts {} s at most: open another.", longest.as_secs_f64());
                    Some(self.end(Error::client(ErrorKind::RequestTimeout, message)).await)
                }
                () = shared.drain.expired() => {
                    self.provider.close(GOING_AWAY).await;
                    let error = Some(shared.drain.error());
                    Some(SessionEnd { outcome: Outcome::Drained, error, code: GOING_AWAY })
                }
            };
            if let Some(ended) = ended {
                return ended;
            }
        }
    }

    /// Ends the conversation after the caller has left.
    async fn leave(&mut self) -> SessionEnd {
        self.provider.close(NORMAL).await;
        SessionEnd::completed()
    }

    /// Handles a message of the provider. Returns `Some` if it ends the conversation.
    async fn receive(&mut self, message: Result<ProviderMessage, ReadFault>) -> Option<SessionEnd> {
        let fault = match message {
            Ok(message) => {
                self.active = Instant::now();
                return match message {
                    ProviderMessage::Text(text) => self.pass_back(text.to_string()).await,
                    ProviderMessage::Other => None,
                    ProviderMessage::Close(code) => {
                        let rest = self.guard.rest(self.settlement);
                        self.caller.push_all(rest);
                        Some(closed_by_provider(code))
                    }
                };
            }
            Err(fault) => fault,
        };
        Some(match fault {
            ReadFault::Protocol(code) => {
                self.provider.close(code).await;
                let message = "The provider's frames are not as the protocol says.";
                self.broken(Error::upstream(ErrorKind::UpstreamInvalid, Retry::Never, message))
            }
            ReadFault::MessageTooBig => {
                self.provider.close(TRY_AGAIN_LATER).await;
                SessionEnd { code: TRY_AGAIN_LATER, ..self.broken(too_many_bytes()) }
            }
            ReadFault::Cut => {
                let message = "The provider cut the conversation off.";
                self.broken(Error::upstream(ErrorKind::UpstreamReset, Retry::Never, message))
            }
        })
    }

    /// Counts, checks and relays one event of the provider. Returns `Some` if it ends the conversation.
    async fn pass_back(&mut self, text: String) -> Option<SessionEnd> {
        self.settlement.first_byte.get_or_insert_with(Instant::now);
        self.settlement.bytes_response += text.len() as u64;
        let used = metered::of_realtime(text.as_bytes());
        if let Some(usage) = &used {
            self.settlement.add_answer(usage);
            self.slot.spend(usage);
        }
        match self.guard.judge(self.settlement, text) {
            Ok(texts) => self.caller.push_all(texts),
            Err(fault) => {
                self.provider.close(NORMAL).await;
                self.caller.send_error(&fault);
                return Some(SessionEnd { outcome: Outcome::Refused, error: Some(fault), code: NOT_ALLOWED });
            }
        }
        if used.is_some() {
            let shared = Arc::clone(&self.caller.shared);
            if let Err(fault) = limits::retry_until_limits_known(&shared, || self.review()).await {
                let rest = self.guard.rest(self.settlement);
                self.caller.push_all(rest);
                return Some(self.end(fault).await);
            }
        }
        None
    }

    /// Sends one text of the caller to the provider. An error ends the conversation.
    async fn pass_on(&mut self, text: String) -> Result<(), SessionEnd> {
        self.caller.waiting_bytes.fetch_sub(text.len(), Ordering::AcqRel);
        self.settlement.bytes_request += text.len() as u64;
        let allowed = self.guard.admit(self.settlement, text).and_then(|text| {
            account_objects::admit_event(&self.settlement.admission, text.as_bytes())?;
            Ok(text)
        });
        match allowed {
            Ok(text) => self.provider.send_text(text).await.map_err(|error| self.broken(error)),
            Err(fault) => {
                // The caller receives an error for a refused event, which is not sent. The conversation continues.
                self.caller.send_error(&fault);
                Ok(())
            }
        }
    }

    /// Sends a ping. An error ends the conversation.
    async fn ping(&mut self) -> Result<(), SessionEnd> {
        let held_bytes = self.provider.held_bytes();
        if held_bytes > std::mem::replace(&mut self.held_bytes, held_bytes) {
            self.active = Instant::now();
        }
        if self.active.elapsed() > SILENCE {
            let message = "The provider answers no more.";
            return Err(self.broken(Error::upstream(ErrorKind::UpstreamIdleTimeout, Retry::Never, message)));
        }
        self.provider.ping().await.map_err(|error| self.broken(error))
    }

    /// Checks whether the conversation may continue. The caller's credential may have been revoked, its address banned,
    /// or its key restricted, outside its hours or without capacity for another response.
    fn review(&mut self) -> Result<(), Error> {
        let shared = &self.caller.shared;
        let settlement = &mut *self.settlement;
        let config_in_use = shared.active.load();
        let now_ms = clock::unix_ms();
        let admission = &mut settlement.admission;
        admission.principal = admission.proof.renew(shared, admission.route, &admission.principal, now_ms)?;
        let Some(key) = admission.principal.key().map(Arc::clone) else { return Ok(()) };
        policy::admit_hour(&key, now_ms)?;
        policy::admit_endpoint(&key, settlement.admission.route.endpoint)?;
        permission::admit(&config_in_use, &key, settlement.model.as_deref().unwrap_or_default())?;
        admit_aliases(settlement, self.choice)?;
        if settlement.target.as_ref().is_some_and(|target| !policy::sees_connection(&key, &target.connection.id)) {
            let message = "This API key may not use the connection of this conversation any more.";
            return Err(Error::client(ErrorKind::Forbidden, message).about("allowedConnections"));
        }
        limits::renew(shared, settlement, &key)
    }

    /// Ends a conversation that may not continue. It was served until now.
    async fn end(&mut self, error: Error) -> SessionEnd {
        self.caller.send_error(&error);
        self.provider.close(NORMAL).await;
        SessionEnd { outcome: Outcome::Completed, error: Some(error), code: NOT_ALLOWED }
    }

    fn broken(&self, error: Error) -> SessionEnd {
        self.caller.send_error(&error);
        SessionEnd { outcome: Outcome::UpstreamFailed, error: Some(error), code: FAILED }
    }
}

/// The end of a conversation that the provider closed.
fn closed_by_provider(code: u16) -> SessionEnd {
    let is_orderly = matches!(code, 1000 | 1001 | 1005);
    let passed = if matches!(code, 1000..=1003 | 1007..=1011 | 3000..=4999) { code } else { 1000 };
    if is_orderly {
        return SessionEnd { outcome: Outcome::Completed, error: None, code: passed };
    }
    let message = format!("The provider closed the conversation with {code}.");
    let error = Error::upstream(ErrorKind::UpstreamStatus, Retry::Never, message);
    SessionEnd { outcome: Outcome::UpstreamFailed, error: Some(error), code: passed }
}
