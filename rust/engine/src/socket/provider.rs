//! The provider's side of a WebSocket conversation (RFC 6455): messages in both directions, with size and time limits.

use crate::shared::Shared;
use crate::socket::assembly::{Assembly, CountedStream};
use crate::upstream::connector::Socket;
use fairlead_core::{Error, ErrorKind, Retry};
use futures_util::{SinkExt as _, StreamExt as _};
use std::sync::Arc;
use std::time::Duration;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Bytes, Message, Utf8Bytes};
use tokio_tungstenite::WebSocketStream;

/// The maximum size of a provider's message.
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
const READ_BUFFER_BYTES: usize = 64 * 1024;
const WRITE_DEADLINE: Duration = Duration::from_secs(30);
/// Close codes (RFC 6455, section 7.4.1).
const PROTOCOL_ERROR: u16 = 1002;
const NO_CODE: u16 = 1005;
const NOT_TEXT: u16 = 1007;
const TOO_BIG: u16 = 1009;

/// The connection to the provider.
#[derive(Debug)]
pub struct ProviderSocket {
    frames: WebSocketStream<CountedStream<Socket>>,
    assembly: Arc<Assembly>,
}

/// A message from the provider.
#[derive(Debug)]
pub enum ProviderMessage {
    Text(Utf8Bytes),
    /// The provider closes the conversation with this code.
    Close(u16),
    /// Not part of the conversation: pings, which are answered automatically, pongs, and binary messages.
    Other,
}

/// Why the connection can no longer be read.
#[derive(Debug, Clone, Copy)]
pub enum ReadFault {
    /// The provider violates the protocol; the code says how.
    Protocol(u16),
    /// The incoming message exceeds the limit of buffered bodies.
    MessageTooBig,
    /// The connection ended without a close frame.
    Cut,
}

impl ProviderSocket {
    /// `early` contains bytes received after the head of the handshake.
    pub async fn new(shared: &Arc<Shared>, stream: Socket, early: Vec<u8>) -> Self {
        let mut config = WebSocketConfig::default();
        config.read_buffer_size = READ_BUFFER_BYTES;
        config.max_message_size = Some(MAX_MESSAGE_BYTES);
        config.max_frame_size = Some(MAX_MESSAGE_BYTES);
        let assembly = Assembly::new(shared);
        let stream = CountedStream::new(stream, Arc::clone(&assembly));
        let frames = WebSocketStream::from_partially_read(stream, early, Role::Client, Some(config)).await;
        Self { frames, assembly }
    }

    /// Returns the next message. Cancel-safe: dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<ProviderMessage, ReadFault> {
        let Some(message) = self.frames.next().await else { return Err(ReadFault::Cut) };
        let message = message.map_err(|error| self.fault_of(&error))?;
        if matches!(message, Message::Text(_) | Message::Binary(_)) {
            // Remaining bytes of the same read belong to the next message, and are fewer than one read.
            let _fits = self.assembly.set(0);
        }
        Ok(match message {
            Message::Text(text) => ProviderMessage::Text(text),
            Message::Close(frame) => ProviderMessage::Close(frame.map_or(NO_CODE, |frame| frame.code.into())),
            Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => ProviderMessage::Other,
        })
    }

    fn fault_of(&self, error: &tungstenite::Error) -> ReadFault {
        match error {
            _ if self.assembly.is_over() => ReadFault::MessageTooBig,
            tungstenite::Error::Capacity(_) => ReadFault::Protocol(TOO_BIG),
            tungstenite::Error::Utf8(_) => ReadFault::Protocol(NOT_TEXT),
            tungstenite::Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => ReadFault::Cut,
            tungstenite::Error::Protocol(_) => ReadFault::Protocol(PROTOCOL_ERROR),
            _ => ReadFault::Cut,
        }
    }

    /// The number of bytes of an incomplete message. A provider that is sending a large message is not silent.
    pub fn held_bytes(&self) -> usize {
        self.assembly.held_bytes()
    }

    pub async fn send_text(&mut self, text: String) -> Result<(), Error> {
        self.send(Message::text(text)).await
    }

    pub async fn ping(&mut self) -> Result<(), Error> {
        self.send(Message::Ping(Bytes::new())).await
    }

    /// Sends the reason for the end of the conversation. The provider may no longer receive it.
    pub async fn close(&mut self, code: u16) {
        let frame = CloseFrame { code: CloseCode::from(code), reason: Utf8Bytes::default() };
        let _sent = self.send(Message::Close(Some(frame))).await;
    }

    async fn send(&mut self, message: Message) -> Result<(), Error> {
        if let Ok(Ok(())) = tokio::time::timeout(WRITE_DEADLINE, self.frames.send(message)).await {
            return Ok(());
        }
        let message = "The provider takes no more of the conversation.";
        Err(Error::upstream(ErrorKind::UpstreamReset, Retry::Never, message))
    }
}
