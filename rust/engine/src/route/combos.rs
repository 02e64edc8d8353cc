//! The combos of the current snapshot, and the choice of a combo's targets for one request.

use crate::clock;
use crate::route::accounts;
use crate::route::choice::{Choice, ComboChoice, ComboTarget, Remembered, MAX_LISTED_TARGETS};
use crate::route::permitted::{self, Permitted};
use crate::upstream::target::Target;
use fairlead_core::strategy::{
    auto, expand, Availability, Book, Candidate, Demand, Facts, Look, Memory, Obstacle, Pick, Random, Ready, Strategy,
    To,
};
use fairlead_core::{Error, ErrorKind, Key, Snapshot};
use parking_lot::Mutex;
use serde_json::{json, Value};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// The compiled combos of one snapshot and the state of their strategies.
#[derive(Debug, Default)]
pub struct Combos {
    pub book: Book,
    /// One entry per combo of the book, at the combo's index.
    memories: Vec<Remembered>,
    /// Channels of `auto` for keys with restricted models.
    permitted: Permitted,
}

/// The inputs of a combo's choice: one snapshot and its prepared connections.
#[derive(Debug, Clone, Copy)]
pub struct Reach<'a> {
    pub snapshot: &'a Snapshot,
    pub targets: &'a [Option<Arc<Target>>],
}

/// A combo of a book, restricted to one caller.
struct View<'a> {
    book: &'a Book,
    at: usize,
    /// One entry per combo of the book.
    memories: &'a [Remembered],
    reach: Reach<'a>,
    /// The key, if it may be denied some targets.
    key: Option<&'a Key>,
}

impl Combos {
    /// Compiles the combos. A combo keeps its state from `before` while its id stays the same.
    pub fn build(snapshot: &Snapshot, targets: &[Option<Arc<Target>>], before: &Combos) -> Self {
        let book = Book::compile(snapshot, &|index, _| targets.get(index).is_some_and(Option::is_some));
        let known: HashMap<&str, &Remembered> =
            before.book.all().iter().map(|ready| ready.id.as_str()).zip(&before.memories).collect();
        let memories = book
            .all()
            .iter()
            .map(|ready| known.get(ready.id.as_str()).map_or_else(fresh, |memory| Arc::clone(memory)))
            .collect();
        Self { book, memories, permitted: Permitted::default() }
    }

    /// Returns the ordered targets for one request to the combo at this index.
    pub fn choose(&self, reach: Reach<'_>, combo: usize, demand: &Demand, key: Option<&Key>) -> Result<Choice, Error> {
        self.admit_size(combo, demand)?;
        let own = self.permitted_book(reach, combo, key);
        let view = self.view(reach, combo, key, own.as_deref());
        let Some(ready) = view.book.get(view.at) else {
            return Err(Error::gateway(ErrorKind::Internal, "A combo is missing from the combos that refer to it."));
        };
        let mut desk = Desk { view: &view, now_ms: clock::monotonic_ms(), is_trial: false };
        let found = expand(view.book, view.at, demand, &mut desk);
        let mut chosen: SmallVec<[Arc<Target>; 4]> = SmallVec::new();
        let mut legs = Vec::with_capacity(found.picks.len());
        for pick in &found.picks {
            let Some((target, leg)) = view.leg(*pick) else { continue };
            chosen.push(target);
            legs.push(leg);
        }
        let closed = found.closed.iter().filter_map(|pick| view.leg(*pick));
        let closed: Vec<(Arc<str>, u64)> =
            closed.map(|(target, leg)| (leg.model, target.availability(&leg.upstream_model, desk.now_ms).1)).collect();
        let barred =
            found.barred.iter().filter_map(|(pick, obstacle)| Some((Arc::clone(&pick.of(view.book)?.name), *obstacle)));
        let barred: Vec<(Arc<str>, Obstacle)> = barred.take(MAX_LISTED_TARGETS).collect();
        let Some(first) = legs.first() else {
            let is_barred = !found.denied.is_empty() || (own.is_some() && ready.candidates.is_empty());
            return Err(none(ready, &closed, &barred, is_barred));
        };
        Ok(Choice {
            targets: chosen,
            upstream_model: first.upstream_model.to_string(),
            model: first.model.to_string(),
            combo: Some(Box::new(ComboChoice {
                name: ready.name.clone(),
                strategy: ready.strategy,
                params: ready.params.clone(),
                rules: Arc::clone(&ready.rules),
                tools: ready.tools.clone(),
                prompts: ready.steps.iter().map(|step| step.prompt.clone()).collect(),
                legs,
                last_target: demand.last_target,
                closed,
                barred,
            })),
            ..Choice::default()
        })
    }

