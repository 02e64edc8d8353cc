//! A combo as the operator configured it: name, strategy, steps and strategy parameters.

use serde::Deserialize;

/// How a combo orders its targets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// List order.
    #[default]
    Priority,
    /// List order, but targets at their concurrency cap or nearly without quota come after the others.
    FillFirst,
    /// At random, in proportion to the weights. If all weights are zero, all targets are equally likely.
    Weighted,
    /// Each in turn.
    RoundRobin,
    /// Two random choices, the less loaded one first.
    P2c,
    /// At random, all equally likely.
    Random,
    /// At random without repetition until every target had a turn.
    StrictRandom,
    /// Fewest requests in flight, then fewest sent.
    LeastUsed,
    /// The lowest estimated cost of this request, input and output.
    CostOptimized,
    /// The largest context window.
    ContextOptimized,
    /// Requests with the same beginning go to the same target, to hit the provider's prompt cache.
    CacheOptimized,
    /// The most quota left in the tightest window.
    Headroom,
    /// Quota that expires soon is used first, scored by the remaining quota and the time to the reset.
    ResetAware,
    /// The earliest reset among the selected windows.
    ResetWindow,
    /// The target that served last, then list order.
    Lkgp,
    /// List order. A session stays on its target until that target's quota runs out.
    ContextRelay,
    /// All targets answer and a judge merges the answers.
    Fusion,
    /// Each step works on the output of the step before it.
    Pipeline,
    /// By score.
    Auto,
}

impl Strategy {
    /// Every strategy with its name.
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
    /// `pipeline`: the instructions for this step.
    #[serde(default)]
    pub prompt: Option<String>,
}

/// The target of a step.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum What {
    /// A model with its prefix, or a pattern of such names with `*`, over one connection or over every connection that
    /// serves it.
    Model {
        model: String,
        #[serde(default)]
        connection_id: Option<String>,
    },
    /// Another combo, by name.
    ComboRef { combo: String },
}

/// The name of a quota window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WindowName {
    Session,
    Weekly,
    Monthly,
}

/// The parameters of the strategies. Each strategy reads only its own.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub struct Params {
    /// `weighted`, `round-robin`: the number of consecutive requests that a selected target gets.
    pub sticky_limit: u32,
    /// The most concurrent requests on one target. `fill-first` prefers the next target above it; absent, only quota
    /// counts. `round-robin` queues further requests by the combo's queue settings; absent means unlimited.
    pub concurrency_per_model: Option<u32>,
    /// `reset-window`: the windows whose resets are compared.
    pub windows: Vec<WindowName>,
    /// `context-relay`: the used share of quota at which a session moves to another target.
    pub handoff_threshold: f32,
    /// `context-relay`: the model that writes the hand-over note. Absent: the session's next target.
    pub handoff_model: Option<String>,
    /// `context-relay`: the number of messages that the note summarizes.
    pub max_messages_for_summary: usize,
    /// `auto`: the weight pack.
    pub pack: super::pack::Pack,
    /// `fusion`: the model that merges the answers. Absent: the model of the first step.
    pub judge_model: Option<String>,
    /// `fusion`: the number of answers after which the grace period for the others starts.
    pub min_panel: u32,
    pub straggler_grace_ms: u64,
    pub panel_timeout_ms: u64,
    /// Any strategy except `fusion` and `pipeline`: if a target is slow, the next one is called as well and the first
    /// response is used.
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

/// A combo as the operator configured it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Combo {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub strategy: Strategy,
    pub steps: Vec<Step>,
    #[serde(default)]
    pub params: Params,
    /// The outbound proxy of the combo's calls: an id, or `direct`.
    #[serde(default)]
    pub proxy: Option<String>,
    #[serde(default)]
    pub rules: super::rules::Rules,
}
