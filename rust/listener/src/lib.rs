//! The engine's own listener: what granian with its adapter is otherwise, without Python on a request's way.
//!
//! Read in this order: [`listener`] (what starts and stops), [`config`], [`accept`] (accepts and hands over), [`quota`] (how many
//! connections), [`worker`] (one of N threads), [`connection`] (which protocol, and its life), [`connection_state`] (what is known of a
//! connection from outside), [`io`] (its bytes), [`request`] with [`intake`] (a request and its body), [`flight`] and [`reply`]
//! (its work and its answer), [`websocket`] (frames), [`tls`] (certificates).
//!
//! A connection lives on one thread, and so does everything that its requests do: nothing crosses threads on their way. No
//! rule about requests stands here; those are the engine's, for every front. What stands here is the edge of a connection:
//! how long it may take, how many there may be, how it ends.

#![forbid(unsafe_code)]

pub mod accept;
pub mod config;
pub mod connection;
pub mod connection_state;
pub mod flight;
#[cfg(test)]
#[path = "../../core/src/fuzz.rs"]
mod fuzz;
pub mod http1;
pub mod intake;
pub mod io;
pub mod listener;
pub mod quota;
pub mod reply;
pub mod request;
pub mod tls;
pub mod websocket;
pub mod worker;
