//! A chat completion request, read into the model.

use std::borrow::Cow;

use fairlead_core::error::Error;
use fairlead_core::json;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::{
    is_neutral, owned, typed, typed_at, unsupported, wrong, Call, Choice, Content, Effort, Members, Part, Request,
    Role, Source, Tool, Turn,
};
use crate::text::Text;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PartIn<'a> {
    r#type: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
    #[serde(borrow, default)]
    refusal: Option<Text<'a>>,
    #[serde(borrow, default)]
    image_url: Option<ImageIn<'a>>,
    #[serde(borrow, default)]
    input_audio: Option<&'a RawValue>,
    #[serde(borrow, default)]
    file: Option<FileIn<'a>>,
    #[serde(borrow, default)]
    cache_control: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ImageIn<'a> {
    #[serde(borrow)]
    url: Text<'a>,
    /// How closely to look; a hint.
    #[serde(default, rename = "detail")]
    _detail: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileIn<'a> {
    #[serde(borrow, default)]
    file_data: Option<Text<'a>>,
    #[serde(borrow, default)]
    filename: Option<Text<'a>>,
    #[serde(borrow, default)]
    file_id: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallIn<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(default)]
    r#type: Option<Cow<'a, str>>,
    /// Streams number their calls, and clients send them back with it.
    #[serde(default, rename = "index")]
    _index: Option<serde::de::IgnoredAny>,
    #[serde(borrow)]
    function: FunctionIn<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FunctionIn<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    arguments: Text<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolIn<'a> {
    r#type: Cow<'a, str>,
    #[serde(borrow, default)]
    function: Option<ToolFunction<'a>>,
    #[serde(borrow, default)]
    cache_control: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolFunction<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow, default)]
    description: Option<Text<'a>>,
    #[serde(borrow, default)]
    parameters: Option<&'a RawValue>,
    #[serde(default)]
    strict: Option<bool>,
}

#[derive(Deserialize)]
pub(super) struct ThinkingBlock<'a> {
    #[serde(borrow, default)]
    pub(super) thinking: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) signature: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) data: Option<Text<'a>>,
}

/// Reads a body that was scanned before.
pub(crate) fn read(body: &[u8]) -> Result<Request<'_>, Error> {
    let members: Members<'_> = serde_json::from_slice(body).map_err(|_| wrong("body", "must be a JSON object"))?;
    let mut request = Request::default();
    for (name, value) in members.0 {
        let raw = value.get();
        match &*name {
            "model" | "stream_options" => {}
            _ if raw == "null" => {}
            "messages" => messages(value, &mut request)?,
            "stream" => request.stream = owned(value, "stream")?,
            "tools" => request.tools = tools(value)?,
            "tool_choice" => request.choice = Some(choice(value)?),
            "parallel_tool_calls" => request.parallel = Some(owned(value, "parallel_tool_calls")?),
            "max_completion_tokens" => request.max_tokens = Some(count(value, "max_completion_tokens")?),
            "max_tokens" => {
                let most = count(value, "max_tokens")?;
                request.max_tokens.get_or_insert(most);
            }
            "temperature" => request.temperature = Some(number(value, "temperature")?),
            "top_p" => request.top_p = Some(number(value, "top_p")?),
            "stop" => request.stop = stop(value)?,
            "response_format" => request.schema = response_format(value)?,
            "reasoning_effort" => request.reasoning = Some(effort(value)?),
            "user" | "safety_identifier" => request.user = Some(typed(value, &name)?),
            "n" if raw == "1" => {}
            "modalities" if raw.split_whitespace().collect::<String>() == r#"["text"]"# => {}
            "n" | "logprobs" | "top_logprobs" | "frequency_penalty" | "presence_penalty" | "logit_bias"
                if is_neutral(raw) => {}
            _ => request.extras.push((name, raw)),
        }
    }
    Ok(request)
}

pub(crate) fn count<'a>(value: &'a RawValue, path: &str) -> Result<&'a str, Error> {
    let fine = value.get().parse::<u32>().is_ok_and(|count| count > 0);
    fine.then(|| value.get()).ok_or_else(|| wrong(path, "must be a whole number of at least 1"))
}

pub(crate) fn number<'a>(value: &'a RawValue, path: &str) -> Result<&'a str, Error> {
    let fine = value.get().starts_with(|first: char| first == '-' || first.is_ascii_digit());
    fine.then(|| value.get()).ok_or_else(|| wrong(path, "must be a number"))
}

fn effort(value: &RawValue) -> Result<Effort, Error> {
    Ok(match value.get() {
        "\"none\"" => Effort::Off,
        "\"minimal\"" => Effort::Minimal,
        "\"low\"" => Effort::Low,
        "\"medium\"" => Effort::Medium,
        "\"high\"" => Effort::High,
        "\"xhigh\"" | "\"max\"" => Effort::Most,
        _ => return Err(wrong("reasoning_effort", "must be none, minimal, low, medium, high or xhigh")),
    })
}

fn stop(value: &RawValue) -> Result<Vec<Text<'_>>, Error> {
    match Text::of(value) {
        Some(text) => Ok(vec![text]),
        None => typed(value, "stop"),
    }
}

