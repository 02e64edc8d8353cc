//! Reads and writes a complete chat completion.

use std::borrow::Cow;

use fairlead_core::{Error, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::message::{CallIn, ContentIn, First};
use super::reasoning_in::thinking_blocks;
use super::request_out::write_call;
use fairlead_core::{Letters, NameRule};

/// A caller receives ids unchanged.
const ANY_IDS: NameRule = NameRule { most: usize::MAX, letters: Letters::Any };
use super::usage;
use crate::answer_context::AnswerContext;
use crate::call_ids::CallIds;
use crate::ending::{self, Ending};
use crate::media::{self, chat_images, ChatAudio};
use crate::model::{typed, wrong, Answer, Call, Content, Part, Source, Stop};
use crate::text::{if_text, Text, Writer};
use crate::text_argument::text_of;
use crate::tool_names::ToolNames;

#[derive(Deserialize)]
struct CompletionIn<'a> {
    #[serde(borrow, default, deserialize_with = "if_text")]
    id: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    model: Option<Text<'a>>,
    #[serde(borrow)]
    choices: First<ChoiceIn<'a>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    service_tier: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ChoiceIn<'a> {
    #[serde(borrow, default)]
    message: Option<MessageIn<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    finish_reason: Option<Text<'a>>,
    #[serde(borrow, default)]
    logprobs: Option<LogprobsIn<'a>>,
}

#[derive(Deserialize)]
pub(super) struct LogprobsIn<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

impl<'a> LogprobsIn<'a> {
    /// Returns the list, if there is one.
    pub(super) fn list(self) -> Option<&'a str> {
        self.content.map(RawValue::get).filter(|list| list.starts_with('[') && *list != "[]")
    }
}

#[derive(Default, Deserialize)]
struct MessageIn<'a> {
    #[serde(borrow, default)]
    content: Option<ContentIn<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    refusal: Option<Text<'a>>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<CallIn<'a>>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    reasoning_content: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "if_text")]
    reasoning: Option<Text<'a>>,
    #[serde(borrow, default)]
    thinking_blocks: Option<&'a RawValue>,
    #[serde(borrow, default)]
    images: Option<&'a RawValue>,
    #[serde(borrow, default)]
    audio: Option<&'a RawValue>,
}

/// Reads a body that has been scanned before.
pub(crate) fn read<'a>(body: &'a [u8]) -> Result<Answer<'a>, Error> {
    let raw: &RawValue = serde_json::from_slice(body).map_err(|_| wrong("body", "must be JSON"))?;
    let completion: CompletionIn<'_> = typed(raw, "body")?;
    let id = completion.id.unwrap_or_else(|| "".into());
    let choice = completion.choices.0.ok_or_else(|| wrong("choices", "must not be empty"))?;
    let logprobs = choice.logprobs.and_then(LogprobsIn::list);
    let message = choice.message.unwrap_or_default();
    let mut parts = match message.thinking_blocks {
        Some(blocks) => thinking_blocks(blocks, "thinking_blocks")?,
        None => Vec::new(),
    };
    let reasoning = message.reasoning_content.or(message.reasoning).filter(|text| !text.is_empty());
    if let (true, Some(text)) = (parts.is_empty(), reasoning) {
        parts.push(Part::new("reasoning_content", Content::Thinking { text, signature: None }));
    }
    let has_reasoning = !parts.is_empty();
    let mut push = |content: Content<'a>| match &content {
        Content::Text(text) | Content::Refusal(text) if text.is_empty() => {}
        // Some servers repeat the reasoning in both members.
        Content::Thinking { .. } if has_reasoning => {}
        _ => parts.push(Part::new("content", content)),
    };
    if let Some(content) = message.content {
        content.for_each(&mut push);
    }
    message.refusal.map(Content::Refusal).into_iter().for_each(&mut push);
    message.images.map(chat_images).into_iter().flatten().for_each(&mut push);
    let audio = message.audio.and_then(|audio| serde_json::from_str::<ChatAudio<'_>>(audio.get()).ok());
    audio.into_iter().flat_map(ChatAudio::contents).for_each(push);
    let is_refused = parts.iter().any(|part| matches!(part.content, Content::Refusal(_)));
    let calls = calls(message.tool_calls.unwrap_or_default(), &id)?;
    let reason = choice.finish_reason.as_ref().map(Text::decode);
    let stop = if is_refused { Stop::Refused } else { stop(reason.as_deref(), !calls.is_empty()) };
    parts.extend(calls);
    let service = usage::service(completion.service_tier.map(|tier| tier.get().as_bytes()));
    let usage = completion.usage.and_then(|object| usage::read(object.get().as_bytes())).unwrap_or_default();
    Ok(Answer {
        id,
        model: completion.model.unwrap_or_else(|| "".into()),
        parts,
        stop,
        usage: Usage { service, ..usage },
        logprobs,
    })
}

