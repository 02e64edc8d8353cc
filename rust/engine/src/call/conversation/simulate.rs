//! A decision without a call: the targets that a combo would choose for a request, each with its rank or the reason for
//! its exclusion. It uses the same code as real calls, with a copy of the combo's state.

use crate::active_config::ActiveConfig;
use crate::call::conversation::combo_body;
use crate::call::conversation::translation::Translation;
use crate::route::choice::Choice;
use crate::route::combos::Verdict;
use crate::route::model::{self, Subject};
use crate::route::permission;
use crate::shared::Shared;
use bytes::Bytes;
use fairlead_core::strategy::{Availability, Facts, Ready};
use fairlead_core::{Dialect, Error, Key};
use fairlead_dialect::translate;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{json, Value};
use smallvec::SmallVec;
use std::sync::Arc;

/// A hypothetical request.
#[derive(Deserialize)]
struct Question<'a> {
    /// A combo or an alias of one.
    model: String,
    /// The key of the hypothetical caller.
    #[serde(default)]
    key_id: Option<String>,
    /// A chat completion.
    #[serde(borrow)]
    body: &'a RawValue,
}

/// Runs the command. A result with `fault` says why the request would be refused before any target is considered.
pub fn command(shared: &Shared, args: &str) -> Result<Value, &'static str> {
    let Ok(question) = serde_json::from_str::<Question<'_>>(args) else { return Err("the arguments cannot be read") };
    let active = shared.active.load_full();
    let key = match &question.key_id {
        None => None,
        Some(id) => match active.snapshot.key_of(id) {
            Some(key) => Some(Arc::clone(key)),
            None => return Ok(json!({"fault": "There is no active API key with this id.", "param": "apiKeyId"})),
        },
    };
    Ok(simulate(&active, &question, key.as_deref())
        .unwrap_or_else(|fault| json!({"fault": fault.message, "param": fault.param, "kind": fault.kind.code()})))
}

fn simulate(active: &ActiveConfig, question: &Question<'_>, key: Option<&Key>) -> Result<Value, Error> {
    if let Some(key) = key {
        permission::admit(active, key, &question.model)?;
    }
    let name = active.snapshot.alias(&question.model).unwrap_or(&question.model);
    let found = active.combos.book.find(name).and_then(|at| Some((at, active.combos.book.get(at)?)));
    let Some((at, ready)) = found else { return Err(model::no_combo(name)) };
    let body = Bytes::copy_from_slice(question.body.get().as_bytes());
    let caller = key.map_or("local", |key| &key.id);
    let demand = model::demand(active, Subject { caller, last_target: None }, &body);
    active.combos.admit_size(at, &demand)?;
    let (system, tools) = (ready.rules.system_message.as_deref(), ready.tools.as_ref());
    let body = combo_body::shaped(Dialect::Openai, &body, system, tools)?.unwrap_or(body);
    let verdicts = active.combos.try_out(active.reach(), at, &demand, key);
    let mut order = 0;
    let targets: Vec<Value> = verdicts
        .iter()
        .map(|verdict| {
            let reason = verdict.reason.clone().or_else(|| unsayable(active, verdict, &body));
            order += usize::from(reason.is_none());
            show(verdict, reason.is_none().then_some(order), reason.as_deref())
        })
        .collect();
    Ok(json!({
        "combo": ready.name, "strategy": ready.strategy.name(), "why": why(ready), "input_tokens": demand.input_tokens,
        "targets": targets,
    }))
}

/// The reason why the request cannot be translated for a target.
fn unsayable(active: &ActiveConfig, verdict: &Verdict, body: &Bytes) -> Option<String> {
    let upstream_model = upstream_model(verdict).to_owned();
    let mut alone = Choice {
        targets: SmallVec::from_iter([Arc::clone(&verdict.target)]),
        upstream_model,
        model: verdict.candidate.name.to_string(),
        ..Choice::default()
    };
    let translated = translate::read(Dialect::Openai, body)
        .and_then(|parsed| Translation::prepare(Dialect::Openai, body, &parsed, &mut alone, &active.snapshot));
    translated.err().map(|fault| format!("the request cannot be said to it: {}", fault.message))
}

fn upstream_model(verdict: &Verdict) -> &str {
    match &verdict.candidate.to {
        fairlead_core::strategy::To::Connection { model, .. } => model,
        fairlead_core::strategy::To::Combo(_) => "",
    }
}

fn show(verdict: &Verdict, order: Option<usize>, reason: Option<&str>) -> Value {
    let Facts {
        availability,
        cooldown_ms,
        weight,
        in_flight,
        used,
        latency_ms,
        success_rate,
        price_input,
        price_output,
        ..
    } = verdict.facts;
    let connection = &verdict.target.connection;
    json!({
        "model": &*verdict.candidate.name, "upstream_model": upstream_model(verdict),
        "provider": verdict.target.provider_name(), "connection_id": connection.id, "connection": connection.name,
        "step": verdict.step, "order": order, "eligible": order.is_some(), "reason": reason, "score": verdict.score,
        "availability": match availability {
            Availability::Able => "able",
            Availability::Probing => "probing",
            Availability::Cooling => "cooling",
            Availability::Closed => "closed",
        },
        "cooldown_ms": Some(cooldown_ms).filter(|ms| *ms > 0 && *ms < u64::MAX / 2), "weight": weight, "in_flight": in_flight,
        "used": used, "latency_ms": latency_ms, "success_rate": success_rate, "price_input": price_input,
        "price_output": price_output, "context_window": verdict.facts.context_window,
        "headroom": verdict.facts.headroom(),
    })
}

/// The strategy's rule in a sentence.
fn why(ready: &Ready) -> &'static str {
    use fairlead_core::strategy::Strategy as S;
    match ready.strategy {
        S::Priority => "in the order of the list",
        S::FillFirst => "in the order of the list, those that are full last",
        S::Weighted => "by chance, in proportion to the weights",
        S::RoundRobin => "each in turn",
        S::P2c => "the less loaded of two that chance picked",
        S::Random => "by chance",
        S::StrictRandom => "by chance, each once before any comes again",
        S::LeastUsed => "the fewest requests open first",
        S::CostOptimized => "the least that this request would cost first",
        S::ContextOptimized => "the largest context window first",
        S::CacheOptimized => "by how the request begins",
        S::Headroom => "the most quota left first",
        S::ResetAware => "the quota that is lost soonest first",
        S::ResetWindow => "the soonest reset first",
        S::Lkgp => "the last that served first",
        S::ContextRelay => {
            "in the order of the list, those whose quota is nearly used last; a session that moves takes a note along"
        }
        S::Fusion => "all at once, and a judge",
        S::Pipeline => "one after another, each on what the one before said",
        S::Auto => "the highest score first",
    }
}
