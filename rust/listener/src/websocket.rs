//! WebSockets (RFC 6455): the handshake, then text messages between the caller and a conversation of the engine.

use crate::caller::{Caller, EngineHandle};
use crate::connection_state::{CloseMode, ConnectionState, RequestGuard};
use crate::http1::head::RequestHead;
use crate::io::Io;
use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use bytes::Bytes;
use fairlead_engine::{Admitted, Close, CountedStream, Exchange, FrameConnection, Handshake, Head, Inbound, Wake};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use http::header::{self, HeaderMap, HeaderValue};
use http::StatusCode;
use ring::digest::{digest, SHA1_FOR_LEGACY_USE_ONLY};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::WebSocketStream;

/// A caller that sends nothing for this long while no request is running is considered gone.
const IDLE: Duration = Duration::from_secs(600);
/// How long the caller may take to answer a close frame.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);
/// A caller that accepts nothing of a frame for this long is considered gone.
const SEND_WITHIN: Duration = Duration::from_secs(300);
/// The largest message that a caller may send, in bytes.
const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;
const MAX_FRAME_BYTES: usize = 16 * 1024 * 1024;
/// Close codes (RFC 6455, 7.4.1).
const GOING_AWAY: u16 = 1001;
const PROTOCOL_ERROR: u16 = 1002;
const NOT_TEXT: u16 = 1007;
const TOO_BIG: u16 = 1009;
/// A close code from the registry of RFC 6455, 11.7.
const TRY_AGAIN_LATER: u16 = 1013;
/// The constant that every handshake key is hashed with (RFC 6455, 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

type Frames = WebSocketStream<CountedStream<Io>>;

/// Whether a head requests a WebSocket (RFC 6455, 4.2.1).
pub fn is_asked(head: &RequestHead<'_>) -> bool {
    head.method == "GET"
        && !head.is_http_10
        && names(head, b"upgrade", b"websocket")
        && names(head, b"connection", b"upgrade")
}

fn names(head: &RequestHead<'_>, name: &[u8], token: &[u8]) -> bool {
    let values = head.headers.iter().filter(|(of, _)| *of == name);
    values
        .flat_map(|(_, value)| value.split(|&byte| byte == b','))
        .any(|option| option.trim_ascii().eq_ignore_ascii_case(token))
}

/// The answer to a handshake.
#[derive(Debug)]
pub enum Opening {
    Conversation {
        /// The value of `Sec-WebSocket-Accept`.
        accept: String,
        conversation: Box<dyn FrameConnection>,
        wake: Arc<SocketWake>,
    },
    Refused(Head, Bytes),
}

impl Opening {
    fn refused(status: StatusCode) -> Self {
        Self::Refused(Head { status, headers: HeaderMap::new() }, Bytes::new())
    }
}

/// Opens the conversation, or returns the refusal.
pub fn open(engine: &EngineHandle, head: &RequestHead<'_>, inbound: &Inbound<'_>) -> Opening {
    let is_known_version = head.header(b"sec-websocket-version") == Some(b"13");
    let (Some(key), true) = (head.header(b"sec-websocket-key"), is_known_version) else {
        // RFC 6455, 4.4: an unsupported version.
        let mut headers = HeaderMap::new();
        headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        return Opening::Refused(Head { status: StatusCode::BAD_REQUEST, headers }, Bytes::new());
    };
    let wake = Arc::new(SocketWake::default());
    let front: Arc<dyn Wake> = Arc::clone(&wake) as _;
    match engine.engine.admit_socket(inbound, &front) {
        Ok(conversation) => Opening::Conversation { accept: accept_of(key), conversation, wake },
        Err(admitted) => refusal(&admitted),
    }
}

/// The `Sec-WebSocket-Accept` for a key (RFC 6455, 4.2.2).
fn accept_of(key: &[u8]) -> String {
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key, GUID].concat()))
}

/// The answer to a head that was refused at admission.
fn refusal(admitted: &Admitted) -> Opening {
    let exchange: &Exchange = match admitted {
        Admitted::Answered(exchange) => exchange,
        Admitted::Pending(pending) => &pending.exchange,
    };
    if let (Some(head), Some(body)) = (exchange.take_head(), exchange.take_complete()) {
        return Opening::Refused(head, body);
    }
    // The route is not a WebSocket. It must be called without an upgrade.
    exchange.cancel();
    Opening::refused(StatusCode::FORBIDDEN)
}

/// Waits until the conversation's handshake is decided. `Some` holds the answer of a refusal.
pub async fn decided(conversation: &dyn FrameConnection, wake: &SocketWake) -> Option<(Head, Bytes)> {
    loop {
        match conversation.handshake() {
            Handshake::Pending => wake.rung.notified().await,
            Handshake::Accepted => return None,
            Handshake::Refused => {
                let answered = conversation.refusal().map(|exchange| refusal(&Admitted::Answered(exchange)));
                return Some(match answered {
                    Some(Opening::Refused(head, body)) => (head, body),
                    _ => (Head { status: StatusCode::FORBIDDEN, headers: HeaderMap::new() }, Bytes::new()),
                });
            }
        }
    }
}

