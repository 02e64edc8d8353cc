//! A conversation: read, held to the rules, answered from the cache or said in the dialect of each provider that may serve it,
//! and told in the caller's own.

use crate::active_config::Live;
use crate::cache::{self, Lookup, ShareableCall};
use crate::call::attempt::{self, CallKind, Reply};
use crate::call::chaos;
use crate::call::choose::{admit_aliases, admit_model, choose_in_time, note_choice};
use crate::call::combo_body;
use crate::call::compression;
use crate::call::context::Call;
use crate::call::conversation_stream::{self, ConversationStream, StartedStream};
use crate::call::deadline::within;
use crate::call::endpoints;
use crate::call::failover;
use crate::call::guardrails;
use crate::call::handover;
use crate::call::hedge;
use crate::call::plain;
use crate::call::reasoning;
use crate::call::recall::{recall, Recall};
use crate::call::shadow;
use crate::call::stages::{self, Staged};
use crate::call::stream;
use crate::call::translation::{self, caller_of, Translation};
use crate::call::usage_command;
use crate::call::window;
use crate::control::responses;
use crate::gate::defaults;
use crate::gate::limits;
use crate::observe::settle::Settlement;
use crate::route::model;
use crate::shared::Shared;
use crate::upstream;
use crate::upstream::attempt::{Contents, Upstream};
use crate::upstream::failure::AttemptFailure;
use crate::upstream::limiter::Entrant;
use crate::upstream::slot::{self, Slot};
use crate::upstream::target::Target;
use crate::upstream::target_cap::TargetCap;
use crate::upstream::wire::Incoming;
use bytes::Bytes;
use fairlead_context::{add_system_prompt, rewrite_thinking};
use fairlead_core::strategy::{QueueRule, Strategy};
use fairlead_core::{CacheOutcome, Error, ErrorKind, Origin, Outcome, Retry, ThinkingBudget, Usage};
use fairlead_dialect::openai::request::ChatRequest;
use http::HeaderValue;
use http_body_util::BodyExt as _;
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A conversation on its way to its providers.
#[derive(Debug)]
pub struct Conversation {
    /// The request in the dialect of each provider that may serve it.
    translation: Translation,
    /// The request that was read from `sent`.
    request: ChatRequest,
    /// The body before its translation, with what it goes on from in its place, and as its combo shapes it.
    sent: Bytes,
    /// The body as the caller is to find it in what is kept of the response.
    body: Bytes,
}

