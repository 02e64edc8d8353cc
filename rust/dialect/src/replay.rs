//! Decides which answers can be served from the cache, and converts between complete and streamed answers.
//!
//! An answer is cacheable if it is complete and has no side effects: one text with a normal finish. An answer that was
//! truncated, refused or moderated, that calls a tool or that contains an error is not cacheable. Neither is an answer
//! that cannot be parsed.

use fairlead_core::Dialect;
use std::borrow::Cow;

use bytes::Bytes;
use serde_json::Value;

use crate::answer_context::AnswerContext;
use crate::model::{Answer, Content, Event, Part, Stop};
use crate::sse::{data_of, Framer, Limits, Part as Framed, Verdict};
use crate::text::Text;
use crate::tool_names::ToolNames;
use crate::{anthropic, gemini, openai, responses};

pub use crate::gemini::replay::{events_of, list_of};

const MAX_EVENT_BYTES: usize = 8 << 20;

/// Returns whether a complete answer is cacheable.
pub fn is_fit(form: Dialect, body: &[u8]) -> bool {
    let Ok(answer) = serde_json::from_slice::<Value>(body) else { return false };
    if !answer["error"].is_null() {
        return false;
    }
    if form == Dialect::Openai {
        let [choice] = answer["choices"].as_array().map_or(&[][..], Vec::as_slice) else { return false };
        let message = &choice["message"];
        choice["finish_reason"] == "stop" && is_plain(message) && is_text(&message["content"])
    } else if form == Dialect::OpenaiResponses {
        responses::replay::is_fit(&answer)
    } else if form == Dialect::Gemini {
        let facts = gemini::replay::read(&answer);
        facts.has_text && facts.has_stopped && !facts.is_unfit
    } else {
        let blocks = answer["content"].as_array().map_or(&[][..], Vec::as_slice);
        let has_text = blocks.iter().any(|block| block["type"] == "text" && is_text(&block["text"]));
        has_text && blocks.iter().all(|block| is_said(&block["type"])) && is_natural_end(&answer["stop_reason"])
    }
}

/// Returns the stream without comments if it is cacheable.
pub fn fit_stream(form: Dialect, stream: &Bytes) -> Option<Bytes> {
    let mut seen = StreamFacts::default();
    let limits = Limits { held_bytes: MAX_EVENT_BYTES, event_bytes: MAX_EVENT_BYTES };
    let mut framer = Framer::new(limits);
    let (pieces, _) = framer.push(stream, |part| {
        let (Framed::Event(event) | Framed::Opening(event) | Framed::More(event)) = part;
        let Some(data) = data_of(event) else { return Verdict::Drop };
        seen.take(form, &data);
        Verdict::Pass
    });
    let is_complete = framer.close().bytes.is_empty();
    (is_complete && seen.has_text && seen.has_stopped && seen.is_ended && !seen.is_unfit).then(|| match &*pieces {
        [piece] => piece.clone(),
        pieces => Bytes::from(pieces.concat()),
    })
}

/// The facts collected from a stream's events.
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts")]
struct StreamFacts {
    has_text: bool,
    has_stopped: bool,
    is_ended: bool,
    is_unfit: bool,
}

