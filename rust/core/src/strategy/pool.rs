//! The pool of `auto`: every chat model over every connection of its provider, and the channels filled from it.
//!
//! A pool has tens of thousands of candidates and dozens of channels, and every publication fills all of them. Work
//! that channels share is done once, and only the selected candidates are copied.

use super::auto::{self, Channel, Task};
use super::combo::{Params, Strategy};
use super::facts::Prior;
use super::family;
use super::pack::Pack;
use super::ready::{Candidate, Ready, To};
use crate::snapshot::Snapshot;
use std::cmp::Ordering;
use std::sync::Arc;

/// The relative price of the cheapest model that is not free. Free is 0 and the most expensive is 1.
const CHEAPEST: f32 = 0.1;

/// The candidates for all channels.
#[derive(Debug)]
pub struct Pool {
    candidates: Vec<Candidate>,
    tiers: Vec<f32>,
}

impl Pool {
    pub fn new(candidates: Vec<Candidate>, snapshot: &Snapshot) -> Self {
        let tiers = Tiers::new(snapshot);
        let tiers = candidates.iter().map(|one| tiers.of(one)).collect();
        Self { candidates, tiers }
    }

    /// Fills every channel except those of families.
    pub fn channels(&self) -> Vec<Ready> {
        let ratings = self.rate(0..self.candidates.len());
        let mut fields: Vec<(Option<Task>, bool, Field)> = Vec::new();
        let mut channels = Vec::with_capacity(auto::CHANNELS.len());
        for channel in auto::CHANNELS {
            let known =
                fields.iter().position(|(task, is_free, _)| (*task, *is_free) == (channel.task, channel.is_free));
            let at = known.unwrap_or_else(|| {
                fields.push((channel.task, channel.is_free, self.field(&ratings, channel)));
                fields.len() - 1
            });
            if let Some((_, _, field)) = fields.get(at) {
                channels.push(self.fill(channel.name, channel, field));
            }
        }
        channels
    }

    /// Fills one channel by name, including those of families. Returns `None` for any other name.
    pub fn channel(&self, name: &str) -> Option<Ready> {
        if let Some(channel) = auto::CHANNELS.iter().find(|channel| channel.name == name) {
            let ratings = self.rate(0..self.candidates.len());
            return Some(self.fill(name, channel, &self.field(&ratings, channel)));
        }
        let family = name.strip_prefix("auto/")?;
        let is_member = |one: &Candidate| family::family_of(&one.name).as_deref() == Some(family);
        let indices = self
            .candidates
            .iter()
            .enumerate()
            .filter(|(_, one)| is_member(one))
            .map(|(candidate_index, _)| candidate_index);
        Some(self.family(name, indices.collect()))
    }

    /// Returns the candidates that fit a channel.
    fn field(&self, ratings: &[Rating], channel: &Channel) -> Field {
        let is_free = |one: &Candidate| one.known.price_input == Some(0) && one.known.price_output == Some(0);
        let takes = |one: &Candidate| !channel.is_free || is_free(one);
        let prior = |(candidate_index, rating): (usize, &Rating)| {
            let one = self.candidates.get(candidate_index).filter(|one| takes(one))?;
            let is_fit = channel.task.is_none_or(|task| task.fits(&one.name, one.known.takes_pictures));
            Some((candidate_index, rating.prior(is_fit)))
        };
        Field::new(ratings.iter().enumerate().filter_map(prior).collect())
    }

    /// Fills `auto/<family>` for every family whose name is not a channel's.
    pub fn families(&self) -> Vec<Ready> {
        let families = family::families(self.candidates.iter().map(|one| &*one.name));
        let named = families.into_iter().map(|(family, indices)| (format!("auto/{family}"), indices));
        let free = named.filter(|(name, _)| auto::CHANNELS.iter().all(|channel| channel.name != name));
        free.map(|(name, indices)| self.family(&name, indices)).collect()
    }

    fn family(&self, name: &str, indices: Vec<usize>) -> Ready {
        let ratings = self.rate(indices.iter().copied());
        let priors =
            indices.into_iter().zip(ratings).map(|(candidate_index, rating)| (candidate_index, rating.prior(true)));
        self.fill(name, &auto::OF_FAMILY, &Field::new(priors.collect()))
    }

    /// Rates these candidates relative to each other.
    fn rate(&self, indices: impl Iterator<Item = usize> + Clone) -> Vec<Rating> {
        let prices = indices.clone().map(|candidate_index| self.candidates.get(candidate_index).and_then(price));
        let tiers = indices.map(|candidate_index| self.tiers.get(candidate_index).copied().unwrap_or_default());
        let dearness = dearness(prices);
        dearness.into_iter().zip(tiers).map(|(dearness, tier)| Rating { dearness, tier }).collect()
    }

    fn fill(&self, name: &str, channel: &Channel, field: &Field) -> Ready {
        let candidate = |(candidate_index, prior): (usize, Prior)| {
            let mut candidate = self.candidates.get(candidate_index)?.clone();
            candidate.known.prior = prior;
            Some(candidate)
        };
        Ready {
            id: name.to_owned(),
            name: name.to_owned(),
            strategy: if channel.is_lkgp { Strategy::Lkgp } else { Strategy::Auto },
            params: Params { pack: channel.pack, ..Params::default() },
            rules: Arc::default(),
            tools: None,
            steps: Vec::new(),
            candidates: field.best(channel.pack).into_iter().filter_map(candidate).collect(),
            is_auto: true,
            is_cut: field.members.len() > auto::MAX_CANDIDATES,
        }
    }
}

