//! Admission: the head of a request and the checks before it is served.
//!
//! - [`admission`]: the entry point, which every request passes; `forwarded_headers` of requests to control
//! - [`inbound`] and [`address`]: the request head, its rules and the caller's address; [`client_session`]: the session
//!   that a coding tool names
//! - [`preferences`] and [`lease`]: what the headers ask for, and the lease that they prove
//! - [`admission_proof`]: what the caller proved, to check it again later
//! - [`cors`] and [`unserved`]: cross-origin pages; paths and methods without a route
//! - [`body`], [`upload`] and [`request`]: a body in transfer, a form in transfer to disk, a complete request
//! - [`defaults`]: defaults of the key for `stream` and the service tier
//! - [`limits`], [`unpriced`], [`call_budget`] and [`cost_bound`]: limits of keys, models without a price, the caller's
//!   budget, cost estimates
//! - [`answer`] and [`headers`]: responses that the engine creates, and the gateway's headers

pub mod address;
pub mod admission;
pub mod admission_proof;
pub mod answer;
pub mod body;
pub mod call_budget;
pub mod client_session;
pub mod cors;
pub mod cost_bound;
pub mod defaults;
mod forwarded_headers;
pub mod headers;
pub mod inbound;
pub mod lease;
pub mod limits;
pub mod preferences;
pub mod request;
pub mod unpriced;
pub mod unserved;
pub mod upload;
