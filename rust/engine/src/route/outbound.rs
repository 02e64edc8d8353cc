//! Outbound proxies by level. The most specific setting wins: the key's, then the combo's, the provider's and the
//! global one. `direct` is a setting as well.

use crate::route::choice::Choice;
use crate::upstream::proxy::Proxy;
use fairlead_core::{Key, Sealer, Snapshot, DIRECT};
use std::collections::HashMap;
use std::sync::Arc;

/// The proxies of one snapshot.
#[derive(Debug, Default)]
pub struct Outbound {
    proxies: HashMap<String, Arc<Proxy>>,
    /// The proxies of combos, by combo id.
    combos: HashMap<String, Option<Arc<Proxy>>>,
}

impl Outbound {
    pub fn build(snapshot: &Snapshot, sealer: &Sealer) -> Self {
        let opened = snapshot.proxies.iter().map(|record| (record.id.clone(), Arc::new(Proxy::open(record, sealer))));
        let mut outbound = Self { proxies: opened.collect(), combos: HashMap::new() };
        let proxies = snapshot.combos.iter().filter_map(|combo| Some((combo.id.clone(), combo.proxy.as_deref()?)));
        outbound.combos = proxies.map(|(id, proxy)| (id, outbound.named(proxy))).collect();
        outbound
    }

    /// Returns the proxy with this id; `None` for `direct`. An id without a record returns a proxy that fails, so that
    /// calls never bypass a proxy.
    pub fn named(&self, id: &str) -> Option<Arc<Proxy>> {
        if id == DIRECT {
            return None;
        }
        Some(self.proxies.get(id).map_or_else(|| Arc::new(Proxy::missing(id)), Arc::clone))
    }

    /// Routes the targets of a request through the proxy of its key or its combo, if one is set.
    pub fn apply(&self, choice: &mut Choice, key: Option<&Key>, combo_id: Option<&str>) {
        let of_key = key.and_then(|key| key.proxy.as_deref()).map(|id| self.named(id));
        let of_combo = || combo_id.filter(|_| !self.combos.is_empty()).and_then(|id| self.combos.get(id).cloned());
        let Some(proxy) = of_key.or_else(of_combo) else { return };
        for target in &mut choice.targets {
            *target = target.through(proxy.as_ref());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::active_config::ActiveConfig;
    use crate::route::choose::{choose, RoutingHints};

    fn key(proxy: Option<&str>) -> Key {
        let json = serde_json::json!({"id": "k", "hash": "0".repeat(64), "is_active": true, "proxy": proxy});
        serde_json::from_value(json).expect("a key")
    }

    fn active() -> ActiveConfig {
        let connection = |id: &str, proxy: Option<&str>| {
            serde_json::json!({"id": id, "provider": id, "prefixes": [id], "dialect": "openai",
                "base_url": format!("http://{id}"), "auth": "none", "proxy": proxy})
        };
        let proxy = |id: &str| serde_json::json!({"id": id, "scheme": "http", "host": "proxy", "port": 1});
        let proxies = ["global:", "combo:c", "key:k"].map(proxy);
        let document = serde_json::json!({
            "version": 1,
            "connections": [connection("plain", None), connection("behind", Some("global:")),
                connection("lost", Some("provider:gone"))],
            "proxies": proxies,
            "combos": [{"id": "c", "name": "c", "steps": [], "proxy": "combo:c"},
                {"id": "d", "name": "d", "steps": [], "proxy": "direct"}],
        });
        let snapshot = Snapshot::parse(document.to_string().as_bytes()).expect("a snapshot");
        ActiveConfig::build(snapshot, &ActiveConfig::default(), &Sealer::new(&[0; 32]).expect("a key"), "0")
    }

    fn way(active: &ActiveConfig, provider: &str, of_key: Option<&str>, combo: Option<&str>) -> String {
        let mut choice = choose(active, &format!("{provider}/m"), None, RoutingHints::default()).expect("a choice");
        active.outbound.apply(&mut choice, Some(&key(of_key)), combo);
        choice.targets[0].origin.proxy().map_or_else(|| DIRECT.to_owned(), |proxy| proxy.id.to_string())
    }

    #[test]
    fn the_most_specific_level_wins() {
        let active = active();
        for (provider, of_key, combo, expected) in [
            ("plain", None, None, "direct"),
            ("behind", None, None, "global:"),
            ("lost", None, None, "provider:gone"),
            ("plain", None, Some("c"), "combo:c"),
            ("behind", None, Some("c"), "combo:c"),
            ("behind", None, Some("d"), "direct"),
            ("behind", None, Some("of-no-proxy"), "global:"),
            ("behind", Some("key:k"), Some("c"), "key:k"),
            ("behind", Some("direct"), Some("c"), "direct"),
            ("plain", Some("key:gone"), None, "key:gone"),
        ] {
            assert_eq!(way(&active, provider, of_key, combo), expected, "{provider} {of_key:?} {combo:?}");
        }
    }

    #[test]
    fn a_detour_is_made_once_and_shares_what_is_learnt() {
        let active = active();
        let detour = || {
            let mut choice = choose(&active, "plain/m", None, RoutingHints::default()).expect("a choice");
            active.outbound.apply(&mut choice, Some(&key(Some("key:k"))), None);
            choice.targets.remove(0)
        };
        let (one, other) = (detour(), detour());
        assert!(Arc::ptr_eq(&one, &other));
        let plain = active.targets.iter().flatten().find(|target| target.connection.id == "plain").expect("there");
        assert!(!Arc::ptr_eq(&one, plain) && Arc::ptr_eq(&one.hot, &plain.hot));
        assert_ne!(one.origin, plain.origin, "pools are apart");
    }
}
