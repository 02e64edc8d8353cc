//! All combos of a snapshot made ready: names looked up, steps spread over connections, prices and sizes put in place, `auto`
//! channels filled. Built once per snapshot, so that a decision looks nothing up.

use super::auto::{self, Channel};
use super::combo::{Combo, Params, Step, Strategy, What};
use super::facts::{Facts, Prior};
use super::family;
use super::pack::Pack;
use super::rules::{Rules, ToolFilter};
use super::{identity, MAX_DEPTH};
use crate::model_name::{is_named, Case};
use crate::snapshot::{Connection, Snapshot};
use std::collections::HashMap;
use std::sync::Arc;

/// One combo spreads over at most this many candidates.
const MAX_CANDIDATES: usize = 512;
const PREFIX: &str = "combo/";
/// How dear the cheapest is that costs anything, where what is free is 0 and the dearest 1.
const CHEAPEST: f32 = 0.1;

/// The target that a candidate stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum To {
    /// A model, as its provider knows it, over one connection of the snapshot.
    Connection { index: usize, model: Arc<str> },
    /// Another combo, by its place in the book.
    Combo(usize),
}

/// One thing that a combo may try.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub to: To,
    /// Which step of the combo it comes from.
    pub step: usize,
    /// The model with its prefix, as prices and keys know it; a nested combo's name.
    pub name: Arc<str>,
    /// The connection that serves it, with every prefix of its provider; none of a nested combo.
    pub connection: Option<Arc<Connection>>,
    /// The facts that do not change while the snapshot is in use.
    pub known: Facts,
}

/// A combo, ready for decisions.
#[derive(Debug, Clone)]
pub struct Ready {
    /// Stays the same over snapshots.
    pub id: String,
    pub name: String,
    pub strategy: Strategy,
    pub params: Params,
    pub rules: Arc<Rules>,
    /// Of the rules: which tools are sent, by name.
    pub tools: Option<ToolFilter>,
    pub steps: Vec<Step>,
    pub candidates: Vec<Candidate>,
    pub is_auto: bool,
}

/// All combos of a snapshot made ready: names looked up, steps spread over connections, prices and sizes put in place, `auto`
/// channels filled.
#[derive(Debug, Default)]
pub struct Book {
    ready: Vec<Ready>,
    by_name: HashMap<String, usize>,
}

impl Book {
    /// `is_usable` says whether a connection can be asked at all.
    pub fn compile(snapshot: &Snapshot, is_usable: &dyn Fn(usize, &Connection) -> bool) -> Self {
        let mut by_name: HashMap<String, usize> =
            snapshot.combos.iter().enumerate().map(|(at, combo)| (combo.name.clone(), at)).collect();
        let spread = Spread { snapshot, is_usable, by_name: &by_name };
        let mut ready: Vec<Ready> = snapshot.combos.iter().map(|combo| spread.ready(combo)).collect();
        cut_cycles(&mut ready);
        let pool = spread.pool();
        // An operator's combo of the same name wins.
        let channels = auto::CHANNELS.iter().filter(|channel| !by_name.contains_key(channel.name));
        ready.extend(channels.map(|channel| pool.channel(channel)).collect::<Vec<_>>());
        let families = pool.families().into_iter().filter(|ready| !by_name.contains_key(&ready.name));
        ready.extend(families.collect::<Vec<_>>());
        for (at, one) in ready.iter().enumerate().skip(snapshot.combos.len()) {
            by_name.insert(one.name.clone(), at);
        }
        Self { ready, by_name }
    }

    /// The combo that a model's name means: its own name, `combo/<name>`, or an `auto` channel.
    pub fn find(&self, model: &str) -> Option<usize> {
        self.by_name.get(model).or_else(|| self.by_name.get(model.strip_prefix(PREFIX)?)).copied()
    }

    pub fn get(&self, at: usize) -> Option<&Ready> {
        self.ready.get(at)
    }

    pub fn all(&self) -> &[Ready] {
        &self.ready
    }
}

struct Spread<'a> {
    snapshot: &'a Snapshot,
    is_usable: &'a dyn Fn(usize, &Connection) -> bool,
    by_name: &'a HashMap<String, usize>,
}

