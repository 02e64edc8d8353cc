//! A request whose body is on its way: the front feeds pieces until it is whole, too large, or broken off.

use crate::exchange::Exchange;
use crate::gate::answer;
use crate::gate::request::{Admission, Whole};
use crate::gate::upload::Upload;
use crate::observe::settle::Settlement;
use crate::shared::{Gauge, GaugePermit, Shared, MAX_BUFFERED_BYTES};
use bytes::{Bytes, BytesMut};
use fairlead_core::routes::{Answer, Surface};
use fairlead_core::{Error, ErrorKind, Outcome};
use http::HeaderValue;
use std::sync::Arc;

/// The most memory that is reserved for a body on the word of its announced length.
const MAX_RESERVED_BYTES: u64 = 256 * 1024;
/// Up to this a piece of a body is copied out of the buffer that it came in.
const MAX_COPIED_BYTES: usize = 16 * 1024;

/// A request whose body is to be read next.
#[derive(Debug)]
pub struct Pending {
    pub exchange: Arc<Exchange>,
    /// The request, but for its body; gone once the request is answered or under way.
    pub(super) whole: Option<Box<Whole>>,
    pub(super) body: BytesMut,
    pub(super) limit: usize,
    pub(super) expected: Option<u64>,
    /// Why a body that is not empty is refused.
    pub(super) objection: Option<Error>,
    /// The body is read and not kept.
    pub(super) is_forgotten: bool,
    /// The route takes no body: one that came must say nothing.
    pub(super) must_be_empty: bool,
    /// Where a form's body goes instead.
    pub(super) upload: Option<Upload>,
    pub(super) fed_bytes: u64,
    pub(super) shared: Arc<Shared>,
}

/// The state of a request after a piece of its body.
#[derive(Debug)]
pub enum BodyState {
    More,
    Whole(Box<Whole>),
    /// The exchange has its answer.
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
fn says_nothing(first: &[u8], last: &[u8]) -> bool {
    let letters = first.iter().chain(last).copied().filter(|byte| !byte.is_ascii_whitespace());
    [&b""[..], b"{}", b"null"].iter().any(|nothing| letters.clone().eq(nothing.iter().copied()))
}

/// The bodies that are held at once have come to their bound.
pub(crate) fn too_many_bytes() -> Error {
    Error::gateway(ErrorKind::Overloaded, "Too many request bodies are being read at once; try again shortly.")
        .after_s(1)
}

pub(super) fn too_large(limit: usize) -> Error {
    Error::client(ErrorKind::TooLarge, format!("The body is larger than the {limit} bytes that this route takes."))
}

impl Pending {
    /// Whether a body is to be read at all.
    pub fn wants_body(&self) -> bool {
        self.expected != Some(0)
    }

    /// Takes a piece of the body; `more` is false for the last. A body is whole as well once it has its announced length:
    /// a front that tells the end apart from the last byte need not be asked again, which costs it two thread changes.
    pub fn feed(&mut self, piece: &[u8], more: bool) -> BodyState {
        self.feed_as(piece, more, Bytes::copy_from_slice)
    }

    /// Takes a piece of the body that may be kept as it is. A small one is copied: kept, it would keep the buffer that it was read
    /// into, for as long as its answer streams.
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
                // What is announced is not yet counted, so only so much of it is believed.
                let announced = self.expected.unwrap_or(0).min(MAX_RESERVED_BYTES) as usize;
                self.body.reserve(announced.max(piece.len()));
            }
            self.body.extend_from_slice(piece);
            return BodyState::More;
        }
        if self.must_be_empty && !says_nothing(&self.body, piece) {
            return self.refuse(Outcome::Refused, &unwanted());
        }
        let Some(mut whole) = self.whole.take() else { return BodyState::Refused };
        whole.body = if self.must_be_empty {
            Bytes::new()
        } else if self.body.is_empty() {
            keep(piece)
        } else {
            self.body.extend_from_slice(piece);
            std::mem::take(&mut self.body).freeze()
        };
        BodyState::Whole(whole)
    }

    fn forget(&mut self, piece: &[u8], more: bool) -> BodyState {
        self.fed_bytes += piece.len() as u64;
        if self.fed_bytes > self.limit as u64 {
            return self.refuse(Outcome::Refused, &too_large(self.limit));
        }
        if more && self.expected.is_none_or(|announced| self.fed_bytes < announced) {
            return BodyState::More;
        }
        self.whole.take().map_or(BodyState::Refused, BodyState::Whole)
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
        let (Some(mut whole), Some(upload)) = (self.whole.take(), self.upload.take()) else {
            return BodyState::Refused;
        };
        whole.upload = Some(upload.end());
        BodyState::Whole(whole)
    }

    /// How its route is answered.
    pub fn answer(&self) -> Option<Answer> {
        self.whole.as_ref().map(|whole| whole.admission.route.answer)
    }

    /// Whether the body goes to disk, so that the front asks for room between its pieces.
    pub fn is_upload(&self) -> bool {
        self.upload.is_some()
    }

    /// The body did not come in time.
    pub fn time_out(&mut self) {
        let fault = Error::client(ErrorKind::RequestTimeout, "The request's body did not arrive in time.");
        self.refuse(Outcome::Refused, &fault);
    }

    /// The body's chunks are not what the protocol says. What follows them on the connection is in doubt, so it ends.
    pub fn refuse_framing(&mut self) {
        self.break_off(Outcome::Refused, &malformed());
    }

    /// The body ended before it was whole: its caller left, or its chunks are malformed, and the front cannot tell which.
    /// The answer is for a caller who is still there; the request is recorded as that of one who left, as nearly all have.
    pub fn end_early(&mut self) {
        self.break_off(Outcome::ClientGone, &malformed());
    }

    fn break_off(&mut self, outcome: Outcome, fault: &Error) {
        self.upload = None;
        if let Some(whole) = self.whole.take() {
            let Whole { exchange, admission, .. } = *whole;
            refuse_and_close(&self.shared, &exchange, admission.surface, &admission.request_id, fault);
            let gone = Error::client(ErrorKind::ClientGone, "The caller left.");
            let recorded = if outcome == Outcome::ClientGone { &gone } else { fault };
            settle(&self.shared, &exchange, admission, outcome, recorded);
        }
    }

    fn refuse(&mut self, outcome: Outcome, fault: &Error) -> BodyState {
        self.upload = None;
        if let Some(whole) = self.whole.take() {
            let Whole { exchange, admission, .. } = *whole;
            refuse_and_close(&self.shared, &exchange, admission.surface, &admission.request_id, fault);
            settle(&self.shared, &exchange, admission, outcome, fault);
        }
        BodyState::Refused
    }

    fn count(&mut self, amount: usize) -> bool {
        let Some(whole) = &mut self.whole else { return true };
        if let Some(permit) = &mut whole.buffered {
            return permit.grow(amount, MAX_BUFFERED_BYTES);
        }
        whole.buffered = GaugePermit::take(&self.shared, Gauge::BodyBytes, amount, MAX_BUFFERED_BYTES);
        whole.buffered.is_some()
    }
}

impl Drop for Pending {
    /// The caller left inside its body.
    fn drop(&mut self) {
        if let Some(whole) = self.whole.take() {
            let Whole { exchange, admission, .. } = *whole;
            let fault = Error::client(ErrorKind::ClientGone, "The caller left.");
            settle(&self.shared, &exchange, admission, Outcome::ClientGone, &fault);
        }
    }
}

/// Records an inference request that ended before any work began.
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

/// Refuses, and says that the connection ends: what follows on it is in doubt, or the rest of a body that nobody reads.
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
