//! What a model call consumed, as the provider counted it.

use serde::Deserialize;

/// How fast, and how dear, a provider serves a call: its own word, in one spelling.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServiceTier {
    #[default]
    Standard,
    /// Some time within a day.
    Batch,
    /// When there is room.
    Flex,
    /// Before others.
    Priority,
    /// Before those.
    Ultrafast,
}

impl ServiceTier {
    /// Reads what providers and callers write; what nobody has another price for is the standard one.
    #[must_use]
    pub fn of(name: &str) -> Self {
        match name.trim_start_matches("ON_DEMAND_") {
            "batch" => Self::Batch,
            "flex" | "FLEX" => Self::Flex,
            // OpenAI takes both names for one.
            "priority" | "PRIORITY" | "fast" => Self::Priority,
            "ultrafast" => Self::Ultrafast,
            _ => Self::Standard,
        }
    }

    /// As records have it.
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

/// Token counts of one call; zero where the provider said nothing. `cached` and `cache_write` are parts of `input`,
/// `reasoning` is a part of `output`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    pub cached: u64,
    pub reasoning: u64,
    pub cache_write: u64,
    /// The part of `cache_write` that is kept for an hour rather than for minutes.
    pub cache_write_hour: u64,
    pub service: ServiceTier,
}

/// A count of units above this is none: no call makes a thousand million pictures, or reads as many pages.
pub const MAX_UNITS: u64 = 1_000_000_000;
/// More tokens than this are not written down of one record. A conversation may add up many calls of its own, so this is
/// above what one call may tell; it leaves room for nine thousand such records in a sum of 64 bits.
pub const MAX_RECORDED_TOKENS: u64 = 1_000_000_000_000_000;

/// The units beside tokens that a call came to; zero for those that it does not deal in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Units {
    /// Pictures that were made, or looked at where those are what is paid for.
    pub images: u64,
    /// Of a recording, milliseconds.
    pub audio_ms: u64,
    pub pages: u64,
    /// Of a text that was read aloud.
    pub characters: u64,
    /// Searches.
    pub queries: u64,
}

impl Units {
    /// These, where the provider told nothing else.
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
            // Of several calls the one that the caller gets speaks for all.
            service: self.service,
        }
    }
}