impl Spread<'_> {
    fn ready(&self, combo: &Combo) -> Ready {
        let mut candidates = Vec::new();
        for (step_at, step) in combo.steps.iter().enumerate() {
            let from = candidates.len();
            match &step.what {
                What::ComboRef { combo } => {
                    if let Some(&at) = self.by_name.get(combo.strip_prefix(PREFIX).unwrap_or(combo)) {
                        let known = Facts { id: identity(&["combo", combo]), ..Facts::default() };
                        let name = Arc::from(combo.as_str());
                        candidates.push(Candidate { to: To::Combo(at), step: step_at, name, connection: None, known });
                    }
                }
                What::Model { model, connection_id } => {
                    for name in self.names(model) {
                        self.model(&name, connection_id.as_deref(), step_at, &mut candidates);
                    }
                }
            }
            candidates.truncate(MAX_CANDIDATES);
            // A step's weight is the step's: its connections share it.
            let spread = candidates.len().saturating_sub(from).max(1) as f32;
            for candidate in candidates.iter_mut().skip(from) {
                candidate.known.weight = step.weight as f32 / spread;
                candidate.known.capacity = combo.params.concurrency_per_model;
            }
        }
        if combo.strategy == Strategy::Auto {
            rate(&mut candidates, None, self.snapshot);
        }
        Ready {
            id: combo.id.clone(),
            name: combo.name.clone(),
            strategy: combo.strategy,
            params: combo.params.clone(),
            tools: combo.rules.tool_filter_regex.as_deref().map(ToolFilter::new),
            rules: Arc::new(combo.rules.clone()),
            steps: combo.steps.clone(),
            candidates,
            is_auto: false,
        }
    }

    /// A name is itself; a pattern is every listed model that it matches.
    fn names(&self, model: &str) -> Vec<Arc<str>> {
        if !model.contains('*') {
            return vec![Arc::from(model)];
        }
        let listed = self.snapshot.models.iter().filter(|listed| is_named(model, &listed.id, Case::Exact));
        listed.take(MAX_CANDIDATES).map(|listed| Arc::from(listed.id.as_str())).collect()
    }

    fn model(&self, name: &Arc<str>, only: Option<&str>, step: usize, candidates: &mut Vec<Candidate>) {
        let Some((prefix, model)) = name.split_once('/') else { return };
        let model: Arc<str> = Arc::from(self.snapshot.spelling(name).unwrap_or(model));
        let price = self.snapshot.price(name);
        let listed = self.snapshot.model(name);
        let capabilities = listed.and_then(|model| model.capabilities.as_ref());
        let takes_pictures = capabilities.map(|known| known.iter().any(|one| one == "vision"));
        for &index in self.snapshot.candidates(prefix) {
            let Some(connection) = self.snapshot.connections.get(index) else { continue };
            if only.is_some_and(|only| only != connection.id) || !(self.is_usable)(index, connection) {
                continue;
            }
            let known = Facts {
                takes_pictures,
                id: identity(&[&connection.id, &model]),
                price_input: price.map(|price| price.input),
                price_output: price.map(|price| price.output),
                context_window: listed.and_then(|model| model.context_length),
                ..Facts::default()
            };
            let to = To::Connection { index, model: Arc::clone(&model) };
            let connection = Some(Arc::clone(connection));
            candidates.push(Candidate { to, step, name: Arc::clone(name), connection, known });
        }
    }

    /// Every chat model over every connection of its provider.
    fn pool(&self) -> Pool<'_> {
        let mut candidates = Vec::new();
        for model in &self.snapshot.models {
            if auto::is_chat_model(&model.id) {
                self.model(&Arc::from(model.id.as_str()), None, 0, &mut candidates);
            }
        }
        Pool { snapshot: self.snapshot, candidates }
    }
}

struct Pool<'a> {
    snapshot: &'a Snapshot,
    candidates: Vec<Candidate>,
}

impl Pool<'_> {
    fn channel(&self, channel: &Channel) -> Ready {
        let is_free = |one: &Candidate| one.known.price_input == Some(0) && one.known.price_output == Some(0);
        let candidates = if channel.is_free {
            self.candidates.iter().filter(|one| is_free(one)).cloned().collect()
        } else {
            self.candidates.clone()
        };
        self.fill(channel.name, channel, candidates)
    }

    /// `auto/<family>` of every family, but for those whose name is a channel's.
    fn families(&self) -> Vec<Ready> {
        let families = family::families(self.candidates.iter().map(|one| &*one.name));
        let named = families.into_iter().map(|(family, places)| (format!("auto/{family}"), places));
        let free = named.filter(|(name, _)| auto::CHANNELS.iter().all(|channel| channel.name != name));
        free.map(|(name, places)| {
            let candidates = places.into_iter().filter_map(|place| self.candidates.get(place).cloned()).collect();
            self.fill(&name, &auto::OF_FAMILY, candidates)
        })
        .collect()
    }

    fn fill(&self, name: &str, channel: &Channel, mut candidates: Vec<Candidate>) -> Ready {
        rate(&mut candidates, Some(channel), self.snapshot);
        keep_best(&mut candidates, channel.pack);
        Ready {
            id: name.to_owned(),
            name: name.to_owned(),
            strategy: if channel.is_lkgp { Strategy::Lkgp } else { Strategy::Auto },
            params: Params { pack: channel.pack, ..Params::default() },
            rules: Arc::default(),
            tools: None,
            steps: Vec::new(),
            candidates,
            is_auto: true,
        }
    }
}

