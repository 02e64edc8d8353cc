//! `GET /v1/combos` and `GET /v1/auto-combo/{channel}/candidates`: the models behind a combo or channel that the caller
//! may see. Connections, weights and keys are not exposed; they belong to the operator.

use crate::exchange::{Exchange, Head};
use crate::gate::answer::{self, base_headers};
use crate::gate::request::Admission;
use crate::route::combos::Verdict;
use crate::route::model::{self, Subject};
use crate::route::permission;
use crate::shared::Shared;
use bytes::Bytes;
use fairlead_core::routes::Answer;
use fairlead_core::strategy::{Availability, Combo, What};
use fairlead_core::{policy, Error, ErrorKind, Key};
use http::header::{self, HeaderValue};
use http::StatusCode;
use serde_json::{json, Value};

/// Handles requests for the list and for a channel's candidates.
pub fn answer(shared: &Shared, exchange: &Exchange, admission: &Admission) {
    let key = admission.principal.key().map(AsRef::as_ref);
    let answered_as = match admission.route.answer {
        Answer::Combos => Ok(combos(shared, key)),
        _ => candidates(shared, key, &admission.tail),
    };
    match answered_as {
        Ok(body) => {
            shared.metrics.answered(admission.route.endpoint, 200);
            let mut headers = base_headers(shared, &admission.request_id);
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
            exchange.answer(Head { status: StatusCode::OK, headers }, Bytes::from(body.to_string()));
        }
        Err(fault) => {
            shared.metrics.answered(admission.route.endpoint, fault.kind.status());
            answer::refuse(shared, exchange, admission.route.surface, &admission.request_id, &fault);
        }
    }
}

/// The operator's combos that the caller may call, in list order.
fn combos(shared: &Shared, key: Option<&Key>) -> Value {
    let active = shared.active.load();
    let may_call = |combo: &&Combo| key.is_none_or(|key| policy::admit_combo(key, &combo.name, false).is_ok());
    let data: Vec<Value> = active.snapshot.combos.iter().filter(may_call).map(entry).collect();
    json!({ "object": "list", "data": data })
}

fn entry(combo: &Combo) -> Value {
    let models: Vec<&str> = combo
        .steps
        .iter()
        .map(|step| match &step.what {
            What::Model { model, .. } => model.as_str(),
            What::ComboRef { combo } => combo.as_str(),
        })
        .collect();
    json!({
        "id": combo.name, "object": "combo", "owned_by": "combo", "strategy": combo.strategy.name(), "models": models,
        "context_length": combo.rules.context_length,
    })
}

/// The models that a channel of `auto` would try for a short request now, best first, followed by the excluded models
/// with their reasons.
fn candidates(shared: &Shared, key: Option<&Key>, channel: &str) -> Result<Value, Error> {
    let name = if channel == "auto" { "auto".to_owned() } else { format!("auto/{channel}") };
    let active = shared.active.load_full();
    if let Some(key) = key {
        permission::admit(&active, key, &name)?;
    }
    let found = active.combos.book.find(&name).and_then(|at| Some((at, active.combos.book.get(at)?)));
    let Some((at, ready)) = found.filter(|(_, ready)| ready.is_auto) else {
        let message = format!("There is no channel `{name}`; `GET /v1/models` lists those that lead to a model.");
        return Err(Error::client(ErrorKind::ModelNotFound, message).about("channel"));
    };
    let caller = key.map_or("", |key| &key.id);
    let demand = model::demand(&active, Subject { caller, last_target: None }, b"");
    let mut data: Vec<Value> = Vec::new();
    let mut reachable = 0;
    for verdict in active.combos.try_out(active.reach(), at, &demand, key) {
        if key.is_some_and(|key| !policy::sees_model(key, &verdict.candidate.name)) {
            continue;
        }
        reachable += usize::from(verdict.reason.is_none());
        data.push(candidate(&verdict, verdict.reason.is_none().then_some(reachable)));
    }
    Ok(json!({
        "object": "list", "channel": ready.name, "strategy": ready.strategy.name(), "reachable": reachable, "data": data,
    }))
}

fn candidate(verdict: &Verdict, order: Option<usize>) -> Value {
    let facts = &verdict.facts;
    json!({
        "object": "candidate", "model": &*verdict.candidate.name, "provider": verdict.target.provider_name(),
        "reachable": order.is_some(), "order": order, "reason": verdict.reason, "score": verdict.score,
        "availability": match facts.availability {
            Availability::Able => "able",
            Availability::Probing => "probing",
            Availability::Cooling => "cooling",
            Availability::Closed => "closed",
        },
        "context_window": facts.context_window, "latency_ms": facts.latency_ms, "success_rate": facts.success_rate,
        "price_input": facts.price_input, "price_output": facts.price_output,
    })
}
