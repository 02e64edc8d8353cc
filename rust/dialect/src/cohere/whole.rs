//! Rewrites a complete answer as a message.

use bytes::Bytes;
use serde::Deserialize;
use std::borrow::Cow;

use super::usage::UsageIn;
use super::{message_id, stop_reason};
use crate::answer_context::AnswerContext;
use crate::openai::error::UpstreamError;
use crate::text::{Text, Writer};
use crate::tool_names::ToolNames;
use crate::translate::NoAnswer;

#[derive(Deserialize)]
struct AnswerIn<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    message: Option<MessageIn<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Cow<'a, str>>,
    #[serde(default)]
    usage: Option<UsageIn>,
}

/// An error has a text in place of the message.
#[derive(Deserialize)]
#[serde(untagged)]
enum MessageIn<'a> {
    #[serde(borrow)]
    Answer(ContentIn<'a>),
    #[serde(borrow)]
    Error(Cow<'a, str>),
}

#[derive(Deserialize)]
struct ContentIn<'a> {
    #[serde(borrow, default)]
    content: Option<Vec<BlockIn<'a>>>,
    #[serde(borrow, default)]
    tool_plan: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<CallIn<'a>>>,
}

#[derive(Deserialize)]
pub(super) struct BlockIn<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) thinking: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
pub(super) struct CallIn<'a> {
    #[serde(borrow)]
    pub(super) id: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) function: FunctionIn<'a>,
}

#[derive(Deserialize)]
pub(super) struct FunctionIn<'a> {
    #[serde(borrow, default)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) arguments: Option<Cow<'a, str>>,
}

impl CallIn<'_> {
    /// Returns the caller's name of the tool.
    pub(super) fn name(&self, names: &ToolNames) -> Text<'static> {
        let sent = Text::from(self.function.name.clone().into_owned());
        names.own(&sent).unwrap_or(sent)
    }
}

/// Reads an answer and writes it as a message.
pub(crate) fn read(body: &[u8], model: &str, context: &AnswerContext) -> Result<Bytes, NoAnswer> {
    let answer: AnswerIn<'_> =
        serde_json::from_slice(body)
            .map_err(|error| if error.is_data() { NoAnswer::Strange } else { NoAnswer::NotJson })?;
    let content = match answer.message {
        None => return Err(NoAnswer::Without("message")),
        Some(MessageIn::Error(message)) => return Err(failed(&message, None)),
        Some(MessageIn::Answer(content)) => content,
    };
    let reason = answer.finish_reason.as_deref().unwrap_or("COMPLETE");
    let stop = stop_reason(reason).map_err(|message| failed(&message, Some(reason)))?;
    let mut out = Writer::with_capacity(body.len() + 256);
    out.open(b'{').key("id").str(&message_id(answer.id.as_deref(), &context.id));
    out.key("type").raw(r#""message""#).key("role").raw(r#""assistant""#).key("model").str(model);
    out.key("content").open(b'[');
    write_content(&mut out, &content, &context.tool_names)?;
    out.close(b']').key("stop_reason").str(stop).key("stop_sequence").raw("null");
    answer.usage.unwrap_or_default().write(&mut out);
    Ok(out.close(b'}').take().into())
}

fn failed(message: &str, code: Option<&str>) -> NoAnswer {
    let error = UpstreamError { code: code.map(str::to_owned), ..UpstreamError::of_text(message) };
    NoAnswer::ProviderError(Box::new(error))
}

fn write_content(out: &mut Writer, content: &ContentIn<'_>, names: &ToolNames) -> Result<(), NoAnswer> {
    let thinking = |out: &mut Writer, text: &str| {
        out.open(b'{').key("type").raw(r#""thinking""#).key("thinking").str(text);
        out.key("signature").raw(r#""""#).close(b'}');
    };
    for block in content.content.iter().flatten() {
        if let Some(text) = &block.thinking {
            thinking(out, text);
        } else if let Some(text) = &block.text {
            out.open(b'{').key("type").raw(r#""text""#).key("text").str(text).close(b'}');
        }
    }
    if let Some(plan) = content.tool_plan.as_deref().filter(|plan| !plan.is_empty()) {
        thinking(out, plan);
    }
    for call in content.tool_calls.iter().flatten() {
        let arguments = call.function.arguments.as_deref().filter(|text| !text.trim().is_empty()).unwrap_or("{}");
        let is_object = serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok();
        if !is_object {
            return Err(NoAnswer::Strange);
        }
        out.open(b'{').key("type").raw(r#""tool_use""#).key("id").str(&call.id);
        out.member("name", &call.name(names)).key("input").raw(arguments).close(b'}');
    }
    Ok(())
}
