//! What fairlead decides and counts: no I/O, no runtime, no Python.
//!
//! Read in this order: [`error`] (what can go wrong and whose fault it is), [`routes`] with [`tier`] (every route and who may pass),
//! [`snapshot`] with [`group`] (the configuration a decision is made from), [`dialect`] (what callers and providers speak), [`model_name`] (the one
//! name of a model), [`ip_filter`] (from where), [`principal`], [`sessions`], [`session_lease`] and [`policy`] (who
//! is calling, and may they), [`usage`], [`price`] and [`record`]
//! (what a request came to), [`limit`], [`schedule`], [`ledger`] and [`lease`] (what keys may use, and have, on one node and on several), [`chaos`] (faults on purpose), [`strategy`] (which targets a combo
//! tries, in which order), [`health`] with [`breaker`], [`cooldown`], [`quota`] and [`resilience`] (what is learnt of providers that
//! fail), [`guardrail`] (what must not be said, either way), [`context`] (what of a conversation is sent), [`pace`] and [`provider_rate`] (what an operator
//! lets one connection take, and what its provider tells of that), [`multipart`] and [`json`] (readers of bodies that rebuild nothing),
//! [`secret`] (keys, hashes, sealing), [`jwt`], [`aws`] and [`service_account`] (credentials that are more than a header),
//! [`signature`] (how webhooks are signed), [`host`] and [`egress`] (names, and where a connection may go), [`clock`].

#![forbid(unsafe_code)]

pub mod aws;
pub mod breaker;
pub mod chaos;
pub mod clock;
pub mod context;
pub mod cooldown;
pub mod dialect;
pub mod egress;
pub mod error;
#[cfg(test)]
mod fuzz;
pub mod group;
pub mod guardrail;
pub mod health;
pub mod host;
pub mod ip_filter;
pub mod json;
pub mod jwt;
pub mod lease;
pub mod ledger;
pub mod limit;
pub mod model_name;
pub mod multipart;
pub mod pace;
pub mod policy;
pub mod price;
pub mod principal;
pub mod provider_rate;
pub mod quota;
pub mod record;
pub mod resilience;
pub mod routes;
pub mod schedule;
pub mod secret;
pub mod service_account;
pub mod session_lease;
pub mod sessions;
pub mod signature;
pub mod snapshot;
pub mod strategy;
pub mod tier;
pub mod usage;