/// Wakes the task of a connection on behalf of its conversation.
#[derive(Debug, Default)]
pub struct SocketWake {
    /// The conversation has something to send.
    rung: Notify,
    /// The conversation has ended, while sending may be blocked by a caller that does not read.
    closed: Notify,
}

impl Wake for SocketWake {
    fn wake(&self, _: u64) {
        self.rung.notify_one();
    }
}

/// Runs a conversation until either side closes.
pub async fn converse(
    io: Io,
    conversation: Box<dyn FrameConnection>,
    wake: Arc<SocketWake>,
    caller: Arc<Caller>,
    serving: RequestGuard,
) {
    let mut config = WebSocketConfig::default();
    config.max_message_size = Some(MAX_MESSAGE_BYTES);
    config.max_frame_size = Some(MAX_FRAME_BYTES);
    let stream = CountedStream::new(io, conversation.assembly());
    let mut frames = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
    let ended = Session { conversation: &*conversation, wake: &wake, state: &caller.state }.run(&mut frames).await;
    conversation.close();
    if let Some(end) = ended {
        // A caller that does not accept or answer the close frame is disconnected.
        drop(timeout(CLOSE_WITHIN, close(&mut frames, end)).await);
    }
    drop((serving, caller));
}

/// A conversation, and what both directions need.
struct Session<'a> {
    conversation: &'a dyn FrameConnection,
    wake: &'a SocketWake,
    state: &'a ConnectionState,
}

impl Session<'_> {
    /// Runs both directions until either side closes. `Some` holds the close frame to send.
    async fn run(&self, frames: &mut Frames) -> Option<Close> {
        let (mut sink, mut stream) = frames.split();
        tokio::select! {
            biased;
            end = self.send_frames(&mut sink) => end,
            code = self.receive_frames(&mut stream) => code.map(|code| Close::new(code, "")),
            // A caller that does not read cannot receive the reason.
            () = self.wait_after_close() => None,
            () = self.state.wait_for_close(CloseMode::Now) => Some(Close::new(GOING_AWAY, "")),
        }
    }

    /// Sends the conversation's messages as they come.
    async fn send_frames(&self, sink: &mut SplitSink<&mut Frames, Message>) -> Option<Close> {
        loop {
            while let Some(drawn) = self.conversation.take() {
                for text in drawn.frames {
                    in_time(sink.feed(Message::text(text))).await?;
                }
                in_time(sink.flush()).await?;
                if drawn.close.is_some() {
                    return drawn.close;
                }
            }
            self.wake.rung.notified().await;
        }
    }

    /// Passes the caller's messages to the conversation.
    async fn receive_frames(&self, stream: &mut SplitStream<&mut Frames>) -> Option<u16> {
        let assembly = self.conversation.assembly();
        loop {
            let message = match timeout(IDLE, stream.next()).await {
                Ok(message) => message,
                Err(_) if self.conversation.is_idle() => return Some(GOING_AWAY),
                Err(_) => continue,
            };
            if matches!(message, Some(Ok(Message::Text(_) | Message::Binary(_)))) {
                // Bytes of the same read that follow the message belong to the next one, and are less than one read.
                assembly.set(0);
            }
            match message {
                Some(Ok(Message::Text(text))) => self.conversation.receive(Some(text.as_str())),
                Some(Ok(Message::Binary(_))) => self.conversation.receive(None),
                // The library answers pings and close frames while it reads.
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_) | Message::Close(_))) => {}
                Some(Err(Error::Capacity(_))) => return Some(TOO_BIG),
                Some(Err(Error::Utf8(_))) => return Some(NOT_TEXT),
                Some(Err(Error::Protocol(_))) => return Some(PROTOCOL_ERROR),
                Some(Err(_)) if assembly.is_over() => return Some(TRY_AGAIN_LATER),
                Some(Err(_)) | None => return None,
            }
            if self.conversation.is_closed() {
                self.wake.closed.notify_one();
            }
        }
    }

    /// Ends `CLOSE_WITHIN` after the conversation did, for a caller that does not accept its close frame.
    async fn wait_after_close(&self) {
        self.wake.closed.notified().await;
        tokio::time::sleep(CLOSE_WITHIN).await;
    }
}

async fn in_time<F: Future<Output = Result<(), Error>>>(sent: F) -> Option<()> {
    timeout(SEND_WITHIN, sent).await.ok()?.ok()
}

async fn close(frames: &mut Frames, end: Close) {
    let frame = CloseFrame { code: CloseCode::from(end.code), reason: end.reason.into() };
    if frames.send(Message::Close(Some(frame))).await.is_ok() {
        while let Some(Ok(_)) = frames.next().await {}
    }
}
