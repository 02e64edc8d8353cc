//! Commands that control sends to this worker over the link, and their reports. A command arrives in the response to a
//! poll. Its report is sent with the next poll, and repeated until a poll succeeds.

use crate::blocking;
use crate::call::conversation::reasoning;
use crate::call::conversation::simulate;
use crate::call::idempotency::recording;
use crate::control::lease_candidates;
use crate::control::reports::Report;
use crate::peers::shared_answers;
use crate::shared::Shared;
use fairlead_cache::{Cache, EntryFilter, EntrySummary};
use fairlead_core::hex;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{json, Value};
use std::sync::Arc;
use std::time::Duration;

/// How long to wait for earlier disk operations.
const DISK_DEADLINE: Duration = Duration::from_secs(3);
const MAX_LISTED: usize = 20_000;

/// One command.
#[derive(Debug, Deserialize)]
pub struct Command<'a> {
    id: u64,
    kind: String,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

/// Runs the commands in order.
pub async fn carry_out(shared: &Shared, commands: Vec<Command<'_>>) {
    for command in commands {
        let args = command.args.map_or("{}", RawValue::get).to_owned();
        let cache = Arc::clone(&shared.cache.store);
        let is_stats = command.kind == "cache.stats";
        if command.kind == "cache.clear" {
            shared.forget_for_repeats();
        }
        let at_once = match command.kind.as_str() {
            "combos.simulate" => Some(simulate::command(shared, &args)),
            "leases.candidates" => Some(lease_candidates::command(shared, &args)),
            "reasoning.list" => Some(reasoning::list(shared, &args)),
            "reasoning.delete" => Some(reasoning::forget(shared, &args).await),
            _ => None,
        };
        if let Some(done) = at_once {
            let (result, error) = match done {
                Ok(result) => (Some(result), None),
                Err(fault) => (None, Some(fault)),
            };
            shared.commands.push(Report { id: command.id, result, error });
            continue;
        }
        let forgets = forgotten_by(&command.kind, &args);
        // The shared store is evicted before this worker's own cache, as `shared_answers::evict` requires.
        let shared_ones = match &forgets {
            Some(filter) => shared_answers::evict(shared, filter).await,
            None => Ok(0),
        };
        let done = blocking::disk(move || of_cache(&cache, &command.kind, &args)).await;
        let notice = match &forgets {
            Some(filter) => shared_answers::broadcast_eviction(shared, filter).await,
            None => Ok(()),
        };
        let (result, error) = match (done, notice.and(shared_ones)) {
            (Ok(Ok(mut result)), Ok(count)) => {
                if forgets.is_some() {
                    result["shared"] = count.into();
                }
                if is_stats {
                    result["idempotency_keys"] = shared.idempotency.len().into();
                    result["idempotency_window_ms"] = recording::WINDOW_MS.into();
                }
                (Some(result), None)
            }
            (Ok(Err(fault)), _) | (Ok(Ok(_)), Err(fault)) => (None, Some(fault)),
            (Err(_), _) => (None, Some("the command was not carried out")),
        };
        shared.commands.push(Report { id: command.id, result, error });
    }
}

/// The cached responses that a command evicts. The command itself reports arguments that cannot be parsed.
fn forgotten_by(kind: &str, args: &str) -> Option<EntryFilter> {
    match kind {
        "cache.clear" => Some(EntryFilter::default()),
        "cache.delete" => serde_json::from_str::<Listing>(args).ok().map(|listing| listing.filter),
        _ => None,
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Listing {
    filter: EntryFilter,
    limit: usize,
}

fn of_cache(cache: &Cache, kind: &str, args: &str) -> Result<Value, &'static str> {
    let Ok(Listing { filter, limit }) = serde_json::from_str(args) else { return Err("the arguments cannot be read") };
    // Afterwards the entries from before a restart are known.
    if !cache.sync(DISK_DEADLINE) {
        return Err("the cache's disk does not answer");
    }
    let removed = match kind {
        "cache.stats" => return serde_json::to_value(cache.stats()).map_err(|_| "the counts cannot be sent"),
        "cache.list" => {
            let entries = cache.list(&filter);
            let shown: Vec<Value> = entries.iter().take(limit.min(MAX_LISTED)).map(show).collect();
            return Ok(json!({"total": entries.len(), "entries": shown}));
        }
        "cache.clear" => cache.clear(),
        "cache.delete" => cache.forget(&filter),
        _ => return Err("the command is not known"),
    };
    // Ensures that the removed entries do not reappear after a restart.
    if cache.sync(DISK_DEADLINE) {
        Ok(json!({"removed": removed}))
    } else {
        Err("the cache's disk does not answer")
    }
}

fn show(entry: &EntrySummary) -> Value {
    let meta = &entry.meta;
    json!({
        "signature": hex(&meta.key), "key_id": meta.key_id, "route": meta.route, "model": meta.model,
        "provider": meta.provider, "upstream_model": meta.upstream_model, "stream": meta.delivery != fairlead_cache::Delivery::Plain,
        "tokens": meta.tokens_input.saturating_add(meta.tokens_output), "cost_picos": meta.cost_picos,
        "created_ms": meta.created_ms, "expires_ms": meta.expires_ms, "hits": entry.hits,
        "in_memory": entry.in_memory, "on_disk": entry.on_disk, "bytes": entry.body_bytes,
    })
}
