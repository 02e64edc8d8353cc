//! The weight packs of the strategy `auto`.

use serde::Deserialize;

/// A set of weights.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pack {
    #[default]
    Balanced,
    ShipFast,
    CostSaver,
    QualityFirst,
    OfflineFriendly,
    ReliabilityFirst,
}

/// The weight of each part of a score.
#[derive(Debug, Clone, Copy)]
pub struct Weights {
    pub quota: f32,
    pub health: f32,
    pub cost: f32,
    pub latency: f32,
    pub fit: f32,
    pub stability: f32,
    pub tier: f32,
}

impl Pack {
    pub const ALL: &'static [Pack] = &[
        Self::Balanced,
        Self::ShipFast,
        Self::CostSaver,
        Self::QualityFirst,
        Self::OfflineFriendly,
        Self::ReliabilityFirst,
    ];

    /// Returns the pack for a mode: a short name or the pack's name.
    pub fn of_mode(mode: &str) -> Option<Self> {
        Some(match mode {
            "balanced" => Self::Balanced,
            "fast" | "ship-fast" => Self::ShipFast,
            "cheap" | "cost-saver" => Self::CostSaver,
            "quality" | "quality-first" => Self::QualityFirst,
            "offline" | "offline-friendly" => Self::OfflineFriendly,
            "reliable" | "reliability-first" => Self::ReliabilityFirst,
            _ => return None,
        })
    }

    /// Returns the pack's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Balanced => "balanced",
            Self::ShipFast => "ship-fast",
            Self::CostSaver => "cost-saver",
            Self::QualityFirst => "quality-first",
            Self::OfflineFriendly => "offline-friendly",
            Self::ReliabilityFirst => "reliability-first",
        }
    }

    pub fn weights(self) -> Weights {
        let of = |quota, health, cost, latency, fit, stability, tier| Weights {
            quota,
            health,
            cost,
            latency,
            fit,
            stability,
            tier,
        };
        match self {
            Self::Balanced => of(0.18, 0.22, 0.18, 0.14, 0.14, 0.07, 0.07),
            Self::ShipFast => of(0.14, 0.28, 0.05, 0.32, 0.10, 0.06, 0.05),
            Self::CostSaver => of(0.14, 0.19, 0.37, 0.05, 0.10, 0.05, 0.10),
            Self::QualityFirst => of(0.10, 0.18, 0.05, 0.05, 0.42, 0.15, 0.05),
            Self::OfflineFriendly => of(0.10, 0.20, 0.10, 0.05, 0.05, 0.05, 0.45),
            Self::ReliabilityFirst => of(0.15, 0.35, 0.05, 0.10, 0.05, 0.25, 0.05),
        }
    }
}
