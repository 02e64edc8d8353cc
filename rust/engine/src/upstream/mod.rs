//! Providers: [`target`] is one connection made ready, [`auth`] its credentials, [`health`] and [`load`] what is remembered of it,
//! [`target_health`] how that is used, [`half_open`] the permit to begin, [`limiter`] its limits, [`target_cap`] those of combos,
//! [`slot`] a place among its open requests. [`attempt`] asks one target, [`failure`] is why it failed,
//! over [`wire`] (HTTP/1.1 and its pool), [`connector`] (TLS and sockets), [`proxy`] (tunnels) and [`resolver`] (names).

pub mod attempt;
pub mod auth;
pub mod connector;
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
