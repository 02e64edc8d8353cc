//! Shadow calls: models that receive the same request as a combo, for comparison only. The caller does not wait for
//! them, see their responses or pay for them. Each writes a separate record with the combo and the strategy `shadow`.

use crate::call::context::Call;
use crate::call::conversation::fusion_and_pipeline;
use crate::call::conversation::translation;
use crate::clock;
use crate::observe::trace;
use crate::route::model;
use crate::shared::Shared;
use bytes::Bytes;
use fairlead_core::strategy::{Random, Shadow};
use fairlead_core::{random_name, ErrorKind, Key, Outcome, Record, Usage};
use fairlead_dialect::openai::request::ChatRequest;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// The strategy in their records.
const STRATEGY: &str = "shadow";
/// The limit of concurrent shadow calls; further ones are skipped.
const MAX_OPEN: usize = 32;
static OPEN: Semaphore = Semaphore::const_new(MAX_OPEN);

/// One shadow call of one request.
struct ShadowCall {
    shared: Arc<Shared>,
    key: Option<Arc<Key>>,
    combo: String,
    model: String,
    body: Bytes,
    timeout: Duration,
    /// The path and endpoint in the caller's record.
    path: &'static str,
    endpoint: &'static str,
}

/// Starts the shadow calls, if the combo has any and this request is sampled.
pub fn begin(call: &Call, body: &Bytes, request: &ChatRequest) {
    let Some(combo) = &call.choice.combo else { return };
    let Some(shadow) = combo.rules.shadow.as_ref() else { return };
    let settlement = &call.settlement;
    let key = settlement.admission.principal.key();
    // The requests of a key without a log are not sent to other providers.
    if key.is_some_and(|key| key.no_log) {
        return;
    }
    let Some(models) = combo.legs.first().and_then(|leg| sample(shadow, &mut leg.memory.lock().1)) else { return };
    // A request that cannot be converted to a chat completion has no shadow. The caller's own call reports the reason.
    let Ok(Some(members)) = translation::chat_members(settlement.admission.dialect, body, request) else { return };
    let body = fusion_and_pipeline::quiet_body(&members, None);
    for model in models {
        let shadow_call = ShadowCall {
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
            shadow_call.run().await;
        }));
    }
}

/// The models that shadow a request; `None` if the request is not sampled.
fn sample(shadow: &Shadow, random: &mut Random) -> Option<Vec<String>> {
    if random.unit() >= shadow.sample_rate {
        return None;
    }
    let mut indices: smallvec::SmallVec<[u16; 32]> = (0..shadow.targets.len().min(32) as u16).collect();
    random.shuffle(&mut indices);
    Some(indices.into_iter().take(shadow.max_targets).map(|at| shadow.targets[usize::from(at)].clone()).collect())
}

impl ShadowCall {
    async fn run(self) {
        let began = Instant::now();
        let active = self.shared.active.load_full();
        let key = self.key.as_deref();
        // A connection that the key may not use is not used for a shadow either.
        let Ok(choice) = model::choose_beside(&active, Some(&self.combo), &self.model, key) else { return };
        drop(active);
        let target = Arc::clone(&choice.targets[0]);
        let alone = choice.narrowed(&[0]);
        let upstream_model = alone.upstream_model.clone();
        let calling = tokio::time::timeout(
            self.timeout,
            fusion_and_pipeline::call_once(&self.shared, &target, alone, &self.body),
        );
        let (outcome, error, usage) = match calling.await {
            Ok(Ok(answer)) => (Outcome::Completed, None, answer.usage),
            Ok(Err(failed)) => (Outcome::UpstreamFailed, Some(failed.error.kind), Usage::default()),
            Err(_) => (Outcome::UpstreamFailed, Some(ErrorKind::UpstreamTimeout), Usage::default()),
        };
        let price = self.shared.active.load();
        let cost = price.snapshot.price(&self.model).map(|price| price.cost(&usage)).unwrap_or_default();
        let Ok(request_id) = random_name() else { return };
        // The record belongs to nobody: it has no key and no session.
        let record = Record {
            request_id: &request_id,
            ts_ms: clock::unix_ms(),
            worker_id: &self.shared.worker_id,
            principal_kind: "local",
            endpoint: self.endpoint,
            method: "POST",
            path: self.path,
            model: Some(&self.model),
            combo: Some(&self.combo),
            strategy: Some(STRATEGY),
            attempts: 1,
            bytes_request: self.body.len() as u64,
            provider: Some(&target.connection.provider),
            connection_id: Some(&target.connection.id),
            upstream_model: Some(&upstream_model),
            status: error.map_or(200, ErrorKind::status),
            outcome,
            error_kind: error.map(ErrorKind::code),
            latency_ms: began.elapsed().as_secs_f64() * 1_000.0,
            ..Record::default()
        };
        self.shared.spool.append(&record.with_usage(&usage, cost.usd_micros()));
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
        // The expected value is 1,000 with a standard deviation of 27.
        assert!((840..=1_160).contains(&sampled), "{sampled}");
    }
}
