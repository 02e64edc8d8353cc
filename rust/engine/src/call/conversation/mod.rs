//! A conversation: it is parsed, checked against the rules, and answered from the cache or translated to the dialect of
//! each provider that may serve it. The response is translated to the caller's dialect.
//!
//! In this order: [`read`] parses the request; [`combo_body`], [`compression`] and [`window`] change it;
//! [`fusion_and_pipeline`] and [`handoff`] make calls that come first; [`translation`] writes it for each target; [`hedge`]
//! lets a second target race; [`plain`] or [`event_stream`] sends the response; [`reasoning`] stores reasoning for later
//! turns.
//!
//! [`shadow`] makes calls for comparison only, [`simulate`] decides without a call, [`count`] counts the tokens of a
//! request, and [`usage_command`] answers a question about a key's usage.

pub(crate) mod combo_body;
pub(crate) mod compression;
pub(crate) mod count;
pub(crate) mod event_stream;
pub(crate) mod fusion_and_pipeline;
pub(crate) mod handoff;
pub(crate) mod hedge;
pub(crate) mod plain;
pub(crate) mod read;
pub(crate) mod reasoning;
pub(crate) mod shadow;
pub(crate) mod simulate;
pub(crate) mod translation;
pub(crate) mod usage_command;
pub(crate) mod window;

use crate::cache::{self, Lookup, ShareableCall};
use crate::call::attempt;
use crate::call::attempt::failover;
use crate::call::chaos;
use crate::call::choose::{self, choose_targets};
use crate::call::context::Call;
use crate::call::conversation::fusion_and_pipeline::Prepared;
use crate::call::conversation::hedge::Race;
use crate::call::conversation::read::ReadConversation;
use crate::call::conversation::translation::Translation;
use crate::call::kind::{CallKind, Reply};
use crate::call::settle;
use crate::control::responses;
use crate::gate::limits;
use crate::observe::settle::Settlement;
use crate::upstream;
use crate::upstream::attempt::{Contents, Upstream};
use crate::upstream::failure::AttemptFailure;
use bytes::Bytes;
use fairlead_core::strategy::Strategy;
use fairlead_core::{CacheOutcome, Outcome};
use fairlead_dialect::openai::request::ChatRequest;
use smallvec::SmallVec;
use std::sync::Arc;

/// A conversation that is ready for its providers.
#[derive(Debug)]
pub struct Conversation {
    /// The request in the dialect of each provider that may serve it.
    translation: Translation,
    /// The request that was parsed from `sent`.
    request: ChatRequest,
    /// The body before translation, including stored earlier turns and the combo's changes.
    sent: Bytes,
    /// The body that the stored response shows to the caller.
    body: Bytes,
}

/// Serves one conversation.
// Long: its steps in order, each of which may end the call.
pub async fn run(mut call: Call, body: &Bytes) {
    let shared = call.shared();
    let active = shared.active.load_full();
    let ReadConversation { body, sent, request } = match read::conversation(&mut call.settlement, &active, body).await {
        Ok(Some(conversation)) => conversation,
        // The caller has left; dropping the settlement records it.
        Ok(None) => return,
        Err(fault) => return call.refuse(&fault),
    };
    if let Err(fault) = chaos::inject(&mut call.settlement).await {
        return call.refuse(&fault);
    }
    match usage_command::run(&mut call, &body, &request).await {
        Ok(false) => {}
        Ok(true) => return,
        Err(fault) => return call.refuse(&fault),
    }
    match choose_targets(&call.settlement, &active, &request.model, &sent).await {
        Ok(Some(choice)) => call.choice = choice,
        // The caller has left; dropping the settlement records it.
        Ok(None) => return,
        Err(fault) => return call.refuse(&fault),
    }
    if let Some(segments) = call.choice.prompt.as_mut().and_then(|prompt| prompt.segments.take()) {
        call.settlement.note_prompt(&segments);
    }
    let (sent, request) = match combo_body::shape(&call, sent, request) {
        Ok(shaped) => shaped,
        Err(fault) => return call.refuse(&fault),
    };
    // A tool that acts must run for every request, so its responses are neither cached nor shared.
    let acts = call.choice.targets.iter().any(|target| target.connection.sends_session);
    let question = || cache::question(&shared, &active, &call.settlement.admission, &request, &sent);
    let mut question = if acts { None } else { question() };
    if let Some(question) = &mut question {
        match Box::pin(cache::look_up(&mut call.settlement, question, &request, &body)).await {
            Lookup::Given | Lookup::CallerLeft => return,
            Lookup::Refused(fault) => return call.refuse(&fault),
            Lookup::Missed => {}
        }
    } else if call.settlement.admission.bypasses_cache() {
        call.settlement.cached.cache = Some(CacheOutcome::Bypass);
    }
    let before = sent.clone();
    // Boxed, because few calls are compressed.
    let shortening = Box::pin(async {
        let (body, request) = compression::run(&mut call, &active, sent, request).await?;
        window::hold(&mut call, &active, body, request).await
    });
    let (sent, request) = match shortening.await {
        Ok(shortened) => shortened,
        Err(fault) => return call.refuse(&fault),
    };
    // A shorter conversation is another body; an unchanged one has the same bytes.
    call.choice.is_edited = sent.as_ptr() != before.as_ptr();
    drop(before);
    call.settlement.bytes_sent = Some(sent.len() as u64);
    let translate = || {
        choose::reserve(&mut call, &active, &request)?;
        Translation::of_call(&mut call, &active, &sent, &request)
    };
    let translation = limits::retry_until_limits_known(&shared, translate).await;
    drop(active);
    let translation = match translation {
        Ok(translation) => translation.of(&body),
        Err(fault) => return call.refuse(&fault),
    };
    if request.stream {
        if let Err(fault) = call.open_stream() {
            return call.end_refused(Outcome::Shed, &fault);
        }
    }
    let delivery = cache::delivery(&request);
    // On the heap, because the future lives as long as the stream and would contain these values twice.
    let conversation = Box::new(Conversation { translation, request, sent, body });
    match question {
        // Called in place, because moving the call would store it twice in the future.
        None => conversation.serve_in_place(&mut call).await,
        // Boxed to keep the future of uncached requests small.
        Some(question) => Box::pin(cache::share(call, question, delivery, *conversation)).await,
    }
}

