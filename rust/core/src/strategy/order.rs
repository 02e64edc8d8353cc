//! The strategies: each orders candidates by their facts.

use super::combo::{Params, Strategy, WindowName};
use super::facts::{CandidateOrder, Demand, Facts, QuotaWindow};
use super::memory::Memory;
use super::random::{mix, Random};
use super::{auto, random};
use std::cmp::Reverse;

/// The weight of the session window; the weekly window has the rest. The next two constants are the weights of the
/// remaining quota in each window; the time to the reset has the rest.
const SESSION_SHARE: f32 = 0.35;
const SESSION_REMAINING: f32 = 0.45;
const WEEKLY_REMAINING: f32 = 0.25;
const SESSION_MS: f32 = 5.0 * 3_600_000.0;
const WEEK_MS: f32 = 7.0 * 24.0 * 3_600_000.0;
/// Scores, or reset times, that differ by no more than this count as equal.
const SCORE_BAND: f32 = 0.05;
const RESET_BAND_MS: u64 = 60_000;
/// A target with no more than this share of quota left is ranked last.
const NEXT_TO_NOTHING: f32 = 0.10;
/// `fill-first` prefers the next target at this share.
const FILLED: f32 = 0.02;

/// Orders the candidates. The result contains every candidate that is not closed exactly once. [`super`] describes the
/// common rules.
// Many parameters: the result depends only on these, so that tests can set each of them.
pub fn order(
    strategy: Strategy,
    params: &Params,
    facts: &[Facts],
    demand: &Demand,
    memory: &mut Memory,
    random: &mut Random,
) -> CandidateOrder {
    // The steps of `fusion` and `pipeline` keep their configured order.
    let is_staged = matches!(strategy, Strategy::Fusion | Strategy::Pipeline);
    let mut able: CandidateOrder = indices(facts, |one| one.is_open() || (is_staged && one.availability.is_able()));
    let turn = memory.turn;
    memory.turn = turn.wrapping_add(1);
    Arrangement { params, facts, demand, memory, random, turn }.arrange(strategy, &mut able);
    if strategy != Strategy::ContextRelay {
        // A session stays on its target while that is able, because a move would lose the provider's prompt cache.
        move_to_front(&mut able, facts, demand.last_target);
    }
    if !is_staged {
        able.extend(indices(facts, |one| one.availability.is_able() && one.is_shut));
    }
    let mut cooling: CandidateOrder = indices(facts, |one| one.availability == super::Availability::Cooling);
    cooling.sort_by_key(|&index| facts[usize::from(index)].cooldown_ms);
    able.extend(cooling);
    able
}

/// The inputs of a strategy.
struct Arrangement<'a> {
    params: &'a Params,
    facts: &'a [Facts],
    demand: &'a Demand,
    memory: &'a mut Memory,
    random: &'a mut Random,
    /// The number of previous decisions of this combo.
    turn: u64,
}

