//! Reads the events of a messages stream into the model.

use std::borrow::Cow;

use fairlead_core::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::complete::{stop, BlockIn, StopDetails};
use super::usage::Counts;
use crate::model::{Event, Stop};
use crate::openai::error::error_fields;
use crate::step::{Malformed, Step};
use crate::text::{if_text, Text};

#[derive(Deserialize)]
struct EventIn<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow, default)]
    message: Option<MessageIn<'a>>,
    #[serde(borrow, default)]
    content_block: Option<BlockIn<'a>>,
    #[serde(borrow, default)]
    delta: Option<DeltaIn<'a>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct MessageIn<'a> {
    #[serde(borrow, default, deserialize_with = "if_text")]
    id: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    model: Option<Text<'a>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct DeltaIn<'a> {
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    partial_json: Option<Text<'a>>,
    #[serde(borrow, default)]
    thinking: Option<Text<'a>>,
    #[serde(borrow, default)]
    signature: Option<Text<'a>>,
    #[serde(borrow, default)]
    stop_reason: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    stop_details: Option<StopDetails<'a>>,
}

/// The state of the reader.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    counts: Counts,
    reason: Option<Stop>,
}

impl Reader {
    pub(crate) fn usage(&self) -> Option<Usage> {
        self.counts.reported()
    }

    /// Returns why the model stopped, once it is known.
    pub(crate) fn stop(&self) -> Option<Stop> {
        self.reason
    }

    pub(crate) fn read(&mut self, data: &[u8], emit: &mut dyn FnMut(Event<'_>)) -> Result<Step, Malformed> {
        let event: EventIn<'_> = serde_json::from_slice(data).map_err(|_| Malformed)?;
        let usage = event.usage.or_else(|| event.message.as_ref().and_then(|message| message.usage));
        if let Some(object) = usage {
            self.counts.read(object.get().as_bytes());
        }
        match &*event.r#type {
            "content_block_delta" => read_delta(event.delta.ok_or(Malformed)?, emit),
            "content_block_start" => read_start(event.content_block.ok_or(Malformed)?, emit),
            "content_block_stop" => emit(Event::BlockEnd),
            "message_start" => {
                let message = event.message.ok_or(Malformed)?;
                emit(Event::Start { id: message.id, model: message.model });
            }
            "message_delta" => {
                let delta = event.delta.ok_or(Malformed)?;
                if let Some(text) = delta.stop_details.and_then(|details| details.explanation) {
                    emit(Event::Refusal(text));
                }
                if let Some(reason) = delta.stop_reason {
                    self.reason = Some(stop(Some(&reason)));
                }
            }
            "message_stop" => return Ok(Step::Done),
            "error" => return Ok(Step::Failed(error_fields(data).unwrap_or_default())),
            // `ping` and unknown events, which the protocol requires to be ignored.
            _ => {}
        }
        Ok(Step::More)
    }
}

fn read_start(block: BlockIn<'_>, emit: &mut dyn FnMut(Event<'_>)) {
    match &*block.r#type {
        "tool_use" => {
            if let (Some(id), Some(name)) = (block.id, block.name) {
                emit(Event::Call { id, name });
            }
            // The input usually arrives in deltas. Some servers send it complete in this event.
            if let Some(input) = block.input.filter(|input| input.get().len() > 2).map(Text::of_json) {
                emit(Event::Arguments(input));
            }
        }
        "redacted_thinking" => {
            if let Some(data) = block.data {
                emit(Event::Redacted(data));
            }
        }
        _ => {
            if let Some(text) = block.text.filter(|text| !text.is_empty()) {
                emit(Event::Text(text));
            }
            if let Some(text) = block.thinking.filter(|text| !text.is_empty()) {
                emit(Event::Thinking(text));
            }
        }
    }
}

fn read_delta(delta: DeltaIn<'_>, emit: &mut dyn FnMut(Event<'_>)) {
    let is_filled = |text: &Text<'_>| !text.is_empty();
    if let Some(text) = delta.text.filter(is_filled) {
        emit(Event::Text(text));
    }
    if let Some(text) = delta.partial_json.filter(is_filled) {
        emit(Event::Arguments(text));
    }
    if let Some(text) = delta.thinking.filter(is_filled) {
        emit(Event::Thinking(text));
    }
    if let Some(text) = delta.signature.filter(is_filled) {
        emit(Event::Signature(text));
    }
}
