//! The usage of a model call, as the provider counted it.

use serde::Deserialize;

/// The service tier in which a provider served a call, normalized from the provider's own name. It determines speed and
/// price.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServiceTier {
    #[default]
    Standard,
    /// Within a day.
    Batch,
    /// When capacity is free.
    Flex,
    /// Before the standard tier.
    Priority,
    /// Before priority.
    Ultrafast,
}

impl ServiceTier {
    /// Parses the names that providers and callers use. A name without separate prices is the standard tier.
    #[must_use]
    pub fn of(name: &str) -> Self {
        match name.trim_start_matches("ON_DEMAND_") {
            "batch" => Self::Batch,
            "flex" | "FLEX" => Self::Flex,
            // OpenAI treats both names as the same tier.
            "priority" | "PRIORITY" | "fast" => Self::Priority,
            "ultrafast" => Self::Ultrafast,
            _ => Self::Standard,
        }
    }

    /// The name in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Batch => "batch",
            Self::Flex => "flex",
            Self::Priority => "priority",
            Self::Ultrafast => "ultrafast",
        }
    }
}

/// Token counts of one call; zero if the provider reported none. `cached` and `cache_write` are parts of `input`, and
/// `reasoning` is a part of `output`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    pub cached: u64,
    pub reasoning: u64,
    pub cache_write: u64,
    /// The part of `cache_write` that lasts an hour instead of minutes.
    pub cache_write_hour: u64,
    pub service: ServiceTier,
}

/// Larger counts are invalid: no call creates a thousand million images or reads as many pages.
pub const MAX_UNITS: u64 = 1_000_000_000;
/// The most tokens that one record holds. A conversation may add up many calls, so this exceeds what one call can
/// report. The sum of nine thousand such records fits into 64 bits.
pub const MAX_RECORDED_TOKENS: u64 = 1_000_000_000_000_000;

/// The units of a call other than tokens; zero for units that it does not use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Units {
    /// Images that were created, or that were read if those are charged.
    pub images: u64,
    /// The length of audio, in milliseconds.
    pub audio_ms: u64,
    pub pages: u64,
    /// The length of a text that was spoken.
    pub characters: u64,
    /// Searches.
    pub queries: u64,
}

impl Units {
    /// Returns the counts of `report`, and these where it has none.
    #[must_use]
    pub fn updated_with(self, report: Self) -> Self {
        let pick = |own: u64, report: u64| if report == 0 { own } else { report };
        Self {
            images: pick(self.images, report.images),
            audio_ms: pick(self.audio_ms, report.audio_ms),
            pages: pick(self.pages, report.pages),
            characters: pick(self.characters, report.characters),
            queries: pick(self.queries, report.queries),
        }
    }
}

impl std::ops::Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cached: self.cached.saturating_add(other.cached),
            reasoning: self.reasoning.saturating_add(other.reasoning),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            cache_write_hour: self.cache_write_hour.saturating_add(other.cache_write_hour),
            // The first of several calls determines the tier.
            service: self.service,
        }
    }
}
