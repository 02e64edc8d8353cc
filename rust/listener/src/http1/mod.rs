//! The HTTP/1.1 server: one connection, and its requests one after the other (RFC 9112).
//!
//! The server is not a library, for the same reasons as the client (`fairlead_engine::upstream::wire`): a head is
//! parsed in place and passed to the engine without a copy, the head of an answer and its first bytes are sent in one
//! write, and a waiting connection holds no buffer. [`head`] parses requests, [`outgoing`] writes answers, and the loop
//! here connects them to the engine.
//!
//! ```text
//! head -> body fed to the engine -> work polled until the answer's head -> pieces written -> the next head
//!    \_ invalid: a 400 or 431 without a body, and the connection closes   \_ the caller leaves: the work is cancelled
//! ```

pub mod head;
pub mod outgoing;

use crate::caller::{exchange_of, Caller, EngineHandle};
use crate::config::MAX_HEAD_BYTES;
use crate::connection_state::{CloseMode, RequestGuard};
use crate::flight::Flight;
use crate::io::Io;
use crate::request_body::{self, BodyEvent, CallerGone};
use crate::websocket::{self, Opening, SocketWake};
use bytes::{Buf as _, Bytes, BytesMut};
use fairlead_engine::{task, Admitted, FrameConnection, Head, Inbound, Pending, Piece, PolledBodyState};
use head::{BodyEnd, HeadFault, HeadLines};
use http::{header, StatusCode};
use outgoing::{declared_length, BodyCoding, HeadFacts, Outgoing};
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{ready, Context, Poll};
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};

/// The most bytes that are read at once.
const READ_BYTES: usize = 64 * 1024;
/// When this many bytes of an answer wait for the socket, the work is not polled for more.
const SEND_BUFFER_BYTES: usize = 64 * 1024;

/// The most bytes of pipelined requests that are buffered.
const MAX_AHEAD_BYTES: usize = 64 * 1024;

thread_local! {
    /// The buffer for reading from sockets. Its content is copied before anything else runs, so all connections of a
    /// thread share it.
    static SPACE: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into());
}

/// How a connection continues after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The connection continues with the next head.
    Request,
    /// The connection closes in order: our side first.
    Close,
    /// The connection closes immediately, because the caller has left or the answer was aborted.
    Drop,
}

/// A connection, between two requests or during one.
#[derive(Debug)]
struct Connection {
    io: Io,
    /// Bytes that were read and not yet used.
    ahead: BytesMut,
    outgoing: Outgoing,
    caller: Arc<Caller>,
    engine: Arc<EngineHandle>,
}

/// The properties of a request that are needed after the engine has its head.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of a head")]
struct Request {
    is_head: bool,
    is_http_10: bool,
    is_persistent: bool,
    waits_to_continue: bool,
    body: BodyEnd,
}

/// The result of passing a head to the engine.
#[expect(clippy::large_enum_variant, reason = "the large one is the usual one, and is used at once")]
enum Admission {
    Request(Request, Admitted, RequestGuard),
    /// The connection is upgraded for a conversation, or the upgrade is refused.
    WebSocket(Box<Opening>, RequestGuard, bool),
}

/// Serves a connection to its end. Dropping the future ends it immediately. `ahead` holds the bytes that were read to
/// detect the protocol.
pub async fn serve(io: Io, ahead: BytesMut, caller: Arc<Caller>, engine: Arc<EngineHandle>) {
    let mut connection = Connection { io, ahead, outgoing: Outgoing::default(), caller, engine };
    loop {
        let next = match connection.head().await {
            Ok(Some(lines)) => match connection.admit(&lines) {
                Ok(Admission::Request(request, admitted, serving)) => {
                    connection.answer(request, admitted, serving).await
                }
                Ok(Admission::WebSocket(opening, serving, is_last)) => {
                    match connection.open_websocket(*opening, serving, is_last).await {
                        Some((back, next)) => {
                            connection = back;
                            next
                        }
                        None => return,
                    }
                }
                Err(fault) => connection.refuse(fault),
            },
            Ok(None) => Next::Close,
            Err(fault) => connection.refuse(fault),
        };
        match next {
            Next::Request => {}
            Next::Close => return connection.close().await,
            Next::Drop => return,
        }
    }
}

