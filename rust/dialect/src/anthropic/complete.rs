//! Reads and writes a complete message.

use std::borrow::Cow;

use fairlead_core::Error;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::request_out::write_part;
use super::usage;
use crate::model::{typed, wrong, Answer, Call, Content, Part, Stop};
use crate::text::{if_text, Text, Writer};

#[derive(Deserialize)]
struct MessageIn<'a> {
    #[serde(borrow, default, deserialize_with = "if_text")]
    id: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    model: Option<Text<'a>>,
    #[serde(borrow)]
    content: Vec<BlockIn<'a>>,
    #[serde(default)]
    stop_reason: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    stop_details: Option<StopDetails<'a>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

/// A block of an answer, complete or at its start.
#[derive(Deserialize)]
pub(super) struct BlockIn<'a> {
    #[serde(borrow)]
    pub(super) r#type: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) name: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) thinking: Option<Text<'a>>,
    #[serde(borrow, default)]
    signature: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) data: Option<Text<'a>>,
}

#[derive(Deserialize)]
pub(super) struct StopDetails<'a> {
    #[serde(borrow, default)]
    pub(super) explanation: Option<Text<'a>>,
}

/// Reads a body that has been scanned before.
pub(crate) fn read(body: &[u8]) -> Result<Answer<'_>, Error> {
    let raw: &RawValue = serde_json::from_slice(body).map_err(|_| wrong("body", "must be JSON"))?;
    let message: MessageIn<'_> = typed(raw, "body")?;
    let mut parts = Vec::with_capacity(message.content.len());
    for block in message.content {
        parts.extend(content(block)?.map(|content| Part::new("content", content)));
    }
    if let Some(text) = message.stop_details.and_then(|details| details.explanation) {
        parts.push(Part::new("stop_details", Content::Refusal(text)));
    }
    let mut counts = usage::Counts::default();
    if let Some(object) = message.usage {
        counts.read(object.get().as_bytes());
    }
    Ok(Answer {
        id: message.id.unwrap_or_else(|| "".into()),
        model: message.model.unwrap_or_else(|| "".into()),
        parts,
        stop: stop(message.stop_reason.as_deref()),
        usage: counts.usage(),
        logprobs: None,
    })
}

/// Reads the content of a block. Server tools are rejected when the request is translated. Other dialects cannot
/// express the remaining kinds of blocks.
fn content(block: BlockIn<'_>) -> Result<Option<Content<'_>>, Error> {
    Ok(match &*block.r#type {
        "text" => block.text.map(Content::Text),
        "thinking" => {
            let signature = block.signature.filter(|signature| !signature.is_empty());
            block.thinking.map(|text| Content::Thinking { text, signature })
        }
        "redacted_thinking" => block.data.map(Content::Redacted),
        "tool_use" => {
            let missing = || wrong("content", "has a call without an id or a name");
            let (id, name) = (block.id.ok_or_else(missing)?, block.name.ok_or_else(missing)?);
            let arguments = block.input.map(|input| Text::of_json(input).decode()).unwrap_or_default();
            Some(Content::Call(Call { id, name, arguments }))
        }
        _ => None,
    })
}

pub(super) fn stop(reason: Option<&str>) -> Stop {
    match reason {
        Some("max_tokens" | "model_context_window_exceeded") => Stop::Length,
        Some("stop_sequence") => Stop::Sequence,
        Some("tool_use") => Stop::Tools,
        Some("refusal") => Stop::Refused,
        _ => Stop::End,
    }
}

pub(super) fn stop_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::End => "end_turn",
        Stop::Length => "max_tokens",
        Stop::Sequence => "stop_sequence",
        Stop::Tools => "tool_use",
        Stop::Refused => "refusal",
    }
}

pub(crate) fn write(answer: &Answer<'_>) -> Result<Vec<u8>, Error> {
    let mut out = Writer::with_capacity(1024);
    out.open(b'{').member("id", &answer.id).key("type").raw(r#""message""#).key("role").raw(r#""assistant""#);
    out.member("model", &answer.model).key("content").open(b'[');
    answer.parts.iter().try_for_each(|part| write_part(&mut out, part))?;
    out.close(b']').key("stop_reason").str(stop_reason(answer.stop)).key("stop_sequence").raw("null").key("usage");
    usage::write(&mut out, &answer.usage);
    Ok(out.close(b'}').take())
}
