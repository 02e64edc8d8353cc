//! Settlement turns a finished request into a record. Every request is settled exactly once: by [`Settlement::settle`],
//! or by drop if the work ends early, for example because the client left or a task panicked.

use crate::clock;
use crate::exchange::Exchange;
use crate::gate::answer;
use crate::gate::request::Admission;
use crate::observe::failed_attempts::FailedAttempt;
use crate::observe::figures::{findings_text, millis, Extras, LeftOutAt};
pub use crate::observe::figures::{CacheHold, CompressionFigures, HoldEnd, SettledAnswer};
use crate::observe::metrics::Settled;
use crate::observe::reason::{sentence, MAX_SENTENCE_BYTES};
use crate::route::choice::Choice;
use crate::shared::Shared;
use crate::upstream::target::Target;
use fairlead_core::guardrail::{self, Actions, Finding, Findings};
use fairlead_core::{
    Amounts, Cached, Charge, Cost, Error, ErrorKind, Fault, Hold, Outcome, PricesInUse, Record, Served, Subject, Units,
    Usage,
};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The settlement of a request, open until it is settled or dropped. It is boxed because futures would otherwise
/// contain it twice, as an argument and as a local variable.
#[derive(Debug)]
pub struct Settlement(Box<PendingRecord>);

/// The record of a request in progress.
#[derive(Debug)]
pub struct PendingRecord {
    pub shared: Arc<Shared>,
    /// Receives the response.
    pub exchange: Arc<Exchange>,
    pub admission: Admission,
    pub model: Option<String>,
    pub stream: bool,
    pub target: Option<Arc<Target>>,
    pub upstream_model: Option<String>,
    /// Members of the request that targets do not accept and did not get.
    pub left_out: Vec<LeftOutAt>,
    /// The full name of the model, as used for prices, if it differs from the name in the request.
    pub priced_model: Option<String>,
    /// How the target was chosen.
    pub strategy: &'static str,
    /// The combo that chose the target.
    pub combo: Option<String>,
    /// How the response cache was involved.
    pub cached: Cached,
    pub attempts: u32,
    /// When the targets were chosen.
    pub chosen: Option<Instant>,
    pub first_byte: Option<Instant>,
    /// Status of the response; 0 until one is sent.
    pub status: u16,
    pub usage: Usage,
    /// Fields that few calls use.
    pub(super) extras: Option<Box<Extras>>,
    /// Usage and cost of additional calls: the panel of a fusion and the earlier steps of a pipeline.
    side: (Usage, Cost),
    pub bytes_request: u64,
    /// Size of the body that is sent to the provider, once known. It includes stored turns and additions by settings
    /// and combos, after compression.
    pub bytes_sent: Option<u64>,
    pub bytes_response: u64,
    /// Events received from the provider's stream. They are the basis of the estimated usage if the stream ends before
    /// the provider reports it.
    pub delivered_events: u64,
    /// The number of those events that `usage` covers.
    pub(super) counted_events: u64,
    /// Filled with the figures of a successful response, so that the response can be cached. `None` means that it must
    /// not be cached.
    pub settled_answer: Option<Arc<OnceLock<SettledAnswer>>>,
    /// Guardrail findings in the request and in the response.
    pub guardrail_findings: Findings,
    /// Guardrail actions on the response.
    pub answer_guardrails: Actions,
    /// The amount reserved under the key's limits.
    pub hold: Option<Hold>,
    /// The request was already throttled under its key's limit and is not throttled again.
    pub was_throttled: bool,
    cost: Option<(Cost, PricesInUse)>,
    is_settled: bool,
}

impl Deref for Settlement {
    type Target = PendingRecord;

    fn deref(&self) -> &PendingRecord {
        &self.0
    }
}

impl DerefMut for Settlement {
    fn deref_mut(&mut self) -> &mut PendingRecord {
        &mut self.0
    }
}

impl Settlement {
    pub fn open(shared: &Arc<Shared>, exchange: &Arc<Exchange>, admission: Admission, bytes_request: u64) -> Self {
        Self(Box::new(PendingRecord {
            shared: Arc::clone(shared),
            exchange: Arc::clone(exchange),
            admission,
            model: None,
            stream: false,
            target: None,
            upstream_model: None,
            left_out: Vec::new(),
            priced_model: None,
            strategy: "single",
            combo: None,
            cached: Cached::default(),
            attempts: 0,
            chosen: None,
            first_byte: None,
            status: 0,
            usage: Usage::default(),
            extras: None,
            side: (Usage::default(), Cost::default()),
            bytes_request,
            bytes_sent: None,
            bytes_response: 0,
            delivered_events: 0,
            counted_events: 0,
            settled_answer: None,
            guardrail_findings: Findings::new(),
            answer_guardrails: Actions::default(),
            hold: None,
            was_throttled: false,
            cost: None,
            is_settled: false,
        }))
    }

