//! How strongly engines work.

/// How strongly an engine works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Level {
    Minimal,
    #[default]
    Standard,
    Aggressive,
}
