//! The control plane as the engine sees it: requests that it answers, the link that brings snapshots and commands.

pub mod background;
pub mod commands;
pub mod counters;
pub mod forward;
pub mod link;
pub mod reports;
pub mod responses;
pub mod stats;
