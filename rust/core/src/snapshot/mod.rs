//! The snapshot: the whole routing configuration as one immutable document. The control plane compiles it, and the
//! relay replaces it atomically. `docs/explanation/contracts.md` documents the JSON format.
//!
//! Reading order: [`key`] (callers), [`connection`] (upstream connections) with [`api`], [`settings`] (global settings),
//! [`document`] with [`prices`] (the JSON document), then [`Snapshot`], which requests query.

mod api;
mod connection;
mod document;
mod key;
mod prices;
mod settings;

pub use api::{ModelApi, Protocol};
pub use connection::{Auth, Connection, Model, PersistedState, PromptCacheMode, ProxyRecord, ProxyScheme, DIRECT};
pub use key::{CacheDefaultMode, CatalogScope, Key, ManagementToken, ServiceMode, StreamDefaultMode, TokenScope};
pub use settings::{BareModels, CacheSettings, CaptureSettings, Settings, UnpricedModels};

use crate::context::ContextSettings;
use crate::error::{Error, ErrorKind};
use crate::facts::FactTable;
use crate::group::{path_text, GroupTree};
use crate::guardrail::Guardrails;
use crate::ip_filter::IpFilter;
use crate::model_name::{self, is_named, Case};
use crate::price::Price;
use crate::resilience::Resilience;
use crate::secret::SecretHash;
use crate::strategy::auto::is_auto;
use crate::strategy::{AccountStrategies, Combo};
use document::{use_canonical_names, Document, Mapping};
use prices::Prices;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// The configuration, indexed for the lookups of a request.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub version: u64,
    pub settings: Settings,
    pub resilience: Arc<Resilience>,
    pub cache: CacheSettings,
    pub capture: CaptureSettings,
    pub guardrails: Guardrails,
    pub context: ContextSettings,
    pub local_token_hash: Option<SecretHash>,
    /// Sorted by priority, then by id.
    pub connections: Vec<Arc<Connection>>,
    pub account_strategies: AccountStrategies,
    pub models: Vec<Model>,
    pub combos: Vec<Combo>,
    /// The price of one search at the most expensive of the allowed search providers, in micro-dollars.
    pub search_usd_micros: u64,
    pub proxies: Vec<ProxyRecord>,
    pub ip_filter: IpFilter,
    aliases: HashMap<String, String>,
    /// The first mapping that matches applies.
    mappings: Vec<Mapping>,
    keys: HashMap<SecretHash, Arc<Key>>,
    groups: GroupTree,
    sessions: HashMap<SecretHash, (Arc<str>, bool, u64)>,
    tokens: HashMap<SecretHash, Arc<ManagementToken>>,
    by_prefix: HashMap<String, Vec<usize>>,
    prices: Prices,
    model_index: HashMap<String, usize>,
    /// The provider's spelling of each model whose canonical name differs from it.
    spellings: HashMap<String, String>,
    /// Models by name without prefix.
    by_bare: HashMap<String, Vec<usize>>,
    /// Models whose names end in a date, by name without prefix and date.
    by_undated: HashMap<String, Vec<usize>>,
}

