//! Connections of messages: [`requests`] over a WebSocket, and [`realtime`] conversations, which a provider takes after a
//! [`handshake`] for the model of the [`query`] and which a [`session`] passes between the caller and the [`provider`].
//! [`review`] ends connections whose callers may not call any more. [`outbox`] holds what goes to the caller, [`assembly`] counts what is held of messages on either side.

pub mod assembly;
pub mod handshake;
pub mod outbox;
pub mod provider;
pub mod query;
pub mod realtime;
pub mod requests;
pub mod review;
pub mod session;