fn response_format(value: &RawValue) -> Result<Option<&str>, Error> {
    #[derive(Deserialize)]
    struct FormatIn<'a> {
        r#type: Cow<'a, str>,
        #[serde(borrow, default)]
        json_schema: Option<SchemaIn<'a>>,
    }
    #[derive(Deserialize)]
    struct SchemaIn<'a> {
        #[serde(borrow, default)]
        schema: Option<&'a RawValue>,
    }
    let format: FormatIn<'_> = typed(value, "response_format")?;
    match (&*format.r#type, format.json_schema.and_then(|named| named.schema)) {
        ("text", _) => Ok(None),
        ("json_schema", Some(schema)) => Ok(Some(schema.get())),
        ("json_schema", None) => Err(wrong("response_format.json_schema.schema", "is required")),
        _ => Err(unsupported("response_format.type")),
    }
}

fn choice(value: &RawValue) -> Result<Choice<'_>, Error> {
    #[derive(Deserialize)]
    struct ChoiceIn<'a> {
        r#type: Cow<'a, str>,
        #[serde(borrow, default)]
        function: Option<Named<'a>>,
    }
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        name: Text<'a>,
    }
    Ok(match value.get() {
        "\"auto\"" => Choice::Auto,
        "\"required\"" => Choice::Any,
        "\"none\"" => Choice::Never,
        raw if raw.starts_with('"') => return Err(wrong("tool_choice", "must be auto, none, required or an object")),
        _ => {
            let one: ChoiceIn<'_> = typed(value, "tool_choice")?;
            match (&*one.r#type, one.function) {
                ("function", Some(function)) => Choice::One(function.name),
                ("function", None) => return Err(wrong("tool_choice.function", "is required")),
                _ => return Err(unsupported("tool_choice.type")),
            }
        }
    })
}

fn tools(value: &RawValue) -> Result<Vec<Tool<'_>>, Error> {
    let list: Vec<&RawValue> = typed(value, "tools")?;
    let each = list.into_iter().enumerate().map(|(at, raw)| {
        let path = format!("tools[{at}]");
        let tool: ToolIn<'_> = typed(raw, &path)?;
        if tool.r#type != "function" {
            return Err(unsupported(&format!("{path}.type")));
        }
        let function = tool.function.ok_or_else(|| wrong(&format!("{path}.function"), "is required"))?;
        Ok(Tool {
            name: function.name,
            description: function.description,
            schema: function.parameters.map(RawValue::get),
            strict: function.strict,
            cache: tool.cache_control.map(RawValue::get),
        })
    });
    each.collect()
}

fn messages<'a>(value: &'a RawValue, request: &mut Request<'a>) -> Result<(), Error> {
    let list: Vec<&'a RawValue> = typed(value, "messages")?;
    request.turns.reserve(list.len());
    for (at, raw) in list.into_iter().enumerate() {
        message(raw, at, request)?;
    }
    Ok(())
}

fn message<'a>(raw: &'a RawValue, at: usize, request: &mut Request<'a>) -> Result<(), Error> {
    let path = || format!("messages[{at}]");
    let members: Members<'a> = typed_at(raw, path)?;
    let mut role = "";
    let mut parts: Vec<Part<'a>> = Vec::new();
    let mut thinking: Vec<Part<'a>> = Vec::new();
    let mut reasoning = None;
    let mut calls: Vec<Part<'a>> = Vec::new();
    let mut call_id = None;
    let mut cache = None;
    for (name, value) in members.0 {
        let field = || format!("messages[{at}].{name}");
        match &*name {
            "role" => role = value.get(),
            // The name of a speaker; see the table of what is left out.
            "name" => {}
            _ if value.get() == "null" => {}
            "content" => content(value, field, &mut parts)?,
            "refusal" => parts.push(Part::new(field(), Content::Refusal(typed(value, &field())?))),
            "tool_calls" => calls = tool_calls(value, &field())?,
            "tool_call_id" => call_id = Some(typed(value, &field())?),
            "reasoning_content" | "reasoning" => reasoning = Some(typed(value, &field())?),
            "thinking_blocks" => thinking = thinking_blocks(value, &field())?,
            "cache_control" => cache = Some(value.get()),
            _ if is_neutral(value.get()) => {}
            _ => return Err(unsupported(&field())),
        }
    }
    if let (true, Some(text)) = (thinking.is_empty(), reasoning) {
        thinking.push(Part::new(path(), Content::Thinking { text, signature: None }));
    }
    if let Some(last) = parts.last_mut().filter(|_| cache.is_some()) {
        last.cache = cache;
    }
    match role {
        "\"system\"" | "\"developer\"" => request.system.append(&mut parts),
        "\"user\"" => request.turns.push(Turn { role: Role::User, parts }),
        "\"assistant\"" => {
            thinking.append(&mut parts);
            thinking.append(&mut calls);
            request.turns.push(Turn { role: Role::Assistant, parts: thinking });
        }
        "\"tool\"" => {
            let id = call_id.ok_or_else(|| wrong(&format!("{}.tool_call_id", path()), "is required"))?;
            let content = Content::Result { id, parts, is_error: false };
            request.turns.push(Turn { role: Role::User, parts: vec![Part { path: path(), content, cache }] });
        }
        "" => return Err(wrong(&format!("{}.role", path()), "is required")),
        _ => return Err(unsupported(&format!("{}.role", path()))),
    }
    Ok(())
}

