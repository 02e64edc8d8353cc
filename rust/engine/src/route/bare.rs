//! Resolves model names without a provider prefix. `gpt-4o` means `openai/gpt-4o` if exactly one provider that the
//! caller may use has the model (`bareModels`). A key with `autoResolve` picks the most preferred of several providers.

use crate::active_config::ActiveConfig;
use crate::route::permission::admit;
use fairlead_core::strategy::auto;
use fairlead_core::{policy, BareModels, Key, Model};

/// Returns whether the name needs no resolution: an alias, a combo, a channel of `auto`, or a model with a known
/// prefix.
pub fn is_known(active: &ActiveConfig, name: &str) -> bool {
    active.snapshot.alias(name).is_some()
        || active.combos.book.find(name).is_some()
        || auto::is_auto(name)
        || name.starts_with("combo/")
        || name.split_once('/').is_some_and(|(prefix, _)| !active.snapshot.candidates(prefix).is_empty())
}

/// Returns the full name for a name without a prefix. Returns `None` if the name needs no resolution, or if no provider
/// or several providers have the model.
pub fn resolve(active: &ActiveConfig, key: Option<&Key>, name: &str) -> Option<String> {
    let is_wanted = active.snapshot.settings.bare_models == BareModels::Resolve;
    let takes_preferred = key.is_some_and(|key| key.auto_resolve);
    if !(is_wanted || takes_preferred) || is_known(active, name) {
        return None;
    }
    if takes_preferred {
        let named =
            active.snapshot.models_named(name).filter_map(|model| Some((preference(active, key, model)?, &*model.id)));
        if let Some((_, id)) = named.min() {
            return Some(id.to_owned());
        }
    }
    let found = is_wanted.then(|| of_one_provider(active, key, active.snapshot.models_named(name)))?;
    let found = found.or_else(|| {
        // A vendor's name without a date means the newest model of that name.
        let is_ambiguous = active.snapshot.models_named(name).next().is_some();
        if is_ambiguous {
            None
        } else {
            of_one_provider(active, key, active.snapshot.models_dated(name))
        }
    })?;
    Some(found.id.clone())
}

/// Returns the last of these models by name, if the models that the caller may use belong to one provider.
fn of_one_provider<'a>(
    active: &ActiveConfig,
    key: Option<&Key>,
    models: impl Iterator<Item = &'a Model>,
) -> Option<&'a Model> {
    let mut found: Option<&Model> = None;
    for model in models.filter(|model| preference(active, key, model).is_some()) {
        if found.is_some_and(|other| other.provider != model.provider) {
            return None;
        }
        if found.is_none_or(|other| other.id < model.id) {
            found = Some(model);
        }
    }
    found
}

/// Returns the priority of the best connection that the caller may use for the model. Lower is better. `None` if there
/// is no such connection.
pub fn preference(active: &ActiveConfig, key: Option<&Key>, model: &Model) -> Option<u32> {
    if key.is_some_and(|key| admit(active, key, &model.id).is_err()) {
        return None;
    }
    let (prefix, _) = model.id.split_once('/')?;
    let connections = active.snapshot.candidates(prefix).iter().filter_map(|&at| active.snapshot.connections.get(at));
    connections
        .filter(|connection| key.is_none_or(|key| policy::sees_connection(key, &connection.id)))
        .map(|connection| connection.priority)
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use serde_json::json;

    fn active(bare_models: &str) -> ActiveConfig {
        let connection = |id: &str, priority: u32| {
            json!({"id": id, "provider": id, "prefixes": [id], "dialect": "openai", "base_url": "http://x", "auth": "none",
                   "priority": priority})
        };
        let model = |id: &str| json!({"id": id, "provider": id.split('/').next()});
        testing::active(&json!({
            "version": 1, "settings": {"bare_models": bare_models},
            "connections": [connection("a", 2), connection("b", 1), connection("meta", 3)],
            "models": [model("a/one"), model("a/both"), model("b/both"), model("b/org/deep"), model("gone/lost"),
                       model("a/new-20250101"), model("a/new-20260101"), model("a/aliased"), model("meta/x")],
            "aliases": {"aliased": "b/both"},
            "keys": [
                {"id": "k", "hash": "0".repeat(64), "is_active": true},
                {"id": "r", "hash": "1".repeat(64), "is_active": true, "model_access_mode": "restricted", "allowed_models": ["b/*"]},
                {"id": "c", "hash": "2".repeat(64), "is_active": true, "connection_access_mode": "restricted",
                 "allowed_connections": ["b"]},
                {"id": "auto", "hash": "3".repeat(64), "is_active": true, "auto_resolve": true},
            ],
        }))
    }

    fn found(active: &ActiveConfig, key: Option<&str>, name: &str) -> Option<String> {
        let key = key.map(|id| active.snapshot.key_of(id).expect("a key"));
        resolve(active, key.map(AsRef::as_ref), name)
    }

    #[test]
    fn a_bare_name_is_the_model_of_the_one_provider_that_the_caller_may_use() {
        let active = active("resolve");
        for key in [None, Some("k")] {
            assert_eq!(found(&active, key, "one").as_deref(), Some("a/one"));
            assert_eq!(found(&active, key, "org/deep").as_deref(), Some("b/org/deep"));
            assert_eq!(found(&active, key, "new").as_deref(), Some("a/new-20260101"), "the newest of the name");
            for name in ["both", "lost", "aliased", "auto", "auto/fast", "combo/one", "meta/x", "a/one", "nothing", ""]
            {
                assert_eq!(found(&active, key, name), None, "{name}");
            }
        }
        for key in [Some("r"), Some("c")] {
            assert_eq!(found(&active, key, "both").as_deref(), Some("b/both"));
            assert_eq!(found(&active, key, "one"), None);
            assert_eq!(found(&active, key, "new"), None);
        }
        assert_eq!(found(&active, Some("auto"), "both").as_deref(), Some("b/both"), "the most preferred of two");
    }

    #[test]
    fn the_setting_leaves_bare_names_alone() {
        let active = active("refuse");
        assert_eq!(found(&active, Some("k"), "one"), None);
        assert_eq!(found(&active, Some("auto"), "one").as_deref(), Some("a/one"));
        assert_eq!(found(&active, Some("auto"), "new"), None);
    }
}
