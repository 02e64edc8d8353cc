//! The response cache. This module decides which requests may use it and computes their keys. `answers` is the cache of
//! the worker, `route_fingerprint` contributes to the key, `give` serves cached responses, and `coalesce` lets equal
//! concurrent requests share one call and stores its response.
//!
//! ```text
//! question -> look up: equal, from another worker, similar -> served
//!                  \-> miss -> share: leader   -> look again -> the call, stored if cacheable
//!                                     follower -> the call in progress
//! ```

pub mod answers;
mod coalesce;
mod give;
pub mod route_fingerprint;

pub use coalesce::{share, ShareableCall};
pub use give::{look_up, Lookup};

use crate::active_config::ActiveConfig;
use crate::call::guardrails;
use crate::gate::preferences::CacheMode;
use crate::gate::request::{Admission, BufferedRequest};
use crate::shared::Shared;
use fairlead_cache::{fingerprint, Delivery, Digest, KeyScope, Question, Turns};
use fairlead_core::{json, Dialect};
use fairlead_dialect::openai::request::ChatRequest;
use memchr::memmem;

/// Larger requests are not looked up, because parsing them would delay others.
const MAX_REQUEST_BYTES: usize = 256 * 1024;

/// Larger requests are not inspected on the threads that accept requests.
const MAX_GLANCE_BYTES: usize = 16 * 1024;

/// A request that may be answered from the cache.
#[derive(Debug)]
pub struct CacheQuery {
    pub(crate) key: Digest,
    pub(crate) question: Option<Question>,
    /// The minimum similarity; `None` means that only an equal question matches.
    pub(crate) threshold: Option<f32>,
    pub(crate) form: Dialect,
    /// A Gemini caller reads its stream as one JSON list. The cache stores events.
    pub(crate) reads_list: bool,
    pub(crate) ttl_ms: u64,
    /// The eviction epoch when the request started. A later eviction also removes this response.
    pub(crate) epoch: u64,
}

/// Whether the response is probably in the cache, judged by a quick check.
pub fn is_likely(shared: &Shared, incoming: &BufferedRequest) -> bool {
    let (admission, body) = (&incoming.admission, &incoming.body);
    let is_small = body.len() <= MAX_GLANCE_BYTES && admission.idempotency_key.is_none();
    // The body is inspected last, because that costs the most.
    is_small
        && !admission.bypasses_cache()
        && shared.active.load().snapshot.cache.is_enabled
        && (admission.cache.mode != CacheMode::Unsaid || has_zero_temperature(admission.dialect, body))
}

/// Returns the cache query of a request, or `None` if the cache does not apply to it.
pub fn question(
    shared: &Shared,
    active: &ActiveConfig,
    admission: &Admission,
    parsed: &ChatRequest,
    body: &[u8],
) -> Option<CacheQuery> {
    let settings = &active.snapshot.cache;
    let wish = &admission.cache;
    let form = admission.dialect;
    // A response to a continued conversation depends on the earlier response.
    if !settings.is_enabled || parsed.continues() || admission.bypasses_cache() || body.len() > MAX_REQUEST_BYTES {
        return None;
    }
    // Checked first, because most requests set no temperature or a different one.
    if wish.mode == CacheMode::Unsaid && !has_zero_temperature(form, body) {
        return None;
    }
    let mut headers: Vec<&[u8]> = wish.shape.iter().map(Vec::as_slice).collect();
    headers.extend([admission.pin.as_deref().unwrap_or_default().as_bytes()]);
    // Different weights choose a different model. The budget of a call does not affect a cached response.
    headers.extend(admission.routing.pack.map(|pack| pack.name().as_bytes()));
    // Different guardrails give a different response.
    let judged_by = [guardrails::of_call(active, admission).answer.bytes(), admission.disabled_guardrails.bytes()];
    headers.push(judged_by.as_flattened());
    headers.extend(admission.anthropic_beta.as_ref().map(http::HeaderValue::as_bytes));
    let scope = KeyScope {
        principal: &admission.principal.to_header(),
        // Gemini's plain and streamed calls have different URLs but the same responses.
        route: if form == Dialect::Gemini { "generateContent" } else { admission.route.path },
        model: &identity(active, &parsed.model),
        turns: match form {
            Dialect::Openai | Dialect::Anthropic => Turns::Messages,
            Dialect::OpenaiResponses => Turns::Input,
            Dialect::Gemini => Turns::Contents,
        },
        headers: &headers,
    };
    let fingerprint = fingerprint(&scope, body)?;
    let is_meant = fingerprint.is_deterministic || wish.mode != CacheMode::Unsaid;
    if fingerprint.is_unfit || !is_meant {
        return None;
    }
    let is_near_enough = settings.wants_vectors && wish.mode != CacheMode::Exact;
    Some(CacheQuery {
        key: fingerprint.key,
        question: fingerprint.question,
        // A caller may be stricter than the operator, but not less strict.
        threshold: is_near_enough.then(|| wish.threshold.map_or(settings.threshold, |own| own.max(settings.threshold))),
        form,
        reads_list: parsed.reads_list,
        ttl_ms: settings.ttl_ms,
        epoch: shared.cache.store.epoch(),
    })
}

