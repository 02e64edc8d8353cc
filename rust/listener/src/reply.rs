//! The body of an answer, for hyper to send.

use crate::flight::Flight;
use bytes::Bytes;
use fairlead_engine::Piece;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

/// The answer was aborted: hyper closes the connection, or resets the stream.
#[derive(Debug, thiserror::Error)]
#[error("the answer stops short")]
pub struct StopsShort;

/// The body of an answer, as far as it is known.
#[derive(Debug)]
pub enum Reply {
    /// The complete body, known before its head is sent.
    Complete(Option<Bytes>),
    Pieces(Box<Flight>),
    Ended,
}

impl Reply {
    pub fn whole(body: Bytes) -> Self {
        Self::Complete((!body.is_empty()).then_some(body))
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = StopsShort;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let piece = match &mut *self {
            Self::Complete(body) => return Poll::Ready(body.take().map(|body| Ok(Frame::data(body)))),
            Self::Ended => return Poll::Ready(None),
            Self::Pieces(flight) => std::task::ready!(flight.poll_piece(cx)),
        };
        Poll::Ready(match piece {
            Piece::Bytes(bytes) => Some(Ok(Frame::data(bytes))),
            Piece::End => {
                *self = Self::Ended;
                None
            }
            Piece::Abort => {
                *self = Self::Ended;
                Some(Err(StopsShort))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Complete(None) | Self::Ended)
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Complete(body) => SizeHint::with_exact(body.as_ref().map_or(0, Bytes::len) as u64),
            Self::Ended => SizeHint::with_exact(0),
            Self::Pieces(_) => SizeHint::new(),
        }
    }
}