/// The document could not be parsed as a snapshot.
#[derive(Debug, thiserror::Error)]
#[error("the snapshot cannot be read: {0}")]
pub struct Unreadable(#[from] serde_json::Error);

impl Snapshot {
    pub fn parse(json: &[u8]) -> Result<Self, Unreadable> {
        let mut document: Document = serde_json::from_slice(json)?;
        let spellings = use_canonical_names(&mut document);
        let facts: HashMap<String, Arc<FactTable>> =
            std::mem::take(&mut document.facts).into_iter().map(|(name, table)| (name, Arc::new(table))).collect();
        for connection in &mut document.connections {
            let table = |name: &str| facts.get(name).cloned().unwrap_or_default();
            connection.facts = table(&connection.facts_name);
            for api in &mut connection.apis {
                api.facts = table(&api.facts_name);
            }
        }
        let mut connections: Vec<Arc<Connection>> = document.connections.into_iter().map(Arc::new).collect();
        connections.sort_by(|a, b| (a.priority, &a.id).cmp(&(b.priority, &b.id)));
        let by_prefix = by_prefix(&connections);
        let by_bare = by_name(&document.models, |bare| Some(bare));
        let by_undated = by_name(&document.models, model_name::without_date);
        let model_index = document.models.iter().enumerate().map(|(index, model)| (model.id.clone(), index)).collect();
        let groups = GroupTree::new(document.groups);
        for key in &mut document.keys {
            key.groups = groups.path(key.group.as_deref());
            key.group_path = path_text(&key.groups);
        }
        Ok(Self {
            groups,
            spellings,
            prices: Prices::new(document.prices),
            model_index,
            by_bare,
            by_undated,
            version: document.version,
            resilience: Arc::new(document.resilience),
            settings: document.settings,
            cache: document.cache,
            capture: document.capture,
            guardrails: document.guardrails,
            context: document.context,
            local_token_hash: document.local_token_hash,
            connections,
            account_strategies: document.account_strategies,
            models: document.models,
            combos: document.combos,
            search_usd_micros: document.search_usd_micros,
            proxies: document.proxies,
            ip_filter: document.ip_filter,
            aliases: document.aliases,
            mappings: document.mappings,
            keys: document.keys.into_iter().map(|key| (key.hash, Arc::new(key))).collect(),
            sessions: document
                .sessions
                .into_iter()
                .map(|session| (session.hash, (Arc::from(session.user_id), session.manages, session.expires_at_ms)))
                .collect(),
            tokens: document.tokens.into_iter().map(|token| (token.hash, Arc::new(token))).collect(),
            by_prefix,
        })
    }

    /// Looks up a key by the hash of a 256-bit random secret. The time of a failed lookup reveals nothing about other
    /// keys.
    pub fn key(&self, hash: &SecretHash) -> Option<&Arc<Key>> {
        self.keys.get(hash)
    }

    pub fn has_group(&self, id: &str) -> bool {
        self.groups.contains(id)
    }

    /// Returns the user of the session, and whether the user may manage the gateway.
    pub fn session(&self, hash: &SecretHash, now_ms: u64) -> Option<(Arc<str>, bool)> {
        let (user_id, manages, expires_at_ms) = self.sessions.get(hash)?;
        (*expires_at_ms > now_ms).then(|| (Arc::clone(user_id), *manages))
    }

    pub fn token(&self, hash: &SecretHash) -> Option<&Arc<ManagementToken>> {
        self.tokens.get(hash)
    }

    /// Finds a key by id with a linear scan. Used only for the few calls that the control plane makes on behalf of a
    /// key.
    pub fn key_of(&self, id: &str) -> Option<&Arc<Key>> {
        self.keys.values().find(|key| key.id == id)
    }

    /// Returns the connections with this prefix, most preferred first, as indices into `connections`.
    pub fn candidates(&self, prefix: &str) -> &[usize] {
        self.by_prefix.get(prefix).map_or(&[], Vec::as_slice)
    }

    pub fn keys(&self) -> impl Iterator<Item = &Arc<Key>> {
        self.keys.values()
    }

    /// Returns an entry of the model list. `id` includes the prefix.
    pub fn model(&self, id: &str) -> Option<&Model> {
        self.model_index.get(id).and_then(|&index| self.models.get(index))
    }

    /// Returns the models with this name without prefix.
    pub fn models_named(&self, bare: &str) -> impl Iterator<Item = &Model> {
        self.by_bare.get(bare).into_iter().flatten().filter_map(|&index| self.models.get(index))
    }

    /// Returns the models with this name without prefix and date.
    pub fn models_dated(&self, undated: &str) -> impl Iterator<Item = &Model> {
        self.by_undated.get(undated).into_iter().flatten().filter_map(|&index| self.models.get(index))
    }

    /// Returns the price of a model. `model` includes the prefix.
    pub fn price(&self, model: &str) -> Option<&Price> {
        self.prices.get(model)
    }

    /// Returns the canonical name for a model, alias or combo in a request. A name that an operator or a provider
    /// configured is valid in any form.
    pub fn name<'n>(&self, spelling: &'n str) -> Result<Cow<'n, str>, Error> {
        let fault = match model_name::canonical(spelling) {
            Ok(Cow::Borrowed(name)) => return Ok(Cow::Borrowed(name)),
            Ok(Cow::Owned(name)) if !self.is_written_down(spelling) => return Ok(Cow::Owned(name)),
            Err(fault) if !self.is_written_down(spelling) && !self.model_index.contains_key(spelling) => fault,
            _ => return Ok(Cow::Borrowed(spelling)),
        };
        Err(Error::client(ErrorKind::InvalidRequest, format!("`model` {fault}.")).about("model"))
    }

    fn is_written_down(&self, name: &str) -> bool {
        let combo = name.strip_prefix("combo/").unwrap_or(name);
        self.aliases.contains_key(name) || self.combos.iter().any(|one| one.name == name || one.name == combo)
    }

    /// Returns the provider's spelling of a model by its canonical name with prefix.
    pub fn spelling(&self, name: &str) -> Option<&str> {
        self.spellings.get(name).map(String::as_str)
    }

    /// Returns every alias and its target.
    pub fn aliases(&self) -> impl Iterator<Item = (&str, &str)> {
        self.aliases.iter().map(|(alias, target)| (alias.as_str(), target.as_str()))
    }

    /// Returns whether the model lists of both snapshots are equal: models, aliases, combos and the providers behind
    /// them.
    pub fn lists_the_same(&self, other: &Self) -> bool {
        let is_served_alike = |a: &Arc<Connection>, b: &Arc<Connection>| {
            (&a.prefixes, &a.provider, a.dialect) == (&b.prefixes, &b.provider, b.dialect)
        };
        let is_listed_alike =
            |a: &Combo, b: &Combo| (&a.name, a.rules.context_length) == (&b.name, b.rules.context_length);
        are_alike(&self.connections, &other.connections, is_served_alike)
            && self.aliases == other.aliases
            && are_alike(&self.combos, &other.combos, is_listed_alike)
            && self.models == other.models
    }

    /// Returns the target of an alias or of a model mapping. An alias or combo with exactly this name has precedence
    /// over a pattern that matches it.
    pub fn alias(&self, name: &str) -> Option<&str> {
        self.aliases.get(name).map(String::as_str).or_else(|| self.mapped(name))
    }

    fn mapped(&self, name: &str) -> Option<&str> {
        if self.mappings.is_empty() || is_auto(name) || name.starts_with("combo/") {
            return None;
        }
        let mapping = self.mappings.iter().find(|mapping| is_named(&mapping.pattern, name, Case::Exact))?;
        self.combos.iter().all(|combo| combo.name != name).then_some(mapping.combo.as_str())
    }
}

/// Indexes the connections by prefix.
fn by_prefix(connections: &[Arc<Connection>]) -> HashMap<String, Vec<usize>> {
    let mut found: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, connection) in connections.iter().enumerate() {
        for prefix in &connection.prefixes {
            found.entry(prefix.clone()).or_default().push(index);
        }
    }
    found
}

/// Indexes models by a part of their name without prefix.
fn by_name(models: &[Model], part: impl Fn(&str) -> Option<&str>) -> HashMap<String, Vec<usize>> {
    let mut found: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, model) in models.iter().enumerate() {
        if let Some(name) = model.id.split_once('/').and_then(|(_, bare)| part(bare)) {
            found.entry(name.to_owned()).or_default().push(index);
        }
    }
    found
}

fn are_alike<T>(one: &[T], other: &[T], is_alike: impl Fn(&T, &T) -> bool) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| is_alike(a, b))
}

#[cfg(test)]
mod tests;
