//! Expands a combo to the targets of one request: collects the facts, orders the candidates by strategy and expands
//! nested combos.

use super::book::Book;
use super::combo::Strategy;
use super::facts::{Availability, Demand, Facts};
use super::memory::Memory;
use super::order::order;
use super::random::{mix, Random};
use super::ready::{Candidate, Ready, To};
use super::rules::{Obstacle, Rules};
use super::MAX_DEPTH;
use smallvec::SmallVec;

/// The most targets of one request.
pub const MAX_TARGETS: usize = 32;
/// The most combos that are expanded for one request; `MAX_LOOKS` limits the candidates of each. A combo nested in many
/// others is expanded once for each of them, so these limits bound the cost.
const MAX_PLACES: usize = 64;
const MAX_LOOKS: usize = 1_024;

/// The `cooldown_ms` of a candidate that a rule excludes. The exclusion never expires.
const BARRED: u64 = u64::MAX - 1;

/// The caller's data for a decision.
pub trait Look {
    /// Adds the live data to `candidate.known`. Not called for nested combos.
    fn facts(&mut self, candidate: &Candidate) -> Facts;
    /// Returns whether the caller may be denied candidates. Only then is [`Look::admits`] called.
    fn is_restricted(&self) -> bool {
        false
    }
    /// Returns whether the caller may use a candidate of this combo. Not called for nested combos.
    fn admits(&self, _: &Ready, _: &Candidate) -> bool {
        true
    }
    /// Runs `work` with exclusive access to the state of the combo at this index.
    fn remember<T>(&mut self, combo: usize, work: impl FnOnce(&mut Memory, &mut Random) -> T) -> T;
}

/// One target: the indices of a combo and of its candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pick {
    pub combo: usize,
    pub candidate: usize,
    /// The step of the outermost combo that the target comes from.
    pub step: usize,
}

impl Pick {
    pub fn of(self, book: &Book) -> Option<&Candidate> {
        book.get(self.combo)?.candidates.get(self.candidate)
    }
}

/// The targets of a combo for one request.
#[derive(Debug, Clone, Default)]
pub struct Targets {
    /// The targets in the order to try them. Only connections, each once.
    pub picks: SmallVec<[Pick; 32]>,
    /// Targets that are in cooldown or out of quota.
    pub closed: SmallVec<[Pick; 8]>,
    /// Targets that the rules of a combo on the path exclude.
    pub barred: SmallVec<[(Pick, Obstacle); 4]>,
    /// Targets that the caller may not use. They do not count against the limits of the allowed targets.
    pub denied: SmallVec<[Pick; 4]>,
}

/// Expands a combo to the targets of one request. See the module's description.
pub fn expand(book: &Book, combo: usize, demand: &Demand, look: &mut impl Look) -> Targets {
    let mut walk = Walk {
        combo,
        book,
        demand,
        look,
        targets: Targets::default(),
        seen: SmallVec::new(),
        path: SmallVec::new(),
        last_index: None,
        targets_left: MAX_PLACES,
        looks_left: MAX_LOOKS,
        step: 0,
    };
    walk.index(combo, 0);
    walk.hold();
    walk.targets
}

struct Walk<'a, L> {
    combo: usize,
    book: &'a Book,
    demand: &'a Demand,
    look: &'a mut L,
    targets: Targets,
    seen: SmallVec<[u64; 32]>,
    /// The combos being expanded, outermost first. The rules of all of them apply.
    path: SmallVec<[usize; 4]>,
    /// The index in the picks of the target that served the conversation's last turn. Set only if that target is able,
    /// has capacity and has a large enough context window.
    last_index: Option<usize>,
    targets_left: usize,
    looks_left: usize,
    /// The current step of the outermost combo.
    step: usize,
}