impl Connection {
    /// Reads more bytes. Ready with their number, which is zero at the connection's end.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        SPACE.with_borrow_mut(|space| {
            let mut read = ReadBuf::new(space);
            ready!(Pin::new(&mut self.io).poll_read(cx, &mut read))?;
            if self.ahead.is_empty() {
                self.ahead = BytesMut::from(read.filled());
            } else {
                self.ahead.extend_from_slice(read.filled());
            }
            Poll::Ready(Ok(read.filled().len()))
        })
    }

    /// Ready when the caller has left. Bytes that arrive in the meantime belong to its next requests and are buffered
    /// up to `MAX_AHEAD_BYTES`. If a caller sends more, its leaving is noticed only when the answer is written.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.ahead.len() < MAX_AHEAD_BYTES {
            match ready!(self.poll_read(cx)) {
                Ok(1..) => {}
                Ok(0) | Err(_) => return Poll::Ready(()),
            }
        }
        Poll::Pending
    }

    /// Reads the next head. `None` means that the connection ended, or should close, before one began.
    async fn head(&mut self) -> Result<Option<HeadLines>, HeadFault> {
        if !self.ahead.is_empty() {
            self.caller.state.note_read();
        }
        let mut seen = 0;
        loop {
            if head::may_end(&self.ahead, seen) {
                if let Some(lines) = head::scan(&self.ahead)? {
                    return Ok(Some(lines));
                }
            } else if seen == 0 && !self.ahead.is_empty() {
                // Bytes that cannot begin a head are refused immediately.
                head::scan(&self.ahead)?;
            }
            if self.ahead.len() >= MAX_HEAD_BYTES {
                return Err(HeadFault(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE));
            }
            seen = self.ahead.len();
            let read = poll_fn(|cx| {
                if self.ahead.is_empty() && self.caller.state.close_mode() >= CloseMode::Graceful {
                    return Poll::Ready(Ok(0));
                }
                self.poll_read(cx)
            });
            if !matches!(read.await, Ok(1..)) {
                return Ok(None);
            }
        }
    }

    /// Passes the head to the engine while it is borrowed.
    fn admit(&mut self, lines: &HeadLines) -> Result<Admission, HeadFault> {
        let (serving, is_last) = self.caller.state.begin_request();
        let admission = {
            let head = lines.read(&mut self.ahead)?;
            let inbound = Inbound {
                method: head.method,
                path: head.path,
                query: head.query,
                headers: &head.headers,
                authority: head.authority,
                peer: Some(self.caller.peer),
                is_tls: self.caller.is_tls,
                is_http2: false,
            };
            if websocket::is_asked(&head) {
                Admission::WebSocket(Box::new(websocket::open(&self.engine, &head, &inbound)), serving, is_last)
            } else {
                let admitted = self.engine.admit(&inbound);
                let request = Request {
                    is_head: head.method == "HEAD",
                    is_http_10: head.is_http_10,
                    is_persistent: head.is_persistent && !is_last,
                    waits_to_continue: head.waits_to_continue,
                    body: head.body,
                };
                Admission::Request(request, admitted, serving)
            }
        };
        self.advance(lines.end);
        Ok(admission)
    }

    fn advance(&mut self, bytes: usize) {
        self.ahead.advance(bytes);
        if self.ahead.is_empty() {
            // An empty buffer would still hold its memory.
            self.ahead = BytesMut::new();
        }
    }

    /// Serves one request from its body to the end of its answer.
    async fn answer(&mut self, mut request: Request, admitted: Admitted, serving: RequestGuard) -> Next {
        let mut flight = Flight::new(exchange_of(&admitted), serving);
        if let Admitted::Pending(mut pending) = admitted {
            if pending.wants_body() {
                if self.feed(&mut request, &mut pending, &mut flight).await.is_err() {
                    return Next::Drop;
                }
            } else if let PolledBodyState::Work(work) = self.engine.engine.feed_here(&mut pending, &Bytes::new(), false)
            {
                flight.begin(work);
            }
        }
        if !self.skip_rest(&mut request).await {
            self.caller.state.leave_body_unread();
            request.is_persistent = false;
        }
        let may_watch = request.body.is_reached();
        let head = poll_fn(|cx| {
            if let Poll::Ready(head) = flight.poll_head(cx) {
                return Poll::Ready(head);
            }
            if may_watch {
                return self.poll_gone(cx).map(|()| None);
            }
            Poll::Pending
        });
        let Some(head) = head.await else { return Next::Drop };
        self.send(&request, &head, flight).await
    }

    /// Reads the body and starts the work. If it returns no work, the exchange has its answer.
    async fn feed(
        &mut self,
        request: &mut Request,
        pending: &mut Pending,
        flight: &mut Flight,
    ) -> Result<(), CallerGone> {
        if request.waits_to_continue && self.ahead.is_empty() {
            self.outgoing.push_continue();
            self.outgoing.flush(&mut self.io).await.map_err(|_| CallerGone)?;
        }
        let engine = Arc::clone(&self.engine);
        request_body::read(&engine.engine, pending, flight, |cx| self.poll_body(&mut request.body, cx)).await
    }

    /// The next piece of a request's body.
    fn poll_body(&mut self, body: &mut BodyEnd, cx: &mut Context<'_>) -> Poll<BodyEvent> {
        loop {
            if body.is_reached() {
                return Poll::Ready(BodyEvent::End);
            }
            if !self.ahead.is_empty() {
                match self.take_piece(body) {
                    Ok(piece) if piece.is_empty() && !body.is_reached() => {}
                    Ok(piece) => return Poll::Ready(BodyEvent::Piece { piece, is_last: body.is_reached() }),
                    Err(()) => return Poll::Ready(BodyEvent::Malformed),
                }
            }
            match ready!(self.poll_read(cx)) {
                Ok(1..) => {}
                Ok(0) | Err(_) => return Poll::Ready(BodyEvent::Gone),
            }
        }
    }

    /// Takes the body bytes that were already read. `Err` means invalid chunked framing.
    fn take_piece(&mut self, body: &mut BodyEnd) -> Result<Bytes, ()> {
        match body {
            BodyEnd::Length(left) => {
                let amount = usize::try_from(*left).unwrap_or(usize::MAX).min(self.ahead.len());
                *left -= amount as u64;
                if amount == self.ahead.len() {
                    return Ok(std::mem::take(&mut self.ahead).freeze());
                }
                Ok(self.ahead.split_to(amount).freeze())
            }
            BodyEnd::Chunked(chunks) => {
                let mut out = BytesMut::with_capacity(self.ahead.len());
                let used = chunks.decode(&self.ahead, &mut out).map_err(|_| ())?;
                self.advance(used);
                Ok(out.freeze())
            }
        }
    }

    /// Skips the remaining bytes of an unused body that have already arrived. Returns whether that was all of it.
    async fn skip_rest(&mut self, request: &mut Request) -> bool {
        if request.body.is_reached() {
            return true;
        }
        if request.waits_to_continue {
            // The body was not requested, so it may not come.
            return false;
        }
        let mut left = READ_BYTES;
        poll_fn(|cx| loop {
            match self.poll_body(&mut request.body, cx) {
                Poll::Ready(BodyEvent::Piece { is_last: true, .. } | BodyEvent::End) => return Poll::Ready(true),
                Poll::Ready(BodyEvent::Piece { piece, .. }) if piece.len() <= left => left -= piece.len(),
                _ => return Poll::Ready(false),
            }
        })
        .await
    }

    /// Writes the answer: its head together with its first bytes, then the rest.
    async fn send(&mut self, request: &Request, head: &Head, mut flight: Flight) -> Next {
        let whole = flight.exchange().take_complete();
        let has_body = !request.is_head && !matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let declared = declared_length(&head.headers);
        let coding = match (has_body, &whole) {
            (false, _) => BodyCoding::Nothing,
            (true, Some(_)) => BodyCoding::Length,
            (true, None) if declared.is_some() => BodyCoding::Length,
            (true, None) if request.is_http_10 => BodyCoding::UntilClose,
            (true, None) => BodyCoding::Chunked,
        };
        let closes = !request.is_persistent
            || coding == BodyCoding::UntilClose
            || self.caller.state.close_mode() >= CloseMode::AfterAnswer
            || head
                .headers
                .get(header::CONNECTION)
                .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"close"));
        let facts = HeadFacts {
            is_http_10: request.is_http_10,
            content_length: match &whole {
                Some(body) if has_body => Some(body.len() as u64),
                // The length that the answer to `GET` would have.
                _ if request.is_head => declared,
                _ if coding == BodyCoding::Length => declared,
                _ => None,
            },
            is_chunked: coding == BodyCoding::Chunked,
            closes,
        };
        self.outgoing.push_head(head, &facts);
        let is_complete = match whole {
            Some(body) => {
                self.outgoing.push_piece(body, coding);
                let sent = self.outgoing.flush(&mut self.io).await.is_ok();
                flight.land();
                sent
            }
            None => self.relay(&mut flight, coding, request.body.is_reached()).await,
        };
        match (is_complete, closes) {
            (false, _) => Next::Drop,
            (true, true) => Next::Close,
            (true, false) => Next::Request,
        }
    }

    /// Writes the pieces of an answer as the work returns them and the socket accepts them. Returns whether the whole
    /// answer was sent.
    async fn relay(&mut self, flight: &mut Flight, coding: BodyCoding, may_watch: bool) -> bool {
        let mut is_ended = false;
        let mut is_cut = false;
        poll_fn(|cx| loop {
            let mut is_waiting = is_ended;
            while !is_waiting && self.outgoing.waiting_bytes() < SEND_BUFFER_BYTES {
                match flight.poll_piece(cx) {
                    Poll::Ready(Piece::Bytes(piece)) => self.outgoing.push_piece(piece, coding),
                    Poll::Ready(end) => {
                        is_cut = matches!(end, Piece::Abort);
                        is_ended = true;
                        is_waiting = true;
                        if !is_cut {
                            self.outgoing.push_end(coding);
                        }
                    }
                    Poll::Pending => is_waiting = true,
                }
            }
            match self.outgoing.poll_write(&mut self.io, cx) {
                Poll::Ready(Ok(())) if is_ended => return Poll::Ready(!is_cut),
                // The buffer has space, and the work may have more.
                Poll::Ready(Ok(())) if !is_waiting => {}
                Poll::Ready(Err(_)) => return Poll::Ready(false),
                Poll::Ready(Ok(())) | Poll::Pending => {
                    return if may_watch { self.poll_gone(cx).map(|()| false) } else { Poll::Pending };
                }
            }
        })
        .await
    }

    /// Gives the connection to a conversation once its handshake is accepted. If the handshake is refused, answers and
    /// returns the connection.
    async fn open_websocket(mut self, opening: Opening, serving: RequestGuard, is_last: bool) -> Option<(Self, Next)> {
        let (head, body) = match opening {
            Opening::Conversation { accept, conversation, wake } => {
                let Some(refusal) = self.handshake(&*conversation, &wake).await? else {
                    self.outgoing.push_switch(&accept);
                    self.outgoing.flush(&mut self.io).await.ok()?;
                    let Self { mut io, ahead, caller, .. } = self;
                    io.unread(ahead.freeze());
                    caller.state.note_upgrade();
                    // The task ends when either side closes, with the drain, or with the thread.
                    drop(task::spawn(websocket::converse(io, conversation, wake, caller, serving)));
                    return None;
                };
                refusal
            }
            Opening::Refused(head, body) => (head, body),
        };
        let closes = is_last || self.caller.state.close_mode() >= CloseMode::AfterAnswer;
        let content_length = Some(body.len() as u64);
        self.outgoing.push_head(&head, &HeadFacts { content_length, closes, ..HeadFacts::default() });
        self.outgoing.push_piece(body, BodyCoding::Length);
        self.outgoing.flush(&mut self.io).await.ok()?;
        drop(serving);
        Some((self, if closes { Next::Close } else { Next::Request }))
    }

    /// Waits for the decision about a handshake: `Some` with an answer if it is refused, or `Some(None)` if it is
    /// accepted. Returns `None` if the caller has left or the connection should close.
    async fn handshake(
        &mut self,
        conversation: &dyn FrameConnection,
        wake: &SocketWake,
    ) -> Option<Option<(Head, Bytes)>> {
        let caller = Arc::clone(&self.caller);
        tokio::select! {
            biased;
            decided = websocket::decided(conversation, wake) => Some(decided),
            () = caller.state.wait_for_close(CloseMode::Now) => None,
            () = poll_fn(|cx| self.poll_gone(cx)) => None,
        }
    }

    /// Answers bytes that are not a request. Nothing after them is read.
    fn refuse(&mut self, fault: HeadFault) -> Next {
        self.outgoing.push_fault(fault.0);
        self.caller.state.leave_body_unread();
        Next::Close
    }

    /// Closes the connection in order.
    async fn close(mut self) {
        if self.outgoing.flush(&mut self.io).await.is_ok() {
            // Nobody is left to receive an error.
            let _ended = poll_fn(|cx| Pin::new(&mut self.io).poll_shutdown(cx)).await;
        }
    }
}