impl StreamFacts {
    fn take(&mut self, form: Dialect, data: &[u8]) {
        if form == Dialect::Openai && data.trim_ascii() == b"[DONE]" {
            self.is_ended = true;
            return;
        }
        if form == Dialect::OpenaiResponses && self.is_ended && data.trim_ascii() == b"[DONE]" {
            return;
        }
        let Ok(event) = serde_json::from_slice::<Value>(data) else {
            self.is_unfit = true;
            return;
        };
        // Gemini's stream has no terminal event. Usage may follow the chunk with the finish reason.
        self.is_unfit |= (self.is_ended && form != Dialect::Gemini) || !event["error"].is_null();
        if form == Dialect::Openai {
            for choice in event["choices"].as_array().map_or(&[][..], Vec::as_slice) {
                let delta = &choice["delta"];
                self.has_text |= is_text(&delta["content"]);
                self.is_unfit |= choice["index"].as_u64().is_some_and(|index| index > 0) || !is_plain(delta);
                if let Some(reason) = choice["finish_reason"].as_str() {
                    self.has_stopped = true;
                    self.is_unfit |= reason != "stop";
                }
            }
        } else if form == Dialect::Gemini {
            let facts = gemini::replay::read(&event);
            self.has_text |= facts.has_text;
            self.has_stopped |= facts.has_stopped;
            self.is_ended |= facts.has_stopped;
            self.is_unfit |= facts.is_unfit;
        } else if form == Dialect::OpenaiResponses {
            match event["type"].as_str().unwrap_or_default() {
                // The complete response decides. It contains everything from the earlier events.
                "response.completed" => {
                    self.is_ended = true;
                    self.has_stopped = true;
                    self.has_text = responses::replay::is_fit(&event["response"]);
                }
                "error" | "response.failed" | "response.incomplete" => self.is_unfit = true,
                _ => {}
            }
        } else {
            match event["type"].as_str().unwrap_or_default() {
                "message_start" | "content_block_stop" | "ping" => {}
                "content_block_start" => self.is_unfit |= !is_said(&event["content_block"]["type"]),
                "content_block_delta" => self.has_text |= is_text(&event["delta"]["text"]),
                "message_delta" => {
                    self.has_stopped = true;
                    self.is_unfit |= !is_natural_end(&event["delta"]["stop_reason"]);
                }
                "message_stop" => self.is_ended = true,
                _ => self.is_unfit = true,
            }
        }
    }
}

