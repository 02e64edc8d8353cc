//! Connections of frames: [`requests`] over a WebSocket, [`realtime`] conversations with a provider, whose [`frames`] are read
//! here; [`outbox`] holds what goes to the caller.

pub mod frames;
pub mod outbox;
pub mod realtime;
pub mod requests;
