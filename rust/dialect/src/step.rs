//! What one event of a provider's stream came to for its reader.

use crate::openai::error::UpstreamError;

/// An event that is not what its protocol says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// What an event came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    More,
    /// The upstream's terminal event.
    Done,
    Failed(UpstreamError),
}
