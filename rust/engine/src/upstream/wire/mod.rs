//! An HTTP/1.1 client whose pooled connections carry one request at a time.
//!
//! fairlead has its own client because of where the work happens. A client library drives each connection in a separate
//! task and passes requests and responses through queues. Here the task that waits for the response writes the request
//! and reads the response itself. That needs no wake-up and no queue. A connection that waits for a provider holds no
//! buffer: bytes are read into one buffer per thread, and only received data is copied out.
//!
//! ```text
//! pool -> lease --send(head, body)--> Response<Incoming> --complete--> pool
//!                      \_ an error: the connection is closed   \_ dropped before its end: closed
//! ```
//!
//! `pool` stores idle connections and lends them, `connection` is one of them, `head` encodes and decodes heads, `body`
//! is the request body, `framing` finds the end of a response, and `incoming` is the response body.

mod body;
mod connection;
pub mod framing;
mod head;
mod incoming;
mod pool;

pub use body::{BodySlices, Chunk};
pub use connection::Fault;
pub use incoming::{Incoming, Unanswered};
pub use pool::{use_thread_pool_slot, Lease, Pool};

#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod tests;
