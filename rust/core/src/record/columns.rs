//! The columns of the table `requests`, which are the fields of a record line, defined once for both planes.

/// The type of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    Text,
    Flag,
    /// A 32-bit integer.
    Small,
    /// A 64-bit integer.
    Integer,
    /// Milliseconds since 1970 up to [`LATEST_MS`].
    Moment,
    /// Any number. An integer must be small enough to be exact.
    Real,
}

/// A column. Nullable columns may be absent in a line, because older relays do not write them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kind: ColumnKind,
    pub is_required: bool,
}

/// The last millisecond of the year 9999. A later time could not be shown, and would break the list that contains it.
pub const LATEST_MS: i64 = 253_402_300_799_999;

/// The columns in the order of the table.
pub const RECORD_COLUMNS: [Column; 58] = [
    required("request_id", ColumnKind::Text),
    required("ts_ms", ColumnKind::Moment),
    required("worker_id", ColumnKind::Text),
    required("principal_kind", ColumnKind::Text),
    optional("key_id", ColumnKind::Text),
    optional("session_tag", ColumnKind::Text),
    required("endpoint", ColumnKind::Text),
    required("method", ColumnKind::Text),
    required("path", ColumnKind::Text),
    optional("model", ColumnKind::Text),
    optional("provider", ColumnKind::Text),
    optional("connection_id", ColumnKind::Text),
    optional("upstream_model", ColumnKind::Text),
    required("stream", ColumnKind::Flag),
    required("status", ColumnKind::Small),
    required("outcome", ColumnKind::Text),
    optional("error_kind", ColumnKind::Text),
    required("tokens_input", ColumnKind::Integer),
    required("tokens_output", ColumnKind::Integer),
    required("tokens_cached", ColumnKind::Integer),
    required("tokens_reasoning", ColumnKind::Integer),
    required("tokens_cache_write", ColumnKind::Integer),
    required("cost_usd_micros", ColumnKind::Integer),
    required("latency_ms", ColumnKind::Real),
    optional("ttft_ms", ColumnKind::Real),
    required("attempts", ColumnKind::Small),
    required("bytes_request", ColumnKind::Integer),
    required("bytes_response", ColumnKind::Integer),
    required("no_log", ColumnKind::Flag),
    optional("session_id", ColumnKind::Text),
    optional("combo", ColumnKind::Text),
    optional("strategy", ColumnKind::Text),
    optional("cache", ColumnKind::Text),
    optional("cache_kind", ColumnKind::Text),
    optional("cost_saved_usd_micros", ColumnKind::Integer),
    optional("trace_id", ColumnKind::Text),
    optional("span_id", ColumnKind::Text),
    optional("parent_span_id", ColumnKind::Text),
    optional("guardrails", ColumnKind::Text),
    optional("compression", ColumnKind::Text),
    optional("compression_tokens_before", ColumnKind::Integer),
    optional("compression_tokens_after", ColumnKind::Integer),
    optional("compression_ms", ColumnKind::Real),
    optional("compression_rejected", ColumnKind::Text),
    optional("compression_saved_usd_micros", ColumnKind::Integer),
    optional("tokens_cache_write_hour", ColumnKind::Integer),
    optional("service_tier", ColumnKind::Text),
    optional("price_tiers", ColumnKind::Text),
    optional("group_path", ColumnKind::Text),
    optional("tags", ColumnKind::Text),
    optional("chaos", ColumnKind::Text),
    optional("cache_hold", ColumnKind::Text),
    optional("chosen_ms", ColumnKind::Real),
    optional("failed_attempts", ColumnKind::Text),
    optional("error_message", ColumnKind::Text),
    optional("conversation", ColumnKind::Text),
    optional("prompt_hashes", ColumnKind::Text),
    optional("cache_read_saving", ColumnKind::Integer),
];

const fn required(name: &'static str, kind: ColumnKind) -> Column {
    Column { name, kind, is_required: true }
}

const fn optional(name: &'static str, kind: ColumnKind) -> Column {
    Column { name, kind, is_required: false }
}