/// Candidates for the same task, by index in the pool, with their static scores.
#[derive(Debug)]
struct Field {
    members: Vec<(usize, Prior)>,
    /// Marks the best few of each pack, which every channel contains. Empty if all candidates fit.
    is_kept: Vec<bool>,
}

impl Field {
    fn new(members: Vec<(usize, Prior)>) -> Self {
        let mut is_kept = Vec::new();
        if members.len() > auto::MAX_CANDIDATES {
            is_kept.resize(members.len(), false);
            for &pack in Pack::ALL {
                let best = first(&members, pack, auto::BEST_OF_EACH_PACK);
                for at in best {
                    is_kept[at] = true;
                }
            }
        }
        Self { members, is_kept }
    }

    /// Returns the candidates of a channel: the best few of each pack and the best of the channel's own pack, sorted by
    /// the own pack.
    fn best(&self, own: Pack) -> Vec<(usize, Prior)> {
        let mut best = first(&self.members, own, auto::MAX_CANDIDATES);
        if !self.is_kept.is_empty() {
            let free_share = auto::MAX_CANDIDATES - self.is_kept.iter().filter(|is_kept| **is_kept).count();
            let others = best.into_iter().filter(|at| !self.is_kept[*at]).take(free_share);
            let best_of_packs = (0..self.members.len()).filter(|at| self.is_kept[*at]);
            best = others.chain(best_of_packs).collect();
            best.sort_unstable_by(|a, b| by_merit(&self.members, own, *a, *b));
        }
        best.into_iter().filter_map(|at| self.members.get(at).copied()).collect()
    }
}

/// Returns the best `most` candidates by the pack, sorted.
fn first(members: &[(usize, Prior)], pack: Pack, most: usize) -> Vec<usize> {
    let merits: Vec<f32> = members.iter().map(|(_, prior)| prior.merit(pack)).collect();
    let best_first = |a: &usize, b: &usize| merits[*b].total_cmp(&merits[*a]).then(a.cmp(b));
    let mut indices: Vec<usize> = (0..members.len()).collect();
    if most < indices.len() {
        indices.select_nth_unstable_by(most, best_first);
        indices.truncate(most);
    }
    indices.sort_unstable_by(best_first);
    indices
}

/// Compares by score. Equal candidates keep their order.
fn by_merit(members: &[(usize, Prior)], pack: Pack, a: usize, b: usize) -> Ordering {
    members[b].1.merit(pack).total_cmp(&members[a].1.merit(pack)).then(a.cmp(&b))
}

/// The static rating of a candidate for any task.
#[derive(Debug, Clone, Copy)]
pub struct Rating {
    /// The relative price, from 0 for free to 1 for the most expensive candidate in the comparison.
    dearness: Option<f32>,
    tier: f32,
}

impl Rating {
    pub fn prior(&self, is_fit: bool) -> Prior {
        Prior {
            cheapness: self.dearness.map_or(Prior::UNKNOWN, |dearness| 1.0 - dearness),
            // The price is the best indicator of a model's ability that every provider gives.
            fit: if is_fit { 0.5 + 0.5 * self.dearness.unwrap_or(Prior::UNKNOWN) } else { 0.0 },
            tier: self.tier,
        }
    }
}

/// Rates the candidates relative to each other.
pub fn rate(candidates: &[Candidate], snapshot: &Snapshot) -> Vec<Rating> {
    let tiers = Tiers::new(snapshot);
    let dearness = dearness(candidates.iter().map(price)).into_iter();
    dearness.zip(candidates).map(|(dearness, one)| Rating { dearness, tier: tiers.of(one) }).collect()
}

fn price(one: &Candidate) -> Option<f32> {
    Some((one.known.price_input? * 3 + one.known.price_output? * 2) as f32 / 5.0)
}

/// Computes relative prices, from 0 for free to 1 for the most expensive. An unknown price stays `None`, which the
/// rating counts as `Prior::UNKNOWN`, near the middle of the paid models.
fn dearness(prices: impl Iterator<Item = Option<f32>>) -> Vec<Option<f32>> {
    // Prices span five powers of ten, so their logarithms are compared. The logarithm of a free model is 0.
    let logs: Vec<Option<f32>> = prices.map(|price| price.map(|price| (1.0 + price).ln())).collect();
    let dear = logs.iter().flatten().filter(|log| **log > 0.0);
    let (cheapest, dearest) =
        dear.fold((f32::MAX, 0.0), |(least, most): (f32, f32), log| (least.min(*log), most.max(*log)));
    let dearness = |log: f32| match log {
        log if log <= 0.0 => 0.0,
        log if dearest > cheapest => CHEAPEST + (1.0 - CHEAPEST) * (log - cheapest) / (dearest - cheapest),
        _ => 1.0,
    };
    logs.into_iter().map(|log| log.map(dearness)).collect()
}

/// The operator's preference for each connection, by index in the snapshot.
struct Tiers(Vec<f32>);

impl Tiers {
    fn new(snapshot: &Snapshot) -> Self {
        let tier = |base_url: &str, priority| {
            let preferred = 1.0 / (1.0 + priority as f32 / 10.0);
            if is_own_machine(base_url) {
                1.0
            } else {
                0.5 * preferred
            }
        };
        Self(snapshot.connections.iter().map(|one| tier(&one.base_url, one.priority)).collect())
    }

    fn of(&self, candidate: &Candidate) -> f32 {
        match &candidate.to {
            To::Connection { index, .. } => self.0.get(*index).copied().unwrap_or_default(),
            To::Combo(_) => 0.5,
        }
    }
}

fn is_own_machine(base_url: &str) -> bool {
    ["http://127.0.0.1", "http://localhost", "http://[::1]"].iter().any(|start| base_url.starts_with(start))
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
