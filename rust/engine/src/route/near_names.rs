//! Suggests similar names for an unknown model name: models, combos and aliases that the caller may use. The search
//! runs only when a call is refused.

use crate::active_config::ActiveConfig;
use crate::route::bare::preference;
use crate::route::permission::admit;
use fairlead_core::{Error, ErrorKind, Key};
use std::fmt::Write as _;

/// The most names in a suggestion.
const SHOWN: usize = 3;
/// Longer names are not compared.
const MAX_BYTES: usize = 96;
/// The most models that are compared.
const MAX_MODELS: usize = 20_000;

/// Adds suggestions to the error for an unknown name.
pub fn suggest(active: &ActiveConfig, key: Option<&Key>, wanted: &str, mut fault: Error) -> Error {
    let names = near(active, key, wanted);
    let Some((last, others)) = names.split_last() else { return fault };
    if !matches!(fault.kind, ErrorKind::ModelNotFound | ErrorKind::Forbidden) {
        return fault;
    }
    let mut message = fault.message.into_owned();
    message.push_str(" Did you mean ");
    for name in others {
        // Writing to a `String` does not fail.
        let _written = write!(message, "`{name}`, ");
    }
    let _written = write!(message, "{}`{last}`?", if others.is_empty() { "" } else { "or " });
    fault.message = message.into();
    fault
}

/// Returns the nearest names, best first.
fn near(active: &ActiveConfig, key: Option<&Key>, wanted: &str) -> Vec<String> {
    if wanted.is_empty() || wanted.len() > MAX_BYTES {
        return Vec::new();
    }
    let wanted = wanted.to_ascii_lowercase();
    let snapshot = &active.snapshot;
    let models = snapshot.models.iter().take(MAX_MODELS).filter_map(|model| {
        let bare = model.id.split_once('/').map_or(&*model.id, |(_, bare)| bare);
        let distance = distance_of(&wanted, bare).into_iter().chain(distance_of(&wanted, &model.id)).min()?;
        Some((distance, &*model.id, Some(model)))
    });
    let others = snapshot.combos.iter().map(|combo| &*combo.name).chain(snapshot.aliases().map(|(alias, _)| alias));
    let others = others.filter_map(|name| Some((distance_of(&wanted, name)?, name, None)));
    let mut found: Vec<_> = models.chain(others).collect();
    found.sort_unstable_by_key(|&(distance, name, _)| (distance, name));
    let may_use = |name: &str| key.is_none_or(|key| admit(active, key, name).is_ok());
    let usable = found.into_iter().filter(|(_, name, model)| match model {
        Some(model) => preference(active, key, model).is_some(),
        None => may_use(name),
    });
    let mut names: Vec<String> = Vec::with_capacity(SHOWN);
    for (_, name, _) in usable {
        if names.len() == SHOWN {
            break;
        }
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Returns the distance between a name and the requested one. `None` if they are too different.
fn distance_of(wanted: &str, name: &str) -> Option<usize> {
    if name.len() > MAX_BYTES {
        return None;
    }
    let most = (wanted.len().max(name.len()) / 4).clamp(1, 4);
    let is_longer_form = name.len() > wanted.len()
        && wanted.len() >= 4
        && name.as_bytes()[..wanted.len()].eq_ignore_ascii_case(wanted.as_bytes())
        && !name.as_bytes()[wanted.len()].is_ascii_alphanumeric();
    if is_longer_form {
        return Some(1);
    }
    if wanted.len().abs_diff(name.len()) > most {
        return None;
    }
    Some(edits(wanted.as_bytes(), name.as_bytes())).filter(|edits| *edits <= most)
}

/// Counts the letters to insert, delete or replace to turn one text into the other, ignoring case.
fn edits(one: &[u8], other: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (index, against) in other.iter().enumerate() {
            let changed = diagonal + usize::from(!letter.eq_ignore_ascii_case(against));
            diagonal = row[index + 1];
            row[index + 1] = changed.min(diagonal + 1).min(row[index] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use serde_json::json;

    fn active() -> ActiveConfig {
        let connection = |id: &str| json!({"id": id, "provider": id, "prefixes": [id], "dialect": "openai", "base_url": "http://x", "auth": "none"});
        let model = |id: &str| json!({"id": id, "provider": id.split('/').next()});
        testing::active(&json!({
            "version": 1, "connections": [connection("openai"), connection("azure")],
            "models": [model("openai/gpt-4o"), model("azure/gpt-4o"), model("openai/gpt-4o-mini"), model("openai/o3"),
                       model("openai/claude-sonnet-4-5")],
            "aliases": {"fast-one": "openai/o3"},
            "keys": [{"id": "r", "hash": "1".repeat(64), "is_active": true, "model_access_mode": "restricted",
                      "allowed_models": ["azure/*"]}],
        }))
    }

    #[test]
    fn names_near_by_are_those_that_the_caller_may_use() {
        let active = active();
        let key = active.snapshot.key_of("r").expect("a key");
        assert_eq!(near(&active, None, "gpt-4o")[..2], ["azure/gpt-4o", "openai/gpt-4o"]);
        assert_eq!(near(&active, Some(key), "gpt-4o"), ["azure/gpt-4o"]);
        assert_eq!(near(&active, None, "opnai/gpt-4o")[0], "openai/gpt-4o");
        assert_eq!(near(&active, None, "GPT4o-mini"), ["openai/gpt-4o-mini"]);
        assert_eq!(near(&active, None, "claude-sonnet"), ["openai/claude-sonnet-4-5"]);
        assert_eq!(near(&active, None, "fast-on"), ["fast-one"]);
        for nothing in ["", "something-else-entirely", &"g".repeat(500)] {
            assert_eq!(near(&active, None, nothing), [""; 0], "{nothing}");
        }
    }

    #[test]
    fn a_refusal_ends_with_the_names() {
        let active = active();
        let fault = || Error::client(ErrorKind::ModelNotFound, "No.");
        assert_eq!(suggest(&active, None, "fast-on", fault()).message, "No. Did you mean `fast-one`?");
        let two = suggest(&active, None, "gpt-4o", fault()).message;
        assert!(two.starts_with("No. Did you mean `azure/gpt-4o`, `openai/gpt-4o`, or `"), "{two}");
        assert_eq!(suggest(&active, None, "zzzzzzzzzz", fault()).message, "No.");
    }

    #[test]
    fn edits_are_counted() {
        for (one, other, count) in [("", "", 0), ("a", "", 1), ("kitten", "sitting", 3), ("GPT", "gpt", 0)] {
            assert_eq!(edits(one.as_bytes(), other.as_bytes()), count);
        }
    }
}