/// Reads the calls of an answer. Calls without an id get one derived from `id`, the answer's id.
fn calls<'a>(list: Vec<CallIn<'a>>, id: &Text<'_>) -> Result<Vec<Part<'a>>, Error> {
    let mut ids = CallIds::of(&id.decode());
    let each = list.into_iter().enumerate().map(|(at, call)| {
        let path = format!("tool_calls[{at}]");
        let function = call.function.ok_or_else(|| wrong(&path, "has no function"))?;
        let arguments = function.arguments().map(|text| text.decode()).unwrap_or_default();
        let name = function.name.ok_or_else(|| wrong(&path, "has no name"))?;
        let id = ids.of_call(call.id, &name);
        Ok(Part::new(path, Content::Call(Call { id, name, arguments })))
    });
    each.collect()
}

/// Maps the finish reason. Some providers send `stop` after calls.
pub(super) fn stop(reason: Option<&str>, has_calls: bool) -> Stop {
    match reason.map(ending::of_chat) {
        Some(Ending::Stop(stop @ (Stop::Length | Stop::Refused | Stop::Tools))) => stop,
        _ if has_calls => Stop::Tools,
        _ => Stop::End,
    }
}

pub(super) fn finish_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::End | Stop::Sequence => "stop",
        Stop::Length => "length",
        Stop::Tools => "tool_calls",
        Stop::Refused => "content_filter",
    }
}

