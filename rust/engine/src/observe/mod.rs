//! Usage records, metrics, traces and logs.
//!
//! - [`settle`]: turns a finished request into its record, with [`figures`], [`extras`] and, for a truncated stream,
//!   [`cut_stream`]
//! - [`prompt_hashes`]: hashes by which records tell why a prompt was not read from the provider's cache
//! - [`spool`]: stores records for control, each in a [`segment`]
//! - [`metrics`]: counters for `GET /metrics`
//! - [`trace`]: trace context of calls
//! - [`reason`] and [`failed_attempts`]: the text of failures and of providers' errors in a record
//! - [`refused_callers`]: counts of callers that the gate refused
//! - [`threads`]: detects stuck threads
//! - [`log`]: the log for operators
//! - [`capture`], [`kept_headers`] and [`capture_writer`]: bodies and headers that are stored for people to read

pub mod capture;
pub mod capture_writer;
pub mod cut_stream;
mod extras;
pub mod failed_attempts;
pub mod figures;
pub mod kept_headers;
pub mod log;
pub mod metrics;
pub mod prompt_hashes;
pub mod reason;
pub mod refused_callers;
pub mod segment;
pub mod settle;
pub mod spool;
pub mod threads;
pub mod trace;
