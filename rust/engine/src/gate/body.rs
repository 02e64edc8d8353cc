//! A request whose body is being received. The front feeds pieces until the body is complete, too large, or
//! interrupted.

use crate::exchange::Exchange;
use crate::gate::answer;
use crate::gate::request::{Admission, BufferedRequest};
use crate::gate::upload::Upload;
use crate::observe::settle::Settlement;
use crate::shared::{Gauge, GaugePermit, Shared, MAX_BUFFERED_BYTES};
use bytes::{Bytes, BytesMut};
use fairlead_core::routes::{Answer, Surface};
use fairlead_core::{Error, ErrorKind, Outcome};
use http::HeaderValue;
use std::sync::Arc;

/// The maximum memory that is reserved for an announced body before it arrives.
const MAX_RESERVED_BYTES: u64 = 256 * 1024;
/// Pieces up to this size are copied out of the buffer that they were read into.
const MAX_COPIED_BYTES: usize = 16 * 1024;

/// A request whose body is read next.
#[derive(Debug)]
pub struct Pending {
    pub exchange: Arc<Exchange>,
    /// The request without its body; `None` once the request has a response or is being served.
    pub(super) incoming: Option<Box<BufferedRequest>>,
    pub(super) body: BytesMut,
    pub(super) limit: usize,
    pub(super) expected: Option<u64>,
    /// The reason why a body that is not empty is refused.
    pub(super) objection: Option<Error>,
    /// The body is read and discarded.
    pub(super) is_forgotten: bool,
    /// The route takes no body, so a body must be blank.
    pub(super) must_be_empty: bool,
    /// The destination of a form's body.
    pub(super) upload: Option<Upload>,
    pub(super) fed_bytes: u64,
    pub(super) shared: Arc<Shared>,
}

/// The state of a request after a piece of its body.
#[derive(Debug)]
pub enum BodyState {
    More,
    Complete(Box<BufferedRequest>),
    /// The exchange already has its response.
    Refused,
}

fn malformed() -> Error {
    let message = "The request's body broke off, or its chunks are not what HTTP says: send it again, whole.";
    Error::client(ErrorKind::InvalidRequest, message).about("Transfer-Encoding")
}

fn unwanted() -> Error {
    Error::client(ErrorKind::InvalidRequest, "This route takes no body: send none, or `{}`.").about("body")
}

/// Whether a body in two pieces is blank, `{}` or `null`.
fn is_blank(first: &[u8], last: &[u8]) -> bool {
    let letters = first.iter().chain(last).copied().filter(|byte| !byte.is_ascii_whitespace());
    [&b""[..], b"{}", b"null"].iter().any(|nothing| letters.clone().eq(nothing.iter().copied()))
}

/// The error when the limit of buffered bodies is reached.
pub(crate) fn too_many_bytes() -> Error {
    Error::gateway(ErrorKind::Overloaded, "Too many request bodies are being read at once; try again shortly.")
        .after_s(1)
}

pub(super) fn too_large(limit: usize) -> Error {
    Error::client(ErrorKind::TooLarge, format!("The body is larger than the {limit} bytes that this route takes."))
}

impl Pending {
    /// Whether a body has to be read.
    pub fn wants_body(&self) -> bool {
        self.expected != Some(0)
    }

    /// Adds a piece of the body; `more` is false for the last one. A body is also complete once it has its announced
    /// length. A front that detects the end separately then needs no further call, which would cost two thread changes.
    pub fn feed(&mut self, piece: &[u8], more: bool) -> BodyState {
        self.feed_as(piece, more, Bytes::copy_from_slice)
    }

    /// Adds a piece of the body that may be kept without a copy. A small piece is copied anyway, because keeping it
    /// would keep its whole read buffer for as long as the response streams.
    pub fn feed_bytes(&mut self, piece: &Bytes, more: bool) -> BodyState {
        self.feed_as(piece, more, |small| {
            if small.len() < MAX_COPIED_BYTES {
                Bytes::copy_from_slice(small)
            } else {
                piece.clone()
            }
        })
    }

    fn feed_as(&mut self, piece: &[u8], more: bool, keep: impl FnOnce(&[u8]) -> Bytes) -> BodyState {
        if self.upload.is_some() {
            return self.feed_upload(piece, more);
        }
        if self.is_forgotten {
            return self.forget(piece, more);
        }
        let fed_bytes = (self.body.len() + piece.len()) as u64;
        let more = more && self.expected.is_none_or(|announced| fed_bytes < announced);
        if let Some(fault) = self.objection.take_if(|_| !piece.is_empty()) {
            return self.refuse(Outcome::Refused, &fault);
        }
        if self.body.len() + piece.len() > self.limit {
            return self.refuse(Outcome::Refused, &too_large(self.limit));
        }
        if !piece.is_empty() && !self.count(piece.len()) {
            return self.refuse(Outcome::Shed, &too_many_bytes());
        }
        if more {
            if self.body.is_empty() {
                // The announced length is not yet counted towards the limit, so only a part of it is reserved.
                let announced = self.expected.unwrap_or(0).min(MAX_RESERVED_BYTES) as usize;
                self.body.reserve(announced.max(piece.len()));
            }
            self.body.extend_from_slice(piece);
            return BodyState::More;
        }
        if self.must_be_empty && !is_blank(&self.body, piece) {
            return self.refuse(Outcome::Refused, &unwanted());
        }
        let Some(mut incoming) = self.incoming.take() else { return BodyState::Refused };
        incoming.body = if self.must_be_empty {
            Bytes::new()
        } else if self.body.is_empty() {
            keep(piece)
        } else {
            self.body.extend_from_slice(piece);
            std::mem::take(&mut self.body).freeze()
        };
        BodyState::Complete(incoming)
    }