/// Writes an answer. The context has its time, because some dialects have none.
pub(crate) fn write(answer: &Answer<'_>, context: &AnswerContext) -> Vec<u8> {
    let mut out = Writer::with_capacity(1024);
    out.open(b'{').member("id", &answer.id).key("object").raw(r#""chat.completion""#);
    out.key("created").number(context.created_s).member("model", &answer.model).key("choices").open(b'[');
    out.open(b'{').key("index").number(0).key("message").open(b'{').key("role").raw(r#""assistant""#);
    joined(&mut out, answer, "content", |content| match content {
        Content::Text(text) => Some(text),
        _ => None,
    });
    joined(&mut out, answer, "refusal", |content| match content {
        Content::Refusal(text) => Some(text),
        _ => None,
    });
    thinking(&mut out, answer);
    images(&mut out, answer);
    audio(&mut out, answer, context.created_s);
    write_answer_calls(&mut out, answer, &context.tool_names);
    out.close(b'}').key("logprobs");
    match answer.logprobs {
        Some(list) => drop(out.open(b'{').key("content").raw(list).key("refusal").raw("null").close(b'}')),
        None => drop(out.raw("null")),
    }
    out.key("finish_reason").str(finish_reason(answer.stop));
    out.close(b'}').close(b']').key("usage");
    write_usage(&mut out, &answer.usage);
    out.close(b'}').take()
}

/// Writes the calls of an answer, those to custom tools with their text.
fn write_answer_calls(out: &mut Writer, answer: &Answer<'_>, names: &ToolNames) {
    let calls = answer.parts.iter().filter_map(|part| match &part.content {
        Content::Call(call) => Some(call),
        _ => None,
    });
    let mut calls = calls.peekable();
    if calls.peek().is_none() {
        return;
    }
    out.key("tool_calls").open(b'[');
    for call in calls {
        match names.caller_tool(&call.name) {
            None => write_call(out, call, ANY_IDS),
            Some(tool) => {
                out.open(b'{').member("id", &call.id).key("type").raw(r#""custom""#).key("custom").open(b'{');
                out.key("name").str(&tool.own).key("input").inner(&text_of(&call.arguments)).close(b'}').close(b'}');
            }
        }
    }
    out.close(b']');
}

/// Writes `images` as other gateways return them.
fn images(out: &mut Writer, answer: &Answer<'_>) {
    let images = answer.parts.iter().filter_map(|part| match &part.content {
        Content::Image(source) => Some(source),
        _ => None,
    });
    let mut images = images.enumerate().peekable();
    if images.peek().is_none() {
        return;
    }
    out.key("images").open(b'[');
    images.for_each(|(index, source)| write_image(out, source, index as u64));
    out.close(b']');
}

pub(super) fn write_image(out: &mut Writer, source: &Source<'_>, index: u64) {
    out.open(b'{').key("type").raw(r#""image_url""#).key("image_url").open(b'{').key("url");
    media::write_url(out, source);
    out.close(b'}').key("index").number(index).close(b'}');
}

/// Writes `audio`. The provider does not store it, so it expires at once.
fn audio(out: &mut Writer, answer: &Answer<'_>, created_s: u64) {
    let pieces = answer.parts.iter().filter_map(|part| match &part.content {
        Content::Audio { data, .. } => Some(&**data),
        _ => None,
    });
    let pieces: Vec<&str> = pieces.collect();
    if !pieces.is_empty() {
        out.key("audio").open(b'{').key("id").joined(&["audio_", &answer.id.decode()]);
        out.key("data").str(&media::joined(&pieces)).key("expires_at").number(created_s);
        out.key("transcript").raw(r#""""#).close(b'}');
    }
}

/// Joins all texts of one kind into one string, or null if there are none.
fn joined<'a>(
    out: &mut Writer,
    answer: &'a Answer<'a>,
    name: &str,
    pick: impl Fn(&'a Content<'a>) -> Option<&'a Text<'a>>,
) {
    out.key(name);
    let texts: Vec<&Text<'_>> = answer.parts.iter().filter_map(|part| pick(&part.content)).collect();
    match &*texts {
        [] => drop(out.raw("null")),
        [text] => drop(out.text(text)),
        several => {
            let several: Vec<Cow<'_, str>> = several.iter().map(|text| text.decode()).collect();
            let several: Vec<&str> = several.iter().map(AsRef::as_ref).collect();
            out.joined(&several);
        }
    }
}

fn thinking(out: &mut Writer, answer: &Answer<'_>) {
    let is_thinking = |part: &&Part<'_>| matches!(part.content, Content::Thinking { .. } | Content::Redacted(_));
    if !answer.parts.iter().any(|part| is_thinking(&part)) {
        return;
    }
    joined(out, answer, "reasoning_content", |content| match content {
        Content::Thinking { text, .. } => Some(text),
        _ => None,
    });
    out.key("thinking_blocks").open(b'[');
    for part in answer.parts.iter().filter(is_thinking) {
        match &part.content {
            Content::Thinking { text, signature } => {
                out.open(b'{').key("type").raw(r#""thinking""#).member("thinking", text);
                if let Some(signature) = signature {
                    out.member("signature", signature);
                }
                out.close(b'}');
            }
            Content::Redacted(data) => {
                out.open(b'{').key("type").raw(r#""redacted_thinking""#).member("data", data).close(b'}');
            }
            _ => {}
        }
    }
    out.close(b']');
}

pub(super) fn write_usage(out: &mut Writer, usage: &Usage) {
    out.open(b'{').key("prompt_tokens").number(usage.input).key("completion_tokens").number(usage.output);
    out.key("total_tokens").number(usage.input + usage.output);
    out.key("prompt_tokens_details").open(b'{').key("cached_tokens").number(usage.cached);
    if usage.cache_write > 0 {
        out.key("cache_write_tokens").number(usage.cache_write);
    }
    out.close(b'}').key("completion_tokens_details").open(b'{');
    out.key("reasoning_tokens").number(usage.reasoning).close(b'}').close(b'}');
}
