//! WebSockets (RFC 6455): the handshake, then texts between the caller and a conversation of the engine's.

use crate::connection_state::{ConnectionState, Order, Serving};
use crate::reply::Reply;
use crate::request::{response, with_inbound, Caller, Room};
use base64::engine::general_purpose::STANDARD;
use base64::Engine as _;
use fairlead_engine::exchange::{Exchange, Wake};
use fairlead_engine::gate::admission::Admitted;
use fairlead_engine::socket::requests::{Assembly, FrameConnection};
use fairlead_engine::task;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use ring::digest::{digest, SHA1_FOR_LEGACY_USE_ONLY};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{ready, Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::WebSocketStream;

/// A caller that says nothing for this long, with nothing under way, has left.
const IDLE: Duration = Duration::from_secs(600);
/// How long the caller may take to answer a close.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);
/// A caller that takes nothing of one frame for this long has left.
const SEND_WITHIN: Duration = Duration::from_secs(300);
/// A message of the caller's.
const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;
const MAX_FRAME_BYTES: usize = 16 * 1024 * 1024;
/// RFC 6455, 7.4.1.
const GOING_AWAY: u16 = 1001;
const PROTOCOL_ERROR: u16 = 1002;
const NOT_TEXT: u16 = 1007;
const TOO_BIG: u16 = 1009;
/// Of the registry of RFC 6455, 11.7.
const TRY_AGAIN_LATER: u16 = 1013;
/// RFC 6455, 1.3.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

type Frames = WebSocketStream<Counted<TokioIo<Upgraded>>>;

/// Bytes of the caller's, counted as they come until the message that they are of is whole: the library puts it together,
/// and says nothing of it before.
#[derive(Debug)]
struct Counted<S> {
    stream: S,
    assembly: Arc<Assembly>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if self.assembly.grow(buffer.filled().len() - before) {
            Poll::Ready(Ok(()))
        } else {
            Poll::Ready(Err(io::Error::other("there is no room for another body")))
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// Whether a head asks for a WebSocket (RFC 6455, 4.2.1).
pub fn is_asked(request: &Request<Incoming>) -> bool {
    let headers = request.headers();
    request.method() == Method::GET
        && request.version() == Version::HTTP_11
        && names(headers, header::UPGRADE, "websocket")
        && names(headers, header::CONNECTION, "upgrade")
}

fn names(headers: &HeaderMap, name: HeaderName, token: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|part| part.trim().eq_ignore_ascii_case(token))
}

/// Opens the conversation and answers 101, or says why not.
pub fn accept(room: &Room, caller: &Arc<Caller>, mut request: Request<Incoming>, serving: Serving) -> Response<Reply> {
    let key = request.headers().get(header::SEC_WEBSOCKET_KEY).map(accept_key);
    let is_known_version = request.headers().get(header::SEC_WEBSOCKET_VERSION).is_some_and(|value| value == "13");
    let (Some(key), true) = (key, is_known_version) else { return refuse_handshake() };
    let upgrade = hyper::upgrade::on(&mut request);
    let (parts, _) = request.into_parts();
    let bell = Arc::new(Bell::default());
    let wake: Arc<dyn Wake> = Arc::clone(&bell) as _;
    match with_inbound(&parts, caller, |inbound| room.engine.admit_socket(inbound, &wake)) {
        Ok(conversation) => {
            caller.state.upgrade();
            // It ends when either side closes, with the drain, or with the thread.
            drop(task::spawn(converse(upgrade, conversation, bell, Arc::clone(caller), serving)));
            let mut answer = Response::new(Reply::Ended);
            *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            let headers = answer.headers_mut();
            headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
            headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
            headers.insert(header::SEC_WEBSOCKET_ACCEPT, key);
            answer
        }
        Err(admitted) => refusal(&admitted),
    }
}

fn accept_key(key: &HeaderValue) -> HeaderValue {
    let accepted = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key.as_bytes(), GUID].concat());
    HeaderValue::try_from(STANDARD.encode(accepted)).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// RFC 6455, 4.4: a version that we do not speak.
fn refuse_handshake() -> Response<Reply> {
    let mut answer = Response::new(Reply::Ended);
    *answer.status_mut() = StatusCode::BAD_REQUEST;
    answer.headers_mut().insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    answer
}

/// What was refused at the gate has its whole answer.
fn refusal(admitted: &Admitted) -> Response<Reply> {
    let exchange: &Exchange = match admitted {
        Admitted::Answered(exchange) => exchange,
        Admitted::Pending(pending) => &pending.exchange,
    };
    if let (Some(head), Some(body)) = (exchange.take_head(), exchange.take_whole()) {
        return response(head, Reply::whole(body));
    }
    // A route that is no socket, and would work: it is to be asked without an upgrade.
    exchange.cancel();
    let mut answer = Response::new(Reply::Ended);
    *answer.status_mut() = StatusCode::FORBIDDEN;
    answer
}

/// Rung by the conversation.
#[derive(Debug, Default)]
struct Bell {
    /// For who sends.
    rung: Notify,
    /// The conversation has ended, and whoever sends may be held up by a caller that does not read.
    closed: Notify,
}

impl Wake for Bell {
    fn wake(&self, _: u64) {
        self.rung.notify_one();
    }
}

/// Until either side closes.
async fn converse(
    upgrade: OnUpgrade,
    conversation: Box<dyn FrameConnection>,
    bell: Arc<Bell>,
    caller: Arc<Caller>,
    serving: Serving,
) {
    // Without the connection's bytes there is nobody to talk to: the conversation ends as it is dropped.
    let Ok(upgraded) = upgrade.await else { return };
    let mut config = WebSocketConfig::default();
    config.max_message_size = Some(MAX_MESSAGE_BYTES);
    config.max_frame_size = Some(MAX_FRAME_BYTES);
    let stream = Counted { stream: TokioIo::new(upgraded), assembly: conversation.assembly() };
    let mut frames = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
    let code = Talk { conversation: &*conversation, bell: &bell, state: &caller.state }.run(&mut frames).await;
    conversation.close();
    if let Some(code) = code {
        // A caller that does not take its close, or does not answer it, is left.
        drop(timeout(CLOSE_WITHIN, close(&mut frames, code)).await);
    }
    drop((serving, caller));
}

/// What both directions of a conversation know.
struct Talk<'a> {
    conversation: &'a dyn FrameConnection,
    bell: &'a Bell,
    state: &'a ConnectionState,
}

