//! What a caller may do, held against one key's record: endpoints and models. Patterns are exact names or names with
//! `*`, matched in linear time.

use crate::error::{Error, ErrorKind};
use crate::group::Group;
use crate::ip_filter::{AddressSet, HERE};
use crate::model_name::{self, Case};
use crate::snapshot::{AccessMode, Key, Snapshot};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const LOOPBACKS: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
/// The category of what a key asks about itself; every key may.
pub const OWN_USAGE: &str = "own-usage";

/// Whether the key may use this category of endpoint at all. An empty list allows all.
pub fn admit_endpoint(key: &Key, endpoint: &str) -> Result<(), Error> {
    // What a key may know of itself does not depend on what it may call.
    let is_allowed = |allowed: &String| allowed == endpoint;
    if endpoint == OWN_USAGE || key.allowed_endpoints.is_empty() || key.allowed_endpoints.iter().any(is_allowed) {
        return Ok(());
    }
    Err(Error::client(ErrorKind::Forbidden, format!("This API key may not use the endpoint `{endpoint}`.")))
}

/// Whether the key may be used at this hour.
pub fn admit_hour(key: &Key, now_ms: u64) -> Result<(), Error> {
    match &key.access_schedule {
        Some(schedule) if !schedule.is_open(now_ms) => {
            let message = format!("This API key may be used in its hours only ({}).", schedule.text());
            Err(Error::client(ErrorKind::Forbidden, message).about("accessSchedule"))
        }
        _ => Ok(()),
    }
}

/// Whether the key may be used from this address; an unknown one is this machine's.
pub fn admit_address(key: &Key, address: Option<IpAddr>) -> Result<(), Error> {
    if is_listed(&key.ip_allowlist, address) {
        return Ok(());
    }
    let address = address.unwrap_or(HERE);
    let message = format!("This API key may not be used from {address}: its `ipAllowlist` does not name that address.");
    Err(Error::client(ErrorKind::Forbidden, message).about("ipAllowlist"))
}

/// Whether a key with this list may be used from this address; an unknown one is this machine's. An empty list admits all.
pub fn is_listed(allowlist: &AddressSet, address: Option<IpAddr>) -> bool {
    let address = address.unwrap_or(HERE);
    // This machine has two families of addresses, and a list that names one means both.
    let is_here = || address.is_loopback() && LOOPBACKS.iter().any(|own| allowlist.contains(*own));
    allowlist.is_empty() || allowlist.contains(address) || is_here()
}

/// Whether the key may use this connection, and every group that it is in.
pub fn sees_connection(key: &Key, connection_id: &str) -> bool {
    let admits =
        |mode: AccessMode, allowed: &[String]| mode == AccessMode::All || allowed.iter().any(|id| id == connection_id);
    admits(key.connection_access_mode, &key.allowed_connections)
        && key.groups.iter().all(|group| admits(group.connection_access_mode, &group.allowed_connections))
}

/// What one level, a key or a group, says of models.
#[derive(Clone, Copy)]
struct ModelRules<'k> {
    mode: AccessMode,
    allowed: &'k [String],
    blocked: &'k [String],
    combos: &'k [String],
    /// Nothing: the key itself.
    group: Option<&'k str>,
}

impl<'k> ModelRules<'k> {
    fn of_key(key: &'k Key) -> Self {
        Self {
            mode: key.model_access_mode,
            allowed: &key.allowed_models,
            blocked: &key.blocked_models,
            combos: &key.allowed_combos,
            group: None,
        }
    }

    fn of_group(group: &'k Group) -> Self {
        Self {
            mode: group.model_access_mode,
            allowed: &group.allowed_models,
            blocked: &group.blocked_models,
            combos: &group.allowed_combos,
            group: Some(&group.name),
        }
    }

    fn blocks(&self, model: &str) -> bool {
        self.blocked.iter().any(|pattern| model_name::is_named(pattern, model, Case::Ignored))
    }

    fn admits(&self, model: &str) -> bool {
        !self.blocks(model)
            && (self.mode == AccessMode::All
                || self.allowed.iter().any(|pattern| model_name::is_named(pattern, model, Case::Exact)))
    }

