//! Figures that a call adds to its record: the cache hold, compression and guardrail findings.

use crate::observe::failed_attempts::FailedAttempts;
use crate::observe::prompt_hashes::PromptHashes;
use fairlead_core::guardrail::Findings;
use fairlead_core::{Cost, Fault, PricesInUse, Units, Usage};
use std::fmt::Write as _;
use std::time::Duration;

/// Usage, cost and origin of a successful response.
#[derive(Debug)]
pub struct SettledAnswer {
    pub usage: Usage,
    pub cost: Cost,
    pub provider: Option<String>,
    pub upstream_model: Option<String>,
    pub strategy: &'static str,
}

/// Figures of a compressed conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompressionFigures {
    /// The name of the pipeline.
    pub name: String,
    /// Tokens in the texts of the conversation, by the gateway's own counter.
    pub tokens_before: u64,
    pub tokens_after: u64,
    pub micros: u64,
    /// Why texts were left unchanged, as `engine:reason=count`, separated by commas.
    pub rejected: String,
}

/// The result of trying to keep a conversation on the target whose provider has it in its prompt cache. Set once a
/// target has served it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheHold {
    /// The conversation's identity.
    pub conversation: u64,
    pub end: HoldEnd,
}

/// The target that served the conversation, compared with the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldEnd {
    /// No target has served it recently.
    Begun,
    Held,
    /// The previous target was unavailable or failed.
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

/// Fields that few requests use. They are on the heap so that they do not increase the size of every call.
#[derive(Debug, Default)]
pub struct Extras {
    /// Units other than tokens that the request used.
    pub units: Units,
    /// The server of the response, if it was not a connection.
    pub served_by: Option<String>,
    pub compression: Option<CompressionFigures>,
    pub cache_hold: Option<CacheHold>,
    pub prompt_hashes: Option<PromptHashes>,
    /// The fault that was injected.
    pub chaos: Option<Fault>,
    /// The failed attempts, as encoded in the record.
    pub failed_attempts: FailedAttempts,
    /// The prices of the additional calls, which are not part of the response to the caller.
    pub side_tiers: PricesInUse,
}

/// Formats findings for a header and the record: `pii-masker;found=email;action=warn`, separated by commas.
pub fn findings_text(findings: &Findings) -> String {
    let mut out = String::new();
    for finding in findings {
        let separator = if out.is_empty() { "" } else { ", " };
        let (name, action) = (finding.guardrail.name(), finding.action.name());
        // Writing to a string cannot fail.
        let _ = write!(out, "{separator}{name};found={};action={action}", finding.kind);
    }
    out
}

/// Converts to milliseconds with three decimals, the precision of our clock.
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
