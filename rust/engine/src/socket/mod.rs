//! WebSockets: requests as frames, and realtime conversations.

pub mod frames;
pub mod outbox;
pub mod realtime;
pub mod requests;
