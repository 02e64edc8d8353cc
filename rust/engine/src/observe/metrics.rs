//! This worker's counters for `GET /metrics`. They are fixed arrays of atomics, so counting takes no lock and allocates
//! nothing. Control receives them with each poll of the link and adds up the workers
//! (`python/fairlead/usage/telemetry/metric_families.py` describes each metric).
//!
//! Labels are bounded. Endpoints, statuses, outcomes and error kinds are closed lists, and providers beyond the first
//! [`MAX_PROVIDERS`] count as `other`.

use arc_swap::ArcSwap;
use fairlead_core::guardrail::{Action, Finding, Guardrail};
use fairlead_core::{CacheKind, CacheOutcome, Cached, ErrorKind, Outcome, Usage};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

const MAX_PROVIDERS: usize = 256;
const OTHER: &str = "other";

/// Categories of the route table. An unlisted category counts as the last one.
const ENDPOINTS: [&str; 20] = [
    "chat",
    "models",
    "embeddings",
    "images",
    "audio",
    "video",
    "music",
    "rerank",
    "moderations",
    "ocr",
    "search",
    "web-fetch",
    "files",
    "batches",
    "agents",
    "responses",
    "management",
    "scraping",
    "public",
    OTHER,
];
const STATUSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
const OUTCOMES: [&str; 6] = ["completed", "upstream_failed", "client_gone", "refused", "shed", "drained"];
const TOKENS: [&str; 5] = ["input", "output", "cached", "reasoning", "cache_write"];
const CACHES: [&str; 6] = ["hit_exact", "hit_vector", "miss", "bypass", "hit_joined", "hit_shared"];
/// Upper bounds of the buckets in milliseconds. The last bucket has no bound.
const BOUNDS_MS: [u64; 15] =
    [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000];
const BOUNDS_S: [&str; 16] =
    ["0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10", "30", "60", "120", "300", "+Inf"];

/// A sample as it is sent over the link: family, label pairs, value.
pub type Sample = (&'static str, Vec<(&'static str, String)>, f64);

/// The counters and histograms of this worker.
#[derive(Debug, Default)]
pub struct Metrics {
    http: [[Counter; STATUSES.len()]; ENDPOINTS.len()],
    requests: [[Counter; OUTCOMES.len()]; ENDPOINTS.len()],
    durations: [Histogram; ENDPOINTS.len()],
    errors: Errors,
    caches: [Counter; CACHES.len()],
    cost_saved: Counter,
    guardrails: [[Counter; Action::ALL.len()]; Guardrail::ALL.len()],
    attempts: Counter,
    providers: ArcSwap<HashMap<Box<str>, Arc<Provider>>>,
}

/// Counters of one provider.
#[derive(Debug, Default)]
struct Provider {
    outcomes: [Counter; OUTCOMES.len()],
    tokens: [Counter; TOKENS.len()],
    cost_usd_micros: Counter,
    unpriced_requests: Counter,
    durations: Histogram,
    first_bytes: Histogram,
    failed_attempts: Errors,
    refused_translations: Counter,
}

#[derive(Debug)]
struct Errors([Counter; ErrorKind::ALL.len()]);

impl Default for Errors {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Counter::default()))
    }
}

impl Errors {
    fn add(&self, kind: ErrorKind) {
        if let Some(at) = ErrorKind::ALL.iter().position(|one| *one == kind) {
            self.0[at].add(1);
        }
    }
}

#[derive(Debug, Default)]
struct Counter(AtomicU64);

impl Counter {
    fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
struct Histogram {
    buckets: [Counter; BOUNDS_S.len()],
    sum_us: Counter,
}

impl Histogram {
    fn observe(&self, took: Duration) {
        let ms = took.as_micros().div_ceil(1_000) as u64;
        self.buckets[BOUNDS_MS.partition_point(|&bound| bound < ms)].add(1);
        self.sum_us.add(took.as_micros() as u64);
    }

