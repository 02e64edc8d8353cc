//! Thoughts of models before they called tools: heard in answers of connections that want them back, for the requests that go to
//! them ([`crate::call::translation`] puts them in). See `fairlead_cache::reasoning`.

use crate::clock;
use crate::gate::request::Admission;
use crate::observe::settle::Settlement;
use crate::peers::thoughts::{self, SharedThought};
use crate::shared::Shared;
use crate::upstream::target::Target;
use fairlead_cache::reasoning::{Now, Origin, ThoughtFilter, MAX_TEXT_BYTES};
use fairlead_core::Dialect;
use fairlead_dialect::openai::reasoning::{of_answer, Listener, Thought};
use serde::Deserialize;
use serde_json::{json, Value};

/// The most entries in one listing.
const MAX_LISTED: usize = 20_000;

/// Whether this connection refuses calls of tools without the thoughts before them.
pub fn is_wanted(target: &Target) -> bool {
    target.connection.replays_reasoning && target.connection.dialect == Dialect::Openai
}

/// The thoughts in a whole answer of the provider's.
pub fn thought_of_answer(target: &Target, body: &[u8]) -> Option<Thought> {
    if is_wanted(target) {
        of_answer(body)
    } else {
        None
    }
}

/// Listens to a stream of this connection.
pub fn listen(target: &Target) -> Option<Listener> {
    is_wanted(target).then(Listener::default)
}

/// Keeps what was thought in an answer that its caller is told.
pub fn keep(settlement: &Settlement, target: &Target, thought: Option<Thought>) {
    let Some(thought) = thought else { return };
    let principal = owner(&settlement.admission);
    let provider = target.connection.provider.as_str();
    let model = settlement.model.as_deref().unwrap_or_default();
    let origin = Origin { principal: &principal, provider, model, is_elsewhere: false };
    settlement.shared.reasoning.keep(origin, &thought.call_ids, &thought.text, now());
    // Of a key that is not logged nothing leaves its worker.
    let is_private = settlement.admission.principal.key().is_some_and(|key| key.no_log);
    if settlement.shared.peers.is_some() && !is_private && thought.text.len() <= MAX_TEXT_BYTES {
        let (provider, model) = (provider.to_owned(), model.to_owned());
        let Thought { call_ids, text } = thought;
        thoughts::publish_thought(&settlement.shared, &SharedThought { principal, provider, model, call_ids, text });
    }
}

/// What control says with its commands about thoughts.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Listing {
    filter: ThoughtFilter,
    limit: usize,
}

impl Listing {
    fn read(args: &str) -> Result<Self, &'static str> {
        serde_json::from_str(args).map_err(|_| "the arguments cannot be read")
    }
}

/// The command `reasoning.list` of control. The errors are for people.
pub fn list(shared: &Shared, args: &str) -> Result<Value, &'static str> {
    let Listing { filter, limit } = Listing::read(args)?;
    let entries = shared.reasoning.list(&filter, now());
    let shown = &entries[..limit.min(MAX_LISTED).min(entries.len())];
    Ok(json!({"stats": shared.reasoning.stats(now()), "total": entries.len(), "entries": shown}))
}

/// The command `reasoning.delete` of control: here, and at the other workers of the store.
pub async fn forget(shared: &Shared, args: &str) -> Result<Value, &'static str> {
    let filter = Listing::read(args)?.filter;
    let removed = shared.reasoning.forget(&filter);
    thoughts::forget_elsewhere(shared, filter).await?;
    Ok(json!({"removed": removed}))
}

/// Whose thoughts they are.
pub fn owner(admission: &Admission) -> String {
    let id = admission.principal.key().map_or("", |key| key.id.as_str());
    format!("{}:{id}", admission.principal.kind())
}

pub fn now() -> Now {
    Now { monotonic_ms: clock::monotonic_ms(), unix_ms: clock::unix_ms() }
}
