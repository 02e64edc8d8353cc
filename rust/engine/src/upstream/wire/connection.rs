//! One connection and its current request. It writes and reads at the same time, because a provider may respond before
//! it has received the whole request.

use super::body::BodySlices;
use super::framing::Malformed;
use super::head::{self, Decoded, ResponseHead};
use crate::upstream::connector::Socket;
use bytes::{Buf as _, Bytes, BytesMut};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::future::{poll_fn, Future as _};
use std::io::{self, IoSlice};
use std::pin::{pin, Pin};
use std::task::{ready, Context, Poll, Waker};
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::task::unconstrained;

/// The maximum number of bytes per read.
const READ_BYTES: usize = 64 * 1024;

thread_local! {
    /// Bytes are copied out before anything else runs, so all connections of a thread can share one buffer.
    static SPACE: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into());
}

/// The reason why no complete response was received.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The provider cannot have executed any part of the request, so it can be sent again.
    #[error("the connection was closed before the request")]
    NothingSent,
    /// An orderly close, before the first byte of a response or inside a body.
    #[error("the connection was closed before the answer's end")]
    Closed,
    /// The request's own body cannot be read.
    #[error("the request's body cannot be read: {0}")]
    Body(io::Error),
    #[error("the answer is not HTTP")]
    Malformed,
    #[error("the connection broke: {0}")]
    Broken(#[from] io::Error),
}

impl From<Malformed> for Fault {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

/// The unsent part of a request.
#[derive(Debug, Default)]
struct PendingWrite {
    /// Empty once the head is written.
    head: Bytes,
    body: BodySlices,
}

impl PendingWrite {
    fn is_empty(&self) -> bool {
        self.head.is_empty() && self.body.left_bytes() == 0
    }
}

/// The client side of one HTTP/1.1 connection to a provider.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "how far each direction has come, and how it ended")]
pub(super) struct Connection {
    socket: Socket,
    /// Bytes that were read but not used yet.
    ahead: Bytes,
    /// An incomplete response head.
    partial: BytesMut,
    /// The provider sent an interim response (1xx).
    is_announced: bool,
    unsent: PendingWrite,
    /// At least part of the request was written.
    has_begun: bool,
    /// The provider no longer reads the request.
    is_deaf: bool,
    /// Written but not flushed, which only matters for TLS.
    is_unflushed: bool,
}

impl Connection {
    pub(super) fn new(socket: Socket) -> Self {
        Self {
            socket,
            ahead: Bytes::new(),
            partial: BytesMut::new(),
            is_announced: false,
            unsent: PendingWrite::default(),
            has_begun: false,
            is_deaf: false,
            is_unflushed: false,
        }
    }