impl Talk<'_> {
    /// Until either side wants to close. `Some`: the code to close with.
    async fn run(&self, frames: &mut Frames) -> Option<u16> {
        let (mut sink, mut stream) = frames.split();
        tokio::select! {
            biased;
            code = self.tell(&mut sink) => code,
            code = self.hear(&mut stream) => code,
            // A caller that does not read cannot be told why it is sent away.
            () = self.outstayed() => None,
            () = self.state.ordered(Order::End) => Some(GOING_AWAY),
        }
    }

    /// Sends what the conversation has.
    async fn tell(&self, sink: &mut SplitSink<&mut Frames, Message>) -> Option<u16> {
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
            self.bell.rung.notified().await;
        }
    }

    /// Hands over what the caller says.
    async fn hear(&self, stream: &mut SplitStream<&mut Frames>) -> Option<u16> {
        let assembly = self.conversation.assembly();
        loop {
            let message = match timeout(IDLE, stream.next()).await {
                Ok(message) => message,
                Err(_) if self.conversation.is_idle() => return Some(GOING_AWAY),
                Err(_) => continue,
            };
            if matches!(message, Some(Ok(Message::Text(_) | Message::Binary(_)))) {
                // What came behind it in the same read is of the next, and less than one read.
                assembly.set(0);
            }
            match message {
                Some(Ok(Message::Text(text))) => self.conversation.receive(Some(text.as_str())),
                Some(Ok(Message::Binary(_))) => self.conversation.receive(None),
                // The library answers pings, and a close, as it reads on.
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_) | Message::Close(_))) => {}
                Some(Err(Error::Capacity(_))) => return Some(TOO_BIG),
                Some(Err(Error::Utf8(_))) => return Some(NOT_TEXT),
                Some(Err(Error::Protocol(_))) => return Some(PROTOCOL_ERROR),
                Some(Err(_)) if assembly.is_over() => return Some(TRY_AGAIN_LATER),
                Some(Err(_)) | None => return None,
            }
            if self.conversation.is_closed() {
                self.bell.closed.notify_one();
            }
        }
    }

    /// Ends some time after the conversation did.
    async fn outstayed(&self) {
        self.bell.closed.notified().await;
        tokio::time::sleep(CLOSE_WITHIN).await;
    }
}

async fn in_time<F: Future<Output = Result<(), Error>>>(sent: F) -> Option<()> {
    timeout(SEND_WITHIN, sent).await.ok()?.ok()
}

async fn close(frames: &mut Frames, code: u16) {
    let frame = CloseFrame { code: CloseCode::from(code), reason: "".into() };
    if frames.send(Message::Close(Some(frame))).await.is_ok() {
        while let Some(Ok(_)) = frames.next().await {}
    }
}