    /// Refuses a request that is longer than the combo's maximum length.
    pub fn admit_size(&self, combo: usize, demand: &Demand) -> Result<(), Error> {
        let Some(ready) = self.book.get(combo) else { return Ok(()) };
        let most = ready.rules.context_length.filter(|most| demand.input_tokens > *most);
        most.map_or(Ok(()), |most| Err(too_long(ready, demand, most)))
    }

    /// Computes the decision for this request without changing any state. Every target is listed with the reason for
    /// its position.
    pub fn try_out(&self, reach: Reach<'_>, combo: usize, demand: &Demand, key: Option<&Key>) -> Vec<Verdict> {
        let own = self.permitted_book(reach, combo, key);
        let view = self.view(reach, combo, key, own.as_deref());
        let mut desk = Desk { view: &view, now_ms: clock::monotonic_ms(), is_trial: true };
        let found = expand(view.book, view.at, demand, &mut desk);
        let mut verdicts = Vec::new();
        let mut report = |pick: Pick, reason: Option<String>| {
            let Some(candidate) = pick.of(view.book) else { return };
            let To::Connection { index, model } = &candidate.to else { return };
            let Some(target) = reach.targets.get(*index).and_then(Option::as_ref) else { return };
            let reason = match view.leg(pick) {
                None => Some("its address cannot name the model".to_owned()),
                Some(_) => reason,
            };
            let facts = target.facts(model, candidate.known, desk.now_ms);
            let pack = view.book.get(pick.combo).filter(|placed| placed.strategy == Strategy::Auto);
            let score = pack.map(|placed| auto::score(&facts, demand.pack.unwrap_or(placed.params.pack)));
            verdicts.push(Verdict {
                target: Arc::clone(target),
                candidate: candidate.clone(),
                step: pick.step,
                facts,
                score,
                reason,
            });
        };
        found.picks.iter().for_each(|pick| report(*pick, None));
        for pick in &found.closed {
            let cooldown_ms =
                view.leg(*pick).map_or(0, |(target, leg)| target.availability(&leg.upstream_model, desk.now_ms).1);
            report(*pick, Some(wait(cooldown_ms)));
        }
        found.barred.iter().for_each(|(pick, obstacle)| report(*pick, Some(obstacle.to_string())));
        found.denied.iter().for_each(|pick| report(*pick, Some("the API key may not use it".to_owned())));
        verdicts
    }

    /// Returns the channel filled for this key. `None` if the channel holds all its candidates or if the key may use
    /// all of them.
    fn permitted_book(&self, reach: Reach<'_>, combo: usize, key: Option<&Key>) -> Option<Arc<Book>> {
        let key = key.filter(|key| permitted::is_restricted(key))?;
        let ready = self.book.get(combo).filter(|ready| ready.is_cut)?;
        self.permitted
            .book(reach.snapshot, &ready.name, key, &|index| reach.targets.get(index).is_some_and(Option::is_some))
    }

    fn view<'a>(&'a self, reach: Reach<'a>, combo: usize, key: Option<&'a Key>, own: Option<&'a Book>) -> View<'a> {
        if let Some(book) = own {
            // The book holds only this key's candidates. The strategy's state is shared by all callers of the channel.
            let memories = self.memories.get(combo..=combo).unwrap_or_default();
            return View { book, at: 0, memories, reach, key: None };
        }
        let key = key.filter(|key| permitted::is_restricted(key));
        View { book: &self.book, at: combo, memories: &self.memories, reach, key }
    }
}

impl View<'_> {
    fn leg(&self, pick: Pick) -> Option<(Arc<Target>, ComboTarget)> {
        let candidate = pick.of(self.book)?;
        let To::Connection { index, model } = &candidate.to else { return None };
        let target = self.reach.targets.get(*index)?.as_ref()?.calling(model);
        target.admit_name(model).ok()?;
        let leg = ComboTarget {
            model: Arc::clone(&candidate.name),
            upstream_model: Arc::clone(model),
            id: candidate.known.id,
            step: pick.step,
            memory: Arc::clone(self.memories.get(pick.combo)?),
        };
        Some((Arc::clone(target), leg))
    }
}

fn fresh() -> Remembered {
    Arc::new(Mutex::new((Memory::default(), Random::seeded(accounts::seed()))))
}

/// The result of a trial for one target.
#[derive(Debug)]
pub struct Verdict {
    pub target: Arc<Target>,
    pub candidate: Candidate,
    /// The step of the outermost combo.
    pub step: usize,
    pub facts: Facts,
    /// Set by the strategy `auto`. Other strategies do not score.
    pub score: Option<f32>,
    /// Why the target would not be tried.
    pub reason: Option<String>,
}

