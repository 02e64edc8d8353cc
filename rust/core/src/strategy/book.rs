//! Compiles all combos of a snapshot: resolves names, expands steps to connections, fills in prices and context
//! windows, and fills the channels of `auto`. It runs once per snapshot, so that decisions need no lookups.

use super::auto;
use super::combo::{Combo, Strategy, What};
use super::facts::Facts;
use super::pool::{self, Pool};
use super::ready::{Candidate, Ready, To};
use super::rules::ToolFilter;
use super::{identity, MAX_DEPTH};
use crate::model_name::{is_named, Case};
use crate::snapshot::{Connection, Model, Snapshot};
use std::collections::HashMap;
use std::sync::Arc;

/// The most candidates of one combo.
const MAX_CANDIDATES: usize = 512;
const PREFIX: &str = "combo/";

/// The compiled combos of a snapshot.
#[derive(Debug, Default)]
pub struct Book {
    ready: Vec<Ready>,
    by_name: HashMap<String, usize>,
}

impl Book {
    /// Compiles the combos of a snapshot. `is_usable` returns whether a connection can be called.
    pub fn compile(snapshot: &Snapshot, is_usable: &dyn Fn(usize, &Connection) -> bool) -> Self {
        let mut by_name: HashMap<String, usize> =
            snapshot.combos.iter().enumerate().map(|(at, combo)| (combo.name.clone(), at)).collect();
        let spread = Spread { snapshot, is_usable, by_name: &by_name };
        let mut ready: Vec<Ready> = snapshot.combos.iter().map(|combo| spread.ready(combo)).collect();
        cut_cycles(&mut ready);
        let pool = Pool::new(spread.chats(), snapshot);
        // An operator's combo of the same name has precedence.
        let made = pool.channels().into_iter().chain(pool.families());
        ready.extend(made.filter(|ready| !by_name.contains_key(&ready.name)));
        for (at, one) in ready.iter().enumerate().skip(snapshot.combos.len()) {
            by_name.insert(one.name.clone(), at);
        }
        Self { ready, by_name }
    }

    /// Compiles a book with a single channel of `auto`, filled with the best candidates that `admits` accepts. Returns
    /// `None` if no channel has this name.
    pub fn of_channel(
        name: &str,
        snapshot: &Snapshot,
        is_usable: &dyn Fn(usize, &Connection) -> bool,
        admits: &dyn Fn(&Candidate) -> bool,
    ) -> Option<Self> {
        let by_name = HashMap::new();
        let mut candidates = Spread { snapshot, is_usable, by_name: &by_name }.chats();
        candidates.retain(admits);
        let ready = Pool::new(candidates, snapshot).channel(name)?;
        Some(Self { by_name: HashMap::from([(ready.name.clone(), 0)]), ready: vec![ready] })
    }

    /// Returns the combo for a model name: its own name, `combo/<name>`, or an `auto` channel.
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
            // The connections of a step share the step's weight.
            let spread = candidates.len().saturating_sub(from).max(1) as f32;
            for candidate in candidates.iter_mut().skip(from) {
                candidate.known.weight = step.weight as f32 / spread;
                candidate.known.capacity = combo.params.concurrency_per_model;
            }
        }
        if combo.strategy == Strategy::Auto {
            for (rating, candidate) in pool::rate(&candidates, self.snapshot).iter().zip(&mut candidates) {
                candidate.known.prior = rating.prior(true);
            }
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
            is_cut: false,
        }
    }

    /// Expands a pattern to every listed model that matches. A plain name expands to itself.
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
    fn chats(&self) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for model in &self.snapshot.models {
            if answers_chats(model) {
                self.model(&Arc::from(model.id.as_str()), None, 0, &mut candidates);
            }
        }
        candidates
    }
}

/// Returns whether a model is a chat model, by its type, or by its name if the type is unknown. The control plane takes
/// the type from the operator, the catalogue, the provider's list or the name, in this order.
fn answers_chats(model: &Model) -> bool {
    model.mode == "chat" || model.mode.is_empty() && auto::is_chat_model(&model.id)
}

/// Removes references that close a cycle or exceed the maximum depth. The control plane rejects cycles, so this only
/// guards against an invalid document.
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