fn content<'a>(value: &'a RawValue, path: impl Fn() -> String, parts: &mut Vec<Part<'a>>) -> Result<(), Error> {
    if let Some(text) = Text::of(value) {
        parts.push(Part::text(text));
        return Ok(());
    }
    let path = path();
    let list: Vec<&'a RawValue> = typed(value, &path)?;
    for (at, raw) in list.into_iter().enumerate() {
        let path = format!("{path}[{at}]");
        let part: PartIn<'a> = typed(raw, &path)?;
        let missing = |name: &str| wrong(&format!("{path}.{name}"), "is required");
        let content = match &*part.r#type {
            "text" => Content::Text(part.text.ok_or_else(|| missing("text"))?),
            "refusal" => Content::Refusal(part.refusal.ok_or_else(|| missing("refusal"))?),
            "image_url" => {
                let url = part.image_url.ok_or_else(|| missing("image_url"))?.url;
                Content::Image(source(url, &format!("{path}.image_url.url"))?)
            }
            "input_audio" if part.input_audio.is_some() => Content::Audio,
            "file" => file(part.file.ok_or_else(|| missing("file"))?, &path)?,
            _ => return Err(unsupported(&format!("{path}.type"))),
        };
        parts.push(Part { path, content, cache: part.cache_control.map(RawValue::get) });
    }
    Ok(())
}

fn file<'a>(file: FileIn<'a>, path: &str) -> Result<Content<'a>, Error> {
    if file.file_id.is_some() {
        return Err(unsupported(&format!("{path}.file.file_id")));
    }
    let data = file.file_data.ok_or_else(|| wrong(&format!("{path}.file.file_data"), "is required"))?;
    let path = format!("{path}.file.file_data");
    match source(data, &path)? {
        Source::Url(_) => Err(wrong(&path, "must be a data URL with base64")),
        source @ Source::Base64 { .. } => Ok(Content::Document { source, title: file.filename }),
    }
}

/// `data:<type>;base64,<data>`, or an address.
fn source<'a>(url: Text<'a>, path: &str) -> Result<Source<'a>, Error> {
    let text = url.decode();
    if !text.starts_with("data:") {
        return Ok(Source::Url(url));
    }
    let Some(comma) = text.find(";base64,") else {
        return Err(wrong(path, "must be an address or a data URL with base64"));
    };
    let (kind, data) = ("data:".len()..comma, comma + ";base64,".len()..text.len());
    let cut = |span: std::ops::Range<usize>| match &text {
        Cow::Borrowed(text) => Cow::Borrowed(text.get(span).unwrap_or_default()),
        Cow::Owned(text) => Cow::Owned(text.get(span).unwrap_or_default().to_owned()),
    };
    Ok(Source::Base64 { media_type: cut(kind), data: cut(data) })
}

/// The calls of a message, of a request or of an answer.
pub(super) fn tool_calls<'a>(value: &'a RawValue, path: &str) -> Result<Vec<Part<'a>>, Error> {
    let list: Vec<&'a RawValue> = typed(value, path)?;
    let each = list.into_iter().enumerate().map(|(at, raw)| {
        let path = format!("{path}[{at}]");
        let call: CallIn<'a> = typed(raw, &path)?;
        if call.r#type.is_some_and(|kind| kind != "function") {
            return Err(unsupported(&format!("{path}.type")));
        }
        let arguments = arguments(&call.function.arguments, &format!("{path}.function.arguments"))?;
        Ok(Part::new(path, Content::Call(Call { id: call.id, name: call.function.name, arguments })))
    });
    each.collect()
}

/// What a model wrote as arguments must be an object, for it becomes one.
fn arguments<'a>(text: &Text<'a>, path: &str) -> Result<Cow<'a, str>, Error> {
    let text = text.decode();
    if text.trim().is_empty() {
        return Ok(Cow::Borrowed("{}"));
    }
    match json::scan_object(text.as_bytes(), &[], json::MAX_DEPTH) {
        Ok(_) => Ok(text),
        Err(_) => Err(wrong(path, "must be the text of a JSON object")),
    }
}

/// `thinking_blocks`, as several gateways carry signed thinking through the chat form.
pub(super) fn thinking_blocks<'a>(value: &'a RawValue, path: &str) -> Result<Vec<Part<'a>>, Error> {
    let list: Vec<ThinkingBlock<'a>> = typed(value, path)?;
    let part = |block: ThinkingBlock<'a>| match block.data {
        Some(data) => Content::Redacted(data),
        None => Content::Thinking { text: block.thinking.unwrap_or_else(|| "".into()), signature: block.signature },
    };
    Ok(list.into_iter().map(|block| Part::new(path, part(block))).collect())
}
