//! The rules of keys: the endpoints and models that a caller may use. Patterns are exact names, or names with `*`, and
//! are matched in linear time.

use crate::access::{Access, PrefixAccess};
use crate::error::{Error, ErrorKind};
use crate::group::Group;
use crate::ip_filter::{AddressSet, HERE};
use crate::snapshot::{Key, Snapshot};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const LOOPBACKS: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
/// The category of a key's requests about itself, which every key may make.
pub const OWN_USAGE: &str = "own-usage";

/// Checks that the key may use this category of endpoints. An empty list allows all.
pub fn admit_endpoint(key: &Key, endpoint: &str) -> Result<(), Error> {
    // A key may always read about itself, whatever it may call.
    let is_allowed = |allowed: &String| allowed == endpoint;
    if endpoint == OWN_USAGE || key.allowed_endpoints.is_empty() || key.allowed_endpoints.iter().any(is_allowed) {
        return Ok(());
    }
    Err(Error::client(ErrorKind::Forbidden, format!("This API key may not use the endpoint `{endpoint}`.")))
}

/// Checks that the key may be used at this hour.
pub fn admit_hour(key: &Key, now_ms: u64) -> Result<(), Error> {
    match &key.access_schedule {
        Some(schedule) if !schedule.is_open(now_ms) => {
            let message = format!("This API key is outside its permitted hours ({}).", schedule.text());
            Err(Error::client(ErrorKind::Forbidden, message).about("accessSchedule"))
        }
        _ => Ok(()),
    }
}

/// Checks that the key may be used from this address. An unknown address is that of this machine.
pub fn admit_address(key: &Key, address: Option<IpAddr>) -> Result<(), Error> {
    if is_listed(&key.ip_allowlist, address) {
        return Ok(());
    }
    let address = address.unwrap_or(HERE);
    let message = format!("This API key may not be used from {address}: its `ipAllowlist` does not name that address.");
    Err(Error::client(ErrorKind::Forbidden, message).about("ipAllowlist"))
}

/// Whether a key with this list may be used from this address. An unknown address is that of this machine. An empty
/// list allows all.
pub fn is_listed(allowlist: &AddressSet, address: Option<IpAddr>) -> bool {
    let address = address.unwrap_or(HERE);
    // This machine has loopback addresses of both families, and a list with either means both.
    let is_here = || address.is_loopback() && LOOPBACKS.iter().any(|own| allowlist.contains(*own));
    allowlist.is_empty() || allowlist.contains(address) || is_here()
}

/// Whether the key and all of its groups may use this connection.
pub fn sees_connection(key: &Key, connection_id: &str) -> bool {
    key.levels().all(|access| access.admits_connection(connection_id))
}

/// Checks a rule of the key and its groups. The first level that denies access refuses, the key before its groups.
fn hold(key: &Key, what: impl FnOnce() -> String, admits: impl Fn(&Access) -> bool) -> Result<(), Error> {
    if !admits(&key.access) {
        return Err(refusal(None, &what()));
    }
    match key.groups.iter().find(|group| !admits(&group.access)) {
        None => Ok(()),
        Some(group) => Err(refusal(Some(group), &what())),
    }
}

fn refusal(level: Option<&Group>, what: &str) -> Error {
    let message = match level {
        None => format!("This API key may not use {what}."),
        Some(group) => format!("The group `{}` of this API key may not use {what}.", group.name),
    };
    Error::client(ErrorKind::Forbidden, message).about("model")
}

/// Checks that the key and all of its groups may call this model. A block overrides an allowance.
pub fn admit_model(key: &Key, model: &str) -> Result<(), Error> {
    hold(key, || format!("the model `{model}`"), |access| access.admits_model(model))
}

/// Checks that the key and all of its groups may call this combo.
pub fn admit_combo(key: &Key, name: &str, is_auto: bool) -> Result<(), Error> {
    if is_auto && !key.allow_auto_combos {
        return Err(refusal(None, &format!("the combo `{name}`")));
    }
    hold(key, || format!("the combo `{name}`"), |access| access.admits_combo(name, is_auto))
}

/// Checks that the model list contains the model, if the key may call only listed models.
pub fn admit_listed(key: &Key, snapshot: &Snapshot, model: &str) -> Result<(), Error> {
    if key.disable_non_public_models && snapshot.model(model).is_none() {
        let message = format!("This API key may use listed models only, and `{model}` is not in `GET /v1/models`.");
        return Err(Error::client(ErrorKind::Forbidden, message).about("model"));
    }
    Ok(())
}

/// Checks that no block of the key or its groups matches this name.
pub fn admit_unblocked(key: &Key, model: &str) -> Result<(), Error> {
    hold(key, || "this model".to_owned(), |access| !access.blocks(model))
}

/// Whether the model is visible to this key.
pub fn sees_model(key: &Key, model: &str) -> bool {
    key.levels().all(|access| access.admits_model(model))
}

