//! The engine's own listener: what granian with its adapter is otherwise, without Python on a request's way.
//!
//! Read in this order: [`listener`] (what starts and stops), [`config`], [`accept`] (accepts and hands over), [`connection_limit`] (how
//! many connections), [`worker`] (one of N threads), [`connection`] (which protocol, and its life), [`connection_state`] (what is
//! known of a connection from outside, and its timeouts), [`caller`] (who is at its other end), [`io`] (its bytes), [`tls`]
//! (certificates). Then a request: [`http1`] and [`http2`], [`request_body`] (what comes), [`flight`] (its work), [`reply`] (an
//! answer for HTTP/2), [`websocket`] (frames).
//!
//! A connection lives on one thread, and so does everything that its requests do: nothing crosses threads on their way. No
//! rule about requests stands here; those are the engine's, for every front. What stands here is the edge of a connection:
//! how long it may take, how many there may be, how it ends.

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
