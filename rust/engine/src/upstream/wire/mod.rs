//! HTTP/1.1 as a client: a kept connection carries one request and its answer at a time.
//!
//! This client is ours, and not a library's, because of where the work happens. A client library drives each connection in a task of its
//! own and hands requests and answers over queues; here whoever waits for the answer writes the request and reads the answer
//! himself. That costs no wake-up and no queue, and a connection that waits for a provider holds no buffer at all: bytes are read
//! into one space per thread, and only what is there is kept.
//!
//! ```text
//! pool -> lease --send(head, body)--> Response<Incoming> --whole--> pool
//!                      \_ a fault: the connection is closed   \_ dropped before its end: closed
//! ```
//!
//! `pool` keeps connections and lends them, `connection` is one of them, `head` writes and reads heads, `body` is what is sent,
//! `framing` finds the end of an answer, `incoming` is an answer as it comes.

mod body;
mod connection;
pub mod framing;
mod head;
mod incoming;
mod pool;

pub use body::{BodySlices, Chunk};
pub use connection::Fault;
pub use incoming::{Incoming, Unanswered};
pub use pool::{take_shelf, Lease, Pool};

#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod tests;