    fn collect(&self, names: [&'static str; 3], labels: &[(&'static str, &str)], out: &mut Vec<Sample>) {
        let counts: Vec<u64> = self.buckets.iter().map(Counter::get).collect();
        if counts.iter().all(|&count| count == 0) {
            return;
        }
        let owned = || labels.iter().map(|&(name, value)| (name, value.to_owned())).collect::<Vec<_>>();
        let mut reached = 0;
        for (count, bound) in counts.iter().zip(BOUNDS_S) {
            reached += count;
            let mut labels = owned();
            labels.push(("le", bound.to_owned()));
            out.push((names[0], labels, reached as f64));
        }
        out.push((names[1], owned(), self.sum_us.get() as f64 / 1e6));
        out.push((names[2], owned(), reached as f64));
    }
}

/// The fields of a settled request that are counted.
#[derive(Debug, Clone, Copy)]
pub struct Settled<'a> {
    pub endpoint: &'a str,
    pub status: u16,
    pub outcome: Outcome,
    pub error: Option<ErrorKind>,
    pub provider: Option<&'a str>,
    pub usage: Usage,
    pub cost_usd_micros: u64,
    /// Whether a model that took part has no price, so that the cost leaves its part out.
    pub is_unpriced: bool,
    pub cached: Cached,
    pub findings: &'a [Finding],
    pub attempts: u32,
    pub took: Duration,
    pub first_byte: Option<Duration>,
}

impl Metrics {
    /// Counts a response with this status, from any part of the gateway.
    pub fn answered(&self, endpoint: &str, status: u16) {
        let class = usize::from(status / 100).clamp(1, STATUSES.len()) - 1;
        self.http[index_of(&ENDPOINTS, endpoint)][class].add(1);
    }

    pub fn settled(&self, request: &Settled<'_>) {
        self.answered(request.endpoint, request.status);
        let endpoint = index_of(&ENDPOINTS, request.endpoint);
        let outcome = request.outcome as usize;
        self.requests[endpoint][outcome].add(1);
        self.durations[endpoint].observe(request.took);
        if let Some(kind) = request.error {
            self.errors.add(kind);
        }
        self.attempts.add(request.attempts.into());
        self.note_cache(request.cached);
        for finding in request.findings {
            self.guardrails[finding.guardrail as usize][finding.action as usize].add(1);
        }
        let Some(provider) = request.provider else { return };
        self.with_provider(provider, |counters| {
            counters.outcomes[outcome].add(1);
            counters.durations.observe(request.took);
            if let Some(first) = request.first_byte {
                counters.first_bytes.observe(first);
            }
            let usage = request.usage;
            let counts = [usage.input, usage.output, usage.cached, usage.reasoning, usage.cache_write];
            for (counter, count) in counters.tokens.iter().zip(counts) {
                counter.add(count);
            }
            counters.cost_usd_micros.add(request.cost_usd_micros);
            counters.unpriced_requests.add(request.is_unpriced.into());
        });
    }

    /// Counts a failed attempt at a provider, whatever the outcome of the request.
    pub fn attempt_failed(&self, provider: &str, kind: ErrorKind) {
        self.with_provider(provider, |counters| counters.failed_attempts.add(kind));
    }

    /// Counts a body that the gateway wrote and the provider called invalid.
    pub fn translation_refused(&self, provider: &str) {
        self.with_provider(provider, |counters| counters.refused_translations.add(1));
    }

    fn note_cache(&self, cached: Cached) {
        let at = match (cached.cache, cached.kind) {
            (Some(CacheOutcome::Hit), Some(CacheKind::Vector)) => 1,
            (Some(CacheOutcome::Hit), Some(CacheKind::Joined)) => 4,
            (Some(CacheOutcome::Hit), Some(CacheKind::Shared)) => 5,
            (Some(CacheOutcome::Hit), _) => 0,
            (Some(CacheOutcome::Miss), _) => 2,
            (Some(CacheOutcome::Bypass), _) => 3,
            (None, _) => return,
        };
        self.caches[at].add(1);
        self.cost_saved.add(cached.cost_saved_usd_micros.unwrap_or(0));
    }

    /// Registers a provider at its first request. Later requests find it without a lock.
    fn with_provider(&self, name: &str, count: impl FnOnce(&Provider)) {
        if let Some(known) = self.providers.load().get(name) {
            return count(known);
        }
        self.providers.rcu(|known| {
            let mut known = HashMap::clone(known);
            let name = if known.len() < MAX_PROVIDERS { name } else { OTHER };
            known.entry(name.into()).or_default();
            known
        });
        let known = self.providers.load();
        if let Some(provider) = known.get(name).or_else(|| known.get(OTHER)) {
            count(provider);
        }
    }

