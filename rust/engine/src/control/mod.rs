//! The control plane as the engine sees it: [`link`] brings snapshots and commands and takes [`stats`] and changed [`counters`];
//! [`commands`] carries them out ([`lease_candidates`] is one), [`reports`] holds what came of them; [`forward`] hands requests over ([`restart_page`] is what browsers get while nobody takes them), [`background`] those that
//! control works on by itself, [`responses`] keeps answers that are gone on from.

pub mod background;
pub mod commands;
pub mod counters;
pub mod forward;
pub mod lease_candidates;
pub mod link;
pub mod reports;
pub mod responses;
pub mod restart_page;
pub mod stats;
