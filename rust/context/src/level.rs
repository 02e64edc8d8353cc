//! How much the engines remove.

use std::str::FromStr;

/// How much an engine removes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Level {
    Minimal,
    #[default]
    Standard,
    Aggressive,
}

impl Level {
    pub const ALL: [Self; 3] = [Self::Minimal, Self::Standard, Self::Aggressive];

    pub fn name(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Standard => "standard",
            Self::Aggressive => "aggressive",
        }
    }
}

impl FromStr for Level {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|level| level.name() == name).ok_or(())
    }
}
