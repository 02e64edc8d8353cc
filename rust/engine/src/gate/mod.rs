//! The gate: the head of a request and what is held against it before any work begins: route, caller, origin, limits, body.

pub mod admission;
pub mod answer;
pub mod body;
pub mod cors;
pub mod defaults;
pub mod headers;
pub mod inbound;
pub mod limits;
pub mod preferences;
pub mod request;
pub mod upload;
