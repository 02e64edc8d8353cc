//! What a caller may do, held against one key's record: endpoints and models. Patterns are exact names or names with
//! `*`, matched in linear time.

use crate::error::{Error, Kind};
use crate::ip_filter::HERE;
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
    Err(Error::client(Kind::Forbidden, format!("This API key may not use the endpoint `{endpoint}`.")))
}

/// Whether the key may be used at this hour.
pub fn admit_hour(key: &Key, now_ms: u64) -> Result<(), Error> {
    match &key.access_schedule {
        Some(schedule) if !schedule.is_open(now_ms) => {
            let message = format!("This API key may be used in its hours only ({}).", schedule.text());
            Err(Error::client(Kind::Forbidden, message).about("accessSchedule"))
        }
        _ => Ok(()),
    }
}

/// Whether the key may be used from this address; an unknown one is this machine's.
pub fn admit_address(key: &Key, address: Option<IpAddr>) -> Result<(), Error> {
    let address = address.unwrap_or(HERE);
    let is_listed = key.ip_allowlist.contains(address);
    // This machine has two families of addresses, and a list that names one means both.
    let is_here = || address.is_loopback() && LOOPBACKS.iter().any(|own| key.ip_allowlist.contains(*own));
    if key.ip_allowlist.is_empty() || is_listed || is_here() {
        return Ok(());
    }
    let message = format!("This API key may not be used from {address}: its `ipAllowlist` does not name that address.");
    Err(Error::client(Kind::Forbidden, message).about("ipAllowlist"))
}

/// Whether the key may use this connection.
pub fn sees_connection(key: &Key, connection_id: &str) -> bool {
    key.connection_access_mode == AccessMode::All || key.allowed_connections.iter().any(|id| id == connection_id)
}

/// Whether the key may call this model. A block wins over an allowance.
pub fn admit_model(key: &Key, model: &str) -> Result<(), Error> {
    if sees_model(key, model) {
        return Ok(());
    }
    Err(Error::client(Kind::Forbidden, format!("This API key may not use the model `{model}`.")).about("model"))
}

/// Whether the key may call this combo. A block wins; then the key's list of combos; without one, a key that is restricted to
/// models may call a combo that its models name, and `auto`, which then chooses among those models only.
pub fn admit_combo(key: &Key, name: &str, is_auto: bool) -> Result<(), Error> {
    let is_it = |listed: &String| listed == name || listed.strip_prefix("combo/") == Some(name);
    let spelled = format!("combo/{name}");
    let names_it = |pattern: &String| matches_pattern(pattern, name) || matches_pattern(pattern, &spelled);
    let is_blocked =
        |pattern: &String| [name, &spelled].iter().any(|name| model_name::is_named(pattern, name, Case::Ignored));
    let is_allowed = !is_auto || key.allow_auto_combos;
    let is_listed = if key.allowed_combos.is_empty() {
        is_auto || key.model_access_mode == AccessMode::All || key.allowed_models.iter().any(names_it)
    } else {
        key.allowed_combos.iter().any(is_it)
    };
    if is_allowed && is_listed && !key.blocked_models.iter().any(is_blocked) {
        return Ok(());
    }
    Err(Error::client(Kind::Forbidden, format!("This API key may not use the combo `{name}`.")).about("model"))
}

/// Whether the model list shows the model, for a key that may call no other.
pub fn admit_listed(key: &Key, snapshot: &Snapshot, model: &str) -> Result<(), Error> {
    if key.disable_non_public_models && snapshot.model(model).is_none() {
        let message = format!("This API key may use listed models only, and `{model}` is not in `GET /v1/models`.");
        return Err(Error::client(Kind::Forbidden, message).about("model"));
    }
    Ok(())
}

/// Whether no block of the key speaks of this name.
pub fn admit_unblocked(key: &Key, model: &str) -> Result<(), Error> {
    if is_blocked(key, model) {
        return Err(Error::client(Kind::Forbidden, "This API key may not use this model.").about("model"));
    }
    Ok(())
}

fn is_blocked(key: &Key, model: &str) -> bool {
    key.blocked_models.iter().any(|pattern| model_name::is_named(pattern, model, Case::Ignored))
}

/// Whether the model exists for this key.
pub fn sees_model(key: &Key, model: &str) -> bool {
    if is_blocked(key, model) {
        return false;
    }
    key.model_access_mode == AccessMode::All
        || key.allowed_models.iter().any(|pattern| model_name::is_named(pattern, model, Case::Told))
}

/// `*` stands for any run of characters.
pub fn matches_pattern(pattern: &str, text: &str) -> bool {
    model_name::matches(pattern.as_bytes(), text.as_bytes(), Case::Told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip_filter::AddressSet;
    use crate::secret::SecretHash;
    use crate::snapshot::CatalogScope;

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
        assert_eq!(admit_model(&restricted, "openai/gpt-4o").map_err(|error| error.kind), Err(Kind::Forbidden));
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

    #[test]
    fn an_empty_endpoint_list_allows_all() {
        assert!(admit_endpoint(&key(), "chat").is_ok());
        let narrow = Key { allowed_endpoints: vec!["models".into()], ..key() };
        assert!(admit_endpoint(&narrow, "models").is_ok());
        assert!(admit_endpoint(&narrow, "chat").is_err());
    }
}
