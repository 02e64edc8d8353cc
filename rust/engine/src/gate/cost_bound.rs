//! Upper bounds of the cost of a call before it is made.

use crate::observe::settle::Settlement;
use crate::route::choice::Choice;
use fairlead_core::strategy::Strategy;
use fairlead_core::{Amounts, ServiceMode, ServiceTier, Snapshot, Usage};
use fairlead_dialect::openai::request::ChatRequest;

/// The assumed output if neither the caller nor the catalogue limits it.
const ASSUMED_OUTPUT_TOKENS: u64 = 4_096;
/// Common tokenizers produce at most one token for three bytes of ordinary text.
const BYTES_PER_TOKEN: u64 = 3;

/// Returns an upper bound of the request's cost, whichever targets serve it.
pub(super) fn most_of_choice(
    snapshot: &Snapshot,
    request: &ChatRequest,
    settlement: &Settlement,
    choice: &Choice,
) -> Amounts {
    let of = |at| most(snapshot, request, choice.model(at), settlement);
    let dearest = (0..choice.targets.len()).map(of).reduce(Amounts::max).unwrap_or_default();
    match &choice.combo {
        // A fusion calls every member, each model once, and then its judge.
        Some(combo) if combo.strategy == Strategy::Fusion => {
            let is_first = |at: &usize| (0..*at).all(|before| choice.model(before) != choice.model(*at));
            (0..choice.targets.len()).filter(is_first).map(of).fold(dearest, Amounts::plus)
        }
        // A pipeline makes one call for each step.
        Some(combo) if combo.strategy == Strategy::Pipeline => (0..combo.prompts.len())
            .map(|step| {
                let indices =
                    (0..choice.targets.len()).filter(|&at| choice.leg(at).is_some_and(|leg| leg.step == step));
                indices.map(of).reduce(Amounts::max).unwrap_or_default()
            })
            .fold(Amounts::default(), Amounts::plus),
        // The handoff note summarizes the conversation that is sent.
        Some(combo) if combo.is_moving() => {
            let writer = combo.params.handoff_model.as_deref().unwrap_or(choice.model(0));
            dearest.plus(most(snapshot, request, writer, settlement))
        }
        _ => dearest,
    }
}

/// Returns the assumed length of the response in tokens, if the caller does not limit it. Returns `None` if it does, or
/// if one request has several responses or several calls.
pub(super) fn assumed_output(snapshot: &Snapshot, request: &ChatRequest, choice: &Choice) -> Option<u64> {
    let calls_several = |strategy| matches!(strategy, Strategy::Fusion | Strategy::Pipeline);
    let is_one_call = choice.combo.as_ref().is_none_or(|combo| !calls_several(combo.strategy) && !combo.is_moving());
    if !is_one_call || request.max_output_tokens.is_some() || request.choices > 1 {
        return None;
    }
    let of = |at| {
        let model = snapshot.model(choice.model(at));
        model.and_then(|model| model.max_output_tokens).unwrap_or(ASSUMED_OUTPUT_TOKENS)
    };
    (0..choice.targets.len()).map(of).max()
}

/// Returns an upper bound of the request's cost at one target.
pub(super) fn most(snapshot: &Snapshot, request: &ChatRequest, name: &str, settlement: &Settlement) -> Amounts {
    let model = snapshot.model(name);
    let input = settlement.bytes_sent.unwrap_or(settlement.bytes_request).div_ceil(BYTES_PER_TOKEN);
    let input = model.and_then(|model| model.context_length).map_or(input, |most| input.min(most));
    let listed = model.and_then(|model| model.max_output_tokens);
    let output = request.max_output_tokens.or(listed).unwrap_or(ASSUMED_OUTPUT_TOKENS).saturating_mul(request.choices);
    let service = match settlement.admission.service_mode() {
        ServiceMode::Inherit => request.service,
        ServiceMode::Priority => ServiceTier::Priority,
        // A provider without a cheaper tier serves the request in its standard tier.
        ServiceMode::Default | ServiceMode::Flex => ServiceTier::Standard,
    };
    let usage = Usage { input, output, service, ..Usage::default() };
    let usd_micros = snapshot.price(name).map_or(0, |price| price.most_of(&usage, &settlement.units()).usd_micros());
    Amounts { tokens: input.saturating_add(output), usd_micros }
}
