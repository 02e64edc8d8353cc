//! The columns of the table `requests`, which are the fields of a record's line, told once for both planes.

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    Flag,
    /// A whole number of 32 bits.
    Small,
    /// A whole number of 64 bits.
    Whole,
    /// Milliseconds since 1970 up to [`LATEST_MS`].
    Moment,
    /// Any number; a whole one no greater than can be told exactly.
    Real,
}

/// A column. Those that may be without a value may be absent in a line: what an older relay did not know yet is told so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
    pub is_required: bool,
}

/// The last millisecond of the year 9999: a later time could not be shown, and no other in the list with it.
pub const LATEST_MS: i64 = 253_402_300_799_999;

/// In the order of the table.
pub const COLUMNS: [Column; 39] = [
    required("request_id", Kind::Text),
    required("ts_ms", Kind::Moment),
    required("worker_id", Kind::Text),
    required("principal_kind", Kind::Text),
    optional("key_id", Kind::Text),
    optional("session_tag", Kind::Text),
    required("endpoint", Kind::Text),
    required("method", Kind::Text),
    required("path", Kind::Text),
    optional("model", Kind::Text),
    optional("provider", Kind::Text),
    optional("connection_id", Kind::Text),
    optional("upstream_model", Kind::Text),
    required("stream", Kind::Flag),
    required("status", Kind::Small),
    required("outcome", Kind::Text),
    optional("error_kind", Kind::Text),
    required("tokens_input", Kind::Whole),
    required("tokens_output", Kind::Whole),
    required("tokens_cached", Kind::Whole),
    required("tokens_reasoning", Kind::Whole),
    required("tokens_cache_write", Kind::Whole),
    required("cost_usd_micros", Kind::Whole),
    required("latency_ms", Kind::Real),
    optional("ttft_ms", Kind::Real),
    required("attempts", Kind::Small),
    required("bytes_request", Kind::Whole),
    required("bytes_response", Kind::Whole),
    required("no_log", Kind::Flag),
    optional("session_id", Kind::Text),
    optional("combo", Kind::Text),
    optional("strategy", Kind::Text),
    optional("cache", Kind::Text),
    optional("cache_kind", Kind::Text),
    optional("cost_saved_usd_micros", Kind::Whole),
    optional("trace_id", Kind::Text),
    optional("span_id", Kind::Text),
    optional("parent_span_id", Kind::Text),
    optional("guardrails", Kind::Text),
];

const fn required(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, is_required: true }
}

const fn optional(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, is_required: false }
}
