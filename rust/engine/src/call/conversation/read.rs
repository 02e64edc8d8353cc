//! Parses the body of a conversation and prepares it: guardrails check it, stored earlier turns are added, and the
//! operator's instructions and budgets are applied.

use crate::active_config::ActiveConfig;
use crate::call::account_objects::{self as objects, Stage};
use crate::call::choose::admit_model;
use crate::call::choose::endpoints;
use crate::call::guardrails;
use crate::control::{own_files, responses};
use crate::gate::defaults;
use crate::gate::request::Admission;
use crate::observe::settle::Settlement;
use crate::shared::Shared;
use bytes::Bytes;
use fairlead_context::{add_system_prompt, rewrite_thinking};
use fairlead_core::routes::Answer;
use fairlead_core::{Dialect, Error, ThinkingBudget};
use fairlead_dialect::openai::named;
use fairlead_dialect::openai::request::ChatRequest;
use fairlead_dialect::{account_objects, translate, UrlParams};
use std::sync::Arc;

/// A conversation as sent by its caller and as sent to providers.
#[derive(Debug)]
pub struct ReadConversation {
    /// The caller's body after guardrails.
    pub body: Bytes,
    /// The body with stored earlier turns and the operator's additions.
    pub sent: Bytes,
    /// The request that was parsed from `sent`.
    pub request: ChatRequest,
}

/// Parses a conversation. Returns `None` if the caller left.
pub async fn conversation(
    settlement: &mut Settlement,
    active: &ActiveConfig,
    body: &Bytes,
) -> Result<Option<ReadConversation>, Error> {
    let mut body = guardrails::admit(active, settlement, body)?;
    if let Some(streamed) = defaults::with_stream(&settlement.admission, &body) {
        body = streamed;
    }
    let own = request(&settlement.admission, &body)?;
    let own = admit_model(active, settlement, own)?;
    settlement.model = Some(own.model.clone());
    settlement.stream = own.stream;
    let before = match recall(active, settlement, &body, &own).await? {
        Recall::CallerLeft => return Ok(None),
        Recall::Nothing => None,
        Recall::Body(whole) => Some(whole),
    };
    let sent = with_settings(active, &settlement.admission, before.as_ref().unwrap_or(&body)).or(before);
    let Some(sent) = sent else { return Ok(Some(ReadConversation { sent: body.clone(), body, request: own })) };
    let request = again(&settlement.admission, &sent, own)?;
    Ok(Some(ReadConversation { body, sent, request }))
}

/// Parses the request of this caller's body.
pub fn request(admission: &Admission, body: &Bytes) -> Result<ChatRequest, Error> {
    if let Some(needs) = endpoints::needs(admission.route) {
        return named::read(body, needs).map(|(request, _)| request);
    }
    let url_params = UrlParams {
        model: &admission.tail,
        stream: admission.route.answer == Answer::StreamGenerate,
        is_list: admission.reads_list,
    };
    translate::read_at(admission.dialect, body, url_params)
}

/// Parses a body again that was changed since `before` was parsed.
pub fn again(admission: &Admission, body: &Bytes, before: ChatRequest) -> Result<ChatRequest, Error> {
    Ok(request(admission, body)?.continued_from(before))
}

/// Returns the body with the operator's instructions and budgets; `None` if nothing changes.
fn with_settings(active: &ActiveConfig, admission: &Admission, body: &Bytes) -> Option<Bytes> {
    let settings = &active.snapshot.context;
    if (settings.system_prompt.is_empty() && settings.thinking == ThinkingBudget::Passthrough)
        || endpoints::needs(admission.route).is_some()
    {
        return None;
    }
    let rewritten = rewrite_thinking(admission.dialect, body, settings.thinking).map(Bytes::from);
    let prompted = add_system_prompt(admission.dialect, rewritten.as_ref().unwrap_or(body), &settings.system_prompt);
    prompted.map(Bytes::from).or(rewritten)
}

/// The result of looking up the stored response that a request continues. The gateway stores it, not the provider.
#[derive(Debug)]
pub enum Recall {
    /// The request does not continue a response.
    Nothing,
    /// The whole conversation in the request's dialect.
    Body(Bytes),
    CallerLeft,
}

/// Returns the body with earlier turns and referenced files; `None` if it has neither. Refuses a body that names objects
/// in the provider's account which the caller may not use.
async fn whole(
    shared: &Shared,
    admission: &Admission,
    body: &Bytes,
    request: &ChatRequest,
) -> Result<Option<Bytes>, Error> {
    let sent = objects::searched(admission, body);
    let may_name = account_objects::may_have(sent);
    if may_name {
        objects::admit_at(admission, sent, Stage::Sent)?;
    }
    let recalled = responses::recall(shared, admission, body, request).await?;
    let whole = recalled.as_ref().unwrap_or(body);
    let stage = if admission.dialect == Dialect::OpenaiResponses { Stage::Recalled } else { Stage::Complete };
    let is_harmless = !may_name
        && recalled.as_ref().is_none_or(|whole| !account_objects::may_have(objects::searched(admission, whole)));
    // Other objects in the sent body were judged above; stored turns have those of the caller's own calls.
    if is_harmless || !account_objects::has_stored(objects::searched(admission, whole)) {
        return Ok(recalled);
    }
    let filled = own_files::fill(shared, admission, whole).await?;
    objects::admit_at(admission, objects::searched(admission, filled.as_ref().unwrap_or(whole)), stage)?;
    Ok(filled.or(recalled))
}

/// Adds the earlier turns and the referenced files to the request.
pub async fn recall(
    active: &ActiveConfig,
    settlement: &mut Settlement,
    body: &Bytes,
    request: &ChatRequest,
) -> Result<Recall, Error> {
    let (shared, exchange) = (Arc::clone(&settlement.shared), Arc::clone(&settlement.exchange));
    let recalled = tokio::select! {
        biased;
        () = exchange.gone() => return Ok(Recall::CallerLeft),
        recalled = whole(&shared, &settlement.admission, body, request) => recalled?,
    };
    match recalled {
        // The guardrails may have been less strict when it was stored.
        Some(recalled) => guardrails::admit(active, settlement, &recalled).map(Recall::Body),
        None => Ok(Recall::Nothing),
    }
}
