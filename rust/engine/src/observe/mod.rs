//! Records of requests: [`settle`] makes the record of its [`figures`] and [`extras`] ([`cut_stream`] of a stream that was cut), [`spool`] keeps it for control in a [`segment`], [`metrics`] counts, [`trace`] places
//! calls in traces, [`reason`] makes the sentence of a failure fit for the record and [`failed_attempts`] lists what providers answered, [`threads`] watches that threads move on, [`log`] writes for people,
//! [`refused_callers`] counts whom the gate refused. [`capture`] takes bodies along that are to be
//! kept for people to read, with the [`kept_headers`] that steered them, and [`capture_writer`] writes them.

pub mod capture;
pub mod capture_writer;
pub mod cut_stream;
mod extras;
pub mod failed_attempts;
pub mod figures;
pub mod kept_headers;
pub mod log;
pub mod metrics;
pub mod reason;
pub mod refused_callers;
pub mod segment;
pub mod settle;
pub mod spool;
pub mod threads;
pub mod trace;
