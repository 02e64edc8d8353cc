//! The caller's limit in dollars for one call (`X-Gateway-Budget`). It is compared with the maximum cost of the call,
//! which is also the amount reserved under the limits of keys.

use crate::gate::cost_bound::{most, most_of_choice};
use crate::gate::preferences::dollars;
use crate::observe::settle::Settlement;
use crate::route::choice::Choice;
use fairlead_core::strategy::Strategy;
use fairlead_core::{Error, ErrorKind, Snapshot};
use fairlead_dialect::openai::request::ChatRequest;
use smallvec::SmallVec;

/// Removes targets that may cost more than the budget. If all may, the result is an error, or the cheapest target if
/// the caller allows it. A model without a price may have any cost.
pub fn hold_to(
    snapshot: &Snapshot,
    settlement: &Settlement,
    request: &ChatRequest,
    choice: &mut Choice,
) -> Result<(), Error> {
    let Some(budget) = settlement.admission.routing.budget else { return Ok(()) };
    let cost = |at: usize| {
        let model = choice.model(at);
        snapshot.price(model).map(|_| most(snapshot, request, model, settlement).usd_micros)
    };
    let costs: SmallVec<[Option<u64>; 32]> = (0..choice.targets.len()).map(cost).collect();
    let fits = |cost: &Option<u64>| cost.is_some_and(|cost| cost <= budget.usd_micros);
    // A fusion without one of its members gives a different response, and a pipeline without one of its steps gives
    // none.
    let needs_all =
        choice.combo.as_ref().is_some_and(|combo| matches!(combo.strategy, Strategy::Fusion | Strategy::Pipeline));
    if needs_all {
        let is_known = costs.iter().all(Option::is_some);
        let total = most_of_choice(snapshot, request, settlement, choice).usd_micros;
        return admit(
            budget.falls_back || (is_known && total <= budget.usd_micros),
            is_known.then_some(total),
            budget.usd_micros,
        );
    }
    if costs.iter().all(fits) {
        return Ok(());
    }
    let mut indices: Vec<usize> = (0..costs.len()).filter(|&at| fits(&costs[at])).collect();
    if indices.is_empty() {
        admit(budget.falls_back, costs.iter().flatten().min().copied(), budget.usd_micros)?;
        indices = (0..costs.len()).collect();
        indices.sort_by_key(|&at| costs[at].unwrap_or(u64::MAX));
    }
    *choice = choice.narrowed(&indices);
    Ok(())
}

/// Checks the budget of a call whose cost does not depend on its target.
pub fn admit_sum(settlement: &Settlement, usd_micros: u64) -> Result<(), Error> {
    let Some(budget) = settlement.admission.routing.budget else { return Ok(()) };
    admit(budget.falls_back || usd_micros <= budget.usd_micros, Some(usd_micros), budget.usd_micros)
}

/// `least` is the maximum cost at the cheapest target; `None` if no target has a price.
fn admit(is_admitted: bool, least: Option<u64>, budget: u64) -> Result<(), Error> {
    if is_admitted {
        return Ok(());
    }
    let cost = match least {
        Some(least) => format!("may cost {} USD where it is cheapest", dollars(least)),
        None => "goes to models without a price".to_owned(),
    };
    let message = format!(
        "The call {cost}, and `X-Gateway-Budget` is {}. Ask for fewer output tokens, or send \
         `X-Gateway-Budget-Fallback: cheapest` to have it served all the same.",
        dollars(budget)
    );
    Err(Error::client(ErrorKind::CallTooDear, message).about("X-Gateway-Budget"))
}