impl<L: Look> Walk<'_, L> {
    fn index(&mut self, at: usize, depth: usize) {
        let Some(ready) = self.book.get(at).filter(|_| depth < MAX_DEPTH && self.targets_left > 0) else { return };
        self.targets_left -= 1;
        self.looks_left = MAX_LOOKS;
        let mut facts = self.gather(ready, depth);
        self.path.push(at);
        self.bar(at, ready, &mut facts);
        self.put(at, ready, &facts, depth);
        self.path.pop();
    }

    /// Closes candidates that the caller may not use or that the rules of a combo on the path exclude.
    fn bar(&mut self, at: usize, ready: &Ready, facts: &mut [Facts]) {
        let rules: SmallVec<[&Rules; 4]> = self
            .path
            .iter()
            .filter_map(|&at| Some(&*self.book.get(at)?.rules))
            .filter(|rules| rules.bar_any())
            .collect();
        let is_choosy = self.demand.has_picture && (ready.is_auto || ready.strategy == Strategy::Auto);
        let is_restricted = self.look.is_restricted();
        if rules.is_empty() && !is_choosy && !is_restricted {
            return;
        }
        for (index, (candidate, one)) in ready.candidates.iter().zip(facts).enumerate() {
            let (Some(connection), To::Connection { model, .. }) = (&candidate.connection, &candidate.to) else {
                continue;
            };
            let pick = Pick { combo: at, candidate: index, step: candidate.step };
            if is_restricted && !self.look.admits(ready, candidate) {
                self.targets.denied.push(pick);
                one.availability = Availability::Closed;
                one.cooldown_ms = BARRED;
                continue;
            }
            let obstacle = rules.iter().find_map(|rules| rules.obstacle(&connection.prefixes, model, one, self.demand));
            let obstacle =
                obstacle.or_else(|| (is_choosy && one.takes_pictures == Some(false)).then_some(Obstacle::Picture));
            if let Some(obstacle) = obstacle {
                self.targets.barred.push((pick, obstacle));
                one.availability = Availability::Closed;
                one.cooldown_ms = BARRED;
            }
        }
    }

    fn put(&mut self, at: usize, ready: &Ready, facts: &[Facts], depth: usize) {
        for (candidate, one) in facts.iter().enumerate() {
            let is_connection = matches!(ready.candidates[candidate].to, To::Connection { .. });
            if is_connection && one.availability == Availability::Closed && one.cooldown_ms != BARRED {
                self.targets.closed.push(Pick { combo: at, candidate, step: ready.candidates[candidate].step });
            }
        }
        let demand = self.demand;
        let mut ordered = self
            .look
            .remember(at, |memory, random| order(ready.strategy, &ready.params, facts, demand, memory, random));
        ready.rules.context.arrange(facts, demand, &mut ordered);
        for index in ordered {
            if self.targets.picks.len() >= MAX_TARGETS {
                return;
            }
            let candidate = usize::from(index);
            if depth == 0 {
                self.step = ready.candidates[candidate].step;
            }
            match ready.candidates[candidate].to {
                To::Combo(nested) => self.index(nested, depth + 1),
                To::Connection { .. } => {
                    // The steps of a pipeline may use the same target twice.
                    let is_chain = self.book.get(self.combo).is_some_and(|ready| ready.strategy == Strategy::Pipeline);
                    let id = facts[candidate].id ^ if is_chain { mix(self.step as u64) } else { 0 };
                    if !self.seen.contains(&id) {
                        self.seen.push(id);
                        let one = &facts[candidate];
                        let fits = one.context_window.is_none_or(|window| window >= demand.input_tokens)
                            && !ready.rules.context.is_too_small(one, demand);
                        if Some(one.id) == demand.last_target && one.is_open() && fits {
                            self.last_index = Some(self.targets.picks.len());
                        }
                        self.targets.picks.push(Pick { combo: at, candidate, step: self.step });
                    }
                }
            }
        }
    }

    /// Moves the target of the last turn to the front if the requested combo protects the provider's prompt cache.
    fn hold(&mut self) {
        let is_protected = self.book.get(self.combo).is_some_and(|ready| ready.rules.context_cache_protection);
        if let Some(at) = self.last_index.filter(|_| is_protected) {
            self.targets.picks[..=at].rotate_right(1);
        }
    }

    fn gather(&mut self, ready: &Ready, depth: usize) -> SmallVec<[Facts; 32]> {
        let mut facts = SmallVec::new();
        for candidate in &ready.candidates {
            if self.looks_left == 0 {
                break;
            }
            self.looks_left -= 1;
            facts.push(match candidate.to {
                To::Connection { .. } => self.look.facts(candidate),
                To::Combo(nested) => {
                    let members = match self.book.get(nested).filter(|_| depth + 1 < MAX_DEPTH) {
                        Some(nested) => self.gather(nested, depth + 1),
                        None => SmallVec::new(),
                    };
                    Facts::together(candidate.known.id, candidate.known.weight, members.into_iter())
                }
            });
        }
        facts
    }
}
