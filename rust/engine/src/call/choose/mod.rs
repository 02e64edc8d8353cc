//! The choose phase: determines the model, checks that the key may call it, and reserves capacity under all limits.
//!
//! [`endpoints`] is the table of passthrough calls, [`counting`] estimates units other than tokens, and [`rounds`] repeats
//! the targets of a combo.

pub(crate) mod counting;
pub(crate) mod endpoints;
pub(crate) mod rounds;

use crate::active_config::ActiveConfig;
use crate::call::choose::rounds::worth_waiting;
use crate::call::context::Call;
use crate::gate::limits;
use crate::observe::settle::Settlement;
use crate::route::choice::Choice;
use crate::route::model;
use crate::shared::GaugePermit;
use bytes::Bytes;
use fairlead_core::{policy, Error, ErrorKind};
use fairlead_dialect::openai::request::ChatRequest;
use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// Sets the model of the request. The key's forced model takes precedence over the header, and the header over the
/// body. The key must be allowed to call the resulting model.
pub fn admit_model(
    active: &ActiveConfig,
    settlement: &Settlement,
    mut request: ChatRequest,
) -> Result<ChatRequest, Error> {
    let key = settlement.admission.principal.key();
    let forced = key.and_then(|key| key.forced_model.as_ref());
    if let Some(model) = forced.or(settlement.admission.route_model.as_ref()) {
        request.model.clone_from(model);
    }
    // Rules, limits, prices, cached responses and records all use this name.
    if let Cow::Owned(name) = active.snapshot.name(&request.model)? {
        request.model = name;
    }
    request.model = model::admitted_name(active, key.map(AsRef::as_ref), request.model)?;
    Ok(request)
}

/// Checks the key's blocked names. A connection may have several prefixes, and a model that is blocked under one of
/// them is blocked under all. A combo has already excluded such targets.
pub fn admit_aliases(settlement: &Settlement, choice: &Choice) -> Result<(), Error> {
    let Some(key) = settlement.admission.principal.key().filter(|key| key.has_blocks() && choice.combo.is_none())
    else {
        return Ok(());
    };
    for prefix in choice.targets.iter().flat_map(|target| &target.connection.prefixes) {
        policy::admit_unblocked(key, &format!("{prefix}/{}", choice.upstream_model))?;
    }
    Ok(())
}

/// Chooses the targets of a call to an endpoint other than conversations, and reserves the most that it can cost. The
/// record shows how they were chosen.
pub fn choose_for_endpoint(
    active: &ActiveConfig,
    settlement: &mut Settlement,
    request: &ChatRequest,
    body: &[u8],
) -> Result<Choice, Error> {
    let shared = settlement.shared.clone();
    let mut choice = model::choose(&shared, active, &settlement.admission, &request.model, body)?;
    endpoints::narrow(settlement.admission.route, &mut choice)?;
    admit_aliases(settlement, &choice)?;
    limits::reserve(&shared, &active.snapshot, settlement, request, &mut choice)?;
    settlement.note_choice(&choice);
    Ok(choice)
}

/// Returns the targets of a conversation once one of them is available and the key may call all of them. Returns `None`
/// if the caller left.
pub async fn choose_targets(
    settlement: &Settlement,
    active: &ActiveConfig,
    name: &str,
    body: &Bytes,
) -> Result<Option<Choice>, Error> {
    let mut choice = model::choose(&settlement.shared, active, &settlement.admission, name, body);
    if let Some(fault) = choice.as_ref().err().filter(|fault| fault.kind == ErrorKind::UpstreamRateLimited).cloned() {
        // Boxed to keep the future of conversations with available targets small.
        choice = tokio::select! {
            biased;
            () = settlement.exchange.gone() => return Ok(None),
            waited = Box::pin(choose_in_time(settlement, name, body, fault)) => waited,
        };
    }
    let choice = choice?;
    admit_aliases(settlement, &choice)?;
    Ok(Some(choice))
}

/// Chooses targets for a request that found none at first. If all targets of a combo are in cooldown, this waits for
/// the first of them, for at most the time that the operator allows.
async fn choose_in_time(settlement: &Settlement, name: &str, body: &Bytes, mut fault: Error) -> Result<Choice, Error> {
    let shared = &settlement.shared;
    loop {
        let active = shared.active.load_full();
        let combo = active.combos.book.find(active.snapshot.alias(name).unwrap_or(name));
        let ready = combo.and_then(|at| active.combos.book.get(at));
        let cooldown_ms =
            fault.retry_after_s.filter(|_| fault.kind == ErrorKind::UpstreamRateLimited).map(|s| s * 1_000);
        let wait = ready.zip(cooldown_ms).and_then(|(ready, ms)| worth_waiting(&ready.rules, settlement.elapsed(), ms));
        let Some(wait) = wait else { return Err(fault) };
        drop(active);
        tokio::select! {
            biased;
            () = shared.drain.expired() => return Err(shared.drain.error()),
            () = tokio::time::sleep(wait) => {}
        }
        let active = shared.active.load_full();
        match model::choose(shared, &active, &settlement.admission, name, body) {
            Ok(choice) => return Ok(choice),
            Err(again) => fault = again,
        }
    }
}

/// Reserves capacity for a conversation whose targets are chosen.
pub fn reserve(call: &mut Call, active: &ActiveConfig, request: &ChatRequest) -> Result<(), Error> {
    let Call { settlement, choice, .. } = call;
    let shared = Arc::clone(&settlement.shared);
    limits::reserve_conversation(&shared, &active.snapshot, settlement, request, choice)?;
    settlement.note_choice(choice);
    endpoints::narrow(settlement.admission.route, choice)
}

impl Call {
    /// Reserves one of the open streams; an error if the gateway has reached its limit.
    pub fn open_stream(&mut self) -> Result<(), Error> {
        let shared = &self.settlement.shared;
        let permit = GaugePermit::for_stream(shared);
        if permit.is_err() {
            shared.counts.shed_total.fetch_add(1, Ordering::Relaxed);
        }
        self.stream_permit = Some(permit?);
        Ok(())
    }
}
