//! The usage record: one line of the spool per settled request. The field names are the columns of `usage.duckdb`.

mod columns;
mod quick;
mod read;
#[cfg(test)]
mod read_tests;
mod row;

pub use columns::{ColumnKind, RECORD_COLUMNS};
pub use read::{read_record_lines, FieldValue};

use crate::price::MAX_USD_MICROS;
use crate::usage::{ServiceTier, Usage, MAX_RECORDED_TOKENS};
use serde::Serialize;

/// How a request ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Completed,
    UpstreamFailed,
    ClientGone,
    /// The default outcome, so that a request never counts as a success by omission.
    #[default]
    Refused,
    Shed,
    Drained,
}

/// The result of the response cache for a request that used it, or would have used it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheOutcome {
    Hit,
    Miss,
    /// The caller, or the default of the key, requested the provider's own answer.
    Bypass,
}

/// The tier of the response cache that a hit came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheKind {
    Exact,
    Vector,
    /// The answer came from the running call of an equal request.
    Joined,
    /// The answer came from the shared store, where another worker had stored it.
    Shared,
}

impl CacheKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Vector => "vector",
            Self::Joined => "joined",
            Self::Shared => "shared",
        }
    }
}

/// The use of the response cache by a request. The default is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cached {
    pub cache: Option<CacheOutcome>,
    pub kind: Option<CacheKind>,
    /// The cost of the call that a hit saved.
    pub cost_saved_usd_micros: Option<u64>,
}

/// A settled request. By default every field is unknown. Unknown fields are left out, because the control plane reads
/// every byte again.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Record<'a> {
    pub request_id: &'a str,
    pub ts_ms: u64,
    pub worker_id: &'a str,
    pub principal_kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_id: Option<&'a str>,
    /// The ids of the key's groups, from the topmost down, separated by `/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_path: Option<&'a str>,
    /// The tags of the key and its groups, separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_tag: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<&'a str>,
    pub endpoint: &'a str,
    pub method: &'a str,
    pub path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream_model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub combo: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<&'a str>,
    pub stream: bool,
    pub status: u16,
    pub outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_kind: Option<&'a str>,
    /// The error message that the caller received, masked and at most 300 bytes long. Absent for keys with `noLog`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<&'a str>,
    pub tokens_input: u64,
    pub tokens_output: u64,
    pub tokens_cached: u64,
    pub tokens_reasoning: u64,
    pub tokens_cache_write: u64,
    /// The part of `tokens_cache_write` that lasts an hour.
    #[serde(skip_serializing_if = "is_zero")]
    pub tokens_cache_write_hour: u64,
    /// The service tier that the provider reported, if it is not the standard one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<&'a str>,
    /// The prices that the cost includes, in addition to the plain prices of input and output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_tiers: Option<&'a str>,
    pub cost_usd_micros: u64,
    pub latency_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttft_ms: Option<f64>,
    /// When the targets were chosen, in milliseconds after the admission.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen_ms: Option<f64>,
    pub attempts: u32,
    /// The failed attempts: `connection;kind;end;model`, separated by commas. `end` is in milliseconds after the
    /// admission. If the provider answered, `;status;code;type;request id;message` follow, as far as they are known. In
    /// the model name and the provider's texts `%`, `,`, `;`, `"`, `\\` and control characters are percent-encoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_attempts: Option<&'a str>,
    pub bytes_request: u64,
    pub bytes_response: u64,
    pub no_log: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheOutcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_kind: Option<CacheKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_saved_usd_micros: Option<u64>,
    /// The findings of the guardrails in both directions: `name;found=kind;action=action`, separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guardrails: Option<&'a str>,
    /// The pipeline that shortened the conversation, the tokens before and after, and the time that it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression_tokens_before: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression_tokens_after: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression_ms: Option<f64>,
    /// Why texts were left unchanged: `engine:reason=count`, separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression_rejected: Option<&'a str>,
    /// The input cost of the removed tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression_saved_usd_micros: Option<u64>,
    /// The fault that was injected into the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chaos: Option<&'a str>,
    /// Whether a conversation stayed with the target whose provider has it in its prompt cache, if its combo requests
    /// that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_hold: Option<&'a str>,
    /// Identifies the conversation of a model with a lower price for cached input, together with the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<&'a str>,
    /// Hashes of the prompt's segments: `tools.system.turns.hash.hash...`, the newest turn first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_hashes: Option<&'a str>,
    /// The price of a million input tokens minus their price from the provider's cache, in micro-dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read_saving: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_span_id: Option<&'a str>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Record<'_> {
    /// Sets the usage of the call, limited so that sums over many records fit.
    #[must_use]
    pub fn with_usage(mut self, usage: &Usage, cost_usd_micros: u64) -> Self {
        self.tokens_input = usage.input.min(MAX_RECORDED_TOKENS);
        self.tokens_output = usage.output.min(MAX_RECORDED_TOKENS);
        self.tokens_cached = usage.cached.min(MAX_RECORDED_TOKENS);
        self.tokens_reasoning = usage.reasoning.min(MAX_RECORDED_TOKENS);
        self.tokens_cache_write = usage.cache_write.min(MAX_RECORDED_TOKENS);
        self.tokens_cache_write_hour = usage.cache_write_hour.min(MAX_RECORDED_TOKENS);
        self.service_tier = (usage.service != ServiceTier::Standard).then(|| usage.service.name());
        self.cost_usd_micros = cost_usd_micros.min(MAX_USD_MICROS);
        self.cost_saved_usd_micros = self.cost_saved_usd_micros.map(|saved| saved.min(MAX_USD_MICROS));
        self
    }

    /// Appends the record as one line.
    pub fn append_to(&self, line: &mut Vec<u8>) -> serde_json::Result<()> {
        serde_json::to_writer(&mut *line, self)?;
        line.push(b'\n');
        Ok(())
    }
}
