//! Reads and writes a complete response.

use std::borrow::Cow;

use fairlead_core::{Error, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{call_item, item, usage};
use crate::answer_context::AnswerContext;
use crate::media::as_link;
use crate::model::{typed, wrong, Answer, Call, Content, Part, Source, Stop};
use crate::openai::usage::service;
use crate::signature::{for_responses_caller, from_responses, of_redacted};
use crate::text::{if_text, Text, Writer};

#[derive(Deserialize)]
pub(super) struct ResponseIn<'a> {
    #[serde(borrow, default, deserialize_with = "if_text")]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    pub(super) model: Option<Text<'a>>,
    #[serde(borrow, default)]
    status: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    incomplete_details: Option<IncompleteIn<'a>>,
    #[serde(borrow, default)]
    output: Vec<OutputIn<'a>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    service_tier: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct IncompleteIn<'a> {
    #[serde(borrow, default)]
    reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
pub(super) struct OutputIn<'a> {
    #[serde(borrow)]
    pub(super) r#type: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, default)]
    content: Option<Vec<PartIn<'a>>>,
    #[serde(borrow, default)]
    summary: Option<Vec<PartIn<'a>>>,
    #[serde(borrow, default)]
    pub(super) encrypted_content: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) call_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) name: Option<Text<'a>>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    /// A generated image in base64.
    #[serde(borrow, default, deserialize_with = "if_text")]
    result: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    output_format: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct PartIn<'a> {
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    refusal: Option<Text<'a>>,
    #[serde(borrow, default)]
    logprobs: Option<&'a RawValue>,
}

impl ResponseIn<'_> {
    pub(super) fn usage(&self) -> Option<Usage> {
        let service = service(self.service_tier.map(|tier| tier.get().as_bytes()));
        Some(Usage { service, ..usage::read(self.usage?.get().as_bytes())? })
    }

    /// Returns why the model stopped. `has_calls` and `is_refused` describe the output.
    pub(super) fn stop(&self, has_calls: bool, is_refused: bool) -> Stop {
        let reason = self.incomplete_details.as_ref().and_then(|details| details.reason.as_deref());
        match (self.status.as_deref(), reason) {
            (Some("incomplete"), Some("content_filter")) => Stop::Refused,
            (Some("incomplete"), _) => Stop::Length,
            _ if is_refused => Stop::Refused,
            _ if has_calls => Stop::Tools,
            _ => Stop::End,
        }
    }
}

impl<'a> OutputIn<'a> {
    /// Returns the arguments of a call, given as JSON in a string or as a JSON value.
    pub(super) fn arguments(&self) -> Option<Text<'a>> {
        self.arguments.map(Text::of_json)
    }

    /// Returns the image of an image generation call.
    pub(super) fn image(&self) -> Option<Content<'a>> {
        item::generated_image(self.result.as_ref()?, self.output_format.as_ref())
    }
}

/// Reads a body that has been scanned before.
pub(crate) fn read(body: &[u8]) -> Result<Answer<'_>, Error> {
    let raw: &RawValue = serde_json::from_slice(body).map_err(|_| wrong("body", "must be JSON"))?;
    let mut response: ResponseIn<'_> = typed(raw, "body")?;
    let mut parts = Vec::new();
    let mut logprobs = None;
    let (mut has_calls, mut is_refused) = (false, false);
    for (at, output) in std::mem::take(&mut response.output).into_iter().enumerate() {
        match &*output.r#type {
            "message" => {
                for part in output.content.unwrap_or_default() {
                    logprobs = logprobs.or(part.logprobs.map(RawValue::get).filter(|list| *list != "[]"));
                    if let Some(text) = part.text.filter(|text| !text.is_empty()) {
                        parts.push(Part::new("output", Content::Text(text)));
                    }
                    if let Some(text) = part.refusal {
                        is_refused = true;
                        parts.push(Part::new("output", Content::Refusal(text)));
                    }
                }
            }
            "reasoning" => parts.extend(reasoning(output)),
            "function_call" => {
                has_calls = true;
                let missing = || wrong(&format!("output[{at}]"), "is no call");
                let arguments = output.arguments().map(|text| text.decode()).unwrap_or_default();
                let id = output.call_id.or(output.id).ok_or_else(missing)?;
                let name = output.name.ok_or_else(missing)?;
                parts.push(Part::new("output", Content::Call(Call { id, name, arguments })));
            }
            "image_generation_call" => parts.extend(output.image().map(|image| Part::new("output", image))),
            // Server tools are rejected when the request is translated.
            _ => {}
        }
    }
    let stop = response.stop(has_calls, is_refused);
    let usage = response.usage().unwrap_or_default();
    let (id, model) = (response.id.unwrap_or_else(|| "".into()), response.model.unwrap_or_else(|| "".into()));
    Ok(Answer { id, model, parts, stop, usage, logprobs })
}