/// The access of a key's levels to the models with one prefix. Gives the result of [`sees_model`] for each model of a
/// long list.
#[derive(Debug)]
pub struct PrefixSight<'k> {
    /// The levels that do not allow every model.
    levels: Vec<PrefixAccess<'k>>,
}

impl<'k> PrefixSight<'k> {
    pub fn new(key: &'k Key, prefix: &str) -> Self {
        let levels = key.levels().map(|access| access.of_prefix(prefix));
        Self { levels: levels.filter(|level| !level.admits_all()).collect() }
    }

    /// Whether the model, which has this prefix, is visible to the key.
    pub fn sees(&self, model: &str) -> bool {
        self.levels.iter().all(|level| level.admits_model(model))
    }
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
            access: Access::default(),
            allowed_provider_objects: Vec::new(),
            allowed_endpoints: Vec::new(),
            allow_auto_combos: true,
            catalog_scope: CatalogScope::All,
            unpriced_models: None,
            no_log: false,
            capture_bodies: false,
            scopes: Vec::new(),
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
            inexpressible: None,
            allow_usage_command: false,
            chaos: None,
            group: None,
            groups: Vec::new(),
            group_path: None,
            tags: None,
        }
    }

    /// A plain key with this access.
    fn with_access(fields: serde_json::Value) -> Key {
        Key { access: serde_json::from_value(fields).expect("access"), ..key() }
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
    fn a_block_wins_and_restriction_needs_an_allowance() {
        let blocked = with_access(json!({"blocked_models": ["openai/*"], "allowed_models": ["openai/gpt-4o"]}));
        assert!(admit_model(&blocked, "openai/gpt-4o").is_err());
        assert!(admit_model(&blocked, "groq/llama").is_ok());
        let restricted = with_access(json!({"model_access_mode": "restricted", "allowed_models": ["groq/*"]}));
        assert!(admit_model(&restricted, "groq/llama").is_ok());
        assert_eq!(admit_model(&restricted, "openai/gpt-4o").map_err(|error| error.kind), Err(ErrorKind::Forbidden));
    }

    #[test]
    fn a_block_holds_for_every_spelling_and_an_allowance_for_the_name() {
        let blocked = with_access(json!({"blocked_models": ["g/gemini-3-pro"]}));
        let spelled = with_access(json!({"blocked_models": ["g/models/gemini-3-pro"]}));
        for model in ["g/gemini-3-pro", "g/models/gemini-3-pro", "g/Gemini-3-PRO"] {
            assert!(admit_model(&blocked, model).is_err() && admit_model(&spelled, model).is_err(), "{model}");
        }
        let allowed =
            with_access(json!({"model_access_mode": "restricted", "allowed_models": ["g/models/gemini-3-pro"]}));
        assert!(admit_model(&allowed, "g/gemini-3-pro").is_ok() && admit_model(&allowed, "g/gemini-3-PRO").is_err());
    }

    #[test]
    fn combos_have_a_list_of_their_own() {
        let may = |key: &Key, name: &str| admit_combo(key, name, name.starts_with("auto")).is_ok();
        assert!(may(&key(), "fast") && may(&key(), "auto/cheap"));
        let listed = with_access(json!({"allowed_combos": ["combo/fast", "slow"]}));
        assert!(may(&listed, "fast") && may(&listed, "slow") && !may(&listed, "other") && !may(&listed, "auto"));
        let restricted = with_access(json!({"model_access_mode": "restricted", "allowed_models": ["a/m"]}));
        assert!(!may(&restricted, "fast"), "a combo is no way around the list of models");
        assert!(may(&restricted, "auto"), "which chooses among the key's models");
        let named = with_access(json!({"model_access_mode": "restricted", "allowed_models": ["combo/*"]}));
        assert!(may(&named, "fast"));
        let blocked = with_access(json!({"blocked_models": ["fast"], "allowed_combos": ["fast"]}));
        assert!(!may(&blocked, "fast"));
        let no_auto = Key { allow_auto_combos: false, ..with_access(json!({"allowed_combos": ["auto", "fast"]})) };
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
        for (model, message) in [
            ("a/m", None),
            ("b/m", None),
            ("b/n", Some("The group `team` of this API key may not use the model `b/n`.")),
            ("a/dear", Some("The group `firm` of this API key may not use the model `a/dear`.")),
        ] {
            assert_eq!(admit_model(&member, model).err().map(|error| error.message.into_owned()).as_deref(), message);
            assert_eq!(sees_model(&member, model), message.is_none());
        }
        assert!(admit_unblocked(&member, "a/DEAR").is_err() && member.has_blocks());
        let own = with_access(json!({"model_access_mode": "restricted", "allowed_models": ["*"]}));
        let own = Key { groups: member.groups, ..own };
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
