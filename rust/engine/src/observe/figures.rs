//! Figures of a call that its record has: of the cache's hold, of compression, of what guardrails found.

use crate::observe::failed_attempts::FailedAttempts;
use fairlead_core::guardrail::Findings;
use fairlead_core::{Cost, Fault, PricesInUse, Units, Usage};
use std::fmt::Write as _;
use std::time::Duration;

/// Usage, cost and origin of an answer that ended well.
#[derive(Debug)]
pub struct SettledAnswer {
    pub usage: Usage,
    pub cost: Cost,
    pub provider: Option<String>,
    pub upstream_model: Option<String>,
    pub strategy: &'static str,
}

/// The figures of a conversation that was made shorter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompressionFigures {
    /// The pipeline by its name.
    pub name: String,
    /// Tokens of the conversation's texts, by the gateway's one counter.
    pub tokens_before: u64,
    pub tokens_after: u64,
    pub micros: u64,
    /// Why texts stayed as they were, as `engine:reason=count`, separated by commas.
    pub rejected: String,
}

/// A conversation that was to stay with the target whose provider has it in its prompt cache, once a target has served it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheHold {
    /// By its identity.
    pub conversation: u64,
    pub end: HoldEnd,
}

/// Where such a conversation was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldEnd {
    /// No target had served it before, or not lately.
    Begun,
    Held,
    /// The one that had it was not able, or failed.
    Moved,
}

impl HoldEnd {
    pub fn of(last: Option<u64>, served: u64) -> Self {
        match last {
            None => Self::Begun,
            Some(last) if last == served => Self::Held,
            Some(_) => Self::Moved,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Held => "held",
            Self::Moved => "moved",
        }
    }
}

/// Fields that few requests have; on the heap, so that conversations do not carry their size.
#[derive(Debug, Default)]
pub struct Extras {
    /// Units that the request used beside tokens.
    pub units: Units,
    /// Who served it where that was no connection.
    pub served_by: Option<String>,
    pub compression: Option<CompressionFigures>,
    pub cache_hold: Option<CacheHold>,
    /// The fault that it was given on purpose.
    pub chaos: Option<Fault>,
    /// The attempts that failed, as the record has them.
    pub failed_attempts: FailedAttempts,
    /// Which prices the calls beside the one that the caller gets were paid by.
    pub side_tiers: PricesInUse,
}

/// Findings for a header and the record: `pii-masker;found=email;action=warn`, separated by commas.
pub fn findings_text(findings: &Findings) -> String {
    let mut out = String::new();
    for finding in findings {
        let separator = if out.is_empty() { "" } else { ", " };
        let (name, action) = (finding.guardrail.name(), finding.action.name());
        // Writing to a string does not fail.
        let _ = write!(out, "{separator}{name};found={};action={action}", finding.kind);
    }
    out
}

/// Three decimals are what a clock like ours can tell.
pub fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// The members that one target did not get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutAt {
    pub connection: String,
    pub upstream_model: String,
    /// The names, separated by commas.
    pub names: String,
}

impl LeftOutAt {
    /// The members that a connection did not get for a model, out of those of all targets.
    pub fn of<'l>(all: &'l [Self], connection: &str, upstream_model: Option<&str>) -> Option<&'l str> {
        let is_it = |one: &&Self| one.connection == connection && upstream_model == Some(one.upstream_model.as_str());
        all.iter().find(is_it).map(|one| one.names.as_str())
    }
}