    /// Writes the record. Only the first call has an effect.
    pub fn settle(&mut self, outcome: Outcome, error: Option<&Error>) {
        self.0.write(outcome, error.map(|error| (error.kind, error.message.as_ref())));
    }

    /// Like [`Self::settle`], for an error whose message to the caller differs from the error's own.
    pub fn settle_with_message(&mut self, outcome: Outcome, error: &Error, message: &str) {
        self.0.write(outcome, Some((error.kind, message)));
    }
}

impl PendingRecord {
    /// Records how the targets were chosen.
    pub fn note_choice(&mut self, choice: &Choice) {
        self.chosen = Some(Instant::now());
        self.strategy = choice.strategy();
        self.combo = choice.combo.as_ref().map(|combo| combo.name.clone());
    }

    /// Returns the cost of the usage at the snapshot's price; zero for a model without one. Call this once the usage is
    /// complete: the first result is kept, so that the response header and the record agree.
    pub fn cost(&mut self) -> Cost {
        if self.cost.is_none() {
            self.cost = Some(self.bill());
        }
        self.cost.as_ref().map(|(cost, _)| *cost).unwrap_or_default()
    }

    /// Whether part of the usage has no price and is missing in the cost. Known after [`Self::cost`].
    pub fn is_unpriced(&self) -> bool {
        self.cost.as_ref().is_some_and(|(_, tiers)| tiers.is_unpriced())
    }

    /// Returns the cost of the usage and the prices that were applied.
    fn bill(&self) -> (Cost, PricesInUse) {
        let units = self.units();
        let side = self.extras.as_ref().map(|extras| extras.side_tiers.clone()).unwrap_or_default();
        if self.usage == Usage::default() && units == Units::default() {
            return (self.side.1, side);
        }
        let active = self.shared.active.load();
        let price = self.billed_model().and_then(|model| active.snapshot.price(model));
        let tiers = price.map_or_else(PricesInUse::unpriced, |price| price.tiers_of(&self.usage, &units));
        (price.map(|price| price.charge(&self.usage, &units)).unwrap_or_default() + self.side.1, tiers.with(&side))
    }

    /// Returns the cost of the usage so far, before the usage is complete.
    fn cost_so_far(&self) -> Cost {
        let active = self.shared.active.load();
        let price = self.billed_model().and_then(|model| active.snapshot.price(model));
        price.map(|price| price.charge(&self.usage, &self.units())).unwrap_or_default() + self.side.1
    }

    /// The name of the model as used for prices.
    pub fn billed_model(&self) -> Option<&str> {
        self.priced_model.as_deref().or(self.model.as_deref())
    }

    /// The tokens and cost of a conversation in progress.
    pub fn spent_so_far(&self) -> Amounts {
        let total = self.total_usage();
        Amounts { tokens: total.input.saturating_add(total.output), usd_micros: self.cost_so_far().usd_micros() }
    }

    /// Adds the usage and cost of an additional call.
    pub fn add_side(&mut self, model: &str, usage: &Usage) {
        let active = self.shared.active.load();
        let price = active.snapshot.price(model);
        let tiers = price.map_or_else(PricesInUse::unpriced, |price| price.tiers_of(usage, &Units::default()));
        let cost = price.map(|price| price.cost(usage)).unwrap_or_default();
        drop(active);
        self.side = (self.side.0 + *usage, self.side.1 + cost);
        if tiers != PricesInUse::default() {
            let extras = self.extras.get_or_insert_default();
            extras.side_tiers = std::mem::take(&mut extras.side_tiers).with(&tiers);
        }
    }

    /// Adds one of several responses of a conversation. Each has a separate size and therefore a separate price.
    pub fn add_answer(&mut self, usage: &Usage) {
        let model = self.billed_model().map(str::to_owned).unwrap_or_default();
        self.add_side(&model, usage);
    }

    /// Sets the server of the response, and the cost that it reported.
    pub fn serve_by(&mut self, name: String, cost: Cost) {
        self.extras.get_or_insert_default().served_by = Some(name);
        let tiers = if cost == Cost::default() { PricesInUse::default() } else { PricesInUse::of_thing("per_query") };
        self.cost = Some((cost, tiers));
    }

    /// Units other than tokens: the units used or, before the request is sent, the upper bound.
    pub fn units(&self) -> Units {
        self.extras.as_ref().map(|extras| extras.units).unwrap_or_default()
    }

