//! The stage between admission and translation in which a conversation is made shorter, where somebody asks for it. Who asks, in
//! this order: the caller's header, the key, the routing combo, the automatic threshold, the operator's default.

use crate::active_config::Live;
use crate::blocking;
use crate::call::context::Call;
use crate::call::endpoints;
use crate::call::translation::{self, caller_of};
use crate::clock;
use crate::context::plans::NamedPlan;
use crate::gate::headers;
use crate::observe::settle::{CompressionFigures, Settlement};
use bytes::Bytes;
use fairlead_context::{compress, Outcome, Session, Unchanged};
use fairlead_core::dialect::Dialect;
use fairlead_core::error::{Error, Kind};
use fairlead_dialect::count;
use fairlead_dialect::openai::request::ChatRequest;
use http::HeaderMap;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

/// A larger body is worked on where computing may block: a hundred kilobytes take some milliseconds.
const MOST_INLINE_BYTES: usize = 16 * 1024;
/// A larger one goes out as it is.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// The body and its request as they go to the provider. What fails leaves the caller's own.
pub async fn run(
    call: &mut Call,
    live: &Arc<Live>,
    body: Bytes,
    request: ChatRequest,
) -> Result<(Bytes, ChatRequest), Error> {
    let Some(named) = chosen(call, live, body.len())? else { return Ok((body, request)) };
    let dialect = caller_of(call.settlement.admission.route);
    let name = session_name(&call.settlement);
    let shared = call.shared();
    let now_ms = clock::monotonic_ms();
    let session = name.as_ref().and_then(|name| shared.frozen_sessions.find(name, now_ms));
    let began = Instant::now();
    let outcome = made(dialect, &body, &named, session).await;
    let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    let Some(outcome) = outcome else {
        note(&mut call.settlement, &named, None, micros);
        return Ok((body, request));
    };
    note(&mut call.settlement, &named, Some(&outcome), micros);
    let Outcome { body: written, session: next, .. } = outcome;
    if let Some(name) = name {
        shared.frozen_sessions.keep(name, next, now_ms);
    }
    let Ok(written) = written.map(Bytes::from) else { return Ok((body, request)) };
    match translation::read(&call.settlement.admission, &written) {
        Ok(read) => Ok((written, read.going_on_from(request))),
        Err(fault) => {
            // A defect of ours: the caller's request is served as it came.
            tracing::error!(reason = %fault.message, pipeline = %named.name, "a compressed body cannot be read");
            note(&mut call.settlement, &named, None, micros);
            Ok((body, request))
        }
    }
}

/// The pipeline for this call; `None`: nobody wants any.
fn chosen(call: &Call, live: &Live, bytes: usize) -> Result<Option<NamedPlan>, Error> {
    let admission = &call.settlement.admission;
    let settings = &live.snapshot.context.compression;
    if endpoints::needs(admission.route).is_some() || bytes > MOST_BYTES {
        return Ok(None);
    }
    let asked = admission.compression.as_deref().filter(|name| *name != "default");
    if let Some(asked) = asked {
        let found = live.plans.find(asked).ok_or_else(|| {
            let names = live.plans.names().join("`, `");
            let message = format!("`X-Gateway-Compression` must be `default`, or one of `{names}`.");
            Error::client(Kind::InvalidRequest, message).about("X-Gateway-Compression")
        })?;
        return Ok(Some(found).filter(|found| !found.plan.stages.is_empty()));
    }
    if admission.principal.key().is_some_and(|key| !key.compression_enabled) {
        return Ok(None);
    }
    let combo = call.choice.combo.as_ref().and_then(|combo| settings.assignments.get(&combo.name));
    let is_long = settings.automatic_tokens > 0 && count::bytes(bytes) as u64 >= settings.automatic_tokens;
    let automatic = is_long.then_some(&settings.automatic_mode);
    let name = combo.or(automatic).unwrap_or(&settings.mode);
    Ok(live.plans.find(name).filter(|found| !found.plan.stages.is_empty()))
}

/// Whose session it is, and its id.
fn session_name(settlement: &Settlement) -> Option<(String, String)> {
    let admission = &settlement.admission;
    let id = admission.session_tag.as_deref().or(admission.session_id.as_deref())?;
    let model = settlement.model.as_deref().unwrap_or_default();
    Some((admission.principal.to_header(), format!("{id}\n{model}")))
}

/// The body after the plan; `None` where there is too much else to compute.
async fn made(dialect: Dialect, body: &Bytes, named: &NamedPlan, session: Option<Arc<Session>>) -> Option<Outcome> {
    if body.len() <= MOST_INLINE_BYTES {
        return Some(compress(dialect, body, &named.plan, session.as_deref(), || 0));
    }
    let (body, plan) = (body.clone(), Arc::clone(&named.plan));
    let work = blocking::compute(move || compress(dialect, &body, &plan, session.as_deref(), || 0));
    match work.await {
        Ok(outcome) => Some(outcome),
        Err(reason) => {
            tracing::warn!(%reason, "a conversation was not made shorter");
            None
        }
    }
}

/// Notes in the record what was done, or that nothing could be.
fn note(settlement: &mut Settlement, named: &NamedPlan, outcome: Option<&Outcome>, micros: u64) {
    let mut figures = CompressionFigures { name: named.name.clone(), micros, ..CompressionFigures::default() };
    match outcome {
        None => figures.rejected.push_str("busy"),
        Some(Outcome { body, report, .. }) => {
            if matches!(body, Err(Unchanged::NotUnderstood)) {
                figures.rejected.push_str("not-understood");
            }
            figures.tokens_before = report.tokens_before;
            figures.tokens_after = report.tokens_after;
            let mut counts: BTreeMap<String, usize> = BTreeMap::new();
            for stage in &report.stages {
                if stage.is_downgraded {
                    counts.insert(format!("{}:cache-mark", stage.engine), 1);
                }
                for rejection in &stage.rejected {
                    *counts.entry(format!("{}:{}", stage.engine, rejection.name())).or_default() += 1;
                }
            }
            for (what, count) in counts {
                let separator = if figures.rejected.is_empty() { "" } else { "," };
                // Writing into a text cannot fail.
                let _written = write!(figures.rejected, "{separator}{what}={count}");
            }
        }
    }
    settlement.set_compression(figures);
}

/// Says in the head of an answer what was done: the pipeline, tokens before and after, milliseconds.
pub fn add_header(settlement: &Settlement, out: &mut HeaderMap) {
    let Some(figures) = settlement.compression() else { return };
    let CompressionFigures { name, tokens_before, tokens_after, micros, .. } = figures;
    let ms = *micros as f64 / 1e3;
    let text = format!("{name}; before={tokens_before}; after={tokens_after}; ms={ms:.2}");
    out.insert(headers::COMPRESSION, headers::encoded(&text));
}
