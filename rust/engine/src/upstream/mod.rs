//! Providers: their addresses, connections, credentials and health, and one attempt at one of them.

pub mod attempt;
pub mod auth;
pub mod connector;
pub mod failure;
pub mod half_open;
pub mod health;
pub mod load;
pub mod resolver;
pub mod target;
pub mod target_health;
pub mod wire;