fn reasoning(item: OutputIn<'_>) -> Option<Part<'_>> {
    // The reasoning itself if present, otherwise its summary.
    let parts = item.content.filter(|parts| !parts.is_empty()).or(item.summary).unwrap_or_default();
    let texts: Vec<Cow<'_, str>> = parts.iter().filter_map(|part| Some(part.text.as_ref()?.decode())).collect();
    let text = texts.join("\n\n");
    let id = item.id.as_ref().map(Text::decode).unwrap_or_default();
    let signature = item.encrypted_content.map(|encrypted| from_responses(&id, &encrypted.decode()));
    if text.is_empty() && signature.is_none() {
        return None;
    }
    Some(Part::new("output", Content::Thinking { text: text.into(), signature }))
}

/// Returns the status and the reason if the answer is incomplete because of its length or a filter.
pub(super) fn status(stop: Stop) -> (&'static str, Option<&'static str>) {
    match stop {
        Stop::Length => ("incomplete", Some("max_output_tokens")),
        _ => ("completed", None),
    }
}

/// The state of a response: its status, why it is incomplete, and the code and message of its error.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ResponseState<'a> {
    pub(super) status: &'a str,
    pub(super) incomplete: Option<&'a str>,
    pub(super) error: Option<(&'a str, &'a str)>,
}

/// Writes a response with the current `output`, list elements without the brackets.
pub(super) fn envelope(
    context: &AnswerContext,
    model: &Text<'_>,
    state: ResponseState<'_>,
    output: &[u8],
    used: Option<&Usage>,
) -> Vec<u8> {
    let ResponseState { status, incomplete, error } = state;
    let mut out = Writer::with_capacity(output.len() + context.echo.len() + 384);
    out.open(b'{').key("id").joined(&["resp_", &context.id]).key("object").raw(r#""response""#);
    out.key("created_at").number(context.created_s).key("status").str(status);
    out.key("completed_at");
    match status {
        item::COMPLETED => out.number(context.created_s),
        _ => out.raw("null"),
    };
    out.key("error");
    match error {
        Some((code, message)) => {
            out.open(b'{').key("code").str(code).key("message").str(message).close(b'}');
        }
        None => drop(out.raw("null")),
    }
    out.key("incomplete_details");
    match incomplete {
        Some(reason) => drop(out.open(b'{').key("reason").str(reason).close(b'}')),
        None => drop(out.raw("null")),
    }
    out.member("model", model).key("output").open(b'[').spliced(output).close(b']');
    out.spliced(&context.echo).key("usage");
    match used {
        Some(used) => usage::write(&mut out, used),
        None => drop(out.raw("null")),
    }
    out.close(b'}').take()
}

pub(crate) fn write(answer: &Answer<'_>, context: &AnswerContext) -> Vec<u8> {
    let (status, incomplete) = status(answer.stop);
    let output = items(answer, context);
    let state = ResponseState { status, incomplete, error: None };
    envelope(context, &answer.model, state, &output, Some(&answer.usage))
}

fn items(answer: &Answer<'_>, context: &AnswerContext) -> Vec<u8> {
    let id = &context.id;
    let mut out = Vec::new();
    let mut index = 0;
    let mut push = |item: Vec<u8>| {
        if !out.is_empty() {
            out.push(b',');
        }
        out.extend_from_slice(&item);
    };
    let inner = |text: &Text<'_>| {
        let mut inner = Vec::new();
        text.push_inner(&mut inner);
        inner
    };
    let is_text = |part: &Part<'_>| matches!(part.content, Content::Text(_) | Content::Refusal(_));
    let mut logprobs = answer.logprobs.map(inside);
    for run in answer.parts.chunk_by(|one, next| is_text(one) && is_text(next)) {
        let [first, ..] = run else { continue };
        let name = |kind: &str| format!("{kind}_{id}_{index}");
        match &first.content {
            Content::Text(_) | Content::Refusal(_) => {
                let each = run.iter().map(|part| match &part.content {
                    Content::Refusal(text) => item::refusal_part(&inner(text)),
                    Content::Text(text) => item::text_part(&inner(text), logprobs.take().unwrap_or_default()),
                    _ => Vec::new(),
                });
                let content: Vec<Vec<u8>> = each.collect();
                push(item::message(&name("msg"), item::COMPLETED, &content.join(&b',')));
            }
            Content::Thinking { text, signature } => {
                let signature = signature.as_ref().map(|signature| for_responses_caller(&signature.decode()));
                push(item::reasoning(&name("rs"), &inner(text), signature.as_deref()));
            }
            Content::Redacted(data) => {
                push(item::reasoning(&name("rs"), b"", Some(&of_redacted(&data.decode()))));
            }
            Content::Call(call) => push(call_item::whole(name, call, &context.tool_names)),
            Content::Image(Source::Base64 { media_type, data }) => {
                push(item::image(&name("ig"), item::COMPLETED, Some((media_type, data))));
            }
            content => {
                let Some(link) = as_link(content) else { continue };
                push(item::message(&name("msg"), item::COMPLETED, &item::text_part(&inner(&link), b"")));
            }
        }
        index += 1;
    }
    out
}

/// Returns the elements of a JSON list without the brackets.
pub(super) fn inside(list: &str) -> &[u8] {
    let list = list.trim();
    list.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or_default().as_bytes()
}