    /// Returns all samples that are not zero.
    pub fn samples(&self) -> Vec<Sample> {
        let mut out = Vec::new();
        for (at, endpoint) in ENDPOINTS.into_iter().enumerate() {
            counts(
                "fairlead_http_requests_total",
                ("endpoint", endpoint),
                ("status", &STATUSES),
                &self.http[at],
                &mut out,
            );
            let requests = &self.requests[at];
            counts("fairlead_requests_total", ("endpoint", endpoint), ("outcome", &OUTCOMES), requests, &mut out);
            let names = [
                "fairlead_request_duration_seconds_bucket",
                "fairlead_request_duration_seconds_sum",
                "fairlead_request_duration_seconds_count",
            ];
            self.durations[at].collect(names, &[("endpoint", endpoint)], &mut out);
        }
        for (kind, counter) in ErrorKind::ALL.iter().zip(&self.errors.0) {
            push("fairlead_errors_total", &[("kind", kind.code())], counter.get(), &mut out);
        }
        for (result, counter) in CACHES.into_iter().zip(&self.caches) {
            push("fairlead_cache_requests_total", &[("result", result)], counter.get(), &mut out);
        }
        push("fairlead_cost_saved_usd_micros_total", &[], self.cost_saved.get(), &mut out);
        for (guardrail, actions) in Guardrail::ALL.iter().zip(&self.guardrails) {
            let own = ("guardrail", guardrail.name());
            let names = Action::ALL.map(Action::name);
            counts("fairlead_guardrail_findings_total", own, ("action", &names), actions, &mut out);
        }
        push("fairlead_upstream_attempts_total", &[], self.attempts.get(), &mut out);
        for (name, provider) in self.providers.load().iter() {
            provider.collect(name, &mut out);
        }
        out
    }
}

impl Provider {
    fn collect(&self, name: &str, out: &mut Vec<Sample>) {
        let own = ("provider", name);
        counts("fairlead_provider_requests_total", own, ("outcome", &OUTCOMES), &self.outcomes, out);
        counts("fairlead_tokens_total", own, ("kind", &TOKENS), &self.tokens, out);
        push("fairlead_cost_usd_micros_total", &[own], self.cost_usd_micros.get(), out);
        push("fairlead_unpriced_requests_total", &[own], self.unpriced_requests.get(), out);
        for (kind, counter) in ErrorKind::ALL.iter().zip(&self.failed_attempts.0) {
            push("fairlead_provider_failures_total", &[own, ("kind", kind.code())], counter.get(), out);
        }
        push("fairlead_translation_refused_total", &[own], self.refused_translations.get(), out);
        let names = [
            "fairlead_provider_duration_seconds_bucket",
            "fairlead_provider_duration_seconds_sum",
            "fairlead_provider_duration_seconds_count",
        ];
        self.durations.collect(names, &[own], out);
        let names = [
            "fairlead_provider_first_byte_seconds_bucket",
            "fairlead_provider_first_byte_seconds_sum",
            "fairlead_provider_first_byte_seconds_count",
        ];
        self.first_bytes.collect(names, &[own], out);
    }
}

fn index_of(list: &[&str], name: &str) -> usize {
    list.iter().position(|one| *one == name).unwrap_or(list.len() - 1)
}

fn push(family: &'static str, labels: &[(&'static str, &str)], value: u64, out: &mut Vec<Sample>) {
    if value > 0 {
        let labels = labels.iter().map(|&(name, value)| (name, value.to_owned())).collect();
        out.push((family, labels, value as f64));
    }
}

