//! Reads and writes a complete generateContent answer.

use std::borrow::Cow;

use fairlead_core::Error;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::part::{self, AnswerPartIn};
use super::part_out::write_part;
use super::usage;
use crate::call_ids::CallIds;
use crate::ending::{self, Ending};
use crate::media::is_media;
use crate::model::{typed, wrong, Answer, Call, Content, Stop};
use crate::signature::{for_gemini_caller, of_redacted};
use crate::text::{if_text, Text, Writer};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResponseIn<'a> {
    #[serde(borrow, default)]
    pub(super) candidates: Option<Vec<CandidateIn<'a>>>,
    #[serde(borrow, default)]
    pub(super) prompt_feedback: Option<FeedbackIn<'a>>,
    #[serde(borrow, default)]
    pub(super) usage_metadata: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    pub(super) model_version: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    pub(super) response_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CandidateIn<'a> {
    #[serde(borrow, default)]
    pub(super) content: Option<ContentIn<'a>>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
pub(super) struct ContentIn<'a> {
    #[serde(borrow, default)]
    pub(super) parts: Option<Vec<AnswerPartIn<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FeedbackIn<'a> {
    #[serde(borrow, default)]
    pub(super) block_reason: Option<Cow<'a, str>>,
}

/// Reads a body that has been scanned before.
pub(crate) fn read(body: &[u8]) -> Result<Answer<'_>, Error> {
    let raw: &RawValue = serde_json::from_slice(body).map_err(|_| wrong("body", "must be JSON"))?;
    let response: ResponseIn<'_> = typed(raw, "body")?;
    let id = response.response_id.unwrap_or_else(|| "".into());
    let mut parts = Vec::new();
    let mut reason = None;
    if let Some(candidate) = response.candidates.into_iter().flatten().next() {
        let list = candidate.content.and_then(|content| content.parts).unwrap_or_default();
        let list = list.into_iter().filter_map(AnswerPartIn::known).collect();
        let path = || "candidates[0].content.parts".to_owned();
        part::take(list, &path, &mut CallIds::of(&id.decode()), &mut parts)?;
        reason = candidate.finish_reason;
    }
    let is_blocked = response.prompt_feedback.is_some_and(|feedback| feedback.block_reason.is_some());
    let has_calls = parts.iter().any(|part| matches!(part.content, Content::Call(_)));
    let stop = if is_blocked { Stop::Refused } else { stop(reason.as_deref(), has_calls) };
    let usage = response.usage_metadata.and_then(|object| usage::read(object.get().as_bytes())).unwrap_or_default();
    Ok(Answer { id, model: response.model_version.unwrap_or_else(|| "".into()), parts, stop, usage, logprobs: None })
}

/// Maps the finish reason. In this dialect, an answer with calls has the same reason as any other.
pub(super) fn stop(reason: Option<&str>, has_calls: bool) -> Stop {
    match reason.map(ending::of_gemini) {
        Some(Ending::Stop(stop @ (Stop::Length | Stop::Refused))) => stop,
        _ if has_calls => Stop::Tools,
        _ => Stop::End,
    }
}

pub(super) fn finish_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::End | Stop::Sequence | Stop::Tools => "STOP",
        Stop::Length => "MAX_TOKENS",
        Stop::Refused => "SAFETY",
    }
}

pub(crate) fn write(answer: &Answer<'_>) -> Result<Vec<u8>, Error> {
    let mut out = Writer::with_capacity(1024);
    out.open(b'{').key("candidates").open(b'[').open(b'{').key("content").open(b'{').key("parts").open(b'[');
    let mut signature: Option<String> = None;
    for part in &answer.parts {
        match &part.content {
            Content::Thinking { text, signature: own } => {
                if !text.is_empty() {
                    out.open(b'{').member("text", text).key("thought").raw("true").close(b'}');
                }
                signature = own.as_ref().map(|own| for_gemini_caller(&own.decode())).or(signature);
            }
            Content::Redacted(data) => signature = Some(for_gemini_caller(&of_redacted(&data.decode()))),
            Content::Text(text) | Content::Refusal(text) => {
                write_text(&mut out, text, signature.take().as_deref());
            }
            Content::Call(call) => write_call(&mut out, call, true, signature.take().as_deref()),
            content if is_media(content) => write_part(&mut out, part, signature.take().as_deref())?,
            _ => return Err(wrong(&part.path, "is nothing that an answer of this form holds")),
        }
    }
    if signature.is_some() {
        write_text(&mut out, &"".into(), signature.as_deref());
    }
    out.close(b']').key("role").raw(r#""model""#).close(b'}');
    out.key("finishReason").str(finish_reason(answer.stop)).key("index").number(0).close(b'}').close(b']');
    out.key("usageMetadata");
    usage::write(&mut out, &answer.usage);
    out.member("modelVersion", &answer.model).member("responseId", &answer.id);
    Ok(out.close(b'}').take())
}

pub(super) fn write_text(out: &mut Writer, text: &Text<'_>, signature: Option<&str>) {
    out.open(b'{').member("text", text);
    if let Some(signature) = signature {
        out.key("thoughtSignature").str(signature);
    }
    out.close(b'}');
}

pub(super) fn write_call(out: &mut Writer, call: &Call<'_>, has_id: bool, signature: Option<&str>) {
    out.open(b'{').key("functionCall").open(b'{');
    if has_id {
        out.member("id", &call.id);
    }
    out.member("name", &call.name).key("args").raw(&call.arguments).close(b'}');
    if let Some(signature) = signature {
        out.key("thoughtSignature").str(signature);
    }
    out.close(b'}');
}
