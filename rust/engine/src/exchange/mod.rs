//! One request and its response, between the front that serves a client and the task that performs the work.
//!
//! The front takes what is ready. If nothing is, it is notified once when something is. The task sends a head, then
//! body bytes, then the end, and waits while the client reads more slowly than the provider writes. A front with
//! separate threads uses [`Exchange::take_head`] and [`Exchange::take`] and is notified through [`Wake`]. A front that
//! is a task of the engine polls ([`Exchange::poll_head`], [`Exchange::poll_piece`]).
//!
//! Read [`state`], then [`front`] and [`task`].
//!
//! ```text
//! open -> headed -> (bytes)* -> ended|aborted  the task's side, in this order, each at most once
//!   \________________________/
//!            cancelled                         the front's side, at any time: the client is gone
//! ```

mod front;
mod state;
mod task;

pub use front::Piece;
pub use state::{Exchange, Head, Wake, HIGH_WATER_BYTES};
pub use task::Capacity;

#[cfg(test)]
mod tests;