fn counts(
    family: &'static str,
    own: (&'static str, &str),
    (label, values): (&'static str, &[&str]),
    counters: &[Counter],
    out: &mut Vec<Sample>,
) {
    for (value, counter) in values.iter().zip(counters) {
        push(family, &[own, (label, value)], counter.get(), out);
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "they are counts")]
mod tests {
    use super::*;

    fn settled(provider: &str) -> Settled<'_> {
        Settled {
            endpoint: "chat",
            status: 200,
            outcome: Outcome::Completed,
            error: None,
            provider: Some(provider),
            usage: Usage { input: 7, ..Usage::default() },
            cost_usd_micros: 3,
            is_unpriced: false,
            cached: Cached { cache: Some(CacheOutcome::Miss), ..Cached::default() },
            findings: &[],
            attempts: 1,
            took: Duration::from_millis(6),
            first_byte: None,
        }
    }

    fn value(samples: &[Sample], family: &str, wanted: &[(&str, &str)]) -> f64 {
        samples
            .iter()
            .filter(|(name, labels, _)| {
                *name == family && wanted.iter().all(|(l, v)| labels.iter().any(|(a, b)| a == l && b == v))
            })
            .map(|(_, _, value)| value)
            .sum()
    }

    #[test]
    fn a_settled_request_counts_once_in_each_family() {
        let metrics = Metrics::default();
        metrics.settled(&settled("lab"));
        metrics.settled(&Settled {
            outcome: Outcome::Refused,
            status: 429,
            error: Some(ErrorKind::RateLimited),
            ..settled("lab")
        });
        let samples = metrics.samples();
        assert_eq!(value(&samples, "fairlead_requests_total", &[("outcome", "completed")]), 1.0);
        assert_eq!(value(&samples, "fairlead_http_requests_total", &[("status", "4xx")]), 1.0);
        assert_eq!(value(&samples, "fairlead_errors_total", &[("kind", "rate_limited")]), 1.0);
        assert_eq!(value(&samples, "fairlead_tokens_total", &[("provider", "lab"), ("kind", "input")]), 14.0);
        assert_eq!(value(&samples, "fairlead_cache_requests_total", &[("result", "miss")]), 2.0);
        assert_eq!(value(&samples, "fairlead_unpriced_requests_total", &[]), 0.0);
    }

    #[test]
    fn requests_without_a_price_are_counted_beside_the_cost() {
        let metrics = Metrics::default();
        metrics.settled(&settled("lab"));
        metrics.settled(&Settled { cost_usd_micros: 0, is_unpriced: true, ..settled("lab") });
        let samples = metrics.samples();
        let lab = [("provider", "lab")];
        assert_eq!(value(&samples, "fairlead_unpriced_requests_total", &lab), 1.0);
        assert_eq!(value(&samples, "fairlead_cost_usd_micros_total", &lab), 3.0);
    }

    #[test]
    fn what_guardrails_find_counts_by_guardrail_and_action() {
        let metrics = Metrics::default();
        let found = |guardrail, kind, action| Finding { guardrail, kind, action };
        let findings = [
            found(Guardrail::PiiMasker, "email", Action::Redact),
            found(Guardrail::PiiMasker, "card", Action::Redact),
            found(Guardrail::CredentialMasker, "aws-key", Action::Block),
        ];
        metrics.settled(&Settled { findings: &findings, ..settled("lab") });
        let samples = metrics.samples();
        let count = |guardrail, action| {
            value(&samples, "fairlead_guardrail_findings_total", &[("guardrail", guardrail), ("action", action)])
        };
        assert_eq!((count("pii-masker", "redact"), count("credential-masker", "block")), (2.0, 1.0));
        assert_eq!(value(&samples, "fairlead_guardrail_findings_total", &[]), 3.0);
    }

    #[test]
    fn buckets_are_cumulative_and_a_bound_is_inside_its_bucket() {
        let histogram = Histogram::default();
        for ms in [5, 6, 10, 400_000] {
            histogram.observe(Duration::from_millis(ms));
        }
        let mut samples = Vec::new();
        histogram.collect(["b", "s", "c"], &[], &mut samples);
        let reached = |bound: &str| value(&samples, "b", &[("le", bound)]);
        assert_eq!((reached("0.005"), reached("0.01"), reached("300"), reached("+Inf")), (1.0, 3.0, 3.0, 4.0));
        assert_eq!(value(&samples, "c", &[]), 4.0);
    }

    #[test]
    fn providers_are_bounded() {
        let metrics = Metrics::default();
        for number in 0..MAX_PROVIDERS + 50 {
            metrics.settled(&settled(&format!("p{number}")));
        }
        let samples = metrics.samples();
        assert_eq!(metrics.providers.load().len(), MAX_PROVIDERS + 1);
        assert_eq!(value(&samples, "fairlead_provider_requests_total", &[("provider", OTHER)]), 50.0);
        assert_eq!(value(&samples, "fairlead_provider_requests_total", &[]), (MAX_PROVIDERS + 50) as f64);
    }
}
