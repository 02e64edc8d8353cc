//! One request and its answer, between the front that serves a client and the task that works for it.
//!
//! The front asks for what is ready and, when nothing is, is told once when something is. The task pushes a head, then
//! body bytes, then the end; it waits when the client reads slower than the provider writes. A front that has threads of its
//! own asks with [`Exchange::take_head`] and [`Exchange::take`] and is told through [`Wake`]; one that is a task of ours polls
//! ([`Exchange::poll_head`], [`Exchange::poll_piece`]).
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
pub use task::Room;

#[cfg(test)]
mod tests;
