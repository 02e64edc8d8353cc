//! The body of a response. At its end the connection returns to its pool; dropping the body earlier closes the
//! connection.

use super::body::BodySlices;
use super::connection::{Connection, Fault};
use super::framing::{Chunks, Framing};
use super::head;
use super::pool::Lease;
use bytes::{Bytes, BytesMut};
use http::{request, Response};
use http_body::{Body, Frame, SizeHint};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{ready, Context, Poll};

/// A request without a response.
#[derive(Debug)]
pub struct Unanswered {
    pub fault: Fault,
    /// The request's body, if nothing of it was sent.
    pub unsent: Option<BodySlices>,
}

impl Lease {
    /// Sends a request and waits for the head of its response. The caller sets the deadline.
    pub async fn send(mut self, head: &request::Parts, body: BodySlices) -> Result<Response<Incoming>, Unanswered> {
        let text = head::encode(&head.method, &head.uri, &head.headers, body.left_bytes());
        self.connection.begin(text, body);
        match poll_fn(|cx| self.connection.poll_answer(cx)).await {
            Ok(head) => Ok(head.answer.map(|()| Incoming::new(self, head.framing, head.persists))),
            Err(fault) => {
                let unsent = matches!(fault, Fault::NothingSent).then(|| self.connection.take_unsent());
                Err(Unanswered { fault, unsent })
            }
        }
    }
}

/// The body of a provider's response as it arrives.
#[derive(Debug)]
pub struct Incoming {
    /// `None` after the end.
    lease: Option<Lease>,
    framing: Framing,
    persists: bool,
    /// An error that was found after the bytes returned last.
    fault: Option<Fault>,
}

impl Incoming {
    /// Creates the body of a response. An empty body returns its connection immediately.
    pub(super) fn new(lease: Lease, framing: Framing, persists: bool) -> Self {
        let mut body = Self { lease: Some(lease), framing, persists, fault: None };
        if body.framing.is_done() {
            body.finish();
        }
        body
    }

    fn finish(&mut self) {
        if let Some(lease) = self.lease.take().filter(|_| self.persists) {
            lease.give_back();
        }
    }

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>> {
        loop {
            if let Some(fault) = self.fault.take() {
                return Poll::Ready(Err(fault));
            }
            let Some(lease) = &mut self.lease else { return Poll::Ready(Ok(None)) };
            let connection = &mut lease.connection;
            connection.poll_write(cx)?;
            let data = match &mut self.framing {
                Framing::Length(left) => ready!(poll_counted(connection, left, cx))?,
                Framing::Chunked(chunks) => {
                    let (data, fault) = ready!(poll_chunks(connection, chunks, cx))?;
                    self.fault = fault;
                    data
                }
                Framing::UntilClose => match ready!(read(connection, cx)) {
                    Ok(data) => data,
                    Err(Fault::Closed) => {
                        self.lease = None;
                        return Poll::Ready(Ok(None));
                    }
                    Err(fault) => return Poll::Ready(Err(fault)),
                },
            };
            if self.framing.is_done() {
                self.finish();
            }
            // The bytes that were read may consist of chunk boundaries only.
            if !data.is_empty() {
                return Poll::Ready(Ok(Some(data)));
            }
        }
    }
}

/// Reads the next bytes of a body with a known length; `left` counts the remaining bytes.
fn poll_counted(connection: &mut Connection, left: &mut u64, cx: &mut Context<'_>) -> Poll<Result<Bytes, Fault>> {
    let data = ready!(read(connection, cx))?;
    let (data, rest) = split(data, *left);
    *left -= data.len() as u64;
    connection.put_ahead(rest);
    Poll::Ready(Ok(data))
}

/// Reads the next bytes of a chunked body and any error after them. Bytes before the error are valid, however they were
/// split in transit.
fn poll_chunks(
    connection: &mut Connection,
    chunks: &mut Chunks,
    cx: &mut Context<'_>,
) -> Poll<Result<(Bytes, Option<Fault>), Fault>> {
    let ahead = connection.take_ahead();
    let mut data = BytesMut::new();
    let mut unchunk = |input: &[u8]| {
        data.reserve(input.len());
        let used = chunks.decode(input, &mut data)?;
        Ok(Bytes::copy_from_slice(&input[used..]))
    };
    let rest = if ahead.is_empty() {
        ready!(connection.poll_read(cx, |input| if input.is_empty() { Err(Fault::Closed) } else { unchunk(input) }))?
    } else {
        unchunk(&ahead)
    };
    let fault = match rest {
        Ok(rest) => {
            connection.put_ahead(rest);
            None
        }
        Err(fault) => Some(fault),
    };
    Poll::Ready(Ok((data.freeze(), fault)))
}

/// Returns the bytes that were read with the head, or else reads from the socket.
fn read(connection: &mut Connection, cx: &mut Context<'_>) -> Poll<Result<Bytes, Fault>> {
    let ahead = connection.take_ahead();
    if !ahead.is_empty() {
        return Poll::Ready(Ok(ahead));
    }
    let data = ready!(connection.poll_read(cx, Bytes::copy_from_slice))?;
    Poll::Ready(if data.is_empty() { Err(Fault::Closed) } else { Ok(data) })
}

fn split(mut data: Bytes, at: u64) -> (Bytes, Bytes) {
    match usize::try_from(at) {
        Ok(at) if at < data.len() => {
            let rest = data.split_off(at);
            (data, rest)
        }
        _ => (data, Bytes::new()),
    }
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        let data = ready!(self.poll_data(cx));
        if data.is_err() {
            // Data after an error cannot be trusted.
            self.lease = None;
        }
        Poll::Ready(data.transpose().map(|data| data.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.lease.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.lease, &self.framing) {
            (None, _) => SizeHint::with_exact(0),
            (_, Framing::Length(left)) => SizeHint::with_exact(*left),
            _ => SizeHint::new(),
        }
    }
}
