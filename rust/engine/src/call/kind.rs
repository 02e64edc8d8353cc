//! The kinds of call as the phases use them: how a request is sent to a target, and what the response is.

use crate::call::context::Call;
use crate::call::conversation::plain;
use crate::call::relay::FinishedStream;
use crate::upstream::failure::AttemptFailure;
use bytes::Bytes;
use std::future::Future;

/// A kind of call: how a request is sent to a target, and how its response is handled.
pub trait CallKind: Sync {
    /// Sends the request to one target and relays the response unless it is returned whole. An error means that the
    /// caller received nothing of it.
    fn send(&self, call: &mut Call, at: usize) -> impl Future<Output = Result<Reply, AttemptFailure>> + Send;

    /// Whether the response is relayed as it arrives. If so, the kind itself applies the combo's time limits to the
    /// start of the response.
    fn is_stream(&self) -> bool {
        false
    }

    /// Stores the response as sent to the caller, if the caller requested that. Returns `false` if storing failed.
    fn store(&self, _call: &Call, _answer: Option<&Bytes>) -> impl Future<Output = bool> + Send {
        std::future::ready(true)
    }
}

/// The response of a target that serves a call.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a box would be an allocation for each stream")]
pub enum Reply {
    /// A complete response that was not sent to the caller yet.
    Complete(plain::Answer),
    /// A stream that was relayed except for its last bytes.
    Stream(FinishedStream),
}