/// Returns whether a chat message or delta has no tool call, refusal, image or audio.
fn is_plain(message: &Value) -> bool {
    let is_nothing = |value: &Value| match value {
        Value::Null => true,
        Value::Array(values) => values.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    ["tool_calls", "function_call", "refusal", "images", "audio", "annotations"]
        .iter()
        .all(|name| is_nothing(&message[*name]))
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

fn is_said(kind: &Value) -> bool {
    matches!(kind.as_str(), Some("text" | "thinking" | "redacted_thinking"))
}

fn is_natural_end(reason: &Value) -> bool {
    matches!(reason.as_str(), Some("end_turn" | "stop_sequence"))
}

/// Converts a cacheable answer to a stream. Returns `None` if the stream would lose content.
pub fn as_stream(form: Dialect, body: &[u8], requests_usage: bool, created_s: u64) -> Option<Bytes> {
    let mut out = Vec::with_capacity(body.len() * 2);
    if form == Dialect::Openai {
        let raw: Value = serde_json::from_slice(body).ok()?;
        if !raw["choices"][0]["logprobs"].is_null() {
            return None;
        }
        let answer = openai::complete::read(body).ok()?;
        let created_s = raw["created"].as_u64().unwrap_or(created_s);
        let mut encoder = openai::stream_out::Encoder::new(created_s, requests_usage, ToolNames::default());
        write_events(&answer, |event| encoder.write(event, &mut out))?;
        encoder.finish(answer.stop, Some(answer.usage), &mut out);
    } else if form == Dialect::OpenaiResponses {
        return responses::replay::as_stream(body);
    } else if form == Dialect::Gemini {
        return gemini::replay::as_stream(body);
    } else {
        let answer = anthropic::complete::read(body).ok()?;
        let mut encoder = anthropic::stream_out::Encoder::default();
        write_events(&answer, |event| encoder.write(event, &mut out))?;
        encoder.finish(answer.stop, Some(answer.usage), &mut out);
    }
    Some(Bytes::from(out))
}

fn write_events(answer: &Answer<'_>, mut write: impl FnMut(Event<'_>)) -> Option<()> {
    write(Event::Start { id: Some(answer.id.clone()), model: Some(answer.model.clone()) });
    for part in &answer.parts {
        match &part.content {
            Content::Text(text) => write(Event::Text(text.clone())),
            Content::Thinking { text, signature } => {
                write(Event::Thinking(text.clone()));
                if let Some(signature) = signature {
                    write(Event::Signature(signature.clone()));
                }
            }
            Content::Redacted(data) => write(Event::Redacted(data.clone())),
            _ => return None,
        }
        write(Event::BlockEnd);
    }
    Some(())
}

/// Converts a cacheable stream to a complete answer. Returns `None` if the answer would lose content.
pub fn as_complete(form: Dialect, stream: &Bytes, created_s: u64) -> Option<Bytes> {
    let mut answer = AnswerSoFar::default();
    let mut chat = openai::stream_in::Reader::default();
    let mut messages = anthropic::stream_in::Reader::default();
    let mut generated = gemini::stream_in::Reader::default();
    let mut response = None;
    let mut is_unfit = false;
    let limits = Limits { held_bytes: MAX_EVENT_BYTES, event_bytes: MAX_EVENT_BYTES };
    Framer::new(limits).push(stream, |part| {
        let (Framed::Event(event) | Framed::Opening(event) | Framed::More(event)) = part;
        if let Some(data) = data_of(event) {
            if form == Dialect::OpenaiResponses {
                response = responses::replay::completed(&data).or(response.take());
                return Verdict::Drop;
            }
            let mut emit = |event: Event<'_>| is_unfit |= answer.take(event).is_none();
            let read = match form {
                Dialect::Openai => chat.read(&data, &mut emit),
                Dialect::Gemini => generated.read(&data, &mut emit),
                _ => messages.read(&data, &mut emit),
            };
            is_unfit |= read.is_err() || has_unusual_members(&data);
        }
        Verdict::Drop
    });
    if form == Dialect::OpenaiResponses {
        return response;
    }
    if is_unfit {
        return None;
    }
    let (stop, usage) = match form {
        Dialect::Openai => (chat.stop(), chat.usage()),
        Dialect::Gemini => (generated.stop(), generated.usage()),
        _ => (messages.stop(), messages.usage()),
    };
    let answer = Answer {
        id: answer.id,
        model: answer.model,
        parts: answer.parts.into_iter().map(|content| Part::new(String::new(), content)).collect(),
        stop: stop.unwrap_or(Stop::End),
        usage: usage.unwrap_or_default(),
        logprobs: None,
    };
    let written = match form {
        Dialect::Openai => openai::complete::write(&answer, &AnswerContext { created_s, ..AnswerContext::default() }),
        Dialect::Gemini => gemini::complete::write(&answer).ok()?,
        _ => anthropic::complete::write(&answer).ok()?,
    };
    Some(Bytes::from(written))
}

/// Returns whether a chunk has log probabilities, which the assembled answer cannot hold.
fn has_unusual_members(data: &[u8]) -> bool {
    let event = serde_json::from_slice::<Value>(data).unwrap_or_default();
    !event["choices"][0]["logprobs"].is_null()
}

/// The content of a stream so far.
#[derive(Debug)]
struct AnswerSoFar {
    id: Text<'static>,
    model: Text<'static>,
    parts: Vec<Content<'static>>,
    is_open: bool,
}

impl Default for AnswerSoFar {
    fn default() -> Self {
        Self { id: "".into(), model: "".into(), parts: Vec::new(), is_open: false }
    }
}

impl AnswerSoFar {
    fn take(&mut self, event: Event<'_>) -> Option<()> {
        let is_open = std::mem::replace(&mut self.is_open, true);
        match event {
            Event::Start { id, model } => {
                self.id = id.map_or_else(|| "".into(), Text::into_owned);
                self.model = model.map_or_else(|| "".into(), Text::into_owned);
                self.is_open = is_open;
            }
            Event::Text(more) => match self.parts.last_mut().filter(|_| is_open) {
                Some(Content::Text(text)) => append(text, &more),
                _ => self.parts.push(Content::Text(more.into_owned())),
            },
            Event::Thinking(more) => match self.parts.last_mut().filter(|_| is_open) {
                Some(Content::Thinking { text, signature: None }) => append(text, &more),
                _ => self.parts.push(Content::Thinking { text: more.into_owned(), signature: None }),
            },
            Event::Signature(signed) => match self.parts.last_mut() {
                Some(Content::Thinking { signature, .. }) => *signature = Some(signed.into_owned()),
                _ => return None,
            },
            Event::Redacted(data) => self.parts.push(Content::Redacted(data.into_owned())),
            Event::BlockEnd => self.is_open = false,
            Event::Logprobs(_) | Event::Refusal(_) | Event::Call { .. } | Event::Arguments(_) | Event::Media(_) => {
                return None
            }
        }
        Some(())
    }
}

fn append(text: &mut Text<'static>, more: &Text<'_>) {
    let mut complete = std::mem::replace(text, Text::from("")).decode().into_owned();
    complete.push_str(&more.decode());
    *text = Text::Plain(Cow::Owned(complete));
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
