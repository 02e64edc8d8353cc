//! The control plane as the engine sees it: [`link`] brings snapshots and commands and takes [`stats`] and changed [`counters`];
//! [`commands`] carries them out ([`lease_candidates`] is one), [`reports`] holds what came of them; [`forward`] hands requests over, [`background`] those that
//! control works on by itself, [`responses`] stores responses that later requests continue; [`own_files`] puts stored files into requests that name them.

pub mod background;
pub mod commands;
pub mod counters;
pub mod forward;
pub mod lease_candidates;
pub mod link;
pub mod own_files;
pub mod reports;
pub mod responses;
pub mod stats;
