//! Models without a price for keys with a limit in dollars. The limit cannot cover a call of unknown cost, so the key,
//! or else the settings, determine whether such a call is allowed.

use crate::observe::settle::Settlement;
use crate::route::choice::Choice;
use fairlead_core::strategy::Strategy;
use fairlead_core::{Error, ErrorKind, Key, Limit, LimitUnit, Served, Snapshot, UnpricedModels};

/// Removes targets whose model has no price, if the key has a limit in dollars for them and refuses unpriced models.
/// Returns an error if no target is left, or if the combo requires one of those removed.
pub fn leave_out(snapshot: &Snapshot, settlement: &Settlement, name: &str, choice: &mut Choice) -> Result<(), Error> {
    let Some(key) = refusing(snapshot, settlement) else { return Ok(()) };
    let fault = |at: usize| {
        let model = choice.model(at);
        limit_on(key, name, &choice.served(at))
            .filter(|_| !is_priced(snapshot, model))
            .map(|limit| refusal(key, model, limit))
    };
    let mut first = None;
    let indices: Vec<usize> = (0..choice.targets.len())
        .filter(|&at| match fault(at) {
            Some(error) => {
                first.get_or_insert(error);
                false
            }
            None => true,
        })
        .collect();
    let Some(first) = first else { return named_judge(snapshot, key, name, choice) };
    // A fusion without one of its members gives a different response, and a pipeline without one of its steps gives
    // none.
    let needs_all =
        choice.combo.as_ref().is_some_and(|combo| matches!(combo.strategy, Strategy::Fusion | Strategy::Pipeline));
    if indices.is_empty() || needs_all {
        return Err(first);
    }
    *choice = choice.narrowed(&indices);
    Ok(())
}

/// The judge of a fusion may be a model that is not a target of the combo.
fn named_judge(snapshot: &Snapshot, key: &Key, name: &str, choice: &Choice) -> Result<(), Error> {
    let combo = choice.combo.as_ref().filter(|combo| combo.strategy == Strategy::Fusion);
    let judge = combo.and_then(|combo| combo.params.judge_model.as_deref());
    let Some(judge) = judge.filter(|judge| !is_priced(snapshot, judge)) else { return Ok(()) };
    let judged_by = Served::default();
    limit_on(key, name, &judged_by).map_or(Ok(()), |limit| Err(refusal(key, judge, limit)))
}

/// Checks whether a conversation may request another response of its model.
pub fn admit_next(snapshot: &Snapshot, settlement: &Settlement, key: &Key) -> Result<(), Error> {
    let subject = settlement.subject();
    let model = settlement.billed_model().unwrap_or_default();
    if !refuses(snapshot, key) || is_priced(snapshot, model) {
        return Ok(());
    }
    limit_on(key, subject.model, &subject.served).map_or(Ok(()), |limit| Err(refusal(key, model, limit)))
}

/// The caller's key, if it refuses unpriced models.
fn refusing<'s>(snapshot: &Snapshot, settlement: &'s Settlement) -> Option<&'s Key> {
    let key = settlement.admission.principal.key()?;
    refuses(snapshot, key).then_some(key.as_ref())
}

fn refuses(snapshot: &Snapshot, key: &Key) -> bool {
    key.unpriced_models.unwrap_or(snapshot.settings.unpriced_models) == UnpricedModels::Refuse
}

fn is_priced(snapshot: &Snapshot, model: &str) -> bool {
    snapshot.price(model).is_some()
}

fn limit_on<'k>(key: &'k Key, name: &str, served: &Served<'_>) -> Option<&'k Limit> {
    key.all_limits().find(|limit| limit.unit == LimitUnit::UsdMicros && limit.applies_to(name, served))
}

fn refusal(key: &Key, model: &str, limit: &Limit) -> Error {
    let whose = if key.unpriced_models.is_some() { "of this key" } else { "in the settings" };
    let message = format!(
        "`{model}` has no price, so its calls could not count under `{}` of this key, and `unpricedModels` {whose} is \
         `refuse`. Set a price at PUT /api/pricing, or `unpricedModels` to `allow`.",
        limit.name
    );
    Error::client(ErrorKind::UnpricedModel, message).about("unpricedModels")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_word_of_the_key_goes_before_that_of_the_settings() {
        for (settings, own, expected) in [
            ("allow", json!(null), false),
            ("refuse", json!(null), true),
            ("allow", json!("refuse"), true),
            ("refuse", json!("allow"), false),
        ] {
            let key = json!({"id": "k", "hash": "0".repeat(64), "is_active": true, "unpriced_models": own});
            let document = json!({"version": 1, "settings": {"unpriced_models": settings}, "keys": [key]});
            let snapshot = Snapshot::parse(document.to_string().as_bytes()).expect("a snapshot");
            let key = snapshot.key_of("k").expect("the key");
            assert_eq!(refuses(&snapshot, key), expected, "{document}");
        }
    }

    #[test]
    fn only_a_limit_in_dollars_that_holds_for_the_target_counts() {
        let limit = |unit: &str, scope: serde_json::Value| json!({"id": unit, "name": "test", "unit": unit, "amount": 1, "period": {"day": 0}, "scope": scope});
        let is_limited = |limit: serde_json::Value| {
            let key = json!({"id": "k", "hash": "0".repeat(64), "is_active": true, "limits": [limit]});
            let key: Key = serde_json::from_value(key).expect("a key");
            let served = Served { provider: "lab", prefixes: &[], upstream_model: "m" };
            limit_on(&key, "lab/m", &served).is_some()
        };
        assert!(is_limited(limit("usd_micros", json!("all"))));
        assert!(is_limited(limit("usd_micros", json!({"provider": "lab"}))));
        assert!(!is_limited(limit("usd_micros", json!({"provider": "other"}))));
        assert!(!is_limited(limit("tokens", json!("all"))));
    }
}
