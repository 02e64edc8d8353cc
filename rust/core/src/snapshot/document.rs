//! The snapshot document that the control plane writes, and the canonical names of its models.

use super::connection::{Connection, Model, ProxyRecord};
use super::key::{Key, ManagementToken};
use super::settings::{CacheSettings, CaptureSettings, Settings};
use crate::context::ContextSettings;
use crate::facts::FactTables;
use crate::group::Group;
use crate::guardrail::Guardrails;
use crate::ip_filter::IpFilter;
use crate::limit::LimitScope;
use crate::model_name;
use crate::price::Price;
use crate::resilience::Resilience;
use crate::secret::{hash_from_hex, optional_hash, SecretHash};
use crate::strategy::{AccountStrategies, Combo, What};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

#[derive(Deserialize)]
pub struct Session {
    #[serde(deserialize_with = "hash_from_hex")]
    pub hash: SecretHash,
    pub user_id: String,
    pub expires_at_ms: u64,
    /// Documents written before roles existed have only sessions of operators.
    #[serde(default = "yes")]
    pub manages: bool,
}

#[derive(Deserialize)]
pub struct ModelPrice {
    pub model: String,
    #[serde(flatten)]
    pub price: Price,
}

#[derive(Deserialize)]
pub struct Document {
    pub version: u64,
    #[serde(default)]
    pub settings: Settings,
    #[serde(default)]
    pub resilience: Resilience,
    #[serde(default)]
    pub cache: CacheSettings,
    #[serde(default)]
    pub capture: CaptureSettings,
    #[serde(default)]
    pub guardrails: Guardrails,
    #[serde(default)]
    pub context: ContextSettings,
    #[serde(default, deserialize_with = "optional_hash")]
    pub local_token_hash: Option<SecretHash>,
    #[serde(default)]
    pub keys: Vec<Key>,
    #[serde(default)]
    pub groups: Vec<Group>,
    #[serde(default)]
    pub sessions: Vec<Session>,
    #[serde(default)]
    pub tokens: Vec<ManagementToken>,
    #[serde(default)]
    pub connections: Vec<Connection>,
    #[serde(default)]
    pub facts: FactTables,
    #[serde(default)]
    pub account_strategies: AccountStrategies,
    #[serde(default)]
    pub models: Vec<Model>,
    #[serde(default)]
    pub prices: Vec<ModelPrice>,
    #[serde(default)]
    pub combos: Vec<Combo>,
    #[serde(default)]
    pub aliases: HashMap<String, String>,
    #[serde(default)]
    pub mappings: Vec<Mapping>,
    #[serde(default)]
    pub search_usd_micros: u64,
    #[serde(default)]
    pub proxies: Vec<ProxyRecord>,
    #[serde(default)]
    pub ip_filter: IpFilter,
}

/// Maps models that match the pattern to a combo.
#[derive(Debug, Deserialize)]
pub struct Mapping {
    pub pattern: String,
    pub combo: String,
}

/// Renames every model of the document to its canonical name. Returns the provider's spelling of each renamed model.
pub fn use_canonical_names(document: &mut Document) -> HashMap<String, String> {
    let own = |name: &str| match model_name::canonical(name) {
        Ok(Cow::Owned(own)) if !name.contains('*') => Some(own),
        // A name without a canonical form stays unchanged. Patterns match every spelling.
        _ => None,
    };
    let mut spellings = HashMap::new();
    let is_other = |id: &str| own(id).is_some();
    let ids = document.models.iter().map(|model| &model.id);
    let listed: HashSet<String> =
        if ids.clone().any(|id| is_other(id)) { ids.cloned().collect() } else { HashSet::new() };
    document.models.retain_mut(|model| {
        let Some(name) = own(&model.id) else { return true };
        if listed.contains(&name) {
            return false;
        }
        if let Some((_, spelled)) = model.id.split_once('/') {
            if spellings.insert(name.clone(), spelled.to_owned()).is_some() {
                return false;
            }
        }
        model.id = name;
        true
    });
    // A price under the canonical name has precedence over a price under another spelling.
    let ids = document.prices.iter().map(|entry| &entry.model);
    let priced: HashSet<String> =
        if ids.clone().any(|id| is_other(id)) { ids.cloned().collect() } else { HashSet::new() };
    document.prices.retain_mut(|entry| {
        let Some(name) = own(&entry.model) else { return true };
        if priced.contains(&name) {
            return false;
        }
        entry.model = name;
        true
    });
    let rename = |name: &mut String| {
        if let Some(canonical) = own(name) {
            *name = canonical;
        }
    };
    for key in &mut document.keys {
        key.forced_model.iter_mut().for_each(rename);
        for limit in &mut key.limits {
            if let LimitScope::Model(name) = &mut limit.scope {
                rename(name);
            }
        }
    }
    document.aliases.values_mut().for_each(rename);
    for step in document.combos.iter_mut().flat_map(|combo| &mut combo.steps) {
        if let What::Model { model, .. } = &mut step.what {
            rename(model);
        }
    }
    spellings
}

fn yes() -> bool {
    true
}
