//! Reads the events of a chat stream into the model.

use fairlead_core::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::call_order::{CallOrder, CallPiece, TextKind};
use super::complete::{stop, LogprobsIn};
use super::error::error_fields;
use super::message::{if_number, CallIn, ContentIn, First, FunctionIn};
use super::usage;
use crate::ending::{self, Ending};
use crate::media::{chat_images, is_media, ChatAudio};
use crate::model::{Content, Event, Stop};
use crate::step::{Malformed, Step};
use crate::text::{if_text, Text};

#[derive(Deserialize)]
struct ChunkIn<'a> {
    #[serde(borrow, default, deserialize_with = "if_text")]
    id: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    model: Option<Text<'a>>,
    #[serde(borrow, default)]
    choices: First<ChoiceIn<'a>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    x_groq: Option<&'a RawValue>,
    #[serde(borrow, default)]
    service_tier: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ChoiceIn<'a> {
    #[serde(default, deserialize_with = "if_number")]
    index: Option<u32>,
    #[serde(borrow, default)]
    delta: Option<DeltaIn<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    finish_reason: Option<Text<'a>>,
    #[serde(borrow, default)]
    logprobs: Option<LogprobsIn<'a>>,
}

#[derive(Deserialize)]
struct DeltaIn<'a> {
    #[serde(borrow, default)]
    content: Option<ContentIn<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    refusal: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    reasoning_content: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    reasoning: Option<Text<'a>>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<CallIn<'a>>>,
    #[serde(borrow, default)]
    images: Option<&'a RawValue>,
    #[serde(borrow, default)]
    audio: Option<&'a RawValue>,
}

/// The state of the reader.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    is_started: bool,
    order: CallOrder,
    reason: Option<Stop>,
    refused: bool,
    usage: Option<Usage>,
}

impl Reader {
    pub(crate) fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// Returns why the model stopped, once it is known.
    pub(crate) fn stop(&self) -> Option<Stop> {
        match self.reason {
            Some(_) if self.refused => Some(Stop::Refused),
            Some(Stop::End) if self.order.count() > 0 => Some(Stop::Tools),
            other => other,
        }
    }

    pub(crate) fn has_calls(&self) -> bool {
        self.order.count() > 0
    }

    pub(crate) fn read(&mut self, data: &[u8], emit: &mut dyn FnMut(Event<'_>)) -> Result<Step, Malformed> {
        if data.starts_with(b"[DONE]") {
            self.order.finish(emit);
            return Ok(Step::Done);
        }
        let chunk: ChunkIn<'_> = serde_json::from_slice(data).map_err(|_| Malformed)?;
        if chunk.error.is_some() {
            if let Some(error) = error_fields(data) {
                return Ok(Step::Failed(error));
            }
        }
        if !std::mem::replace(&mut self.is_started, true) {
            emit(Event::Start { id: chunk.id, model: chunk.model });
        }
        if let Some(object) = chunk.usage {
            let service = usage::service(chunk.service_tier.map(|tier| tier.get().as_bytes()));
            let usage = usage::read(object.get().as_bytes()).map(|usage| Usage { service, ..usage });
            self.usage = usage.or(self.usage);
        } else if let Some(groq) = chunk.x_groq {
            self.usage = usage::inside_groq(groq.get().as_bytes()).or(self.usage);
        }
        // Several choices are rejected when the request is translated.
        let Some(choice) = chunk.choices.0.filter(|choice| choice.index.unwrap_or(0) == 0) else {
            return Ok(Step::More);
        };
        if let Some(list) = choice.logprobs.and_then(LogprobsIn::list) {
            emit(Event::Logprobs(list));
        }
        if let Some(delta) = choice.delta {
            self.read_delta(delta, emit)?;
        }
        // Some providers write an empty reason in earlier chunks.
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            let reason = reason.decode();
            if ending::of_chat(&reason) == Ending::Fault {
                return Ok(Step::Failed(ending::fault(&reason)));
            }
            self.order.finish(emit);
            self.reason = Some(stop(Some(&reason), false));
        }
        Ok(Step::More)
    }

    fn read_delta(&mut self, delta: DeltaIn<'_>, emit: &mut dyn FnMut(Event<'_>)) -> Result<(), Malformed> {
        if let Some(text) = delta.reasoning_content.or(delta.reasoning).filter(|text| !text.is_empty()) {
            self.order.push(TextKind::Thinking, text, emit)?;
        }
        let mut outcome = Ok(());
        if let Some(content) = delta.content {
            content.for_each(|content| outcome = outcome.and_then(|()| self.read_content(content, emit)));
        }
        outcome?;
        if let Some(text) = delta.refusal {
            self.read_content(Content::Refusal(text), emit)?;
        }
        let audio = delta.audio.and_then(|audio| serde_json::from_str::<ChatAudio<'_>>(audio.get()).ok());
        let images = delta.images.map(chat_images).into_iter().flatten();
        images.chain(audio.into_iter().flat_map(ChatAudio::contents)).try_for_each(|it| self.read_content(it, emit))?;
        delta.tool_calls.into_iter().flatten().try_for_each(|call| {
            let arguments = call.function.as_ref().and_then(FunctionIn::arguments);
            let name = call.function.and_then(|function| function.name);
            let id = call.id.filter(|id| !id.is_empty());
            self.order.read(CallPiece { index: call.index, id, name, arguments }, emit)
        })
    }

    /// Emits a content. An empty text is skipped.
    fn read_content(&mut self, content: Content<'_>, emit: &mut dyn FnMut(Event<'_>)) -> Result<(), Malformed> {
        match content {
            Content::Text(text) if !text.is_empty() => self.order.push(TextKind::Text, text, emit),
            Content::Thinking { text, .. } if !text.is_empty() => self.order.push(TextKind::Thinking, text, emit),
            Content::Refusal(text) if !text.is_empty() => {
                self.refused = true;
                self.order.push(TextKind::Refusal, text, emit)
            }
            media if is_media(&media) => self.order.show(media, emit),
            _ => Ok(()),
        }
    }
}