impl ShareableCall for Conversation {
    fn question(&self) -> (&ChatRequest, &[u8]) {
        (&self.request, &self.body)
    }

    async fn serve(self, mut call: Call) {
        self.serve_in_place(&mut call).await;
    }
}

impl Conversation {
    /// Serves the call, or stops when the caller leaves.
    async fn serve_in_place(&self, call: &mut Call) {
        let exchange = Arc::clone(&call.settlement.exchange);
        tokio::select! {
            biased;
            () = exchange.gone() => {} // dropping the settlement records that the caller left
            () = self.run_stages(call) => {}
        }
    }

    /// Runs all stages, from the preceding calls to the response.
    async fn run_stages(&self, call: &mut Call) {
        limits::throttle(&call.settlement).await;
        shadow::begin(call, &self.sent, &self.request);
        let is_relay = call.choice.combo.as_ref().is_some_and(|combo| combo.strategy == Strategy::ContextRelay);
        let staged = if is_relay {
            // Boxed to keep the future of conversations without a handoff note small.
            Box::pin(handoff::prepare(call, &self.sent, &self.request, &self.body)).await
        } else {
            fusion_and_pipeline::prepare(call, &self.sent, &self.request).await
        };
        let next;
        let conversation = match staged {
            Ok(Prepared::AsIs) => self,
            Ok(Prepared::Next { translation, request, choice }) => {
                call.choice = *choice;
                let (sent, body) = (self.sent.clone(), self.body.clone());
                next = Box::new(Self { translation: *translation, request, sent, body });
                &*next
            }
            Ok(Prepared::Done { target, answer }) => return settle::give(call, self, &target, answer).await,
            Ok(Prepared::Failed { choice, failures }) => {
                (call.choice, call.failures) = (*choice, failures);
                return call.fail();
            }
            Err(fault) => return call.refuse_before_attempts(&fault),
        };
        let mut tried_before = SmallVec::new();
        if let Some(delay) = hedge::delay(&call.choice) {
            let (translation, request_bytes) = (&conversation.translation, conversation.body.len() as u64);
            let race = Race { kind: conversation, translation, request_bytes };
            let Some(tried) = Box::pin(race.run(call, delay)).await else { return };
            tried_before = tried;
            let last = call.failures.last();
            if last.is_some_and(|(_, failed)| !failover::may_go_on(&call.choice, failed) || call.is_headed()) {
                return call.fail();
            }
        }
        attempt::run(call, conversation, &tried_before).await;
    }

    async fn send_plain(&self, call: &mut Call, at: usize) -> Result<plain::Answer, AttemptFailure> {
        let Call { settlement, choice, .. } = call;
        let (shared, target) = (Arc::clone(&settlement.shared), &choice.targets[at]);
        let betas = settlement.admission.anthropic_beta.clone();
        let session = settlement.admission.session();
        let model = choice.upstream_model(at);
        let body = Contents::Json(self.translation.body(target, model));
        let uri = self.translation.uri(target, model, false)?;
        let (betas, session) = (betas.as_ref(), session.as_ref());
        let request = Upstream { uri: &uri, model, betas, session, body, is_stream: false };
        let response = tokio::select! {
            biased;
            answered = upstream::attempt::send(&shared.pool, target, request) => answered?,
            () = shared.drain.expired() => return Err(shared.drain.error().into()),
        };
        tokio::select! {
            biased;
            answer = plain::read(target, response, (&self.translation, model), settlement) => answer,
            () = shared.drain.expired() => Err(shared.drain.error().into()),
        }
    }
}

impl CallKind for Conversation {
    fn is_stream(&self) -> bool {
        self.request.stream
    }

    async fn send(&self, call: &mut Call, at: usize) -> Result<Reply, AttemptFailure> {
        if self.request.stream {
            return event_stream::run(call, at, &self.translation).await.map(Reply::Stream);
        }
        self.send_plain(call, at).await.map(Reply::Complete)
    }

    async fn store(&self, call: &Call, answer: Option<&Bytes>) -> bool {
        let settlement: &Settlement = &call.settlement;
        responses::keep(&settlement.shared, &settlement.admission, &self.body, &self.request, answer).await
    }
}