impl<'a> Arrangement<'a> {
    fn of(&self, index: u16) -> &'a Facts {
        &self.facts[usize::from(index)]
    }

    /// Sorts the able candidates, best first.
    fn arrange(&mut self, strategy: Strategy, able: &mut CandidateOrder) {
        match strategy {
            Strategy::Priority | Strategy::Fusion | Strategy::Pipeline => {}
            Strategy::FillFirst => {
                able.sort_by_key(|&index| self.of(index).is_full() || self.of(index).free_share() <= FILLED);
            }
            Strategy::Weighted => {
                if !stay(self.memory, self.facts, able) {
                    weigh(self.facts, able, self.random);
                    begin_stay(self.memory, self.params, self.facts, able);
                }
            }
            Strategy::RoundRobin => {
                if !stay(self.memory, self.facts, able) {
                    // Requests that stay on a target do not advance the rotation.
                    let changes = self.turn / u64::from(self.params.sticky_limit.max(1));
                    rotate(able, changes);
                    begin_stay(self.memory, self.params, self.facts, able);
                }
            }
            Strategy::P2c => two_choices(self.facts, able, self.random),
            Strategy::Random => self.random.shuffle(able),
            Strategy::StrictRandom => deal(self.facts, able, self.memory, self.random),
            Strategy::LeastUsed => able.sort_by_key(|&index| (self.of(index).in_flight, self.of(index).used)),
            Strategy::CostOptimized => able.sort_by_key(|&index| self.of(index).cost(self.demand).unwrap_or(u128::MAX)),
            Strategy::ContextOptimized => {
                able.sort_by_key(|&index| Reverse(self.of(index).context_window.unwrap_or(0)));
            }
            Strategy::CacheOptimized => {
                if let Some(affinity) = self.demand.affinity {
                    able.sort_by_cached_key(|&index| Reverse(mix(self.of(index).id ^ random::mix(affinity))));
                }
            }
            Strategy::Headroom => able.sort_by(|&a, &b| self.of(b).headroom().total_cmp(&self.of(a).headroom())),
            Strategy::ResetAware => self.by_reset_score(able),
            Strategy::ResetWindow => self.by_soonest_reset(able),
            Strategy::Lkgp => move_to_front(able, self.facts, self.memory.last_good),
            Strategy::ContextRelay => self.by_what_is_left(able),
            Strategy::Auto => {
                auto::arrange(self.facts, self.demand.pack.unwrap_or(self.params.pack), able, self.random);
            }
        }
    }

    /// The candidates with the best scores take turns.
    fn by_reset_score(&self, able: &mut CandidateOrder) {
        let score = |index: u16| reset_score(self.of(index));
        able.sort_by(|&a, &b| score(b).total_cmp(&score(a)));
        let best = able.first().map_or(0.0, |&index| score(index));
        rotate_band(able, self.turn, |index| best - score(index) <= SCORE_BAND);
    }

    /// The candidates with the earliest resets take turns.
    fn by_soonest_reset(&self, able: &mut CandidateOrder) {
        let reset = |index: u16| soonest_reset_ms(self.of(index), &self.params.windows);
        able.sort_by_key(|&index| reset(index));
        let soonest = able.first().map_or(u64::MAX, |&index| reset(index));
        rotate_band(able, self.turn, |index| {
            soonest < u64::MAX && reset(index) <= soonest.saturating_add(RESET_BAND_MS)
        });
    }

    /// Puts spent candidates last. The session's target comes first unless it is spent.
    fn by_what_is_left(&self, able: &mut CandidateOrder) {
        let is_spent = |index: u16| 1.0 - self.of(index).headroom() >= self.params.handoff_threshold;
        able.sort_by_key(|&index| is_spent(index));
        if let Some(index) = able.iter().copied().find(|&index| Some(self.of(index).id) == self.demand.last_target) {
            if !is_spent(index) {
                move_to_front(able, self.facts, self.demand.last_target);
            }
        }
    }
}

fn indices(facts: &[Facts], wanted: impl Fn(&Facts) -> bool) -> CandidateOrder {
    facts.iter().enumerate().filter(|(_, one)| wanted(one)).map(|(index, _)| index as u16).collect()
}

/// Moves one candidate to the front. The others keep their order.
pub(super) fn move_to_front(able: &mut CandidateOrder, facts: &[Facts], id: Option<u64>) {
    let Some(id) = id else { return };
    if let Some(at) = able.iter().position(|&index| facts[usize::from(index)].id == id) {
        able[..=at].rotate_right(1);
    }
}

fn rotate(able: &mut CandidateOrder, turn: u64) {
    if !able.is_empty() {
        let by = (turn % able.len() as u64) as usize;
        able.rotate_left(by);
    }
}

/// Rotates the equally good candidates at the front.
fn rotate_band(able: &mut CandidateOrder, turn: u64, is_as_good: impl Fn(u16) -> bool) {
    let band = able.iter().take_while(|&&index| is_as_good(index)).count();
    if band > 1 {
        able[..band].rotate_left((turn % band as u64) as usize);
    }
}

/// Puts an earlier winner first again. Returns whether one did stay.
fn stay(memory: &mut Memory, facts: &[Facts], able: &mut CandidateOrder) -> bool {
    let Some((id, left)) = memory.stays.take() else { return false };
    let is_there = able.iter().any(|&index| facts[usize::from(index)].id == id);
    if !is_there {
        return false;
    }
    if left > 1 {
        memory.stays = Some((id, left - 1));
    }
    move_to_front(able, facts, Some(id));
    true
}

fn begin_stay(memory: &mut Memory, params: &Params, facts: &[Facts], able: &CandidateOrder) {
    if let (Some(&first), true) = (able.first(), params.sticky_limit > 1) {
        memory.stays = Some((facts[usize::from(first)].id, params.sticky_limit - 1));
    }
}

