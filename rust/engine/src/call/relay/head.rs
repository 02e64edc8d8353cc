//! The response head of a completion: the gateway's headers about the decision, guardrail findings and compression.

use crate::gate::answer;
use crate::gate::headers;
use crate::observe::figures::{findings_text, LeftOutAt};
use crate::observe::settle::{CompressionFigures, Settlement};
use crate::upstream::target::Target;
use http::{HeaderMap, HeaderValue};

/// The decision headers of every completion, which are known at the start of a stream. `fallbacks` is the number of
/// failed attempts.
pub fn headers(settlement: &Settlement, target: &Target, fallbacks: usize) -> HeaderMap {
    let admission = &settlement.admission;
    let mut headers = answer::base_headers(&settlement.shared, &admission.request_id);
    let latency_ms = settlement.elapsed().as_millis() as u64;
    let provider = target.provider_name();
    headers.insert(
        headers::DECISION,
        headers::encoded(&format!("strategy={}; provider={provider}; latency_ms={latency_ms}", settlement.strategy)),
    );
    headers.insert(headers::PROVIDER, headers::encoded(provider));
    if let Some(model) = &settlement.upstream_model {
        headers.insert(headers::MODEL, headers::encoded(model));
    }
    headers.insert(headers::LATENCY_MS, headers::number(latency_ms));
    headers.insert(headers::RESPONSE_LATENCY, headers::number(latency_ms));
    if let Some(session) = admission.session_tag.as_deref().or(admission.session_id.as_deref()) {
        headers.insert(headers::SESSION_ID, headers::encoded(session));
    }
    if let Some(names) =
        LeftOutAt::of(&settlement.left_out, &target.connection.id, settlement.upstream_model.as_deref())
    {
        headers.insert(headers::LEFT_OUT, headers::encoded(names));
    }
    add_findings(settlement, &mut headers);
    add_compression(settlement, &mut headers);
    add_fault(settlement, &mut headers);
    if fallbacks > 0 {
        headers.insert(headers::FALLBACK_ATTEMPTS, headers::number(fallbacks as u64));
    }
    headers
}

/// Adds the guardrail findings.
pub fn add_findings(settlement: &Settlement, headers: &mut HeaderMap) {
    let findings = &settlement.guardrail_findings;
    if !findings.is_empty() {
        headers.insert(headers::GUARDRAILS, headers::encoded(&findings_text(findings)));
    }
}

/// Adds the compression figures: the pipeline, tokens before and after, and milliseconds.
fn add_compression(settlement: &Settlement, headers: &mut HeaderMap) {
    let Some(figures) = settlement.compression() else { return };
    let CompressionFigures { name, tokens_before, tokens_after, micros, .. } = figures;
    let ms = *micros as f64 / 1e3;
    let text = format!("{name}; before={tokens_before}; after={tokens_after}; ms={ms:.2}");
    headers.insert(headers::COMPRESSION, headers::encoded(&text));
}

/// Adds the injected fault.
pub fn add_fault(settlement: &Settlement, headers: &mut HeaderMap) {
    if let Some(fault) = settlement.chaos() {
        headers.insert(headers::CHAOS, HeaderValue::from_static(fault.name()));
    }
}