    fn admits_combo(&self, name: &str, is_auto: bool) -> bool {
        let is_it = |listed: &String| listed == name || listed.strip_prefix("combo/") == Some(name);
        let spelled = format!("combo/{name}");
        let names_it = |pattern: &String| matches_pattern(pattern, name) || matches_pattern(pattern, &spelled);
        let is_listed = if self.combos.is_empty() {
            is_auto || self.mode == AccessMode::All || self.allowed.iter().any(names_it)
        } else {
            self.combos.iter().any(is_it)
        };
        is_listed && !self.blocks(name) && !self.blocks(&spelled)
    }

    fn refusal(&self, what: &str) -> Error {
        let message = match self.group {
            None => format!("This API key may not use {what}."),
            Some(group) => format!("The group `{group}` of this API key may not use {what}."),
        };
        Error::client(ErrorKind::Forbidden, message).about("model")
    }
}

/// The first level that says no, the key before its groups.
fn refusing<'k>(key: &'k Key, admits: impl Fn(&ModelRules<'k>) -> bool) -> Option<ModelRules<'k>> {
    let levels = std::iter::once(ModelRules::of_key(key));
    let mut levels = levels.chain(key.groups.iter().map(|group| ModelRules::of_group(group)));
    levels.find(|level| !admits(level))
}

/// Whether the key may call this model, and every group that it is in. A block wins over an allowance.
pub fn admit_model(key: &Key, model: &str) -> Result<(), Error> {
    refusing(key, |level| level.admits(model))
        .map_or(Ok(()), |level| Err(level.refusal(&format!("the model `{model}`"))))
}

/// Whether the key may call this combo, and every group that it is in. A block wins; then the list of combos; without one, a level
/// that is restricted to models may call a combo that its models name, and `auto`, which then chooses among those models only.
pub fn admit_combo(key: &Key, name: &str, is_auto: bool) -> Result<(), Error> {
    if is_auto && !key.allow_auto_combos {
        return Err(ModelRules::of_key(key).refusal(&format!("the combo `{name}`")));
    }
    refusing(key, |level| level.admits_combo(name, is_auto))
        .map_or(Ok(()), |level| Err(level.refusal(&format!("the combo `{name}`"))))
}

/// Whether the model list shows the model, for a key that may call no other.
pub fn admit_listed(key: &Key, snapshot: &Snapshot, model: &str) -> Result<(), Error> {
    if key.disable_non_public_models && snapshot.model(model).is_none() {
        let message = format!("This API key may use listed models only, and `{model}` is not in `GET /v1/models`.");
        return Err(Error::client(ErrorKind::Forbidden, message).about("model"));
    }
    Ok(())
}

/// Whether no block of the key, or of a group that it is in, speaks of this name.
pub fn admit_unblocked(key: &Key, model: &str) -> Result<(), Error> {
    refusing(key, |level| !level.blocks(model)).map_or(Ok(()), |level| Err(level.refusal("this model")))
}

/// Whether the model exists for this key.
pub fn sees_model(key: &Key, model: &str) -> bool {
    refusing(key, |level| level.admits(model)).is_none()
}

/// `*` stands for any run of characters.
pub fn matches_pattern(pattern: &str, text: &str) -> bool {
    model_name::matches(pattern.as_bytes(), text.as_bytes(), Case::Exact)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip_filter::AddressSet;
    use crate::secret::SecretHash;
    use crate::snapshot::CatalogScope;
    use serde_json::json;
    use std::sync::Arc;

    fn key() -> Key {
        Key {
            id: "k".into(),
            name: String::new(),
            hash: SecretHash::of(b"k"),
            is_active: true,
            is_banned: false,
            expires_at_ms: None,
            model_access_mode: AccessMode::All,
            allowed_models: Vec::new(),
            blocked_models: Vec::new(),
            allowed_endpoints: Vec::new(),
            allowed_combos: Vec::new(),
            allow_auto_combos: true,
            catalog_scope: CatalogScope::All,
            unpriced_models: None,
            no_log: false,
            capture_bodies: false,
            scopes: Vec::new(),
            connection_access_mode: AccessMode::All,
            allowed_connections: Vec::new(),
            forced_model: None,
            disable_non_public_models: false,
            throttle_delay_ms: 0,
            max_sessions: 0,
            stream_default_mode: crate::snapshot::StreamDefaultMode::Legacy,
            cache_default_mode: crate::snapshot::CacheDefaultMode::Legacy,
            auto_resolve: false,
            disabled_guardrails: Vec::new(),
            compression_enabled: true,
            access_schedule: None,
            limits: Vec::new(),
            ip_allowlist: AddressSet::default(),
            proxy: None,
            tool_service_mode: crate::snapshot::ServiceMode::Inherit,
            allow_usage_command: false,
            chaos: None,
            group: None,
            groups: Vec::new(),
            group_path: None,
            tags: None,
        }
    }

    #[test]
    fn a_key_is_used_from_its_own_addresses() {
        let admits = |list: &[&str], address: Option<&str>| {
            let key = Key { ip_allowlist: AddressSet::parse(list).expect("networks"), ..key() };
            admit_address(&key, address.map(|text| text.parse().expect("an address"))).is_ok()
        };
        assert!(admits(&[], Some("192.0.2.1")) && admits(&[], None));
        assert!(admits(&["192.0.2.0/24"], Some("192.0.2.1")) && !admits(&["192.0.2.0/24"], Some("192.0.3.1")));
        assert!(!admits(&["192.0.2.0/24"], None) && !admits(&["192.0.2.0/24"], Some("127.0.0.1")));
        assert!(admits(&["127.0.0.1"], Some("::1")) && admits(&["::1"], Some("127.0.0.1")) && admits(&["::1"], None));
    }

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, text, expected) in [
            ("openai/*", "openai/gpt-4o", true),
            ("openai/*", "openai", false),
            ("*", "anything", true),
            ("*mini", "openai/gpt-4o-mini", true),
            ("a*b*c", "a--b--c", true),
            ("a*b*c", "a--c--b", false),
            ("openai/gpt", "openai/gpt-4o", false),
            ("", "", true),
        ] {
            assert_eq!(matches_pattern(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_block_wins_and_restriction_needs_an_allowance() {
        let blocked =
            Key { blocked_models: vec!["openai/*".into()], allowed_models: vec!["openai/gpt-4o".into()], ..key() };
        assert!(admit_model(&blocked, "openai/gpt-4o").is_err());
        assert!(admit_model(&blocked, "groq/llama").is_ok());
        let restricted =
            Key { model_access_mode: AccessMode::Restricted, allowed_models: vec!["groq/*".into()], ..key() };
        assert!(admit_model(&restricted, "groq/llama").is_ok());
        assert_eq!(admit_model(&restricted, "openai/gpt-4o").map_err(|error| error.kind), Err(ErrorKind::Forbidden));
    }

    #[test]
    fn a_block_holds_for_every_spelling_and_an_allowance_for_the_name() {
        let blocked = Key { blocked_models: vec!["g/gemini-3-pro".into()], ..key() };
        let spelled = Key { blocked_models: vec!["g/models/gemini-3-pro".into()], ..key() };
        for model in ["g/gemini-3-pro", "g/models/gemini-3-pro", "g/Gemini-3-PRO"] {
            assert!(admit_model(&blocked, model).is_err() && admit_model(&spelled, model).is_err(), "{model}");
        }
        let restricted = Key { model_access_mode: AccessMode::Restricted, ..key() };
        let allowed = Key { allowed_models: vec!["g/models/gemini-3-pro".into()], ..restricted };
        assert!(admit_model(&allowed, "g/gemini-3-pro").is_ok() && admit_model(&allowed, "g/gemini-3-PRO").is_err());
    }

    #[test]
    fn combos_have_a_list_of_their_own() {
        let may = |key: &Key, name: &str| admit_combo(key, name, name.starts_with("auto")).is_ok();
        assert!(may(&key(), "fast") && may(&key(), "auto/cheap"));
        let listed = Key { allowed_combos: vec!["combo/fast".into(), "slow".into()], ..key() };
        assert!(may(&listed, "fast") && may(&listed, "slow") && !may(&listed, "other") && !may(&listed, "auto"));
        let restricted = Key { model_access_mode: AccessMode::Restricted, allowed_models: vec!["a/m".into()], ..key() };
        assert!(!may(&restricted, "fast"), "a combo is no way around the list of models");
        assert!(may(&restricted, "auto"), "which chooses among the key's models");
        let named = Key { allowed_models: vec!["combo/*".into()], ..restricted };
        assert!(may(&named, "fast"));
        let blocked = Key { blocked_models: vec!["fast".into()], allowed_combos: vec!["fast".into()], ..key() };
        assert!(!may(&blocked, "fast"));
        let no_auto = Key { allow_auto_combos: false, allowed_combos: vec!["auto".into(), "fast".into()], ..key() };
        assert!(!may(&no_auto, "auto") && may(&no_auto, "fast"));
    }

    fn in_groups(groups: &[serde_json::Value]) -> Key {
        let group = |fields: &serde_json::Value| serde_json::from_value::<Group>(fields.clone()).expect("a group");
        Key { groups: groups.iter().map(|fields| Arc::new(group(fields))).collect(), ..key() }
    }

    #[test]
    fn every_level_must_let_a_model_and_a_connection_through() {
        let restricted =
            json!({"id": "t", "name": "team", "model_access_mode": "restricted", "allowed_models": ["a/*", "b/m"]});
        let blocking = json!({"id": "f", "name": "firm", "blocked_models": ["a/dear"]});
        let member = in_groups(&[restricted.clone(), blocking.clone()]);
        for (model, told) in [
            ("a/m", None),
            ("b/m", None),
            ("b/n", Some("The group `team` of this API key may not use the model `b/n`.")),
            ("a/dear", Some("The group `firm` of this API key may not use the model `a/dear`.")),
        ] {
            assert_eq!(admit_model(&member, model).err().map(|error| error.message.into_owned()).as_deref(), told);
            assert_eq!(sees_model(&member, model), told.is_none());
        }
        assert!(admit_unblocked(&member, "a/DEAR").is_err() && member.has_blocks());
        let own = Key { model_access_mode: AccessMode::Restricted, allowed_models: vec!["*".into()], ..member };
        assert!(admit_model(&own, "b/n").is_err(), "a key is no way around its group");
        let connected =
            |ids: &[&str]| json!({"id": "g", "connection_access_mode": "restricted", "allowed_connections": ids});
        let narrow = in_groups(&[connected(&["x", "y"]), connected(&["y", "z"])]);
        assert_eq!(["x", "y", "z"].map(|id| sees_connection(&narrow, id)), [false, true, false]);
    }

    #[test]
    fn every_level_must_let_a_combo_through() {
        let may = |key: &Key, name: &str| admit_combo(key, name, name.starts_with("auto")).is_ok();
        let listing = in_groups(&[json!({"id": "t", "allowed_combos": ["fast"]})]);
        assert!(may(&listing, "fast") && !may(&listing, "slow") && !may(&listing, "auto"));
        let restricted = in_groups(&[json!({"id": "t", "model_access_mode": "restricted", "allowed_models": ["a/m"]})]);
        assert!(!may(&restricted, "fast") && may(&restricted, "auto"));
        let blocked = in_groups(&[json!({"id": "t"}), json!({"id": "f", "blocked_models": ["combo/fast"]})]);
        assert!(!may(&blocked, "fast") && may(&blocked, "slow"));
    }

    #[test]
    fn an_empty_endpoint_list_allows_all() {
        assert!(admit_endpoint(&key(), "chat").is_ok());
        let narrow = Key { allowed_endpoints: vec!["models".into()], ..key() };
        assert!(admit_endpoint(&narrow, "models").is_ok());
        assert!(admit_endpoint(&narrow, "chat").is_err());
    }
}
