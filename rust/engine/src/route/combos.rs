//! The combos of the snapshot in use, and a request's targets out of one.

use crate::clock;
use crate::route::accounts;
use crate::route::choice::{Choice, ComboChoice, ComboTarget, Remembered, TOLD_AT_MOST};
use crate::upstream::target::Target;
use fairlead_core::strategy::{
    auto, expand, Book, Candidate, Demand, Facts, Look, Memory, Obstacle, Pick, Random, Ready, Standing, Strategy, To,
};
use fairlead_core::{policy, Error, ErrorKind, Key, Snapshot};
use parking_lot::Mutex;
use serde_json::{json, Value};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// The combos of one snapshot, compiled, each with what it remembers of its targets.
#[derive(Debug, Default)]
pub struct Combos {
    pub book: Book,
    /// One per combo of the book, at the same place.
    memories: Vec<Remembered>,
}

impl Combos {
    /// Prepares the combos. What one remembers stays with it while its id does.
    pub fn build(snapshot: &Snapshot, targets: &[Option<Arc<Target>>], before: &Combos) -> Self {
        let book = Book::compile(snapshot, &|index, _| targets.get(index).is_some_and(Option::is_some));
        let known: HashMap<&str, &Remembered> =
            before.book.all().iter().map(|ready| ready.id.as_str()).zip(&before.memories).collect();
        let memories = book
            .all()
            .iter()
            .map(|ready| known.get(ready.id.as_str()).map_or_else(fresh, |memory| Arc::clone(memory)))
            .collect();
        Self { book, memories }
    }

