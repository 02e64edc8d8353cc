//! Reads one event of a provider's stream.

use crate::lenient;
use crate::model::Event;
use crate::openai::error::UpstreamError;

/// An event that violates its protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// The result of an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    More,
    /// The provider's terminal event.
    Done,
    Failed(UpstreamError),
}

/// Parses an event with [`lenient::read`]. It does not retry after an attempt that already emitted output.
pub(crate) fn read_event(
    data: &[u8],
    emit: &mut dyn FnMut(Event<'_>),
    mut read_strictly: impl FnMut(&[u8], &mut dyn FnMut(Event<'_>)) -> Result<Step, Malformed>,
) -> Result<Step, Malformed> {
    let mut has_reported = false;
    lenient::read(data, |data| {
        if has_reported {
            return Err(Malformed);
        }
        read_strictly(data, &mut |event| {
            has_reported = true;
            emit(event);
        })
    })
}