fn too_long(ready: &Ready, demand: &Demand, most: u64) -> Error {
    let message = format!(
        "The request has about {} tokens, and the combo `{}` takes {most} (`contextLength`): shorten it, or call another model.",
        demand.input_tokens, ready.name
    );
    Error::client(ErrorKind::InvalidRequest, message).about("messages")
}

/// The error when a combo has no usable target. `diagnostics` lists every target with its reason.
fn none(ready: &Ready, closed: &[(Arc<str>, u64)], barred: &[(Arc<str>, Obstacle)], is_barred: bool) -> Error {
    let fault = why_none(ready, closed, barred, is_barred);
    let terminal = fault.kind.code();
    fault.with_diagnostics(&json!({
        "poolSize": ready.candidates.len(), "attempted": 0, "attemptOrder": [], "failures": [],
        "excluded": excluded(closed, barred), "terminalReason": terminal,
    }))
}

/// The excluded targets with their reasons, for an error response.
pub fn excluded(closed: &[(Arc<str>, u64)], barred: &[(Arc<str>, Obstacle)]) -> Vec<Value> {
    let closed = closed.iter().map(|(model, cooldown_ms)| json!({"target": &**model, "reason": wait(*cooldown_ms)}));
    let barred = barred.iter().map(|(model, obstacle)| json!({"target": &**model, "reason": obstacle.to_string()}));
    closed.chain(barred).take(MAX_LISTED_TARGETS).collect()
}

fn why_none(ready: &Ready, closed: &[(Arc<str>, u64)], barred: &[(Arc<str>, Obstacle)], is_barred: bool) -> Error {
    let name = &ready.name;
    let soonest_ms = closed.iter().map(|(_, cooldown_ms)| *cooldown_ms).min();
    if soonest_ms == Some(u64::MAX) {
        let message = format!(
            "No target of the combo `{name}` can be used, because the providers refuse the accounts or their credentials. \
             An operator must replace the credentials, or put the accounts in order and test the connections."
        );
        return Error::gateway(ErrorKind::NoRoute, message);
    }
    if let Some(soonest_ms) = soonest_ms {
        let message = format!("Every target of the combo `{name}` must wait for its provider: {}.", waits(closed));
        return Error::gateway(ErrorKind::UpstreamRateLimited, message).after_s(soonest_ms.div_ceil(1_000).max(1));
    }
    if is_barred {
        let message = format!("This API key may use no target of the combo `{name}`.");
        return Error::client(ErrorKind::Forbidden, message).about("model");
    }
    if let Some((model, obstacle)) = barred.first() {
        let message = format!("The combo `{name}` leaves every target out for this request: {model}: {obstacle}.");
        return Error::client(ErrorKind::InvalidRequest, message).about("model");
    }
    Error::gateway(ErrorKind::NoRoute, format!("The combo `{name}` has no usable target.")).after_s(5)
}

/// Formats the waits for an error message: `<model>: waits <n> s`.
pub fn waits(closed: &[(Arc<str>, u64)]) -> String {
    let waits: Vec<String> = closed
        .iter()
        .take(MAX_LISTED_TARGETS)
        .map(|(model, cooldown_ms)| format!("{model}: {}", wait(*cooldown_ms)))
        .collect();
    waits.join("; ")
}

fn wait(cooldown_ms: u64) -> String {
    match cooldown_ms {
        u64::MAX => "needs an operator".to_owned(),
        cooldown_ms => format!("waits {} s", cooldown_ms.div_ceil(1_000)),
    }
}

struct Desk<'a> {
    view: &'a View<'a>,
    now_ms: u64,
    /// The decision changes no state.
    is_trial: bool,
}

impl Look for Desk<'_> {
    fn facts(&mut self, candidate: &Candidate) -> Facts {
        let To::Connection { index, model } = &candidate.to else { return candidate.known };
        let Some(target) = self.view.reach.targets.get(*index).and_then(Option::as_ref) else {
            return Facts { availability: Availability::Closed, ..candidate.known };
        };
        target.facts(model, candidate.known, self.now_ms)
    }

    fn is_restricted(&self) -> bool {
        self.view.key.is_some()
    }

    fn admits(&self, ready: &Ready, candidate: &Candidate) -> bool {
        self.view.key.is_none_or(|key| permitted::may_use(key, ready.is_auto, candidate))
    }

    fn remember<T>(&mut self, combo: usize, work: impl FnOnce(&mut Memory, &mut Random) -> T) -> T {
        let Some(remembered) = self.view.memories.get(combo) else {
            return work(&mut Memory::default(), &mut Random::seeded(self.now_ms));
        };
        let mut remembered = remembered.lock();
        if self.is_trial {
            let (memory, random) = &mut remembered.clone();
            return work(memory, random);
        }
        let (memory, random) = &mut *remembered;
        work(memory, random)
    }
}
