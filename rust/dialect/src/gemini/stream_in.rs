//! Reads the chunks of a generateContent stream into the model. The stream has no terminal event: it ends after the
//! chunk with the finish reason.

use fairlead_core::Usage;
use serde_json::value::RawValue;

use super::complete::{stop, ResponseIn};
use super::part::AnswerPartIn;
use super::usage;
use crate::call_ids::CallIds;
use crate::ending::{self, Ending};
use crate::model::{Event, Stop};
use crate::openai::error::error_fields;
use crate::signature::{from_gemini, redacted_in};
use crate::step::{Malformed, Step};
use crate::text::Text;

/// The state of the reader.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    ids: Option<CallIds>,
    usage: Option<Usage>,
    calls: usize,
    has_text: bool,
    reason: Option<Stop>,
}

impl Reader {
    pub(crate) fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// Returns why the model stopped, once it is known.
    pub(crate) fn stop(&self) -> Option<Stop> {
        match self.reason {
            Some(Stop::End) if self.calls > 0 => Some(Stop::Tools),
            other => other,
        }
    }

    pub(crate) fn read(&mut self, data: &[u8], emit: &mut dyn FnMut(Event<'_>)) -> Result<Step, Malformed> {
        let chunk: ResponseIn<'_> = serde_json::from_slice(data).map_err(|_| Malformed)?;
        if chunk.error.is_some() {
            return Ok(Step::Failed(error_fields(data).unwrap_or_default()));
        }
        if let Some(object) = chunk.usage_metadata {
            self.usage = usage::read(object.get().as_bytes()).or(self.usage);
        }
        if self.ids.is_none() {
            let id = chunk.response_id.as_ref().map(Text::decode).unwrap_or_default();
            self.ids = Some(CallIds::of(&id));
            emit(Event::Start { id: chunk.response_id, model: chunk.model_version });
        }
        if chunk.prompt_feedback.is_some_and(|feedback| feedback.block_reason.is_some()) {
            self.reason = Some(Stop::Refused);
        }
        let Some(candidate) = chunk.candidates.into_iter().flatten().next() else { return Ok(Step::More) };
        for part in candidate.content.and_then(|content| content.parts).unwrap_or_default() {
            self.part(part, emit)?;
        }
        if let Some(reason) = candidate.finish_reason {
            if ending::of_gemini(&reason) == Ending::Fault {
                return Ok(Step::Failed(ending::fault(&reason)));
            }
            self.reason = Some(stop(Some(&reason), false));
        }
        Ok(Step::More)
    }

    fn part(&mut self, part: AnswerPartIn<'_>, emit: &mut dyn FnMut(Event<'_>)) -> Result<(), Malformed> {
        let is_thought = part.thought == Some(true);
        // A signature in an empty part after the text has no open reasoning to close. It is dropped; Gemini does not
        // require it.
        let media = part.media();
        let is_bare = part.function_call.is_none() && media.is_none() && part.text.as_ref().is_none_or(Text::is_empty);
        let is_late = self.has_text && is_bare;
        if let Some(signature) = part.thought_signature.filter(|text| !text.is_empty() && !is_thought && !is_late) {
            let signature = from_gemini(&signature);
            match redacted_in(&signature.decode()) {
                Some(data) => emit(Event::Redacted(data.to_owned().into())),
                None => emit(Event::Signature(signature.clone())),
            }
        }
        if let Some(call) = part.function_call {
            self.calls += 1;
            let id = self.ids.get_or_insert_with(CallIds::default).of_call(call.id, &call.name);
            emit(Event::Call { id, name: call.name });
            if let Some(arguments) = call.args.map(RawValue::get).filter(|arguments| *arguments != "{}") {
                if !arguments.starts_with('{') {
                    return Err(Malformed);
                }
                emit(Event::Arguments(Text::Plain(arguments.into())));
            }
            emit(Event::BlockEnd);
        } else if let Some(media) = media {
            self.has_text = true;
            emit(Event::Media(media));
        } else if let Some(text) = part.text.filter(|text| !text.is_empty()) {
            self.has_text = self.has_text || !is_thought;
            emit(if is_thought { Event::Thinking(text) } else { Event::Text(text) });
        }
        Ok(())
    }
}
