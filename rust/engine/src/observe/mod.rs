//! What is recorded of requests: usage records, metrics, traces, logs.

pub mod log;
pub mod metrics;
pub mod settle;
pub mod spool;
pub mod threads;
pub mod trace;
