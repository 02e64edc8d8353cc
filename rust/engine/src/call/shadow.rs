//! Shadows: models that are asked what a combo was asked, for comparison alone. The caller neither waits for them nor sees, nor pays
//! for, what they say; each leaves a record of its own, of the combo and the strategy `shadow`.

use crate::call::context::Call;
use crate::call::stages;
use crate::call::translation::caller_of;
use crate::clock;
use crate::observe::settle::Settlement;
use crate::observe::trace;
use crate::route::choose::{self, RoutingHints};
use crate::shared::Shared;
use bytes::Bytes;
use fairlead_core::dialect::Dialect;
use fairlead_core::error::Kind;
use fairlead_core::policy;
use fairlead_core::record::{Cached, Outcome, Record};
use fairlead_core::secret::random_name;
use fairlead_core::snapshot::Key;
use fairlead_core::strategy::rules::Shadow;
use fairlead_core::strategy::Random;
use fairlead_core::usage::Usage;
use fairlead_dialect::openai::request::ChatRequest;
use fairlead_dialect::translate::{self, Pair};
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// The strategy of their records.
const STRATEGY: &str = "shadow";
/// Shadows that are asked at once; beyond it none is begun.
const MAX_OPEN: usize = 32;
static OPEN: Semaphore = Semaphore::const_new(MAX_OPEN);

/// One shadow of one request.
struct Ask {
    shared: Arc<Shared>,
    key: Option<Arc<Key>>,
    combo: String,
    model: String,
    body: Bytes,
    timeout: Duration,
    /// As the caller's record has them.
    path: &'static str,
    endpoint: &'static str,
}

/// Begins the shadows of a call, if its combo has some and this request is one of their sample.
pub fn begin(call: &Call, body: &Bytes, request: &ChatRequest) {
    let Some(combo) = &call.choice.combo else { return };
    let Some(shadow) = combo.rules.shadow.as_ref() else { return };
    let settlement = &call.settlement;
    let key = settlement.admission.principal.key();
    // What is kept from logs is kept from others, too.
    if key.is_some_and(|key| key.no_log) {
        return;
    }
    let Some(models) = combo.legs.first().and_then(|leg| sample(shadow, &mut leg.memory.lock().1)) else { return };
    let Some(body) = quiet(settlement, body, request) else { return };
    for model in models {
        let ask = Ask {
            shared: Arc::clone(&settlement.shared),
            key: key.map(Arc::clone),
            combo: combo.name.clone(),
            model,
            body: body.clone(),
            timeout: Duration::from_millis(shadow.timeout_ms),
            path: settlement.admission.route.path,
            endpoint: settlement.admission.route.endpoint,
        };
        let Ok(permit) = OPEN.try_acquire() else { return };
        crate::task::spawn(trace::within(None, async move {
            let _permit = permit;
            ask.run().await;
        }));
    }
}

/// The models that shadow a request; `None` where it is not of the sample.
fn sample(shadow: &Shadow, random: &mut Random) -> Option<Vec<String>> {
    if random.unit() >= shadow.sample_rate {
        return None;
    }
    let mut places: smallvec::SmallVec<[u16; 32]> = (0..shadow.targets.len().min(32) as u16).collect();
    random.shuffle(&mut places);
    Some(places.into_iter().take(shadow.max_targets).map(|at| shadow.targets[usize::from(at)].clone()).collect())
}

/// The request as a chat completion in one piece; `None` where it cannot be said so.
fn quiet(settlement: &Settlement, body: &Bytes, request: &ChatRequest) -> Option<Bytes> {
    let caller = caller_of(settlement.admission.route);
    let chat = if caller == Dialect::Openai {
        body.clone()
    } else {
        translate::request(Pair { caller, provider: Dialect::Openai }, body, request, &request.model)
            .ok()?
            .concat()
            .into()
    };
    match serde_json::from_slice(&chat) {
        Ok(Value::Object(fields)) => Some(stages::quiet_body(&fields, None)),
        _ => None,
    }
}