/// The format in which the caller wants the response.
pub fn delivery(parsed: &ChatRequest) -> Delivery {
    if parsed.stream {
        Delivery::Stream { requests_usage: parsed.requests_usage }
    } else {
        Delivery::Plain
    }
}

fn has_zero_temperature(form: Dialect, body: &[u8]) -> bool {
    // Most requests set no temperature, and a text search finds that out faster than parsing. Escapes may hide the
    // name.
    if memmem::find(body, b"temperature").is_none() && memchr::memchr(b'\\', body).is_none() {
        return false;
    }
    let body = if form == Dialect::Gemini {
        let Ok(scan) = json::scan_object(body, &["generationConfig", "generation_config"], json::MAX_DEPTH) else {
            return false;
        };
        let config = scan.get("generationConfig").or_else(|| scan.get("generation_config"));
        config.and_then(|config| body.get(config.span())).unwrap_or_default()
    } else {
        body
    };
    let Ok(scan) = json::scan_object(body, &["temperature"], json::MAX_DEPTH) else { return false };
    let text = scan.get("temperature").and_then(|value| std::str::from_utf8(body.get(value.span())?).ok());
    text.and_then(|text| text.parse::<f64>().ok()) == Some(0.0)
}

/// Identifies what a model name resolves to. It changes when an alias changes its target, a combo changes or a provider
/// moves.
fn identity(active: &ActiveConfig, model: &str) -> String {
    let name = active.snapshot.alias(model).unwrap_or(model);
    let mut identity = format!("{model}\n{name}\n");
    if active.combos.book.find(name).is_some() {
        identity.push_str(&active.route_fingerprint);
    } else {
        let prefix = name.split_once('/').map_or(name, |(prefix, _)| prefix);
        route_fingerprint::of_prefix(&active.snapshot, prefix, &mut identity);
    }
    identity
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temperatures() {
        for zero in ["0", "0.0", "-0", "0e3"] {
            let body = format!("{{\"a\":1,\"temperature\":{zero}}}");
            assert!(has_zero_temperature(Dialect::Openai, body.as_bytes()), "{zero}");
            assert!(!has_zero_temperature(Dialect::Gemini, body.as_bytes()), "{zero}");
            let body = format!("{{\"contents\":[],\"generationConfig\":{body}}}");
            assert!(has_zero_temperature(Dialect::Gemini, body.as_bytes()), "{zero}");
        }
        assert!(has_zero_temperature(Dialect::Openai, br#"{"\u0074emperature":0}"#));
        for other in ["0.1", "1", "null", "\"0\"", "false", "[0]"] {
            assert!(
                !has_zero_temperature(Dialect::Openai, format!("{{\"temperature\":{other}}}").as_bytes()),
                "{other}"
            );
        }
        assert!(!has_zero_temperature(Dialect::Openai, b"{}") && !has_zero_temperature(Dialect::Gemini, b"{}"));
    }
}
