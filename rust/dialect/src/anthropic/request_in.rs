//! Reads a messages request into the model.

use std::borrow::Cow;

use fairlead_core::{Dialect, Error};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::tools_in;
use crate::caller_tools::type_of;
use crate::model::{
    is_neutral, owned, typed, typed_at, unsupported, wrong, Call, Choice, Content, Effort, Format, Members, Part,
    Request, Role, Source, Turn,
};
use crate::openai::members::{count, number};
use crate::portable_id;
use crate::text::Text;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockIn<'a> {
    r#type: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    source: Option<SourceIn<'a>>,
    #[serde(borrow, default)]
    title: Option<Text<'a>>,
    #[serde(borrow, default)]
    thinking: Option<Text<'a>>,
    #[serde(borrow, default)]
    signature: Option<Text<'a>>,
    #[serde(borrow, default)]
    data: Option<Text<'a>>,
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_use_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(default)]
    is_error: Option<bool>,
    #[serde(borrow, default)]
    cache_control: Option<&'a RawValue>,
    #[serde(borrow, default)]
    context: Option<&'a RawValue>,
    /// The sources of an earlier answer, or whether to cite sources. Dropped; see docs/explanation/dialects.md.
    #[serde(default, rename = "citations")]
    _citations: Option<serde::de::IgnoredAny>,
    /// The caller of a tool. In these blocks it is always the model.
    #[serde(default, rename = "caller")]
    _caller: Option<serde::de::IgnoredAny>,
    /// The tool that a search found.
    #[serde(borrow, default)]
    tool_name: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceIn<'a> {
    r#type: Cow<'a, str>,
    #[serde(borrow, default)]
    media_type: Option<Text<'a>>,
    #[serde(borrow, default)]
    data: Option<Text<'a>>,
    #[serde(borrow, default)]
    url: Option<Text<'a>>,
    #[serde(default, rename = "file_id")]
    _file_id: Option<serde::de::IgnoredAny>,
    #[serde(default, rename = "content")]
    _content: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageIn<'a> {
    role: Cow<'a, str>,
    #[serde(borrow)]
    content: &'a RawValue,
}

/// Reads a body that has been scanned before.
pub(crate) fn read(body: &[u8]) -> Result<Request<'_>, Error> {
    let members: Members<'_> = serde_json::from_slice(body).map_err(|_| wrong("body", "must be a JSON object"))?;
    let mut request = Request { form: Dialect::Anthropic, ..Request::default() };
    let mut budget = None;
    for (name, value) in members.0 {
        let raw = value.get();
        match &*name {
            "model" => {}
            _ if raw == "null" => {}
            "messages" => messages(value, &mut request)?,
            "system" => blocks(value, "system", &mut request.system)?,
            "stream" => request.stream = owned(value, "stream")?,
            "tools" => tools_in::read(value, &mut request)?,
            "tool_choice" => choice(value, &mut request)?,
            "max_tokens" => request.max_tokens = Some(count(value, "max_tokens")?),
            "temperature" => request.temperature = Some(number(value, "temperature")?),
            "top_p" => request.top_p = Some(number(value, "top_p")?),
            "stop_sequences" => request.stop = typed(value, "stop_sequences")?,
            "output_config" => output_config(value, &mut request)?,
            "output_format" => request.format = Some(schema(value, "output_format")?),
            "top_k" => request.top_k = Some(count(value, "top_k")?),
            "thinking" => budget = thinking(value)?,
            "metadata" => metadata(value, &mut request)?,
            "speed" if raw == "\"standard\"" => {}
            _ if is_neutral(raw) => {}
            _ => request.extras.push((name, raw)),
        }
    }
    // An effort level has precedence over a budget.
    request.reasoning = request.reasoning.or(budget);
    Ok(request)
}

