//! The gate: the head of a request and what is held against it before any work begins.
//!
//! [`inbound`] is the head and the rules for it, [`address`] where it comes from, [`preferences`] what its headers prefer, [`lease`] what they show of a lease, [`admission`] the one gate, [`standing`] what a caller proved at it, to check it again, [`cors`]
//! pages of other origins, [`unserved`] paths and methods that have no route. [`body`] is a body on its way, [`upload`] a form on its way to disk, [`request`] a request that is
//! whole. [`defaults`] is what a body means that does not say `stream`, [`limits`] the limits of keys, [`unpriced`] models whose cost is not known, [`call_budget`] what a caller lets one call cost, [`cost_bound`] what a call can come to, [`answer`] what the engine
//! answers itself, [`headers`] the gateway's own headers.

pub mod address;
pub mod admission;
pub mod answer;
pub mod body;
pub mod call_budget;
pub mod cors;
pub mod cost_bound;
pub mod defaults;
pub mod headers;
pub mod inbound;
pub mod lease;
pub mod limits;
pub mod preferences;
pub mod request;
pub mod standing;
pub mod unpriced;
pub mod unserved;
pub mod upload;
