//! One call, from its body to its answer: admit, choose, attempt, relay, settle.

pub mod admit;
pub mod attempt;
pub mod choose;
pub mod coalesce;
pub mod context;
pub mod conversation;
pub mod count;
pub mod counting;
pub mod endpoints;
pub mod failover;
pub mod guardrails;
pub mod hedge;
pub mod idempotency;
pub mod passthrough;
pub mod passthrough_stream;
pub mod plain;
pub mod progress;
pub mod reasoning;
pub mod relay;
pub mod searches;
pub mod settle;
pub mod stages;
pub mod stream;
pub mod translation;
pub mod videos;
