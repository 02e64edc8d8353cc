//! The kinds of call, as the phases see them: how one target is asked, and what its answer is.

use crate::call::context::Call;
use crate::call::plain;
use crate::call::relay::FinishedStream;
use crate::upstream::failure::AttemptFailure;
use bytes::Bytes;
use std::future::Future;

/// A kind of call: how one target is asked, and what is done with its answer.
pub trait CallKind: Sync {
    /// Asks one target, and passes on what is not given whole. An error means that the caller has nothing of the answer.
    fn ask(&self, call: &mut Call, at: usize) -> impl Future<Output = Result<Reply, AttemptFailure>> + Send;

    /// Whether the answer is passed on as it comes: then each kind holds its beginning to the combo's deadlines by itself.
    fn is_stream(&self) -> bool {
        false
    }

    /// Keeps the answer as the caller was told it, where the caller asked for that. `false`: it asked and the answer is not kept.
    fn store(&self, _call: &Call, _answer: Option<&Bytes>) -> impl Future<Output = bool> + Send {
        std::future::ready(true)
    }
}

/// The answer of a target that serves a call.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a box would be an allocation for each stream")]
pub enum Reply {
    /// A whole answer, not yet given.
    Whole(plain::Answer),
    /// A stream that was passed on, but for its last bytes.
    Stream(FinishedStream),
}