/// Draws the first candidate at random by weight. The others follow by descending weight.
fn weigh(facts: &[Facts], able: &mut CandidateOrder, random: &mut Random) {
    let weight = |index: u16| f64::from(facts[usize::from(index)].weight.max(0.0));
    let total: f64 = able.iter().map(|&index| weight(index)).sum();
    if total <= 0.0 {
        random.shuffle(able);
        return;
    }
    let mut drawn = random.unit() * total;
    let mut winner = None;
    for &index in able.iter().filter(|&&index| weight(index) > 0.0) {
        winner = Some(index);
        drawn -= weight(index);
        if drawn < 0.0 {
            break;
        }
    }
    able.sort_by(|&a, &b| weight(b).total_cmp(&weight(a)));
    if let Some(at) = winner.and_then(|winner| able.iter().position(|&index| index == winner)) {
        able[..=at].rotate_right(1);
    }
}

/// Draws two candidates at random and puts the less loaded one first. The other follows, then the rest in list order. A
/// candidate at capacity is drawn only if all are.
fn two_choices(facts: &[Facts], able: &mut CandidateOrder, random: &mut Random) {
    able.sort_by_key(|&index| facts[usize::from(index)].is_full());
    let free = able.iter().filter(|&&index| !facts[usize::from(index)].is_full()).count();
    let drawn = if free == 0 { able.len() } else { free };
    if drawn < 2 {
        return;
    }
    let a = random.below(drawn);
    let mut b = random.below(drawn - 1);
    if b >= a {
        b += 1;
    }
    let (one, other) = (able[a], able[b]);
    let (x, y) = (&facts[usize::from(one)], &facts[usize::from(other)]);
    // An unknown latency is replaced by the other's, so that only requests in flight and success rates decide.
    let x_ms = x.latency_ms.or(y.latency_ms).unwrap_or(1.0);
    let y_ms = y.latency_ms.or(x.latency_ms).unwrap_or(1.0);
    let (first, second) = if load(y, y_ms) < load(x, x_ms) { (other, one) } else { (one, other) };
    able.retain(|index| *index != first && *index != second);
    able.insert(0, second);
    able.insert(0, first);
}

/// Estimates the relative time of a request: each request in flight adds one latency, and a low success rate adds
/// retries. Less room left counts as more load, so that all candidates approach their limits together.
fn load(facts: &Facts, latency_ms: f32) -> f32 {
    let probing = if facts.availability == super::Availability::Probing { 2.0 } else { 1.0 };
    let success = facts.success_rate.unwrap_or(1.0).max(0.01);
    latency_ms.max(0.01) * (facts.in_flight as f32 + 1.0) / success * probing / facts.free_share().max(0.01)
}

/// Draws from a shuffled deck. A candidate that was absent when the deck was shuffled is drawn in the next round.
fn deal(facts: &[Facts], able: &mut CandidateOrder, memory: &mut Memory, random: &mut Random) {
    let mut dealt = None;
    for _round in 0..2 {
        while let Some(id) = memory.deck.pop() {
            if able.iter().any(|&index| facts[usize::from(index)].id == id) {
                dealt = Some(id);
                break;
            }
        }
        if dealt.is_some() {
            break;
        }
        memory.deck = able.iter().map(|&index| facts[usize::from(index)].id).collect();
        random.shuffle(&mut memory.deck);
    }
    random.shuffle(able);
    move_to_front(able, facts, dealt);
}

/// Scores quota that expires soon high. A target with almost no quota left scores below all others.
fn reset_score(facts: &Facts) -> f32 {
    let part = |window: Option<QuotaWindow>, length_ms: f32, remaining_share: f32| {
        window.map_or(0.5, |window| {
            let pressure = 1.0 - (window.resets_in_ms as f32 / length_ms).clamp(0.0, 1.0);
            remaining_share * window.remaining + (1.0 - remaining_share) * pressure
        })
    };
    let session = part(facts.session, SESSION_MS, SESSION_REMAINING);
    let weekly = part(facts.weekly, WEEK_MS, WEEKLY_REMAINING);
    let score = SESSION_SHARE * session + (1.0 - SESSION_SHARE) * weekly;
    if facts.headroom() <= NEXT_TO_NOTHING {
        score - 1.0
    } else {
        score
    }
}

fn soonest_reset_ms(facts: &Facts, windows: &[WindowName]) -> u64 {
    let reset_ms = windows.iter().filter_map(|name| match name {
        WindowName::Session => facts.session,
        WindowName::Weekly => facts.weekly,
        WindowName::Monthly => facts.monthly,
    });
    reset_ms.map(|window| window.resets_in_ms).min().unwrap_or(u64::MAX)
}
