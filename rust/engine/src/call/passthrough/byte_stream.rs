//! Streams that are relayed as the provider wrote them: typed events, which are parsed to find their end, and bytes
//! such as audio, which are not parsed.

use crate::call::guardrails::StreamFilter;
use crate::call::relay::stream::StreamKind;
use crate::call::relay::stream_error::ErrorForm;
use crate::observe::cut_stream::ReportedUsage;
use crate::observe::settle::Settlement;
use bytes::Bytes;
use fairlead_core::guardrail::Actions;
use fairlead_core::Dialect;
use fairlead_dialect::openai::answer::UpstreamError;
use fairlead_dialect::openai::metered::Meter;
use fairlead_dialect::openai::stream::{Closing, End, Outcome, StreamPiece};
use fairlead_dialect::Pieces;

/// Typed events: images, transcripts, speech as events, text completions.
#[derive(Debug, Default)]
pub struct EventStream {
    meter: Meter,
}

const EVENTS: ErrorForm = ErrorForm { dialect: Dialect::Openai, is_list: false };

impl StreamKind for EventStream {
    const NAME: &'static str = "answer";
    const NO_BEGINNING: &'static str = "nothing of its answer";

    fn filter(&self, actions: Actions) -> Option<StreamFilter> {
        StreamFilter::new(actions, true)
    }

    fn error_form(&self) -> Option<ErrorForm> {
        Some(EVENTS)
    }

    fn push(&mut self, settlement: &mut Settlement, chunk: &Bytes) -> StreamPiece {
        let had_answered = self.meter.has_answered();
        let passed = self.meter.push(chunk);
        let units = settlement.units().updated_with(self.meter.units());
        settlement.set_units(units);
        let has_answered = self.meter.has_answered();
        settlement.note_events(chunk, has_answered, ReportedUsage { usage: self.meter.usage(), is_of_prompt: false });
        // Comments before the response are the provider's own and do not count as its start.
        let pieces = if has_answered || passed.done { passed.pieces } else { Pieces::new() };
        StreamPiece { pieces, first_token: has_answered && !had_answered, has_output: true, done: passed.done }
    }

    fn finish(self, settlement: &mut Settlement, end: End) -> Closing {
        let broken = match end {
            End::Clean => None,
            End::Broken(error) => Some(error),
        };
        let ending = self.meter.finish(broken);
        let units = settlement.units().updated_with(ending.units);
        settlement.set_units(units);
        let bytes = match &ending.error {
            Some(error) if ending.reported.is_none() => [b"\n\n", &EVENTS.event(error)[..]].concat().into(),
            _ => ending.rest,
        };
        Closing {
            bytes,
            outcome: outcome(ending.error.is_some()),
            usage: ending.usage,
            error: ending.error,
            // Any error here is a failure of the provider, because such streams start after the request was accepted.
            upstream_error: ending.reported.map(|reported| UpstreamError::of_text(&reported.message)),
            response: None,
        }
    }
}

/// Bytes that are relayed as they arrive, without inspection.
#[derive(Debug, Default)]
pub struct ByteStream {
    has_begun: bool,
}

impl StreamKind for ByteStream {
    const NAME: &'static str = "answer";
    const NO_BEGINNING: &'static str = "nothing of its answer";

    fn filter(&self, _: Actions) -> Option<StreamFilter> {
        None
    }

    fn error_form(&self) -> Option<ErrorForm> {
        None
    }

    fn push(&mut self, _: &mut Settlement, chunk: &Bytes) -> StreamPiece {
        let first_token = !std::mem::replace(&mut self.has_begun, true);
        StreamPiece { pieces: Pieces::from_iter([chunk.clone()]), first_token, has_output: true, done: false }
    }

    fn finish(self, settlement: &mut Settlement, end: End) -> Closing {
        let error = match end {
            End::Clean => None,
            End::Broken(error) => Some(error),
        };
        Closing {
            bytes: Bytes::new(),
            outcome: outcome(error.is_some()),
            usage: Some(settlement.usage),
            error,
            upstream_error: None,
            response: None,
        }
    }
}

fn outcome(has_failed: bool) -> Outcome {
    if has_failed {
        Outcome::UpstreamFailed
    } else {
        Outcome::Completed
    }
}
