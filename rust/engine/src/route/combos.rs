//! The combos of the snapshot in use, and a request's targets out of one.

use crate::clock;
use crate::route::accounts;
use crate::route::choice::{Choice, ComboChoice, Leg, Remembered};
use crate::upstream::target::Target;
use fairlead_core::error::{Error, Kind};
use fairlead_core::policy;
use fairlead_core::snapshot::{Key, Snapshot};
use fairlead_core::strategy::{
    expand, Book, Candidate, Demand, Facts, Look, Memory, Pick, Random, Ready, Standing, To,
};
use parking_lot::Mutex;
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
            .map(|ready| known.get(ready.id.as_str()).map_or_else(fresh, |kept| Arc::clone(kept)))
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
            return Err(Error::gateway(Kind::Internal, "A combo is not in the book that named it."));
        };
        let mut desk = Desk { combos: self, targets, now_ms: clock::monotonic_ms() };
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
        let Some(first) = legs.first() else {
            return Err(none(ready, &closed, !found.picks.is_empty() || !found.closed.is_empty()));
        };
        Ok(Choice {
            targets: chosen,
            upstream_model: first.upstream_model.to_string(),
            model: first.model.to_string(),
            combo: Some(Box::new(ComboChoice {
                name: ready.name.clone(),
                strategy: ready.strategy,
                params: ready.params.clone(),
                prompts: ready.steps.iter().map(|step| step.prompt.clone()).collect(),
                legs,
                closed,
            })),
        })
    }

    fn leg(&self, targets: &[Option<Arc<Target>>], pick: Pick) -> Option<(Arc<Target>, Leg)> {
        let candidate = pick.of(&self.book)?;
        let To::Connection { index, model } = &candidate.to else { return None };
        let target = targets.get(*index)?.as_ref().filter(|target| target.admit_name(model).is_ok())?;
        let leg = Leg {
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
fn may_use(key: &Key, ready: &Ready, target: &Target, leg: &Leg) -> bool {
    let is_blocked = || {
        !key.blocked_models.is_empty()
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

/// Why a combo comes to no target.
fn none(ready: &Ready, closed: &[(Arc<str>, u64)], is_barred: bool) -> Error {
    let name = &ready.name;
    let soonest_ms = closed.iter().map(|(_, rest_ms)| *rest_ms).min();
    if soonest_ms == Some(u64::MAX) {
        let message = format!(
            "No target of the combo `{name}` can be used, because the providers refuse the accounts or their credentials. \
             An operator must replace the credentials, or put the accounts in order and test the connections."
        );
        return Error::gateway(Kind::NoRoute, message);
    }
    if let Some(soonest_ms) = soonest_ms {
        let message = format!("Every target of the combo `{name}` must wait for its provider: {}.", waits(closed));
        return Error::gateway(Kind::UpstreamRateLimited, message).after_s(soonest_ms.div_ceil(1_000).max(1));
    }
    if is_barred {
        let message = format!("This API key may use no target of the combo `{name}`.");
        return Error::client(Kind::Forbidden, message).about("model");
    }
    Error::gateway(Kind::NoRoute, format!("The combo `{name}` has no usable target.")).after_s(5)
}

/// `<model>: waits <n> s`, for people.
pub fn waits(closed: &[(Arc<str>, u64)]) -> String {
    let told: Vec<String> = closed
        .iter()
        .take(crate::route::choice::TOLD_AT_MOST)
        .map(|(model, rest_ms)| match rest_ms {
            &u64::MAX => format!("{model}: needs an operator"),
            rest_ms => format!("{model}: waits {} s", rest_ms.div_ceil(1_000)),
        })
        .collect();
    told.join("; ")
}

struct Desk<'a> {
    combos: &'a Combos,
    targets: &'a [Option<Arc<Target>>],
    now_ms: u64,
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
        let (memory, random) = &mut *remembered.lock();
        work(memory, random)
    }
}
