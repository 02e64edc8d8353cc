//! Compresses a conversation between admission and translation, if a pipeline is selected. In order of precedence the
//! selection comes from the caller's header, the key, the combo, the automatic threshold and the operator's default.

use crate::active_config::ActiveConfig;
use crate::blocking;
use crate::call::choose::endpoints;
use crate::call::context::Call;
use crate::call::conversation::read;
use crate::clock;
use crate::context::plans::NamedPlan;
use crate::observe::settle::{CompressionFigures, Settlement};
use crate::route::conversation::Prompt;
use bytes::Bytes;
use fairlead_context::{compress, Mode, Outcome, Plan, Session, Unchanged};
use fairlead_core::{Dialect, Error, ErrorKind};
use fairlead_dialect::counted_bytes;
use fairlead_dialect::openai::request::ChatRequest;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

/// Larger bodies are processed on a blocking thread: a hundred kilobytes take some milliseconds.
const MOST_INLINE_BYTES: usize = 16 * 1024;
/// Larger bodies are not compressed.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// Returns the body and the request to send to the provider. If compression fails, they are the caller's own.
pub async fn run(
    call: &mut Call,
    active: &Arc<ActiveConfig>,
    body: Bytes,
    request: ChatRequest,
) -> Result<(Bytes, ChatRequest), Error> {
    let Some(named) = chosen(call, active, body.len())? else { return Ok((body, request)) };
    let dialect = call.settlement.admission.dialect;
    let name = session_name(&call.settlement, &named, &body);
    let shared = call.shared();
    let now_ms = clock::monotonic_ms();
    let session = name.as_ref().and_then(|name| shared.frozen_sessions.find(name, now_ms));
    let began = Instant::now();
    let keeper = named.plan.keeps_raw.then(|| keeper(&call.settlement)).flatten();
    let named = if keeper.is_none() { without_raw(named) } else { named };
    let outcome = made(dialect, &body, &named, session).await;
    let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    let Some(outcome) = outcome else {
        note(&mut call.settlement, &named, None, micros);
        return Ok((body, request));
    };
    note(&mut call.settlement, &named, Some(&outcome), micros);
    let Outcome { body: written, session: next, raw_outputs, .. } = outcome;
    if let Some(owner) = keeper {
        shared.raw_outputs.keep(owner, raw_outputs, active.snapshot.context.compression.raw_outputs);
    }
    if let Some(name) = name {
        shared.frozen_sessions.keep(name, next, now_ms);
    }
    let Ok(written) = written.map(Bytes::from) else { return Ok((body, request)) };
    match read::request(&call.settlement.admission, &written) {
        Ok(shorter) => Ok((written, shorter.continued_from(request))),
        Err(fault) => {
            // This is a defect of ours, so the caller's request is sent unchanged.
            tracing::error!(reason = %fault.message, pipeline = %named.name, "a compressed body cannot be read");
            note(&mut call.settlement, &named, None, micros);
            Ok((body, request))
        }
    }
}

/// The settings that select a pipeline for a call.
#[derive(Debug, Clone, Copy)]
pub struct PipelineChoice<'a> {
    /// The caller's header.
    pub header: Option<&'a str>,
    pub key_allows: bool,
    /// The combo's setting.
    pub combo: Option<&'a str>,
    pub bytes: usize,
}

impl PipelineChoice<'_> {
    /// Returns the pipeline for this call, or `None` if none is selected. This runs for every call, so it does not
    /// allocate in that case.
    pub fn plan(self, active: &ActiveConfig) -> Result<Option<NamedPlan>, Error> {
        let settings = &active.snapshot.context.compression;
        if let Some(header) = self.header.filter(|name| *name != "default") {
            let found = active.plans.find(header).ok_or_else(|| {
                let names = active.plans.names().join("`, `");
                let message = format!("`X-Gateway-Compression` must be `default`, or one of `{names}`.");
                Error::client(ErrorKind::InvalidRequest, message).about("X-Gateway-Compression")
            })?;
            return Ok(Some(found).filter(|found| !found.plan.stages.is_empty()));
        }
        if !self.key_allows {
            return Ok(None);
        }
        let combo = self.combo.and_then(|combo| settings.assignments.get(combo));
        let is_long = settings.automatic_tokens > 0 && counted_bytes(self.bytes) as u64 >= settings.automatic_tokens;
        let automatic = is_long.then_some(&settings.automatic_mode);
        let name = combo.or(automatic).unwrap_or(&settings.mode);
        if name.is_empty() || name == Mode::Off.name() {
            return Ok(None);
        }
        Ok(active.plans.find(name).filter(|found| !found.plan.stages.is_empty()))
    }
}

/// Returns the pipeline for this call; `None` if none is selected or the call is not a conversation.
fn chosen(call: &Call, active: &ActiveConfig, bytes: usize) -> Result<Option<NamedPlan>, Error> {
    let admission = &call.settlement.admission;
    if endpoints::needs(admission.route).is_some() || bytes > MOST_BYTES {
        return Ok(None);
    }
    let choice = PipelineChoice {
        header: admission.compression.as_deref(),
        key_allows: admission.principal.key().is_none_or(|key| key.compression_enabled),
        combo: call.choice.combo.as_ref().map(|combo| combo.name.as_str()),
        bytes,
    };
    choice.plan(active)
}

/// Returns the owner and the id of the session. Without a session id, an engine whose output for the same text may
/// change between turns needs a stable identity, because providers cache prompts. The conversation's beginning serves
/// as its identity then.
fn session_name(settlement: &Settlement, named: &NamedPlan, body: &[u8]) -> Option<(String, String)> {
    let admission = &settlement.admission;
    let model = settlement.model.as_deref().unwrap_or_default();
    let id = admission.session_tag.as_deref().or(admission.session_id.as_deref());
    let id = match id {
        Some(id) => format!("{id}\n{model}"),
        None if named.plan.is_stable() => return None,
        None => format!("\n{}", Prompt::new(admission, body).conversation_with(model)?),
    };
    Some((admission.principal.to_header(), id))
}

/// The key for which raw outputs are stored. Without a key nobody could read them, and nothing is stored for a key
/// without a log.
fn keeper(settlement: &Settlement) -> Option<String> {
    let key = settlement.admission.principal.key()?;
    (!key.no_log).then(|| key.id.clone())
}

/// Returns a pipeline that does not refer to stored outputs.
fn without_raw(named: NamedPlan) -> NamedPlan {
    if !named.plan.keeps_raw {
        return named;
    }
    let plan = Plan { keeps_raw: false, ..(*named.plan).clone() };
    NamedPlan { plan: Arc::new(plan), ..named }
}

/// Runs the plan; `None` if the server is too busy to compute it.
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

/// Records the result of the compression, or that it failed.
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
                // Writing to a string cannot fail.
                let _written = write!(figures.rejected, "{separator}{what}={count}");
            }
        }
    }
    settlement.set_compression(figures);
}
