//! WebSockets.
//!
//! - [`requests`]: several requests over one WebSocket
//! - [`realtime`]: a realtime conversation, which a [`session`] relays between the caller and the [`provider`] after a
//!   [`handshake`]; the [`query`] names the model
//! - [`review`]: closes connections whose callers have lost their access
//! - [`outbox`]: frames for the caller
//! - [`assembly`]: counts buffered bytes of messages on either side

pub mod assembly;
pub mod handshake;
pub mod outbox;
pub mod provider;
pub mod query;
pub mod realtime;
pub mod requests;
pub mod review;
pub mod session;