/// Serves one conversation.
// Long: its steps in their order, each of which may end the call.
pub async fn run(mut call: Call, body: &Bytes) {
    let shared = call.shared();
    let live = shared.live.load_full();
    let (body, recalled, request) = match read(&mut call, &live, body).await {
        Ok(Some(read)) => read,
        // The caller has left; the settlement's drop says so.
        Ok(None) => return,
        Err(fault) => return call.refuse(&fault),
    };
    if let Err(fault) = chaos::strike(&mut call.settlement).await {
        return call.refuse(&fault);
    }
    match usage_command::run(&mut call, &body, &request).await {
        Ok(false) => {}
        Ok(true) => return,
        Err(fault) => return call.refuse(&fault),
    }
    let mut choice = model::choose(&shared, &live, &call.settlement.admission, &request.model, &recalled);
    if let Some(fault) = choice.as_ref().err().filter(|fault| fault.kind == ErrorKind::UpstreamRateLimited).cloned() {
        let exchange = Arc::clone(&call.settlement.exchange);
        // On the heap, so that conversations whose targets are free do not carry its size.
        choice = tokio::select! {
            biased;
            () = exchange.gone() => return, // the settlement's drop says who left
            waited = Box::pin(choose_in_time(&call.settlement, &request.model, &recalled, fault)) => waited,
        };
    }
    match choice.and_then(|choice| admit_aliases(&call.settlement, &choice).map(|()| choice)) {
        Ok(choice) => call.choice = choice,
        Err(fault) => return call.refuse(&fault),
    }
    let (recalled, request) = match shape(&call, recalled, request) {
        Ok(shaped) => shaped,
        Err(fault) => return call.refuse(&fault),
    };
    // What a tool did for one question it has not done for the next: no answer of one that acts is kept or shared.
    let acts = call.choice.targets.iter().any(|target| target.connection.sends_session);
    let question = || cache::question(&shared, &live, &call.settlement.admission, &request, &recalled);
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
    // On the heap, so that calls do not carry what is seldom asked for.
    let (sent, request) = match Box::pin(shorten(&mut call, &live, recalled, request)).await {
        Ok(shortened) => shortened,
        Err(fault) => return call.refuse(&fault),
    };
    let translation = limits::ask_until_known(&shared, || choose(&mut call, &live, &sent, &request)).await;
    drop(live);
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
    let conversation = Conversation { translation, request, sent, body };
    match question {
        // In place: a moved call would be carried twice.
        None => conversation.serve_in_place(&mut call).await,
        // On the heap, so that requests that are never kept do not carry its size.
        Some(question) => Box::pin(cache::share(call, question, delivery, conversation)).await,
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

/// The caller's body as it may go on, with what it goes on from in its place, and what was read of it. `None`: the caller left.
async fn read(call: &mut Call, live: &Live, body: &Bytes) -> Result<Option<(Bytes, Bytes, ChatRequest)>, Error> {
    let settlement = &mut call.settlement;
    let mut body = guardrails::admit(live, settlement, body)?;
    if let Some(streamed) = defaults::with_stream(&settlement.admission, &body) {
        body = streamed;
    }
    let request = admit_model(live, settlement, translation::read(&settlement.admission, &body)?)?;
    settlement.model = Some(request.model.clone());
    settlement.stream = request.stream;
    let before = match recall(live, settlement, &body, &request).await? {
        Recall::CallerLeft => return Ok(None),
        Recall::Nothing => None,
        Recall::Body(whole) => Some(whole),
    };
    let sent = with_settings(live, settlement, before.as_ref().unwrap_or(&body)).or(before);
    let Some(sent) = sent else { return Ok(Some((body.clone(), body, request))) };
    let read = translation::read(&settlement.admission, &sent)?;
    Ok(Some((body, sent, read.going_on_from(request))))
}

/// The body with the operator's words and budgets in it; `None` where nothing is changed.
fn with_settings(live: &Live, settlement: &Settlement, body: &Bytes) -> Option<Bytes> {
    let settings = &live.snapshot.context;
    let route = settlement.admission.route;
    if (settings.system_prompt.is_empty() && settings.thinking == ThinkingBudget::Passthrough)
        || endpoints::needs(route).is_some()
    {
        return None;
    }
    let dialect = caller_of(route);
    let thought = rewrite_thinking(dialect, body, settings.thinking).map(Bytes::from);
    let prompted = add_system_prompt(dialect, thought.as_ref().unwrap_or(body), &settings.system_prompt);
    prompted.map(Bytes::from).or(thought)
}

/// The conversation made shorter, as somebody asks for it, and held to the windows of the models.
async fn shorten(
    call: &mut Call,
    live: &Arc<Live>,
    body: Bytes,
    request: ChatRequest,
) -> Result<(Bytes, ChatRequest), Error> {
    let (body, request) = compression::run(call, live, body, request).await?;
    window::hold(call, live, body, request).await
}

/// The request with the instructions and tools of its combo.
fn shape(call: &Call, body: Bytes, request: ChatRequest) -> Result<(Bytes, ChatRequest), Error> {
    let Some(combo) = &call.choice.combo else { return Ok((body, request)) };
    let admission = &call.settlement.admission;
    let (system, tools) = (combo.rules.system_message.as_deref(), combo.tools.as_ref());
    let Some(shaped) = combo_body::shaped(caller_of(admission.route), &body, system, tools)? else {
        return Ok((body, request));
    };
    let read = translation::read(admission, &shaped)?;
    Ok((shaped, read.going_on_from(request)))
}

/// Reserves room for the call, and says it in the dialect of each target that is left.
fn choose(call: &mut Call, live: &Live, body: &Bytes, request: &ChatRequest) -> Result<Translation, Error> {
    let Call { settlement, choice, .. } = call;
    let shared = Arc::clone(&settlement.shared);
    settlement.bytes_sent = Some(body.len() as u64);
    limits::reserve(&shared, &live.snapshot, settlement, request, choice)?;
    note_choice(settlement, choice);
    endpoints::narrow(settlement.admission.route, choice)?;
    translate(call, live, body, request)
}

/// The request in the dialect of each target.
fn translate(call: &mut Call, live: &Live, body: &Bytes, request: &ChatRequest) -> Result<Translation, Error> {
    let Call { settlement, choice, .. } = call;
    let shared = Arc::clone(&settlement.shared);
    let route = settlement.admission.route;
    let translation = Translation::prepare(caller_of(route), body, request, choice, &live.snapshot)?;
    let mut translation = translation.towards(route).in_tier(settlement.admission.service_mode());
    reasoning::put_back(&shared, &settlement.admission, choice, &mut translation);
    Ok(translation)
}

/// Ends a call that failed before any of its targets was asked for the caller's answer.
fn refuse_before_attempts(call: &mut Call, fault: &Error) {
    let outcome = match fault.origin {
        _ if fault.kind == ErrorKind::Draining => Outcome::Drained,
        Origin::Upstream => Outcome::UpstreamFailed,
        Origin::Client | Origin::Gateway => Outcome::Refused,
    };
    call.end_refused(outcome, fault);
}

impl Conversation {
    /// Serves the call, or ends with its caller.
    async fn serve_in_place(&self, call: &mut Call) {
        let exchange = Arc::clone(&call.settlement.exchange);
        tokio::select! {
            biased;
            () = exchange.gone() => {} // the settlement's drop says who left
            () = self.run_stages(call) => {}
        }
    }

    /// From the calls that come first to the answer.
    async fn run_stages(&self, call: &mut Call) {
        limits::throttle(&call.settlement).await;
        shadow::begin(call, &self.sent, &self.request);
        if call.choice.combo.as_ref().is_some_and(|combo| combo.strategy == Strategy::ContextRelay) {
            // On the heap, so that conversations which take no note along do not carry its size.
            match Box::pin(self.attempt_with_note(call)).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(fault) => return refuse_before_attempts(call, &fault),
            }
        }
        let staged = match stages::prepare(call, &self.sent, &self.request).await {
            Ok(staged) => staged,
            Err(fault) => return refuse_before_attempts(call, &fault),
        };
        match staged {
            Staged::AsIs => self.attempt(call).await,
            Staged::Next { wording, parsed, choice } => {
                call.choice = *choice;
                let (sent, body) = (self.sent.clone(), self.body.clone());
                let translation = wording.in_tier(call.settlement.admission.service_mode());
                let next = Self { translation, request: parsed, sent, body };
                Box::pin(next.attempt(call)).await;
            }
            Staged::Failed { choice, failures } => {
                (call.choice, call.failures) = (*choice, failures);
                call.fail();
            }
            Staged::Done { target, answer } => {
                let answer = plain::answer(&mut call.settlement, &target, answer, 0);
                call.give(answer);
            }
        }
    }

    /// Attempts this conversation with the hand-over note of its session; `false` where it has none.
    async fn attempt_with_note(&self, call: &mut Call) -> Result<bool, Error> {
        let Some((sent, request)) = handover::prepare(call, &self.sent, &self.request).await? else { return Ok(false) };
        let live = call.shared().live.load_full();
        let translation = translate(call, &live, &sent, &request)?.of(&self.body);
        drop(live);
        Self { translation, request, sent, body: self.body.clone() }.attempt(call).await;
        Ok(true)
    }

    async fn attempt(&self, call: &mut Call) {
        let mut over = SmallVec::new();
        if let Some(delay) = hedge::delay(&call.choice) {
            let raced = async {
                if self.request.stream {
                    self.race_streams(call, delay).await
                } else {
                    self.race_answers(call, delay).await
                }
            };
            let Some(tried) = Box::pin(raced).await else { return };
            over = tried;
            let last = call.failures.last();
            if last.is_some_and(|(_, failed)| !failover::may_go_on(&call.choice, failed) || call.is_headed()) {
                return call.fail();
            }
        }
        attempt::run(call, self, &over).await;
    }

    /// Lets two targets race for a whole answer. `None`: one of them served the call; else the targets that were tried.
    async fn race_answers(&self, call: &mut Call, delay: Duration) -> Option<SmallVec<[usize; 2]>> {
        let asks = contestants(call);
        let Some((at, won)) = hedge::race(call, delay, false, |at| self.take_answer(&asks[at])).await else {
            return Some((0..call.failures.len()).collect());
        };
        let RacedAnswer { answer, usage, took } = won;
        call.name_target(at);
        call.settlement.usage = usage;
        call.settlement.first_byte.get_or_insert_with(Instant::now);
        let target = Arc::clone(&call.choice.targets[at]);
        target.served(took, took);
        failover::remember(&call.choice, at, &mut call.settlement, true);
        let fallbacks = call.fallbacks();
        let answer = plain::answer(&mut call.settlement, &target, answer, fallbacks);
        call.give(answer);
        None
    }

    /// Lets two targets race for a stream and relays the winner's. `None`: to its end; else the targets that were tried.
    async fn race_streams(&self, call: &mut Call, delay: Duration) -> Option<SmallVec<[usize; 2]>> {
        let asks = contestants(call);
        let Some((at, started)) =
            hedge::race(call, delay, !self.translation.holds_streams(), |at| self.start_stream(&asks[at])).await
        else {
            return Some((0..call.failures.len()).collect());
        };
        let began = started.began;
        call.name_target(at);
        match conversation_stream::resume(call, at, &self.translation, started).await {
            Ok(finished) => {
                attempt::finish(call, self, at, Reply::Stream(finished), Some(began)).await;
                None
            }
            Err(failed) => {
                hedge::lose(call, at, failed);
                Some([at, 1 - at].into_iter().take(call.failures.len()).collect())
            }
        }
    }

    async fn slot(&self, ask: &Contestant) -> Result<Slot, AttemptFailure> {
        let tokens = model::estimate(self.body.len() as u64);
        let entrant = Entrant { model: &ask.upstream_model, tokens, queue: ask.queue, cap: ask.cap };
        slot::acquire(&ask.shared, &ask.target, &entrant, &mut Duration::default()).await
    }

    /// Asks one target for a whole answer.
    async fn take_answer(&self, ask: &Contestant) -> Result<RacedAnswer, AttemptFailure> {
        let Contestant { shared, target, upstream_model, betas, session, limit, .. } = ask;
        let began = Instant::now();
        let mut slot = self.slot(ask).await?;
        let asking = async {
            let (model, body) = (upstream_model, Contents::Json(self.translation.body(target, upstream_model)));
            let uri = self.translation.uri(target, upstream_model, false)?;
            let (betas, session) = (betas.as_ref(), session.as_ref());
            let request = Upstream { uri: &uri, model, betas, session, body, is_stream: false };
            plain::take(target, upstream::attempt::send(&shared.pool, target, request).await?, &self.translation).await
        };
        let (answer, usage) = tokio::select! {
            biased;
            taken = within(*limit, asking) => taken?,
            () = shared.drain.expired() => return Err(shared.drain.error().into()),
        };
        slot.settle(&usage);
        Ok(RacedAnswer { answer, usage, took: began.elapsed() })
    }

    /// Asks one target and waits for the first bytes of its stream.
    async fn start_stream(&self, ask: &Contestant) -> Result<StartedStream, AttemptFailure> {
        let Contestant { shared, target, upstream_model, betas, session, limit, .. } = ask;
        let began = Instant::now();
        let slot = self.slot(ask).await?;
        let asking = async {
            let (model, body) = (upstream_model, Contents::Json(self.translation.body(target, upstream_model)));
            let uri = self.translation.uri(target, upstream_model, true)?;
            let (betas, session) = (betas.as_ref(), session.as_ref());
            let request = Upstream { uri: &uri, model, betas, session, body, is_stream: true };
            let response = upstream::attempt::send(&shared.pool, target, request).await?;
            conversation_stream::check_type(&response)?;
            let mut body = response.into_body();
            let patience = Duration::from_millis(target.connection.timeouts.first_token_ms);
            let first = tokio::time::timeout(patience, first_bytes(&mut body)).await;
            let first = first
                .map_err(|_| AttemptFailure::from(stream::silent::<ConversationStream<'_>>(patience, false)))??;
            Ok::<_, AttemptFailure>((body, first))
        };
        let (body, first) = tokio::select! {
            biased;
            started = within(*limit, asking) => started?,
            () = shared.drain.expired() => return Err(shared.drain.error().into()),
        };
        Ok(StartedStream { body, first, began, slot })
    }

    async fn ask_plain(&self, call: &mut Call, at: usize) -> Result<plain::Answer, AttemptFailure> {
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
            answer = plain::read(target, response, &self.translation, settlement) => answer,
            () = shared.drain.expired() => Err(shared.drain.error().into()),
        }
    }
}

impl CallKind for Conversation {
    fn is_stream(&self) -> bool {
        self.request.stream
    }

    async fn ask(&self, call: &mut Call, at: usize) -> Result<Reply, AttemptFailure> {
        if self.request.stream {
            return conversation_stream::run(call, at, &self.translation).await.map(Reply::Stream);
        }
        self.ask_plain(call, at).await.map(Reply::Whole)
    }

    async fn store(&self, call: &Call, answer: Option<&Bytes>) -> bool {
        let settlement: &Settlement = &call.settlement;
        responses::keep(&settlement.shared, &settlement.admission, &self.body, &self.request, answer).await
    }
}

/// One of two targets that race, with what it is asked.
struct Contestant {
    shared: Arc<Shared>,
    target: Arc<Target>,
    upstream_model: String,
    betas: Option<HeaderValue>,
    session: Option<HeaderValue>,
    /// How long the combo gives it.
    limit: Option<Duration>,
    queue: QueueRule,
    cap: Option<TargetCap>,
}

/// The requests to the first two targets.
fn contestants(call: &Call) -> SmallVec<[Contestant; 2]> {
    let betas = &call.settlement.admission.anthropic_beta;
    let session = call.settlement.admission.session();
    let contestant = |at: usize| Contestant {
        shared: call.shared(),
        target: Arc::clone(&call.choice.targets[at]),
        upstream_model: call.choice.upstream_model(at).to_owned(),
        betas: betas.clone(),
        session: session.clone(),
        limit: call.time_for(at),
        queue: call.choice.queue(),
        cap: call.choice.cap(at),
    };
    (0..call.choice.targets.len().min(2)).map(contestant).collect()
}

/// The answer of a target that raced.
struct RacedAnswer {
    answer: plain::Answer,
    usage: Usage,
    took: Duration,
}

async fn first_bytes(body: &mut Incoming) -> Result<Bytes, Error> {
    while let Some(frame) = body.frame().await {
        match frame.map(http_body::Frame::into_data) {
            Ok(Ok(data)) if !data.is_empty() => return Ok(data),
            Ok(_) => {}
            Err(_) => break,
        }
    }
    let message = "The provider ended its stream before it said anything.";
    Err(Error::upstream(ErrorKind::UpstreamReset, Retry::Elsewhere, message))
}