impl Ask {
    async fn run(self) {
        let began = Instant::now();
        let live = self.shared.live.load_full();
        let key = self.key.as_deref();
        // What may not be sent to a connection on the key's behalf is not sent there as a shadow either.
        if key.is_some_and(|key| policy::admit_unblocked(key, &self.model).is_err()) {
            return;
        }
        let Ok(mut choice) = choose::choose(&live, &self.model, key, RoutingHints::default()) else { return };
        let ready = live.combos.book.find(&self.combo).and_then(|at| live.combos.book.get(at));
        live.outbound.apply(&mut choice, key, ready.map(|ready| ready.id.as_str()));
        drop(live);
        let target = Arc::clone(&choice.targets[0]);
        let alone = choice.narrowed(&[0]);
        let upstream_model = alone.upstream_model.clone();
        let saying = tokio::time::timeout(self.timeout, stages::say(&self.shared, &target, alone, &self.body));
        let (outcome, error, usage) = match saying.await {
            Ok(Ok(said)) => (Outcome::Completed, None, said.usage),
            Ok(Err(failed)) => (Outcome::UpstreamFailed, Some(failed.error.kind), Usage::default()),
            Err(_) => (Outcome::UpstreamFailed, Some(Kind::UpstreamTimeout), Usage::default()),
        };
        let price = self.shared.live.load();
        let cost = price.snapshot.price(&self.model).map(|price| price.cost(&usage)).unwrap_or_default();
        let Ok(request_id) = random_name() else { return };
        let record = Record {
            provider: Some(&target.connection.provider),
            connection_id: Some(&target.connection.id),
            upstream_model: Some(&upstream_model),
            status: error.map_or(200, Kind::status),
            outcome,
            error_kind: error.map(Kind::code),
            latency_ms: began.elapsed().as_secs_f64() * 1_000.0,
            ..self.record(&request_id)
        };
        self.shared.spool.append(&record.with_usage(&usage, cost.usd_micros()));
    }

    /// A record that is nobody's: no key, no session.
    fn record<'a>(&'a self, request_id: &'a str) -> Record<'a> {
        let Cached { cache, kind, cost_saved_usd_micros } = Cached::default();
        Record {
            request_id,
            ts_ms: clock::unix_ms(),
            worker_id: &self.shared.worker_id,
            principal_kind: "local",
            key_id: None,
            session_tag: None,
            session_id: None,
            endpoint: self.endpoint,
            method: "POST",
            path: self.path,
            model: Some(&self.model),
            provider: None,
            connection_id: None,
            upstream_model: None,
            combo: Some(&self.combo),
            strategy: Some(STRATEGY),
            stream: false,
            status: 0,
            outcome: Outcome::UpstreamFailed,
            error_kind: None,
            tokens_input: 0,
            tokens_output: 0,
            tokens_cached: 0,
            tokens_reasoning: 0,
            tokens_cache_write: 0,
            tokens_cache_write_hour: 0,
            service_tier: None,
            price_tiers: None,
            cost_usd_micros: 0,
            latency_ms: 0.0,
            ttft_ms: None,
            attempts: 1,
            bytes_request: self.body.len() as u64,
            bytes_response: 0,
            no_log: false,
            cache,
            cache_kind: kind,
            cost_saved_usd_micros,
            guardrails: None,
            compression: None,
            compression_tokens_before: None,
            compression_tokens_after: None,
            compression_ms: None,
            compression_rejected: None,
            compression_saved_usd_micros: None,
            trace_id: None,
            span_id: None,
            parent_span_id: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_of_its_rate_and_its_size() {
        let shadow = |sample_rate, max_targets| Shadow {
            targets: vec!["a/1".into(), "a/2".into(), "a/3".into()],
            sample_rate,
            max_targets,
            timeout_ms: 1,
        };
        let mut random = Random::seeded(7);
        assert!((0..100).all(|_| sample(&shadow(0.0, 3), &mut random).is_none()));
        assert!((0..100).all(|_| sample(&shadow(1.0, 2), &mut random).is_some_and(|models| models.len() == 2)));
        let sampled = (0..4_000).filter(|_| sample(&shadow(0.25, 1), &mut random).is_some()).count();
        // 1,000 expected, with a standard deviation of 27.
        assert!((840..=1_160).contains(&sampled), "{sampled}");
    }
}