    pub fn set_units(&mut self, units: Units) {
        if self.extras.is_some() || units != Units::default() {
            self.extras.get_or_insert_default().units = units;
        }
    }

    /// Records a failed attempt. This path is cold: calls that succeed on the first target never run it.
    pub fn note_failed_attempt(&mut self, target: &Target, model: &str, error: &Error) {
        let (end_ms, is_private) = (millis(self.elapsed()), self.is_private());
        self.shared.metrics.attempt_failed(&target.connection.provider, error.kind);
        self.extras.get_or_insert_default().failed_attempts.push(FailedAttempt {
            connection_id: &target.connection.id,
            kind: error.kind,
            end_ms,
            model,
            provider_error: error.provider_error(),
            is_private,
        });
    }

    fn failed_attempts(&self) -> Option<&str> {
        self.extras.as_ref()?.failed_attempts.text()
    }

    /// Whether the key has `noLog`, so that no error text is stored.
    pub(super) fn is_private(&self) -> bool {
        self.admission.principal.key().is_some_and(|key| key.no_log)
    }

    fn provider(&self) -> Option<&str> {
        let target = self.target.as_ref().map(|target| target.connection.provider.as_str());
        target.or(self.extras.as_ref().and_then(|extras| extras.served_by.as_deref()))
    }

