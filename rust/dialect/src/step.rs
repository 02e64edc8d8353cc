//! One event of a provider's stream: reading it, and the outcome for its reader.

use crate::lenient;
use crate::model::Event;
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

/// Reads an event of a stream, as [`lenient::read`] reads JSON, unless it failed after something of it was told.
pub(crate) fn read_event(
    data: &[u8],
    emit: &mut dyn FnMut(Event<'_>),
    mut read_strictly: impl FnMut(&[u8], &mut dyn FnMut(Event<'_>)) -> Result<Step, Malformed>,
) -> Result<Step, Malformed> {
    let mut has_told = false;
    lenient::read(data, |data| {
        if has_told {
            return Err(Malformed);
        }
        read_strictly(data, &mut |event| {
            has_told = true;
            emit(event);
        })
    })
}
