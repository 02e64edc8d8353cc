//! What a model call consumed, as the provider counted it.

/// Token counts of one call; zero where the provider said nothing. `cached` and `cache_write` are parts of `input`,
/// `reasoning` is a part of `output`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    pub cached: u64,
    pub reasoning: u64,
    pub cache_write: u64,
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
        }
    }
}
