//! A combo as the operator wrote it: a name, a strategy, steps, and what the strategy is told beyond them.

use serde::Deserialize;

/// How a combo decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// List order.
    #[default]
    Priority,
    /// List order, but one that has as many requests open as it takes well, or next to no quota, waits behind those with room.
    FillFirst,
    /// By chance, in proportion to the weights; with all weights zero each is as likely.
    Weighted,
    /// Each in turn.
    RoundRobin,
    /// The less loaded of two that chance picked.
    P2c,
    /// By chance, each as likely.
    Random,
    /// By chance, but each once before any comes again.
    StrictRandom,
    /// Fewest requests open, then fewest sent.
    LeastUsed,
    /// The least that this request would cost, input and output.
    CostOptimized,
    /// The largest context window.
    ContextOptimized,
    /// Requests with the same beginning go to the same target, so that the provider's prompt cache is hit.
    CacheOptimized,
    /// The most left of the tightest quota window.
    Headroom,
    /// Quota that is lost soon is used first: what remains and how soon it is reset.
    ResetAware,
    /// The soonest reset of the chosen windows.
    ResetWindow,
    /// The last that served, then list order.
    Lkgp,
    /// List order, and a session stays where it was until that one's quota runs out.
    ContextRelay,
    /// All are asked and one judges.
    Fusion,
    /// Each works on what the one before it said.
    Pipeline,
    /// By score.
    Auto,
}

impl Strategy {
    /// Every strategy, as it is spelled.
    pub const ALL: &'static [(Strategy, &'static str)] = &[
        (Self::Priority, "priority"),
        (Self::FillFirst, "fill-first"),
        (Self::Weighted, "weighted"),
        (Self::RoundRobin, "round-robin"),
        (Self::P2c, "p2c"),
        (Self::Random, "random"),
        (Self::StrictRandom, "strict-random"),
        (Self::LeastUsed, "least-used"),
        (Self::CostOptimized, "cost-optimized"),
        (Self::ContextOptimized, "context-optimized"),
        (Self::CacheOptimized, "cache-optimized"),
        (Self::Headroom, "headroom"),
        (Self::ResetAware, "reset-aware"),
        (Self::ResetWindow, "reset-window"),
        (Self::Lkgp, "lkgp"),
        (Self::ContextRelay, "context-relay"),
        (Self::Fusion, "fusion"),
        (Self::Pipeline, "pipeline"),
        (Self::Auto, "auto"),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(strategy, _)| *strategy == self).map_or("priority", |(_, name)| name)
    }
}

/// One entry of a combo.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Step {
    #[serde(flatten)]
    pub what: What,
    #[serde(default)]
    pub weight: u32,
    /// `pipeline`: what this step is told to do with what it gets.
    #[serde(default)]
    pub prompt: Option<String>,
}

/// What a step stands for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum What {
    /// A model with its prefix, or a pattern of such names with `*`; over one connection, or over every one that serves it.
    Model {
        model: String,
        #[serde(default)]
        connection_id: Option<String>,
    },
    /// Another combo, by name.
    ComboRef { combo: String },
}

/// A quota window by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WindowName {
    Session,
    Weekly,
    Monthly,
}

/// The parameters of a strategy. Each reads those that concern it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub struct Params {
    /// `weighted`, `round-robin`: a winner stays for this many requests.
    pub sticky_limit: u32,
    /// Requests at once on one target. `fill-first`: it goes on to the next from then on; absent, only quota counts.
    /// `round-robin`: a further one waits as the combo's queue says; absent, any number.
    pub concurrency_per_model: Option<u32>,
    /// `reset-window`: whose reset counts.
    pub windows: Vec<WindowName>,
    /// `context-relay`: the share of quota after which a session moves on.
    pub handoff_threshold: f32,
    /// `context-relay`: who writes the hand-over note; absent, the session's next target.
    pub handoff_model: Option<String>,
    /// `context-relay`: the note is about so many messages.
    pub max_messages_for_summary: usize,
    /// `auto`: which pack of weights.
    pub pack: super::pack::Pack,
    /// `fusion`: who merges; absent, the first step.
    pub judge_model: Option<String>,
    /// `fusion`: as many answers are waited for before the stragglers' grace begins.
    pub min_panel: u32,
    pub straggler_grace_ms: u64,
    pub panel_timeout_ms: u64,
    /// Every strategy but those that ask in stages: a target that takes long is joined by the next, and the first to answer wins.
    pub hedging: bool,
    pub hedge_delay_ms: u64,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            sticky_limit: 1,
            concurrency_per_model: None,
            windows: vec![WindowName::Weekly],
            handoff_threshold: 0.85,
            handoff_model: None,
            max_messages_for_summary: 30,
            pack: super::pack::Pack::default(),
            judge_model: None,
            min_panel: 2,
            straggler_grace_ms: 8_000,
            panel_timeout_ms: 90_000,
            hedging: false,
            hedge_delay_ms: 500,
        }
    }
}

/// A combo as the operator wrote it: a name, a strategy, steps, and what the strategy is told beyond them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Combo {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub strategy: Strategy,
    pub steps: Vec<Step>,
    #[serde(default)]
    pub params: Params,
    /// The outbound proxy of its calls: an id, or `direct`.
    #[serde(default)]
    pub proxy: Option<String>,
    #[serde(default)]
    pub rules: super::rules::Rules,
}
