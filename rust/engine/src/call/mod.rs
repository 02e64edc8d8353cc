//! One call, from its body to its answer.

pub mod chat;
pub mod coalesce;
pub mod count;
pub mod counting;
pub mod endpoints;
pub mod failover;
pub mod guardrails;
pub mod hedge;
pub mod hedged_stream;
pub mod passthrough;
pub mod passthrough_stream;
pub mod plain;
pub mod progress;
pub mod reasoning;
pub mod searches;
pub mod stages;
pub mod stream;
pub mod translation;
pub mod videos;