    /// Whether the connection can carry another request: everything was written and read, and the peer has neither
    /// closed it nor sent unexpected bytes.
    pub(super) fn is_idle(&mut self) -> bool {
        if !self.ahead.is_empty() || !self.unsent.is_empty() || self.is_unflushed || self.is_deaf {
            return false;
        }
        let mut space = [0; 1];
        let mut space = ReadBuf::new(&mut space);
        // Unconstrained, because a socket always looks idle once its task has used up its cooperative budget.
        let look = unconstrained(poll_fn(|cx| Pin::new(&mut self.socket).poll_read(cx, &mut space)));
        pin!(look).poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    /// Accepts a request, which is written while waiting for its response.
    pub(super) fn begin(&mut self, head: Vec<u8>, body: BodySlices) {
        self.unsent = PendingWrite { head: head.into(), body };
        self.has_begun = false;
        self.is_announced = false;
    }

    /// Returns the body of a request of which nothing was written.
    pub(super) fn take_unsent(&mut self) -> BodySlices {
        std::mem::take(&mut self.unsent.body)
    }

    /// Writes the request and reads the head of its response. A long request may still be in transfer while the
    /// response body is read.
    pub(super) fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Result<ResponseHead, Fault>> {
        if let Err(fault) = self.poll_write(cx) {
            return Poll::Ready(Err(fault));
        }
        loop {
            let seen = self.partial.len();
            let read = ready!(self.poll_read(cx, |bytes: &[u8]| BytesMut::from(bytes)));
            let bytes = match read {
                // Bytes that arrive before the request cannot be its response.
                _ if !self.has_begun => return Poll::Ready(Err(Fault::NothingSent)),
                Ok(bytes) if bytes.is_empty() && seen == 0 && !self.is_announced => {
                    return Poll::Ready(Err(Fault::Closed))
                }
                Ok(bytes) if bytes.is_empty() => {
                    // The provider had started its response, so it had received the request.
                    return Poll::Ready(Err(Fault::Broken(io::ErrorKind::UnexpectedEof.into())));
                }
                Ok(bytes) => bytes,
                Err(error) => return Poll::Ready(Err(Fault::Broken(error))),
            };
            // A head almost always arrives in one read. A partial head is parsed again only when the new bytes may
            // complete it.
            if seen == 0 {
                self.partial = bytes;
            } else {
                self.partial.extend_from_slice(&bytes);
                if !head::may_end(&self.partial, seen) {
                    if self.partial.len() > head::MAX_HEAD_BYTES {
                        return Poll::Ready(Err(Fault::Malformed));
                    }
                    continue;
                }
            }
            let mut input = std::mem::take(&mut self.partial).freeze();
            match head::decode(&input)? {
                Decoded::Complete(head) => {
                    self.ahead = input.slice(head.end..);
                    return Poll::Ready(Ok(head));
                }
                Decoded::Partial(passed) => {
                    self.is_announced |= passed > 0;
                    input.advance(passed);
                    self.partial = input.into();
                }
            }
        }
    }

    /// Writes as much as possible. A provider that no longer reads may have responded, so the response is then read.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        if self.is_deaf {
            return Ok(());
        }
        while !self.unsent.is_empty() {
            let PendingWrite { head, body } = &mut self.unsent;
            if let Poll::Ready(Err(error)) = body.poll_load(cx) {
                return Err(Fault::Body(error));
            }
            let mut slices: SmallVec<[IoSlice<'_>; 8]> = SmallVec::new();
            if !head.is_empty() {
                slices.push(IoSlice::new(head));
            }
            body.slices(&mut slices);
            if slices.is_empty() {
                // A file read is in progress.
                break;
            }
            let wrote = match Pin::new(&mut self.socket).poll_write_vectored(cx, &slices) {
                Poll::Pending => break,
                Poll::Ready(Ok(0)) => Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(wrote) => wrote,
            };
            drop(slices);
            match wrote {
                Ok(size) => {
                    let of_head = size.min(head.len());
                    head.advance(of_head);
                    if head.is_empty() {
                        // An empty buffer still owns its memory, which contains the credential.
                        *head = Bytes::new();
                    }
                    body.advance(size - of_head);
                    self.has_begun = true;
                    self.is_unflushed = true;
                }
                Err(_) if !self.has_begun => return Err(Fault::NothingSent),
                Err(_) => {
                    self.is_deaf = true;
                    return Ok(());
                }
            }
        }
        if self.is_unflushed {
            match Pin::new(&mut self.socket).poll_flush(cx) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => self.is_unflushed = false,
                Poll::Ready(Err(_)) => self.is_deaf = true,
            }
        }
        Ok(())
    }

    /// Reads once and passes the bytes to `keep`; an empty slice means the end of the connection.
    pub(super) fn poll_read<T>(&mut self, cx: &mut Context<'_>, keep: impl FnOnce(&[u8]) -> T) -> Poll<io::Result<T>> {
        SPACE.with_borrow_mut(|space| {
            let mut read = ReadBuf::new(space);
            ready!(Pin::new(&mut self.socket).poll_read(cx, &mut read))?;
            Poll::Ready(Ok(keep(read.filled())))
        })
    }

    /// Returns the bytes that were read after the head.
    pub(super) fn take_ahead(&mut self) -> Bytes {
        std::mem::take(&mut self.ahead)
    }

    pub(super) fn put_ahead(&mut self, ahead: Bytes) {
        self.ahead = ahead;
    }
}
