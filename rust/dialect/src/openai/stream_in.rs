//! The events of a chat stream, read into the model.

use std::borrow::Cow;

use fairlead_core::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::error_fields;
use super::message::{if_number, CallIn, ContentIn, First, FunctionIn};
use super::usage;
use super::whole::{stop, LogprobsIn};
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
}

/// The state of a stream that is read.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    is_started: bool,
    /// Upstream's number and id of the call whose arguments come now.
    call: Option<(u32, String)>,
    calls: usize,
    reason: Option<Stop>,
    refused: bool,
    usage: Option<Usage>,
}

impl Reader {
    pub(crate) fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// Why the model stopped, once it was said.
    pub(crate) fn stop(&self) -> Option<Stop> {
        match self.reason {
            Some(_) if self.refused => Some(Stop::Refused),
            Some(Stop::End) if self.calls > 0 => Some(Stop::Tools),
            other => other,
        }
    }

    pub(crate) fn has_calls(&self) -> bool {
        self.calls > 0
    }

    pub(crate) fn read(&mut self, data: &[u8], emit: &mut dyn FnMut(Event<'_>)) -> Result<Step, Malformed> {
        if data.starts_with(b"[DONE]") {
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
        }
        // Several choices are refused where the request is translated.
        let Some(choice) = chunk.choices.0.filter(|choice| choice.index.unwrap_or(0) == 0) else {
            return Ok(Step::More);
        };
        if let Some(list) = choice.logprobs.and_then(LogprobsIn::list) {
            emit(Event::Logprobs(list));
        }
        if let Some(delta) = choice.delta {
            self.read_delta(delta, emit)?;
        }
        // Some providers write an empty reason until there is one.
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            self.reason = Some(stop(Some(&reason.decode()), false));
        }
        Ok(Step::More)
    }

    fn read_delta(&mut self, delta: DeltaIn<'_>, emit: &mut dyn FnMut(Event<'_>)) -> Result<(), Malformed> {
        if let Some(text) = delta.reasoning_content.or(delta.reasoning).filter(|text| !text.is_empty()) {
            self.call = None;
            emit(Event::Thinking(text));
        }
        if let Some(content) = delta.content {
            content.for_each(|content| self.read_content(content, emit));
        }
        if let Some(text) = delta.refusal {
            self.read_content(Content::Refusal(text), emit);
        }
        delta.tool_calls.into_iter().flatten().try_for_each(|call| self.read_call(call, emit))
    }

    /// A text of an answer ends the call before it; an empty one says nothing.
    fn read_content(&mut self, content: Content<'_>, emit: &mut dyn FnMut(Event<'_>)) {
        let event = match content {
            Content::Text(text) if !text.is_empty() => Event::Text(text),
            Content::Thinking { text, .. } if !text.is_empty() => Event::Thinking(text),
            Content::Refusal(text) if !text.is_empty() => {
                self.refused = true;
                Event::Refusal(text)
            }
            _ => return,
        };
        self.call = None;
        emit(event);
    }

    fn read_call(&mut self, call: CallIn<'_>, emit: &mut dyn FnMut(Event<'_>)) -> Result<(), Malformed> {
        let open = self.call.as_ref();
        let index = call.index.unwrap_or_else(|| open.map_or(0, |(index, _)| *index));
        let arguments = call.function.as_ref().and_then(FunctionIn::arguments);
        let name = call.function.and_then(|function| function.name);
        let id = call.id.filter(|id| !id.is_empty());
        // Some providers repeat id and name with each piece; some give each call the same number.
        let goes_on = open.is_some_and(|(number, known)| {
            *number == index && id.as_ref().is_none_or(|id| id.decode() == known.as_str())
        });
        if !goes_on {
            // Arguments of a call that another has followed belong nowhere any more.
            let name = name.ok_or(Malformed)?;
            let id = id.unwrap_or_else(|| Text::Plain(Cow::Owned(format!("call_{}", self.calls))));
            self.calls += 1;
            self.call = Some((index, id.decode().into_owned()));
            emit(Event::Call { id, name });
        }
        if let Some(arguments) = arguments.filter(|arguments| !arguments.is_empty()) {
            emit(Event::Arguments(arguments));
        }
        Ok(())
    }
}