    fn forget(&mut self, piece: &[u8], more: bool) -> BodyState {
        self.fed_bytes += piece.len() as u64;
        if self.fed_bytes > self.limit as u64 {
            return self.refuse(Outcome::Refused, &too_large(self.limit));
        }
        if more && self.expected.is_none_or(|announced| self.fed_bytes < announced) {
            return BodyState::More;
        }
        self.incoming.take().map_or(BodyState::Refused, BodyState::Complete)
    }

    fn feed_upload(&mut self, piece: &[u8], more: bool) -> BodyState {
        self.fed_bytes += piece.len() as u64;
        if self.fed_bytes > self.limit as u64 {
            return self.refuse(Outcome::Refused, &too_large(self.limit));
        }
        let Some(upload) = &mut self.upload else { return BodyState::Refused };
        if let Err((outcome, fault)) = upload.push(piece) {
            return self.refuse(outcome, &fault);
        }
        if more && self.expected.is_none_or(|announced| self.fed_bytes < announced) {
            return BodyState::More;
        }
        let (Some(mut incoming), Some(upload)) = (self.incoming.take(), self.upload.take()) else {
            return BodyState::Refused;
        };
        incoming.upload = Some(upload.end());
        BodyState::Complete(incoming)
    }

    /// The kind of response of the request's route.
    pub fn answer(&self) -> Option<Answer> {
        self.incoming.as_ref().map(|incoming| incoming.admission.route.answer)
    }

    /// Whether the body goes to disk, in which case the front waits for capacity between pieces.
    pub fn is_upload(&self) -> bool {
        self.upload.is_some()
    }

    /// Refuses a request whose body did not arrive in time.
    pub fn time_out(&mut self) {
        let fault = Error::client(ErrorKind::RequestTimeout, "The request's body did not arrive in time.");
        self.refuse(Outcome::Refused, &fault);
    }

    /// Refuses a body with invalid chunks. The connection ends, because the position of the next request is unknown.
    pub fn refuse_framing(&mut self) {
        self.break_off(Outcome::Refused, &malformed());
    }

    /// Ends a request whose body was interrupted: the caller left or the chunks are malformed, and the front cannot
    /// distinguish them. The response serves a caller that is still connected. The record assumes that the caller left,
    /// which is almost always the case.
    pub fn end_early(&mut self) {
        self.break_off(Outcome::ClientGone, &malformed());
    }

    fn break_off(&mut self, outcome: Outcome, fault: &Error) {
        self.upload = None;
        if let Some(incoming) = self.incoming.take() {
            let BufferedRequest { exchange, admission, .. } = *incoming;
            refuse_and_close(&self.shared, &exchange, admission.surface, &admission.request_id, fault);
            let gone = Error::client(ErrorKind::ClientGone, "The caller left.");
            let recorded = if outcome == Outcome::ClientGone { &gone } else { fault };
            settle(&self.shared, &exchange, admission, outcome, recorded);
        }
    }

    fn refuse(&mut self, outcome: Outcome, fault: &Error) -> BodyState {
        self.upload = None;
        if let Some(incoming) = self.incoming.take() {
            let BufferedRequest { exchange, admission, .. } = *incoming;
            refuse_and_close(&self.shared, &exchange, admission.surface, &admission.request_id, fault);
            settle(&self.shared, &exchange, admission, outcome, fault);
        }
        BodyState::Refused
    }

    fn count(&mut self, amount: usize) -> bool {
        let Some(incoming) = &mut self.incoming else { return true };
        if let Some(permit) = &mut incoming.buffered {
            return permit.grow(amount, MAX_BUFFERED_BYTES);
        }
        incoming.buffered = GaugePermit::take(&self.shared, Gauge::BodyBytes, amount, MAX_BUFFERED_BYTES);
        incoming.buffered.is_some()
    }
}

impl Drop for Pending {
    /// Settles the request if the caller left while sending its body.
    fn drop(&mut self) {
        if let Some(incoming) = self.incoming.take() {
            let BufferedRequest { exchange, admission, .. } = *incoming;
            let fault = Error::client(ErrorKind::ClientGone, "The caller left.");
            settle(&self.shared, &exchange, admission, Outcome::ClientGone, &fault);
        }
    }
}

/// Records an inference request that ended before it was served.
pub(super) fn settle(
    shared: &Arc<Shared>,
    exchange: &Arc<Exchange>,
    admission: Admission,
    outcome: Outcome,
    fault: &Error,
) {
    if admission.route.answer.is_settled() {
        let mut settlement = Settlement::open(shared, exchange, admission, 0);
        settlement.status = fault.kind.status();
        settlement.settle(outcome, Some(fault));
    } else {
        shared.metrics.answered(admission.route.endpoint, fault.kind.status());
    }
}

/// Refuses a request and closes the connection, because the following bytes are invalid or belong to a body that nobody
/// reads.
pub(super) fn refuse_and_close(
    shared: &Shared,
    exchange: &Exchange,
    surface: Surface,
    request_id: &str,
    fault: &Error,
) {
    let (mut head, body) = answer::error(shared, surface, request_id, fault);
    head.headers.insert(http::header::CONNECTION, HeaderValue::from_static("close"));
    exchange.answer(head, body);
}
