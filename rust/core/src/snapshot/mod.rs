//! The snapshot: the whole routing configuration as one immutable document, compiled by control and swapped in whole.
//! Its JSON form is written down in `docs/explanation/contracts.md`.
//!
//! Read in this order: [`key`] (who calls), [`connection`] (where calls go), [`settings`] (what holds for all), [`document`]
//! with [`prices`] (what control writes), then [`Snapshot`], which answers the questions of a request.

mod connection;
mod document;
mod key;
mod prices;
mod settings;

pub use connection::{Auth, Connection, Model, PersistedState, ProxyRecord, ProxyScheme, DIRECT};
pub use key::{
    CacheDefaultMode, CatalogScope, Inexpressible, Key, ManagementToken, ServiceMode, StreamDefaultMode, TokenScope,
};
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

/// The configuration, indexed for the questions that a request asks.
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
    /// By priority, then by id.
    pub connections: Vec<Arc<Connection>>,
    pub account_strategies: AccountStrategies,
    pub models: Vec<Model>,
    pub combos: Vec<Combo>,
    /// What a search costs at the dearest of the providers that may be asked, micro-dollars.
    pub search_usd_micros: u64,
    pub proxies: Vec<ProxyRecord>,
    pub ip_filter: IpFilter,
    aliases: HashMap<String, String>,
    /// The one that holds first.
    mappings: Vec<Mapping>,
    keys: HashMap<SecretHash, Arc<Key>>,
    groups: GroupTree,
    sessions: HashMap<SecretHash, (Arc<str>, bool, u64)>,
    tokens: HashMap<SecretHash, Arc<ManagementToken>>,
    by_prefix: HashMap<String, Vec<usize>>,
    prices: Prices,
    model_index: HashMap<String, usize>,
    /// How providers spell models whose names have another spelling here.
    spellings: HashMap<String, String>,
    /// Models by their names without the prefix.
    by_bare: HashMap<String, Vec<usize>>,
    /// Models whose names end in a date, by their names without prefix and date.
    by_undated: HashMap<String, Vec<usize>>,
}

/// The document is not a snapshot.
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
            connection.facts = facts.get(&connection.facts_name).cloned().unwrap_or_default();
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

    /// Looked up by the hash of a 256-bit random secret: what time a miss takes tells nothing of any other key.
    pub fn key(&self, hash: &SecretHash) -> Option<&Arc<Key>> {
        self.keys.get(hash)
    }

    pub fn has_group(&self, id: &str) -> bool {
        self.groups.contains(id)
    }

    /// Whose session it is, and whether that person may manage the gateway.
    pub fn session(&self, hash: &SecretHash, now_ms: u64) -> Option<(Arc<str>, bool)> {
        let (user_id, manages, expires_at_ms) = self.sessions.get(hash)?;
        (*expires_at_ms > now_ms).then(|| (Arc::clone(user_id), *manages))
    }

    pub fn token(&self, hash: &SecretHash) -> Option<&Arc<ManagementToken>> {
        self.tokens.get(hash)
    }

    /// By id; a walk over all keys, for the few calls that control makes for one.
    pub fn key_of(&self, id: &str) -> Option<&Arc<Key>> {
        self.keys.values().find(|key| key.id == id)
    }

    /// The connections that a prefix addresses, most preferred first, as indices into `connections`.
    pub fn candidates(&self, prefix: &str) -> &[usize] {
        self.by_prefix.get(prefix).map_or(&[], Vec::as_slice)
    }

    pub fn keys(&self) -> impl Iterator<Item = &Arc<Key>> {
        self.keys.values()
    }

    /// An entry of the model list. `id` with its prefix.
    pub fn model(&self, id: &str) -> Option<&Model> {
        self.model_index.get(id).and_then(|&index| self.models.get(index))
    }

    /// Models of this name without their prefix.
    pub fn models_named(&self, bare: &str) -> impl Iterator<Item = &Model> {
        self.by_bare.get(bare).into_iter().flatten().filter_map(|&index| self.models.get(index))
    }

    /// Models of this name without their prefix and their date.
    pub fn models_dated(&self, undated: &str) -> impl Iterator<Item = &Model> {
        self.by_undated.get(undated).into_iter().flatten().filter_map(|&index| self.models.get(index))
    }

    /// `model` with its prefix.
    pub fn price(&self, model: &str) -> Option<&Price> {
        self.prices.get(model)
    }

    /// The one name of what a caller asks for: a model's, an alias's or a combo's. A name that an operator or a provider wrote
    /// down is that name however it looks.
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

    /// A model as its provider spells it, by its one name with the prefix.
    pub fn spelling(&self, name: &str) -> Option<&str> {
        self.spellings.get(name).map(String::as_str)
    }

    /// Every alias with what it stands for.
    pub fn aliases(&self) -> impl Iterator<Item = (&str, &str)> {
        self.aliases.iter().map(|(alias, target)| (alias.as_str(), target.as_str()))
    }

    /// Whether lists of models are made of the same in both: models, names for them, combos, and who serves what.
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

    /// What a name stands for where it is an alias, of a model or a combo, or a model that is mapped to a combo. An alias and a
    /// combo of a name go before a pattern that matches it.
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

/// The connections that each prefix addresses, as indices.
fn by_prefix(connections: &[Arc<Connection>]) -> HashMap<String, Vec<usize>> {
    let mut found: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, connection) in connections.iter().enumerate() {
        for prefix in &connection.prefixes {
            found.entry(prefix.clone()).or_default().push(index);
        }
    }
    found
}

/// The models of each name without a prefix, as indices.
/// Models by what is made of their names without the prefix.
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
