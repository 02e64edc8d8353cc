//! The outcome of one event of a provider's stream for its reader.

use crate::openai::error::UpstreamError;

/// An event that is not what its protocol says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// The outcome of an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    More,
    /// The upstream's terminal event.
    Done,
    Failed(UpstreamError),
}
