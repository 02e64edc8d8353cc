//! Reads the events of a responses stream into the model.

use std::borrow::Cow;

use bytes::Bytes;
use fairlead_core::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::complete::{OutputIn, ResponseIn};
use crate::model::{Event, Stop};
use crate::openai::error::{error_fields, UpstreamError};
use crate::signature::from_responses;
use crate::step::{Malformed, Step};
use crate::text::Text;

#[derive(Deserialize)]
struct EventIn<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(default)]
    sequence_number: Option<u64>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    item: Option<OutputIn<'a>>,
    #[serde(default)]
    output_index: Option<u64>,
    #[serde(borrow, default)]
    delta: Option<&'a RawValue>,
    #[serde(borrow, default)]
    logprobs: Option<&'a RawValue>,
}

/// The state of the reader.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    id: Option<Text<'static>>,
    model: Option<Text<'static>>,
    next_sequence: u64,
    usage: Option<Usage>,
    reason: Option<Stop>,
    refused: bool,
    calls: usize,
    /// The provider's index of the current call, and whether it has arguments.
    call: Option<(u64, bool)>,
    /// The summary of a reasoning item already has a part.
    summarised: bool,
    /// The final response is stored.
    keeps: bool,
    response: Option<Bytes>,
}

impl Reader {
    pub(crate) fn new(keeps: bool) -> Self {
        Self { keeps, ..Self::default() }
    }

    pub(crate) fn take_response(&mut self) -> Option<Bytes> {
        self.response.take()
    }

    pub(crate) fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// Returns why the model stopped. Only the terminal event has the reason.
    pub(crate) fn stop(&self) -> Option<Stop> {
        self.reason
    }

    pub(crate) fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    pub(crate) fn id(&self) -> Option<&Text<'static>> {
        self.id.as_ref()
    }

    pub(crate) fn model(&self) -> Option<&Text<'static>> {
        self.model.as_ref()
    }

    pub(crate) fn read(&mut self, data: &[u8], emit: &mut dyn FnMut(Event<'_>)) -> Result<Step, Malformed> {
        if data.starts_with(b"[DONE]") {
            // Some servers send it after the terminal event.
            return Ok(Step::More);
        }
        let event: EventIn<'_> = serde_json::from_slice(data).map_err(|_| Malformed)?;
        self.next_sequence = event.sequence_number.map_or(self.next_sequence, |number| number + 1);
        match &*event.r#type {
            "response.output_text.delta" => {
                if let Some(list) = event.logprobs.map(RawValue::get).filter(|list| *list != "[]" && *list != "null") {
                    emit(Event::Logprobs(list));
                }
                emit(Event::Text(text(event.delta)?));
            }
            "response.refusal.delta" => {
                self.refused = true;
                emit(Event::Refusal(text(event.delta)?));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                emit(Event::Thinking(text(event.delta)?));
            }
            // The parts of a summary are joined to one text.
            "response.reasoning_summary_part.added" if std::mem::replace(&mut self.summarised, true) => {
                emit(Event::Thinking("\n\n".into()));
            }
            "response.function_call_arguments.delta" => {
                let (at, has_any) = self.call.as_mut().ok_or(Malformed)?;
                if event.output_index.is_some_and(|index| index != *at) {
                    return Err(Malformed);
                }
                *has_any = true;
                emit(Event::Arguments(text(event.delta)?));
            }
            "response.output_item.added" => self.begin(event.item.ok_or(Malformed)?, event.output_index, emit)?,
            "response.output_item.done" => self.end(event.item.ok_or(Malformed)?, emit),
            "response.created" => self.start(event.response, emit)?,
            "response.completed" | "response.incomplete" => {
                self.complete(event.response)?;
                return Ok(Step::Done);
            }
            "response.failed" => {
                let raw = event.response.ok_or(Malformed)?;
                self.usage = response(event.response)?.usage().or(self.usage);
                return Ok(Step::Failed(error_fields(raw.get().as_bytes()).unwrap_or_default()));
            }
            // The event itself has the error's members; its `type` is the event's.
            "error" => {
                let error = error_fields(data).unwrap_or_default();
                let kind = error.kind.filter(|kind| kind != "error");
                return Ok(Step::Failed(UpstreamError { kind, ..error }));
            }
            // The ends of parts, whose text has been emitted, and unknown events.
            _ => {}
        }
        Ok(Step::More)
    }

    fn start(&mut self, raw: Option<&RawValue>, emit: &mut dyn FnMut(Event<'_>)) -> Result<(), Malformed> {
        let response = response(raw)?;
        self.id = response.id.map(Text::into_owned);
        self.model = response.model.map(Text::into_owned);
        emit(Event::Start { id: self.id.clone(), model: self.model.clone() });
        Ok(())
    }

    /// Handles the terminal event of a response that did not fail.
    fn complete(&mut self, raw: Option<&RawValue>) -> Result<(), Malformed> {
        if self.keeps {
            self.response = raw.map(|raw| Bytes::copy_from_slice(raw.get().as_bytes()));
        }
        let response = response(raw)?;
        self.usage = response.usage().or(self.usage);
        self.reason = Some(response.stop(self.calls > 0, self.refused));
        Ok(())
    }

    fn begin(
        &mut self,
        item: OutputIn<'_>,
        index: Option<u64>,
        emit: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Malformed> {
        match &*item.r#type {
            "function_call" => {
                self.calls += 1;
                self.call = Some((index.unwrap_or_default(), false));
                let id = item.call_id.or(item.id).ok_or(Malformed)?;
                emit(Event::Call { id, name: item.name.ok_or(Malformed)? });
            }
            "reasoning" => self.summarised = false,
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, item: OutputIn<'_>, emit: &mut dyn FnMut(Event<'_>)) {
        match &*item.r#type {
            "function_call" => {
                let has_any = self.call.take().is_some_and(|(_, has_any)| has_any);
                if let (false, Some(arguments)) = (has_any, item.arguments().filter(|text| !text.is_empty())) {
                    emit(Event::Arguments(arguments));
                }
            }
            "reasoning" => {
                let id = item.id.as_ref().map(Text::decode).unwrap_or_default();
                if let Some(encrypted) = item.encrypted_content {
                    emit(Event::Signature(from_responses(&id, &encrypted.decode())));
                }
            }
            "image_generation_call" => {
                if let Some(image) = item.image() {
                    emit(Event::Media(image));
                }
            }
            _ => {}
        }
        emit(Event::BlockEnd);
    }
}

fn text(delta: Option<&RawValue>) -> Result<Text<'_>, Malformed> {
    delta.and_then(Text::of).ok_or(Malformed)
}

fn response(raw: Option<&RawValue>) -> Result<ResponseIn<'_>, Malformed> {
    serde_json::from_str(raw.ok_or(Malformed)?.get()).map_err(|_| Malformed)
}
