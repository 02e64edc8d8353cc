//! Stores reasoning that models return before tool calls, for connections that require it in later requests
//! ([`crate::call::conversation::translation`] adds it to them). See `fairlead_cache::reasoning`.

use crate::clock;
use crate::gate::request::Admission;
use crate::observe::settle::Settlement;
use crate::peers::reasoning::{self, SharedReasoning};
use crate::shared::Shared;
use crate::upstream::target::Target;
use fairlead_cache::reasoning::{Now, Origin, ReasoningFilter, MAX_TEXT_BYTES};
use fairlead_core::Dialect;
use fairlead_dialect::openai::reasoning::{of_answer, Reasoning, ReasoningCollector};
use serde::Deserialize;
use serde_json::{json, Value};

/// The maximum number of entries in one listing.
const MAX_LISTED: usize = 20_000;

/// Whether this connection rejects tool calls in a conversation without the reasoning that preceded them.
pub fn is_wanted(target: &Target) -> bool {
    target.connection.replays_reasoning && target.connection.dialect == Dialect::Openai
}

/// Extracts the reasoning from a provider's complete response.
pub fn reasoning_of_answer(target: &Target, body: &[u8]) -> Option<Reasoning> {
    if is_wanted(target) {
        of_answer(body)
    } else {
        None
    }
}

/// Starts to collect reasoning from a stream of this connection.
pub fn listen(target: &Target) -> Option<ReasoningCollector> {
    is_wanted(target).then(ReasoningCollector::default)
}

/// Stores the reasoning of a response that is sent to the caller.
pub fn keep(settlement: &Settlement, target: &Target, reasoning: Option<Reasoning>) {
    let Some(reasoning) = reasoning else { return };
    let principal = owner(&settlement.admission);
    let provider = target.connection.provider.as_str();
    let model = settlement.model.as_deref().unwrap_or_default();
    let origin = Origin { principal: &principal, provider, model, is_elsewhere: false };
    settlement.shared.reasoning.keep(origin, &reasoning.call_ids, &reasoning.text, now());
    // The reasoning of a key without a log does not leave its worker.
    let is_private = settlement.admission.principal.key().is_some_and(|key| key.no_log);
    if settlement.shared.peers.is_some() && !is_private && reasoning.text.len() <= MAX_TEXT_BYTES {
        let (provider, model) = (provider.to_owned(), model.to_owned());
        let Reasoning { call_ids, text } = reasoning;
        reasoning::publish_reasoning(
            &settlement.shared,
            &SharedReasoning { principal, provider, model, call_ids, text },
        );
    }
}

/// The arguments of control's commands about reasoning.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Listing {
    filter: ReasoningFilter,
    limit: usize,
}

impl Listing {
    fn read(args: &str) -> Result<Self, &'static str> {
        serde_json::from_str(args).map_err(|_| "the arguments cannot be read")
    }
}

/// Runs control's command `reasoning.list`. Errors are for people.
pub fn list(shared: &Shared, args: &str) -> Result<Value, &'static str> {
    let Listing { filter, limit } = Listing::read(args)?;
    let entries = shared.reasoning.list(&filter, now());
    let shown = &entries[..limit.min(MAX_LISTED).min(entries.len())];
    Ok(json!({"stats": shared.reasoning.stats(now()), "total": entries.len(), "entries": shown}))
}

/// Runs control's command `reasoning.delete`, here and at the other workers of the store.
pub async fn forget(shared: &Shared, args: &str) -> Result<Value, &'static str> {
    let filter = Listing::read(args)?.filter;
    let removed = shared.reasoning.forget(&filter);
    reasoning::forget_in_other_workers(shared, filter).await?;
    Ok(json!({"removed": removed}))
}

/// The owner of stored reasoning.
pub fn owner(admission: &Admission) -> String {
    let id = admission.principal.key().map_or("", |key| key.id.as_str());
    format!("{}:{id}", admission.principal.kind())
}

pub fn now() -> Now {
    Now { monotonic_ms: clock::monotonic_ms(), unix_ms: clock::unix_ms() }
}
