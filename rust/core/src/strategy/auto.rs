//! The strategy `auto`: the best targets by score. Price, fit and tier do not change within a snapshot and are computed
//! when it is compiled. A decision adds the live data and picks the best few in time linear in the number of
//! candidates.

use super::facts::{Availability, CandidateOrder, Facts};
use super::pack::Pack;
use super::random::Random;

/// The most candidates of one channel. The best by their static score are selected.
pub const MAX_CANDIDATES: usize = 64;
/// The number of candidates that each weight pack contributes to every channel, because a request can select another
/// pack.
pub const BEST_OF_EACH_PACK: usize = 8;
/// The number of candidates that are sorted. The rest are rarely tried.
const RANKED: usize = 8;
/// The probability that the second-best candidate is tried first, so that its measurements stay current.
const EXPLORATION: f64 = 0.05;
/// A second-best candidate below this share of the best score is not explored.
const WORTH_EXPLORING: f32 = 0.5;

/// The total score, from 0 to about 1. Unknown values count as half, an unknown quota as full.
pub fn score(facts: &Facts, pack: Pack) -> f32 {
    let weights = pack.weights();
    let health = match facts.availability {
        Availability::Able => 1.0,
        Availability::Probing => 0.5,
        Availability::Cooling | Availability::Closed => 0.0,
    };
    // A latency of one second halves the value. Each request in flight adds to the latency.
    let latency = facts.latency_ms.map_or(0.5, |ms| 1_000.0 / (1_000.0 + ms * (1.0 + facts.in_flight as f32 / 8.0)));
    facts.prior.merit(pack)
        + weights.health * health
        + weights.quota * facts.headroom()
        + weights.latency * latency
        + weights.stability * facts.success_rate.unwrap_or(0.5)
}

/// Sorts the best few by score. The others follow in their original order.
pub(super) fn arrange(facts: &[Facts], pack: Pack, able: &mut CandidateOrder, random: &mut Random) {
    let mut scored: smallvec::SmallVec<[(f32, u16); 64]> =
        able.iter().map(|&index| (score(&facts[usize::from(index)], pack), index)).collect();
    let best_first = |a: &(f32, u16), b: &(f32, u16)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    let ranked = RANKED.min(scored.len());
    if ranked < scored.len() {
        scored.select_nth_unstable_by(ranked, best_first);
        scored[ranked..].sort_unstable_by_key(|&(_, index)| index);
    }
    scored[..ranked].sort_unstable_by(best_first);
    if ranked > 1 && random.unit() < EXPLORATION && scored[1].0 >= scored[0].0 * WORTH_EXPLORING {
        scored.swap(0, 1);
    }
    able.clear();
    able.extend(scored.into_iter().map(|(_, index)| index));
}

/// One `auto/*` name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channel {
    pub name: &'static str,
    pub pack: Pack,
    pub task: Option<Task>,
    /// Only models that cost nothing. Without any, the channel has no candidate.
    pub is_free: bool,
    pub is_lkgp: bool,
}

/// The task of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    Coding,
    Reasoning,
    Vision,
    Chat,
    Multimodal,
}

const fn channel(name: &'static str, pack: Pack, task: Option<Task>) -> Channel {
    Channel { name, pack, task, is_free: false, is_lkgp: false }
}

const fn free(name: &'static str, task: Option<Task>) -> Channel {
    Channel { name, pack: Pack::Balanced, task, is_free: true, is_lkgp: false }
}

/// The channel of a model family: any model of the family, with the balanced weights.
pub const OF_FAMILY: Channel = channel("auto/<family>", Pack::Balanced, None);

/// Every channel except those of families.
pub const CHANNELS: &[Channel] = &[
    channel("auto", Pack::Balanced, None),
    channel("auto/fast", Pack::ShipFast, None),
    channel("auto/cheap", Pack::CostSaver, None),
    channel("auto/smart", Pack::QualityFirst, None),
    channel("auto/offline", Pack::OfflineFriendly, None),
    channel("auto/reliable", Pack::ReliabilityFirst, None),
    free("auto/free", None),
    Channel { name: "auto/lkgp", pack: Pack::Balanced, task: None, is_free: false, is_lkgp: true },
    channel("auto/coding", Pack::Balanced, Some(Task::Coding)),
    channel("auto/coding:fast", Pack::ShipFast, Some(Task::Coding)),
    channel("auto/coding:cheap", Pack::CostSaver, Some(Task::Coding)),
    channel("auto/coding:reliable", Pack::ReliabilityFirst, Some(Task::Coding)),
    channel("auto/coding:pro", Pack::QualityFirst, Some(Task::Coding)),
    free("auto/coding:free", Some(Task::Coding)),
    channel("auto/reasoning", Pack::Balanced, Some(Task::Reasoning)),
    channel("auto/reasoning:fast", Pack::ShipFast, Some(Task::Reasoning)),
    channel("auto/reasoning:cheap", Pack::CostSaver, Some(Task::Reasoning)),
    channel("auto/reasoning:pro", Pack::QualityFirst, Some(Task::Reasoning)),
    channel("auto/vision", Pack::Balanced, Some(Task::Vision)),
    channel("auto/vision:cheap", Pack::CostSaver, Some(Task::Vision)),
    channel("auto/chat", Pack::Balanced, Some(Task::Chat)),
    channel("auto/chat:fast", Pack::ShipFast, Some(Task::Chat)),
    channel("auto/chat:cheap", Pack::CostSaver, Some(Task::Chat)),
    free("auto/chat:free", Some(Task::Chat)),
    channel("auto/multimodal", Pack::Balanced, Some(Task::Multimodal)),
];

/// Returns whether a name has the form of an `auto` channel. The channel need not exist.
pub fn is_auto(name: &str) -> bool {
    name == "auto" || name.starts_with("auto/")
}

impl Task {
    /// Returns whether a model suits the task, according to the catalogue or else to its name.
    pub fn fits(self, model: &str, takes_pictures: Option<bool>) -> bool {
        match takes_pictures.filter(|_| self == Self::Vision) {
            Some(takes_pictures) => takes_pictures,
            None => self.is_named_in(model),
        }
    }

    /// Returns whether a model's name indicates the task. The name is the only data that every provider gives.
    fn is_named_in(self, model: &str) -> bool {
        let words: &[&str] = match self {
            Self::Coding => &["code", "coder", "codestral", "devstral", "claude", "gpt-5", "gpt-4.1"],
            Self::Reasoning => &["reason", "think", "-r1", "o1", "o3", "o4", "qwq", "opus", "gpt-5"],
            Self::Vision => &["vision", "-vl", "gpt-4o", "gpt-5", "gemini", "claude", "pixtral", "llava"],
            Self::Chat => &["chat", "instruct", "-it", "mini", "flash", "haiku"],
            Self::Multimodal => &["omni", "gpt-4o", "gemini", "-vl"],
        };
        words.iter().any(|word| model.contains(word))
    }
}

/// Returns whether a model is a chat model, judged by its name.
pub fn is_chat_model(model: &str) -> bool {
    const OTHERS: &[&str] = &[
        "embed",
        "whisper",
        "tts",
        "dall-e",
        "moderation",
        "rerank",
        "transcribe",
        "imagen",
        "-image",
        "sora",
        "veo-",
        "bge-",
    ];
    !OTHERS.iter().any(|word| model.contains(word))
}