    /// The targets of one request, first to last, out of the combo at this place of the book.
    pub fn choose(
        &self,
        targets: &[Option<Arc<Target>>],
        combo: usize,
        ask: &Demand,
        key: Option<&Key>,
    ) -> Result<Choice, Error> {
        let Some(ready) = self.book.get(combo) else {
            return Err(Error::gateway(ErrorKind::Internal, "A combo is not in the book that named it."));
        };
        self.admit_size(combo, ask)?;
        let mut desk = Desk { combos: self, targets, now_ms: clock::monotonic_ms(), is_trial: false };
        let found = expand(&self.book, combo, ask, &mut desk);
        let mut chosen: SmallVec<[Arc<Target>; 4]> = SmallVec::new();
        let mut legs = Vec::with_capacity(found.picks.len());
        for pick in &found.picks {
            let Some((target, leg)) = self.leg(targets, *pick) else { continue };
            if key.is_none_or(|key| may_use(key, ready, &target, &leg)) {
                chosen.push(target);
                legs.push(leg);
            }
        }
        let closed = found.closed.iter().filter_map(|pick| self.leg(targets, *pick));
        let closed: Vec<(Arc<str>, u64)> = closed
            .filter(|(target, leg)| key.is_none_or(|key| may_use(key, ready, target, leg)))
            .map(|(target, leg)| (leg.model, target.standing(&leg.upstream_model, desk.now_ms).1))
            .collect();
        let barred = found
            .barred
            .iter()
            .filter_map(|(pick, obstacle)| Some((Arc::clone(&pick.of(&self.book)?.name), *obstacle)));
        let barred: Vec<(Arc<str>, Obstacle)> = barred.take(TOLD_AT_MOST).collect();
        let Some(first) = legs.first() else {
            let is_barred = !found.picks.is_empty() || !found.closed.is_empty();
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
                last_target: ask.last_target,
                protected: None,
                closed,
                barred,
            })),
            output_cap: None,
            inexpressible: None,
            is_rewritten: false,
        })
    }

    /// Refuses a request that is longer than the combo takes.
    pub fn admit_size(&self, combo: usize, ask: &Demand) -> Result<(), Error> {
        let Some(ready) = self.book.get(combo) else { return Ok(()) };
        let most = ready.rules.context_length.filter(|most| ask.input_tokens > *most);
        most.map_or(Ok(()), |most| Err(too_long(ready, ask, most)))
    }

    /// The decision for this request, with every target of the combo and why it is where it is. Changes nothing.
    pub fn try_out(
        &self,
        targets: &[Option<Arc<Target>>],
        combo: usize,
        ask: &Demand,
        key: Option<&Key>,
    ) -> Vec<Verdict> {
        let mut desk = Desk { combos: self, targets, now_ms: clock::monotonic_ms(), is_trial: true };
        let found = expand(&self.book, combo, ask, &mut desk);
        let Some(ready) = self.book.get(combo) else { return Vec::new() };
        let mut verdicts = Vec::new();
        let mut tell = |pick: Pick, reason: Option<String>| {
            let Some(candidate) = pick.of(&self.book) else { return };
            let To::Connection { index, model } = &candidate.to else { return };
            let Some(target) = targets.get(*index).and_then(Option::as_ref) else { return };
            let leg = self.leg(targets, pick);
            let reason = match &leg {
                None => Some("its address cannot name the model".to_owned()),
                Some((target, leg)) if key.is_some_and(|key| !may_use(key, ready, target, leg)) => {
                    Some("the API key may not use it".to_owned())
                }
                Some(_) => reason,
            };
            let facts = target.facts(model, candidate.known, desk.now_ms);
            let pack = self.book.get(pick.combo).filter(|placed| placed.strategy == Strategy::Auto);
            let score = pack.map(|placed| auto::score(&facts, ask.pack.unwrap_or(placed.params.pack)));
            verdicts.push(Verdict {
                target: Arc::clone(target),
                candidate: candidate.clone(),
                step: pick.step,
                facts,
                score,
                reason,
            });
        };
        found.picks.iter().for_each(|pick| tell(*pick, None));
        for pick in &found.closed {
            let rest_ms =
                self.leg(targets, *pick).map_or(0, |(target, leg)| target.standing(&leg.upstream_model, desk.now_ms).1);
            tell(*pick, Some(wait(rest_ms)));
        }
        found.barred.iter().for_each(|(pick, obstacle)| tell(*pick, Some(obstacle.to_string())));
        verdicts
    }

    fn leg(&self, targets: &[Option<Arc<Target>>], pick: Pick) -> Option<(Arc<Target>, ComboTarget)> {
        let candidate = pick.of(&self.book)?;
        let To::Connection { index, model } = &candidate.to else { return None };
        let target = targets.get(*index)?.as_ref().filter(|target| target.admit_name(model).is_ok())?;
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

/// A combo that the operator made says itself which models it reaches; `auto` reaches what the key may call. What is blocked is
/// blocked under every name that its connection has, whoever names it.
fn may_use(key: &Key, ready: &Ready, target: &Target, leg: &ComboTarget) -> bool {
    let is_blocked = || {
        key.has_blocks()
            && target
                .connection
                .prefixes
                .iter()
                .any(|prefix| policy::admit_unblocked(key, &format!("{prefix}/{}", leg.upstream_model)).is_err())
    };
    policy::sees_connection(key, &target.connection.id)
        && (!ready.is_auto || policy::sees_model(key, &leg.model))
        && !is_blocked()
}

/// What a trial says of one target.
#[derive(Debug)]
pub struct Verdict {
    pub target: Arc<Target>,
    pub candidate: Candidate,
    /// Of the outermost combo.
    pub step: usize,
    pub facts: Facts,
    /// By the strategy `auto`; others do not score.
    pub score: Option<f32>,
    /// Why it would not be tried.
    pub reason: Option<String>,
}

fn too_long(ready: &Ready, ask: &Demand, most: u64) -> Error {
    let message = format!(
        "The request has about {} tokens, and the combo `{}` takes {most} (`contextLength`): shorten it, or call another model.",
        ask.input_tokens, ready.name
    );
    Error::client(ErrorKind::InvalidRequest, message).about("messages")
}

/// Why a combo comes to no target, with each that there is in `diagnostics`.
fn none(ready: &Ready, closed: &[(Arc<str>, u64)], barred: &[(Arc<str>, Obstacle)], is_barred: bool) -> Error {
    let fault = why_none(ready, closed, barred, is_barred);
    let terminal = fault.kind.code();
    fault.with_diagnostics(&json!({
        "poolSize": ready.candidates.len(), "attempted": 0, "attemptOrder": [], "failures": [],
        "excluded": excluded(closed, barred), "terminalReason": terminal,
    }))
}

/// The targets that were not tried, each with its reason, as an error tells them.
pub fn excluded(closed: &[(Arc<str>, u64)], barred: &[(Arc<str>, Obstacle)]) -> Vec<Value> {
    let closed = closed.iter().map(|(model, rest_ms)| json!({"target": &**model, "reason": wait(*rest_ms)}));
    let barred = barred.iter().map(|(model, obstacle)| json!({"target": &**model, "reason": obstacle.to_string()}));
    closed.chain(barred).take(TOLD_AT_MOST).collect()
}

fn why_none(ready: &Ready, closed: &[(Arc<str>, u64)], barred: &[(Arc<str>, Obstacle)], is_barred: bool) -> Error {
    let name = &ready.name;
    let soonest_ms = closed.iter().map(|(_, rest_ms)| *rest_ms).min();
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

/// `<model>: waits <n> s`, for people.
pub fn waits(closed: &[(Arc<str>, u64)]) -> String {
    let waits: Vec<String> =
        closed.iter().take(TOLD_AT_MOST).map(|(model, rest_ms)| format!("{model}: {}", wait(*rest_ms))).collect();
    waits.join("; ")
}

fn wait(rest_ms: u64) -> String {
    match rest_ms {
        u64::MAX => "needs an operator".to_owned(),
        rest_ms => format!("waits {} s", rest_ms.div_ceil(1_000)),
    }
}

struct Desk<'a> {
    combos: &'a Combos,
    targets: &'a [Option<Arc<Target>>],
    now_ms: u64,
    /// Nothing is remembered of the decision.
    is_trial: bool,
}

impl Look for Desk<'_> {
    fn facts(&mut self, candidate: &Candidate) -> Facts {
        let To::Connection { index, model } = &candidate.to else { return candidate.known };
        let Some(target) = self.targets.get(*index).and_then(Option::as_ref) else {
            return Facts { standing: Standing::Closed, ..candidate.known };
        };
        target.facts(model, candidate.known, self.now_ms)
    }

    fn remember<T>(&mut self, combo: usize, work: impl FnOnce(&mut Memory, &mut Random) -> T) -> T {
        let Some(remembered) = self.combos.memories.get(combo) else {
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
