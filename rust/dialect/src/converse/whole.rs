//! Rewrites a complete `Converse` answer as a message.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

use super::{broken, message_id, stop_reason};
use crate::answer_context::AnswerContext;
use crate::openai::error::UpstreamError;
use crate::text::{Text, Writer};
use crate::tool_names::ToolNames;
use crate::translate::NoAnswer;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnswerIn<'a> {
    #[serde(borrow, default)]
    output: Option<OutputIn<'a>>,
    #[serde(borrow, default)]
    stop_reason: Option<Cow<'a, str>>,
    #[serde(default)]
    usage: Option<UsageIn>,
}

#[derive(Deserialize)]
struct OutputIn<'a> {
    #[serde(borrow)]
    message: MessageIn<'a>,
}

#[derive(Deserialize)]
struct MessageIn<'a> {
    #[serde(borrow)]
    content: Vec<BlockIn<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockIn<'a> {
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    tool_use: Option<ToolUseIn<'a>>,
    #[serde(borrow, default)]
    reasoning_content: Option<ReasoningIn<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolUseIn<'a> {
    #[serde(borrow)]
    tool_use_id: Text<'a>,
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReasoningIn<'a> {
    #[serde(borrow, default)]
    reasoning_text: Option<ReasoningText<'a>>,
    #[serde(borrow, default)]
    redacted_content: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct ReasoningText<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow, default)]
    signature: Option<Text<'a>>,
}

/// The counts of an answer. As in the messages dialect, the input excludes the cache's tokens.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct UsageIn {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_write_input_tokens: Option<u64>,
    cache_details: CacheDetails,
}

/// The cache writes by their lifetime.
#[derive(Debug, Default, Clone, Copy)]
struct CacheDetails {
    hour_tokens: u64,
}

impl<'de> Deserialize<'de> for CacheDetails {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        #[derive(Default)]
        struct Detail {
            ttl: Option<String>,
            input_tokens: u64,
        }
        let details: Option<Vec<Detail>> = Option::deserialize(deserializer)?;
        let hour = details.iter().flatten().filter(|detail| detail.ttl.as_deref() == Some("1h"));
        Ok(Self { hour_tokens: hour.map(|detail| detail.input_tokens).sum() })
    }
}

impl UsageIn {
    /// Writes the member `usage` of a message.
    pub(super) fn write(self, out: &mut Writer) {
        out.key("usage").open(b'{');
        for (name, count) in [
            ("input_tokens", Some(self.input_tokens.unwrap_or(0))),
            ("cache_read_input_tokens", self.cache_read_input_tokens),
            ("cache_creation_input_tokens", self.cache_write_input_tokens),
            ("output_tokens", Some(self.output_tokens.unwrap_or(0))),
        ] {
            if let Some(count) = count {
                out.key(name).number(count);
            }
        }
        let written = self.cache_write_input_tokens.unwrap_or(0);
        let hour_tokens = self.cache_details.hour_tokens.min(written);
        if hour_tokens > 0 {
            out.key("cache_creation").open(b'{').key("ephemeral_5m_input_tokens").number(written - hour_tokens);
            out.key("ephemeral_1h_input_tokens").number(hour_tokens).close(b'}');
        }
        out.close(b'}');
    }
}

/// Reads an answer and writes it as a message.
pub(crate) fn read(body: &[u8], model: &str, context: &AnswerContext) -> Result<Bytes, NoAnswer> {
    let answer: AnswerIn<'_> =
        serde_json::from_slice(body).map_err(
            |error| {
                if error.is_data() {
                    NoAnswer::Strange
                } else {
                    NoAnswer::NotJson
                }
            },
        )?;
    let Some(output) = answer.output else { return Err(NoAnswer::Without("output")) };
    let reason = answer.stop_reason.as_deref().unwrap_or("end_turn");
    if let Some(message) = broken(reason) {
        let error = UpstreamError { code: Some(reason.to_owned()), ..UpstreamError::of_text(message) };
        return Err(NoAnswer::ProviderError(Box::new(error)));
    }
    let mut out = Writer::with_capacity(body.len() + 256);
    out.open(b'{')
        .key("id")
        .str(&message_id(&context.id))
        .key("type")
        .raw(r#""message""#)
        .key("role")
        .raw(r#""assistant""#);
    out.key("model").str(model).key("content").open(b'[');
    for block in output.message.content {
        write_block(&mut out, block, &context.tool_names);
    }
    out.close(b']').key("stop_reason").str(stop_reason(reason)).key("stop_sequence").raw("null");
    answer.usage.unwrap_or_default().write(&mut out);
    Ok(out.close(b'}').take().into())
}

/// Writes a block. Blocks of other kinds, such as citations, have no form in a message.
fn write_block(out: &mut Writer, block: BlockIn<'_>, names: &ToolNames) {
    if let Some(text) = block.text {
        out.open(b'{').key("type").raw(r#""text""#).member("text", &text).close(b'}');
    } else if let Some(call) = block.tool_use {
        let name = names.own(&call.name).unwrap_or(call.name);
        out.open(b'{').key("type").raw(r#""tool_use""#).member("id", &call.tool_use_id).member("name", &name);
        out.key("input").raw(call.input.map_or("{}", RawValue::get)).close(b'}');
    } else if let Some(reasoning) = block.reasoning_content {
        if let Some(ReasoningText { text, signature }) = reasoning.reasoning_text {
            out.open(b'{').key("type").raw(r#""thinking""#).member("thinking", &text);
            out.member("signature", &signature.unwrap_or_else(|| "".into())).close(b'}');
        } else if let Some(data) = reasoning.redacted_content {
            out.open(b'{').key("type").raw(r#""redacted_thinking""#).member("data", &data).close(b'}');
        }
    }
}
