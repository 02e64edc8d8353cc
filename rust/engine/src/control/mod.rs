//! The connection to the control plane.
//!
//! - [`link`]: fetches snapshots and commands, and reports [`stats`] and changed [`counters`]
//! - [`commands`]: runs commands, for example [`lease_candidates`], and [`reports`] stores their results
//! - [`forward`]: forwards requests to control; [`restart_page`] is shown to browsers while it is unavailable
//! - [`background`]: requests that control performs later
//! - [`repeats`]: runs such requests once per idempotency key
//! - [`responses`] and [`response_spool`]: stores responses that later requests continue
//! - [`own_files`]: replaces references to stored files with their contents

pub mod background;
pub mod commands;
pub mod counters;
pub mod forward;
pub mod lease_candidates;
pub mod link;
pub mod own_files;
pub mod repeats;
pub mod reports;
pub mod response_spool;
pub mod responses;
pub mod restart_page;
pub mod stats;