/// Keeps as many as a channel has: the best few by each pack, and beside them the best by its own. In the order of its own.
fn keep_best(candidates: &mut Vec<Candidate>, own: Pack) {
    let merit = |one: &Candidate, pack: Pack| one.known.prior.merit(pack);
    candidates.sort_by(|a, b| merit(b, own).total_cmp(&merit(a, own)));
    if candidates.len() <= auto::MAX_CANDIDATES {
        return;
    }
    let mut is_kept = vec![false; candidates.len()];
    let mut places: Vec<usize> = (0..candidates.len()).collect();
    for &pack in Pack::ALL {
        let best_first =
            |a: &usize, b: &usize| merit(&candidates[*b], pack).total_cmp(&merit(&candidates[*a], pack)).then(a.cmp(b));
        places.select_nth_unstable_by(auto::BEST_OF_EACH_PACK - 1, best_first);
        places[..auto::BEST_OF_EACH_PACK].iter().for_each(|&place| is_kept[place] = true);
    }
    let room = auto::MAX_CANDIDATES - is_kept.iter().filter(|kept| **kept).count();
    is_kept.iter_mut().filter(|kept| !**kept).take(room).for_each(|kept| *kept = true);
    let mut kept = is_kept.into_iter();
    candidates.retain(|_| kept.next().unwrap_or(false));
}

/// Puts into each candidate what it deserves beforehand, in comparison with the others.
fn rate(candidates: &mut [Candidate], channel: Option<&Channel>, snapshot: &Snapshot) {
    let price = |one: &Candidate| Some((one.known.price_input? * 3 + one.known.price_output? * 2) as f32 / 5.0);
    // Prices span five powers of ten: their logarithm compares them.
    let log = |price: f32| (1.0 + price).ln();
    let prices = candidates.iter().filter_map(price).filter(|price| *price > 0.0).map(log);
    let (cheapest, dearest) =
        prices.fold((f32::MAX, 0.0), |(least, most): (f32, f32), price| (least.min(price), most.max(price)));
    // From nothing to the dearest of the pool. The unknown stands in the middle of what costs something.
    let dearness_of = |price: f32| match log(price) {
        _ if price <= 0.0 => 0.0,
        price if dearest > cheapest => CHEAPEST + (1.0 - CHEAPEST) * (price - cheapest) / (dearest - cheapest),
        _ => 1.0,
    };
    for one in candidates {
        let dearness = price(one).map(dearness_of);
        let task = channel.and_then(|channel| channel.task);
        let is_fit = task.is_none_or(|task| task.fits(&one.name, one.known.takes_pictures));
        let tier = match &one.to {
            To::Connection { index, .. } => snapshot.connections.get(*index).map_or(0.0, |connection| {
                let preferred = 1.0 / (1.0 + connection.priority as f32 / 10.0);
                if is_own_machine(&connection.base_url) {
                    1.0
                } else {
                    0.5 * preferred
                }
            }),
            To::Combo(_) => 0.5,
        };
        one.known.prior = Prior {
            cheapness: dearness.map_or(Prior::UNKNOWN, |dearness| 1.0 - dearness),
            // A model's price is the best guess at what it can do that every provider gives.
            fit: if is_fit { 0.5 + 0.5 * dearness.unwrap_or(Prior::UNKNOWN) } else { 0.0 },
            tier,
        };
    }
}

fn is_own_machine(base_url: &str) -> bool {
    ["http://127.0.0.1", "http://localhost", "http://[::1]"].iter().any(|start| base_url.starts_with(start))
}

/// Control refuses cycles; should a document have one all the same, the reference that closes it leads nowhere. So does one
/// that lies too deep.
fn cut_cycles(ready: &mut [Ready]) {
    fn visit(at: usize, ready: &mut [Ready], path: &mut Vec<usize>, done: &mut [bool]) {
        path.push(at);
        let mut nested: Vec<usize> = Vec::new();
        ready[at].candidates.retain(|candidate| match candidate.to {
            To::Combo(to) => {
                let is_open = !path.contains(&to) && path.len() < MAX_DEPTH;
                if is_open {
                    nested.push(to);
                }
                is_open
            }
            To::Connection { .. } => true,
        });
        for to in nested {
            if !done[to] {
                visit(to, ready, path, done);
            }
        }
        path.pop();
        done[at] = true;
    }
    let mut done = vec![false; ready.len()];
    for at in 0..ready.len() {
        if !done[at] {
            visit(at, ready, &mut Vec::new(), &mut done);
        }
    }
}

#[cfg(test)]
#[path = "book_tests.rs"]
mod tests;