fn thinking(value: &RawValue) -> Result<Option<Effort>, Error> {
    #[derive(Deserialize)]
    struct ThinkingIn<'a> {
        r#type: Cow<'a, str>,
        #[serde(default)]
        budget_tokens: Option<u64>,
    }
    let thinking: ThinkingIn<'_> = typed(value, "thinking")?;
    match (&*thinking.r#type, thinking.budget_tokens) {
        ("disabled", _) => Ok(Some(Effort::Off)),
        // The model decides the budget, in every dialect.
        ("adaptive" | "between_tools", _) => Ok(None),
        ("enabled", Some(budget)) => Ok(Some(match budget {
            0..=2048 => Effort::Low,
            2049..=12_288 => Effort::Medium,
            _ => Effort::High,
        })),
        ("enabled", None) => Err(wrong("thinking.budget_tokens", "is required")),
        _ => Err(unsupported("thinking.type")),
    }
}

fn output_config<'a>(value: &'a RawValue, request: &mut Request<'a>) -> Result<(), Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ConfigIn<'a> {
        #[serde(default)]
        effort: Option<Cow<'a, str>>,
        #[serde(borrow, default)]
        format: Option<&'a RawValue>,
    }
    let config: ConfigIn<'a> = typed(value, "output_config")?;
    if let Some(format) = config.format {
        request.format = Some(schema(format, "output_config.format")?);
    }
    request.reasoning = match config.effort.as_deref() {
        None => request.reasoning,
        Some("low") => Some(Effort::Low),
        Some("medium") => Some(Effort::Medium),
        Some("high") => Some(Effort::High),
        Some("xhigh" | "max") => Some(Effort::Most),
        Some(_) => return Err(wrong("output_config.effort", "must be low, medium, high, xhigh or max")),
    };
    Ok(())
}

fn schema<'a>(value: &'a RawValue, path: &str) -> Result<Format<'a>, Error> {
    #[derive(Deserialize)]
    struct FormatIn<'a> {
        r#type: Cow<'a, str>,
        #[serde(borrow)]
        schema: &'a RawValue,
    }
    let format: FormatIn<'a> = typed(value, path)?;
    if format.r#type != "json_schema" {
        return Err(unsupported(&format!("{path}.type")));
    }
    Ok(Format::Schema { schema: format.schema.get().into(), name: None, description: None, strict: None })
}

fn metadata<'a>(value: &'a RawValue, request: &mut Request<'a>) -> Result<(), Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct MetadataIn<'a> {
        #[serde(borrow, default)]
        user_id: Option<Text<'a>>,
    }
    let metadata: MetadataIn<'a> = typed(value, "metadata")?;
    request.user = metadata.user_id;
    Ok(())
}

fn choice<'a>(value: &'a RawValue, request: &mut Request<'a>) -> Result<(), Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ChoiceIn<'a> {
        r#type: Cow<'a, str>,
        #[serde(borrow, default)]
        name: Option<Text<'a>>,
        #[serde(default)]
        disable_parallel_tool_use: Option<bool>,
    }
    let choice: ChoiceIn<'a> = typed(value, "tool_choice")?;
    request.parallel = choice.disable_parallel_tool_use.map(|disabled| !disabled);
    request.choice = Some(match (&*choice.r#type, choice.name) {
        ("auto", _) => Choice::Auto,
        ("any", _) => Choice::Any,
        ("none", _) => Choice::Never,
        ("tool", Some(name)) => Choice::One(name),
        ("tool", None) => return Err(wrong("tool_choice.name", "is required")),
        _ => return Err(unsupported("tool_choice.type")),
    });
    Ok(())
}

fn messages<'a>(value: &'a RawValue, request: &mut Request<'a>) -> Result<(), Error> {
    let list: Vec<&'a RawValue> = typed(value, "messages")?;
    request.turns.reserve(list.len());
    for (at, raw) in list.into_iter().enumerate() {
        let message: MessageIn<'a> = typed_at(raw, || format!("messages[{at}]"))?;
        let mut parts = Vec::new();
        match Text::of(message.content) {
            Some(text) => parts.push(Part::text(text)),
            None => blocks(message.content, &format!("messages[{at}].content"), &mut parts)?,
        }
        // Nothing is left of a turn with only blocks of server tools.
        if parts.is_empty() && message.content.get() != "[]" {
            continue;
        }
        match &*message.role {
            "user" => request.turns.push(Turn { role: Role::User, parts }),
            "assistant" => request.turns.push(Turn { role: Role::Assistant, parts }),
            "system" => request.push_system(parts),
            _ => return Err(unsupported(&format!("messages[{at}].role"))),
        }
    }
    Ok(())
}

