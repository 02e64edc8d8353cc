//! One connection and the request that is on it: writes, and meanwhile reads, for a provider may answer before it has heard
//! everything.

use super::body::Sliced;
use super::framing::Malformed;
use super::head::{self, Told};
use crate::connector::Socket;
use bytes::Bytes;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{ready, Context, Poll, Waker};
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};

/// The most that is read at once.
const READ_BYTES: usize = 64 * 1024;

thread_local! {
    /// What was read is copied out of here before anything else runs, so one space does for all connections of a thread.
    static SPACE: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into());
}

/// Why no whole answer came.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// Not a byte of the request was taken, so that it can be sent again.
    #[error("the connection was closed before the request")]
    NothingSent,
    /// An orderly close before the answer's end.
    #[error("the connection was closed before the answer's end")]
    Closed,
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

/// What of a request is not written yet.
#[derive(Debug, Default)]
struct Unsent {
    head: Vec<u8>,
    /// Of the head.
    written: usize,
    body: Sliced,
}

impl Unsent {
    fn is_empty(&self) -> bool {
        self.written == self.head.len() && self.body.left_bytes() == 0
    }
}

/// See the module's page.
#[derive(Debug)]
pub(super) struct Connection {
    socket: Socket,
    /// Read, and not used yet.
    ahead: Bytes,
    unsent: Unsent,
    /// The provider takes no more of the request.
    is_deaf: bool,
    /// Written and not flushed, which matters to TLS alone.
    is_unflushed: bool,
}

impl Connection {
    pub(super) fn new(socket: Socket) -> Self {
        Self { socket, ahead: Bytes::new(), unsent: Unsent::default(), is_deaf: false, is_unflushed: false }
    }

    /// Whether it may carry another request: everything was written and read, and the other side has neither closed it nor
    /// said anything unasked.
    pub(super) fn is_idle(&mut self) -> bool {
        if !self.ahead.is_empty() || !self.unsent.is_empty() || self.is_deaf {
            return false;
        }
        let mut space = [0; 1];
        let mut space = ReadBuf::new(&mut space);
        let mut nobody = Context::from_waker(Waker::noop());
        Pin::new(&mut self.socket).poll_read(&mut nobody, &mut space).is_pending()
    }

    /// Takes a request up. It is written while its answer is waited for.
    pub(super) fn begin(&mut self, head: Vec<u8>, body: Sliced) {
        self.unsent = Unsent { head, written: 0, body };
    }

    /// The body of a request of which nothing was written.
    pub(super) fn take_unsent(&mut self) -> Sliced {
        std::mem::take(&mut self.unsent.body)
    }

    /// Writes the request and reads the head of its answer. What is left of a long request is written while the body is read.
    pub(super) fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Result<Told, Fault>> {
        if let Err(fault) = self.poll_write(cx) {
            return Poll::Ready(Err(fault));
        }
        loop {
            let read = ready!(self.poll_read(cx, Bytes::copy_from_slice));
            let bytes = match read {
                Ok(bytes) if bytes.is_empty() => return Poll::Ready(Err(Fault::Closed)),
                Ok(bytes) => bytes,
                Err(error) => return Poll::Ready(Err(Fault::Broken(error))),
            };
            // A head comes whole but for the rarest case.
            self.ahead = if self.ahead.is_empty() { bytes } else { [&self.ahead[..], &bytes].concat().into() };
            match head::decode(&self.ahead) {
                Ok(Some(told)) => {
                    let rest = self.ahead.slice(told.end..);
                    self.ahead = rest;
                    return Poll::Ready(Ok(told));
                }
                Ok(None) => {}
                Err(Malformed) => return Poll::Ready(Err(Fault::Malformed)),
            }
        }
    }

    /// Writes what there is room for. A provider that takes no more may have answered: that is then read.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        if self.is_deaf {
            return Ok(());
        }
        while !self.unsent.is_empty() {
            let Unsent { head, written, body } = &mut self.unsent;
            match body.poll_load(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Err(Fault::Broken(error)),
                Poll::Pending => break,
            }
            let mut slices: SmallVec<[IoSlice<'_>; 8]> = SmallVec::new();
            if *written < head.len() {
                slices.push(IoSlice::new(&head[*written..]));
            }
            body.slices(&mut slices);
            let wrote = match Pin::new(&mut self.socket).poll_write_vectored(cx, &slices) {
                Poll::Pending => break,
                Poll::Ready(Ok(0)) => Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(wrote) => wrote,
            };
            drop(slices);
            match wrote {
                Ok(mut size) => {
                    let of_head = size.min(head.len() - *written);
                    *written += of_head;
                    size -= of_head;
                    body.advance(size);
                    self.is_unflushed = true;
                }
                Err(_) if *written == 0 => return Err(Fault::NothingSent),
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

    /// Reads once, and gives what came to `keep`; nothing at the connection's end.
    pub(super) fn poll_read<T>(&mut self, cx: &mut Context<'_>, keep: impl FnOnce(&[u8]) -> T) -> Poll<io::Result<T>> {
        SPACE.with_borrow_mut(|space| {
            let mut read = ReadBuf::new(space);
            ready!(Pin::new(&mut self.socket).poll_read(cx, &mut read))?;
            Poll::Ready(Ok(keep(read.filled())))
        })
    }

    /// What was read beyond the head.
    pub(super) fn take_ahead(&mut self) -> Bytes {
        std::mem::take(&mut self.ahead)
    }

    pub(super) fn put_ahead(&mut self, ahead: Bytes) {
        self.ahead = ahead;
    }
}
