//! Modes as pipelines of named engines.

use std::str::FromStr;
use std::sync::Arc;

use crate::engines::{Engine, ENGINES};
use crate::level::Level;
use crate::rtk::Filters;

/// A named pipeline. Each stage is a separate engine, and the report lists each one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Off,
    Lite,
    Standard,
    Aggressive,
    Ultra,
    Rtk,
    Stacked,
}

impl Mode {
    pub const ALL: [Self; 7] =
        [Self::Off, Self::Lite, Self::Standard, Self::Aggressive, Self::Ultra, Self::Rtk, Self::Stacked];

    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Lite => "lite",
            Self::Standard => "standard",
            Self::Aggressive => "aggressive",
            Self::Ultra => "ultra",
            Self::Rtk => "rtk",
            Self::Stacked => "stacked",
        }
    }

    /// The ids of its engines with their levels, in the order in which they run. Prose engines come first, because the
    /// engines for output use the words that remain.
    pub fn engines(self) -> &'static [(&'static str, Level)] {
        use Level::{Minimal, Standard};
        match self {
            Self::Off => &[],
            Self::Lite => &[("lite", Standard)],
            Self::Standard => &[
                ("caveman", Standard),
                ("rtk", Minimal),
                ("lite", Standard),
                ("columnar", Standard),
                ("session-dedup", Standard),
            ],
            Self::Aggressive => &[
                ("caveman", Standard),
                ("rtk", Minimal),
                ("age", Standard),
                ("lite", Standard),
                ("columnar", Standard),
                ("session-dedup", Standard),
            ],
            Self::Ultra => &[
                ("caveman", Standard),
                ("score", Standard),
                ("rtk", Standard),
                ("age", Standard),
                ("lite", Standard),
                ("columnar", Standard),
                ("session-dedup", Standard),
            ],
            Self::Rtk => &[("rtk", Standard), ("columnar", Standard)],
            Self::Stacked => &[
                ("caveman", Standard),
                ("rtk", Standard),
                ("lite", Standard),
                ("columnar", Standard),
                ("session-dedup", Standard),
            ],
        }
    }
}

impl FromStr for Mode {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|mode| mode.name() == name).ok_or(())
    }
}

/// One stage of a pipeline.
#[derive(Debug, Clone, Copy)]
pub struct Stage {
    pub(crate) engine: &'static Engine,
    pub level: Level,
}

impl Stage {
    /// Creates a stage. `None` if there is no engine with this id.
    pub fn new(engine: &str, level: Level) -> Option<Self> {
        let engine = ENGINES.iter().find(|known| known.id == engine)?;
        Some(Self { engine, level })
    }

    pub fn engine(&self) -> &'static str {
        self.engine.id
    }
}

/// The pipeline of one request.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub stages: Vec<Stage>,
    /// The operator's own filters, which precede the built-in ones.
    pub filters: Option<Arc<Filters>>,
    /// The languages that caveman shortens. Empty means all.
    pub languages: Arc<[String]>,
    /// Whether the original of output that rtk shortens is returned, and the new text refers to it.
    pub keeps_raw: bool,
}

impl Plan {
    /// Whether every engine writes the beginning of a conversation identically in each turn.
    pub fn is_stable(&self) -> bool {
        self.stages.iter().all(|stage| stage.engine.is_stable)
    }
}

impl From<Mode> for Plan {
    fn from(mode: Mode) -> Self {
        let stages = mode.engines().iter().filter_map(|(id, level)| Stage::new(id, *level)).collect();
        Self { stages, ..Self::default() }
    }
}
