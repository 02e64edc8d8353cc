//! The control plane as the engine sees it: [`link`] brings snapshots and commands and takes [`stats`] and changed [`counters`];
//! [`commands`] carries them out ([`lease_candidates`] is one), [`reports`] holds what came of them; [`forward`] hands requests over ([`restart_page`] is what
//! browsers get while nobody takes them), [`background`] those that control works on by itself, [`repeats`] has a request done once under its idempotency key, [`responses`] stores responses that later requests continue, [`response_spool`] those on their way; [`own_files`] puts stored files into requests that name them.

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