    /// The names by which limits identify the request.
    pub fn subject(&self) -> Subject<'_> {
        Subject {
            model: self.model.as_deref().unwrap_or_default(),
            served: self.target.as_ref().map_or_else(Served::default, |target| Served {
                provider: &target.connection.provider,
                prefixes: &target.connection.prefixes,
                upstream_model: self.upstream_model.as_deref().unwrap_or_default(),
            }),
        }
    }

    /// The usage of all calls, including additional ones.
    pub fn total_usage(&self) -> Usage {
        self.usage + self.side.0
    }

    pub fn elapsed(&self) -> Duration {
        self.admission.started.elapsed()
    }

    /// Records findings in the response and excludes it from the cache. A finding belongs to the call that produced it,
    /// and a text that is redacted or reported today may be blocked tomorrow.
    pub fn note_answer_findings(&mut self, findings: &[Finding]) {
        if !findings.is_empty() {
            self.settled_answer = None;
            guardrail::merge(&mut self.guardrail_findings, findings.iter().copied());
        }
    }

    /// From now on the response goes to another exchange.
    pub fn move_to(&mut self, exchange: &Arc<Exchange>) {
        self.exchange = Arc::clone(exchange);
    }

    /// `error` is the kind and the message that the caller received.
    fn write(&mut self, outcome: Outcome, error: Option<(ErrorKind, &str)>) {
        if std::mem::replace(&mut self.is_settled, true) {
            return;
        }
        if outcome != Outcome::Completed {
            self.exchange.mark_failed();
            self.estimate_usage();
        }
        let cost = self.cost();
        let cost_usd_micros = cost.usd_micros();
        if let (Outcome::Completed, Some(settled_answer)) = (outcome, self.settled_answer.take()) {
            let provider = self.target.as_ref().map(|target| target.provider_name().to_owned());
            let (upstream_model, strategy) = (self.upstream_model.clone(), self.strategy);
            // This is the only place that sets it.
            let _set = settled_answer.set(SettledAnswer {
                usage: self.total_usage(),
                cost,
                provider,
                upstream_model,
                strategy,
            });
        }
        let usage = self.total_usage();
        self.prolong_hold(&usage);
        let found = (!self.guardrail_findings.is_empty()).then(|| findings_text(&self.guardrail_findings));
        let tiers = self.cost.as_ref().and_then(|(_, tiers)| tiers.text());
        let message = error.filter(|_| !self.is_private()).map(|(_, text)| sentence(text, MAX_SENTENCE_BYTES));
        let error = error.map(|(kind, _)| kind);
        let record = Record {
            guardrails: found.as_deref(),
            price_tiers: tiers.as_deref(),
            error_message: message.as_deref(),
            ..self.record(outcome, error)
        };
        let segment = self.shared.spool.append(&record.with_usage(&usage, cost_usd_micros));
        self.shared.metrics.settled(&Settled {
            endpoint: self.admission.route.endpoint,
            status: self.status,
            outcome,
            error,
            provider: self.provider(),
            usage,
            cost_usd_micros,
            is_unpriced: self.is_unpriced(),
            cached: self.cached,
            findings: &self.guardrail_findings,
            attempts: self.attempts,
            took: self.elapsed(),
            first_byte: self.until_first_byte(),
        });
        self.give_back(cost_usd_micros, segment);
    }

    /// The usage record without tokens, cost and findings.
    // Long: one line for each field of the record.
    fn record(&self, outcome: Outcome, error: Option<ErrorKind>) -> Record<'_> {
        let admission = &self.admission;
        let key = admission.principal.key();
        let trace = admission.trace.as_deref();
        Record {
            request_id: &admission.request_id,
            ts_ms: admission.ts_ms,
            worker_id: &self.shared.worker_id,
            principal_kind: admission.principal.kind(),
            key_id: key.map(|key| key.id.as_str()),
            group_path: key.and_then(|key| key.group_path.as_deref()),
            tags: key.and_then(|key| key.tags.as_deref()),
            session_tag: admission.session_tag.as_deref(),
            session_id: admission.session_id.as_deref(),
            endpoint: admission.route.endpoint,
            method: admission.route.method,
            path: admission.route.path,
            model: self.model.as_deref(),
            provider: self.provider(),
            connection_id: self.target.as_ref().map(|target| target.connection.id.as_str()),
            upstream_model: self.upstream_model.as_deref(),
            combo: self.combo.as_deref(),
            strategy: self.target.is_some().then_some(self.strategy),
            stream: self.stream,
            status: self.status,
            outcome,
            error_kind: error.map(ErrorKind::code),
            error_message: None,
            tokens_input: 0,
            tokens_output: 0,
            tokens_cached: 0,
            tokens_reasoning: 0,
            tokens_cache_write: 0,
            tokens_cache_write_hour: 0,
            service_tier: None,
            price_tiers: None,
            cost_usd_micros: 0,
            latency_ms: millis(self.elapsed()),
            ttft_ms: self.until_first_byte().map(millis),
            chosen_ms: self.chosen.map(|at| millis(at.duration_since(self.admission.started))),
            attempts: self.attempts,
            failed_attempts: self.failed_attempts(),
            bytes_request: self.bytes_request,
            bytes_response: self.bytes_response,
            no_log: self.is_private(),
            cache: self.cached.cache,
            cache_kind: self.cached.kind,
            cost_saved_usd_micros: self.cached.cost_saved_usd_micros,
            guardrails: None,
            compression: self.compression().map(|figures| figures.name.as_str()),
            compression_tokens_before: self.compression().map(|figures| figures.tokens_before),
            compression_tokens_after: self.compression().map(|figures| figures.tokens_after),
            compression_ms: self.compression().map(|figures| figures.micros as f64 / 1e3),
            compression_rejected: self
                .compression()
                .map(|figures| figures.rejected.as_str())
                .filter(|text| !text.is_empty()),
            compression_saved_usd_micros: self.compression_saved_usd_micros(),
            chaos: self.chaos().map(Fault::name),
            cache_hold: self.cache_hold().map(|hold| hold.end.name()),
            conversation: self.prompt_hashes().map(|hashes| hashes.conversation.as_str()),
            prompt_hashes: self.prompt_hashes().map(|hashes| hashes.segments.as_str()),
            cache_read_saving: self.cache_read_saving(),
            trace_id: trace.map(|trace| trace.trace_id.as_str()),
            span_id: trace.and_then(|trace| trace.span_id.as_deref()),
            parent_span_id: trace.and_then(|trace| trace.parent_span_id.as_deref()),
        }
    }

    fn until_first_byte(&self) -> Option<Duration> {
        self.first_byte.map(|at| at.duration_since(self.admission.started))
    }

    /// Charges the usage to the key's limits. This happens after the record is written, because control's sums and the
    /// worker's sums are split at the end of a segment. A request without an attempt costs nothing.
    fn give_back(&mut self, usd_micros: u64, segment: u64) {
        let Some(key) = self.admission.principal.key() else { return };
        let hold = self.hold.take();
        if hold.is_none() && self.attempts == 0 {
            return;
        }
        let subject = self.subject();
        let total = self.total_usage();
        let spent = Amounts { tokens: total.input.saturating_add(total.output), usd_micros };
        self.shared.ledger.settle(key.as_ref(), subject, Charge { hold, spent, segment }, clock::moment());
        self.shared.wake_lease_keeper();
    }
}

impl Drop for PendingRecord {
    fn drop(&mut self) {
        if self.is_settled {
            return;
        }
        let (outcome, kind, message) = if self.exchange.is_cancelled() {
            (Outcome::ClientGone, ErrorKind::ClientGone, ErrorKind::ClientGone.summary())
        } else {
            (Outcome::Refused, ErrorKind::Internal, answer::DEFECT)
        };
        if self.status == 0 {
            self.status = kind.status();
        }
        self.write(outcome, Some((kind, message)));
    }
}