/// Returns whether a block with unknown members belongs to a tool that Anthropic runs.
fn is_hosted(raw: &RawValue) -> bool {
    type_of(raw, "").is_ok_and(|kind| tools_in::is_hosted_block(&kind))
}

/// Reads the content of a message or of a tool result. Blocks of tools that Anthropic runs are left out.
fn blocks<'a>(value: &'a RawValue, path: &str, parts: &mut Vec<Part<'a>>) -> Result<(), Error> {
    if let Some(text) = Text::of(value) {
        parts.push(Part::new(path, Content::Text(text)));
        return Ok(());
    }
    let list: Vec<&'a RawValue> = typed(value, path)?;
    for (at, raw) in list.into_iter().enumerate() {
        let path = format!("{path}[{at}]");
        let mut block: BlockIn<'a> = match typed(raw, &path) {
            Ok(block) => block,
            Err(_) if is_hosted(raw) => continue,
            Err(error) => return Err(error),
        };
        if tools_in::is_hosted_block(&block.r#type) {
            continue;
        }
        let cache = block.cache_control.take().map(RawValue::get);
        let content = content(block, &path)?;
        parts.push(Part { path, content, cache });
    }
    Ok(())
}

fn content<'a>(block: BlockIn<'a>, path: &str) -> Result<Content<'a>, Error> {
    fn given<T>(value: Option<T>, path: &str, name: &str) -> Result<T, Error> {
        value.ok_or_else(|| wrong(&format!("{path}.{name}"), "is required"))
    }
    if block.context.is_some() {
        return Err(unsupported(&format!("{path}.context")));
    }
    Ok(match &*block.r#type {
        "text" => Content::Text(given(block.text, path, "text")?),
        "image" => Content::Image(source(given(block.source, path, "source")?, path)?),
        "document" => document(given(block.source, path, "source")?, block.title, path)?,
        "thinking" => {
            let signature = block.signature.filter(|signature| !signature.is_empty());
            Content::Thinking { text: given(block.thinking, path, "thinking")?, signature }
        }
        "redacted_thinking" => Content::Redacted(given(block.data, path, "data")?),
        // All tools are offered from the start, so the name says enough.
        "tool_reference" => Content::Text(given(block.tool_name, path, "tool_name")?),
        "tool_use" => {
            let arguments = Cow::Borrowed(block.input.map_or("{}", RawValue::get));
            let (id, name) = (given(block.id, path, "id")?, given(block.name, path, "name")?);
            Content::Call(Call { id: portable_id::read(id), name, arguments })
        }
        "tool_result" => {
            let mut parts = Vec::new();
            if let Some(content) = block.content {
                blocks(content, &format!("{path}.content"), &mut parts)?;
            }
            let id = given(block.tool_use_id, path, "tool_use_id")?;
            Content::Result { id: portable_id::read(id), parts, is_error: block.is_error.unwrap_or(false) }
        }
        _ => return Err(unsupported(&format!("{path}.type"))),
    })
}

fn source<'a>(source: SourceIn<'a>, path: &str) -> Result<Source<'a>, Error> {
    match (&*source.r#type, source.media_type, source.data, source.url) {
        ("base64", Some(media_type), Some(data), _) => {
            Ok(Source::Base64 { media_type: media_type.decode(), data: data.decode() })
        }
        ("base64", None, ..) => Err(wrong(&format!("{path}.source.media_type"), "is required")),
        ("base64", ..) => Err(wrong(&format!("{path}.source.data"), "is required")),
        ("url", _, _, Some(url)) => Ok(Source::Url(url)),
        _ => Err(unsupported(&format!("{path}.source"))),
    }
}

fn document<'a>(from: SourceIn<'a>, title: Option<Text<'a>>, path: &str) -> Result<Content<'a>, Error> {
    if from.r#type != "text" {
        return Ok(Content::Document { source: source(from, path)?, title });
    }
    let text = from.data.ok_or_else(|| wrong(&format!("{path}.source.data"), "is required"))?;
    Ok(Content::Note { text, title })
}
