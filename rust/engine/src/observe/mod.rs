//! Records of requests: [`settle`] makes the record of its [`figures`], [`spool`] keeps it for control in a [`segment`], [`metrics`] counts, [`trace`] places
//! calls in traces, [`threads`] watches that threads move on, [`log`] writes for people. [`capture`] takes bodies along that are to be
//! kept for people to read, with the [`kept_headers`] that steered them, and [`capture_writer`] writes them.

pub mod capture;
pub mod capture_writer;
pub mod figures;
pub mod kept_headers;
pub mod log;
pub mod metrics;
pub mod segment;
pub mod settle;
pub mod spool;
pub mod threads;
pub mod trace;
