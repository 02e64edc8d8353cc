//! The engine's own listener. It replaces granian and its adapter, so that no Python runs for a request.
//!
//! Read the modules in this order: [`listener`] (start and stop), [`config`], [`accept`] (accepts connections and
//! distributes them), [`connection_limit`] (the number of connections), [`worker`] (one of N threads), [`connection`]
//! (detects the protocol and serves it), [`connection_state`] (state for monitoring, and timeouts), [`caller`] (the
//! peer), [`io`] (the bytes), [`tls`] (certificates). Then a request: [`http1`] and [`http2`], [`request_body`] (the
//! request's body), [`flight`] (its work), [`reply`] (an answer for HTTP/2), [`websocket`] (frames).
//!
//! A connection and everything that its requests do stay on one thread. The rules about requests are in the engine, for
//! every front. This crate only handles connections: how long they may take, how many there may be, and how they end.

#![forbid(unsafe_code)]
#![allow(unreachable_pub, reason = "`pub` in a private module means the crate; the face is below")]

mod accept;
mod caller;
mod config;
mod connection;
mod connection_limit;
mod connection_state;
mod flight;
#[cfg(test)]
#[path = "../../core/src/fuzz.rs"]
mod fuzz;
mod http1;
mod http2;
mod io;
mod listener;
mod reply;
mod request_body;
mod tls;
mod websocket;
mod worker;

pub use listener::Listener;
