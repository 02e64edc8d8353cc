//! Calls to providers. [`attempt`] sends one request to one target.
//!
//! - [`target`]: a connection prepared for requests, with its [`address`] and its credentials in [`auth`]; clouds' paths in
//!   [`cloud_path`] and [`deployment_path`]
//! - [`health`] and [`load`]: the state of a connection, used through [`target_health`]
//! - [`half_open`]: the permit to start an attempt
//! - [`limiter`] and [`target_cap`]: limits of connections and of combos; [`slot`]: one open request under them
//! - [`failure`]: why an attempt failed
//! - [`wire`]: HTTP/1.1 and its pool
//! - [`connector`], [`proxy`] and [`resolver`]: sockets and TLS, tunnels, name resolution

pub mod address;
pub mod attempt;
pub mod auth;
pub mod cloud_path;
pub mod connector;
pub mod deployment_path;
pub mod failure;
pub mod half_open;
pub mod health;
pub mod limiter;
pub mod load;
pub mod proxy;
pub mod resolver;
pub mod slot;
pub mod target;
pub mod target_cap;
pub mod target_health;
pub mod wire;
