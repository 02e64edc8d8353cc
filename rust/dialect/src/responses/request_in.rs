//! Reads a responses request into the model.

use std::borrow::Cow;

use fairlead_core::{Dialect, Error};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::item::generated_image;
use super::item_in::{push_assistant_part, ItemIn, PartIn};
use super::{call_history, tools_in};
use crate::model::{
    is_neutral, typed, typed_at, unsupported, wrong, Content, Effort, Format, Members, Part, Request, Role, Turn,
};
use crate::openai::members::{count, effort, number, read_shared, SchemaIn};
use crate::openai::part::read_parts;
use crate::signature::{from_responses_caller, CallerReasoning};
use crate::text::{Text, Writer};

/// Reads a body that has been scanned before.
pub(crate) fn read(body: &[u8]) -> Result<Request<'_>, Error> {
    let members: Members<'_> = serde_json::from_slice(body).map_err(|_| wrong("body", "must be a JSON object"))?;
    let mut request = Request { form: Dialect::OpenaiResponses, ..Request::default() };
    let mut others = None;
    let mut wants_logprobs = false;
    let (mut conversation, mut chosen) = (None, None);
    for (name, value) in members.0 {
        let raw = value.get();
        match &*name {
            // Codex's metadata for OpenAI, which the model does not read.
            "client_metadata" => {}
            name if read_shared(name, value, &mut request)? => {}
            "input" => conversation = Some(value),
            // Precedes all other instructions.
            "instructions" => request.system.insert(0, Part::text(typed(value, "instructions")?)),
            "tools" => tools_in::read(value, "tools", &mut request)?,
            "tool_choice" => chosen = Some(value),
            "max_output_tokens" => request.max_tokens = Some(count(value, "max_output_tokens")?),
            "top_logprobs" if !is_neutral(raw) => others = Some(number(value, "top_logprobs")?),
            "include" => wants_logprobs = includes_logprobs(value)?,
            "text" => text(value, &mut request)?,
            "reasoning" => request.reasoning = reasoning(value)?,
            "truncation" if raw == "\"disabled\"" => {}
            _ if is_neutral(raw) => {}
            _ => request.extras.push((name, raw)),
        }
    }
    // Calls and the choice refer to tools, which can come after them.
    if let Some(value) = conversation {
        input(value, &mut request)?;
    }
    if let Some(value) = chosen {
        tools_in::read_choice(value, &mut request)?;
    }
    request.logprobs = others.or(wants_logprobs.then_some("0"));
    Ok(request)
}

fn includes_logprobs(value: &RawValue) -> Result<bool, Error> {
    let wanted: Vec<Cow<'_, str>> = typed(value, "include")?;
    let mut found = false;
    for (at, name) in wanted.iter().enumerate() {
        match &**name {
            // Always included if there is any.
            "reasoning.encrypted_content" => {}
            "message.output_text.logprobs" => found = true,
            _ => return Err(unsupported(&format!("include[{at}]"))),
        }
    }
    Ok(found)
}

fn text<'a>(value: &'a RawValue, request: &mut Request<'a>) -> Result<(), Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct TextIn<'a> {
        #[serde(borrow, default)]
        format: Option<&'a RawValue>,
        #[serde(borrow, default)]
        verbosity: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct TypeIn<'a> {
        r#type: Cow<'a, str>,
    }
    let text: TextIn<'a> = typed(value, "text")?;
    request.verbosity = text.verbosity.map(RawValue::get);
    let Some(format) = text.format else { return Ok(()) };
    let kind: TypeIn<'_> = typed(format, "text.format")?;
    request.format = match &*kind.r#type {
        "text" => None,
        "json_object" => Some(Format::Json),
        "json_schema" => Some(typed::<SchemaIn<'a>>(format, "text.format")?.into_format("text.format")?),
        _ => return Err(unsupported("text.format.type")),
    };
    Ok(())
}

fn reasoning(value: &RawValue) -> Result<Option<Effort>, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ReasoningIn<'a> {
        #[serde(borrow, default)]
        effort: Option<&'a RawValue>,
        /// The format of the reasoning summary. It is passed on as it is.
        #[serde(default, rename = "summary", alias = "generate_summary")]
        _summary: Option<serde::de::IgnoredAny>,
        #[serde(default, rename = "context")]
        _context: Option<serde::de::IgnoredAny>,
    }
    let reasoning: ReasoningIn<'_> = typed(value, "reasoning")?;
    reasoning.effort.map(|value| effort(value, "reasoning.effort")).transpose()
}

fn input<'a>(value: &'a RawValue, request: &mut Request<'a>) -> Result<(), Error> {
    if let Some(text) = Text::of(value) {
        request.turns.push(Turn { role: Role::User, parts: vec![Part::text(text)] });
        return Ok(());
    }
    let list: Vec<&'a RawValue> = typed(value, "input")?;
    request.turns.reserve(list.len());
    for (at, raw) in list.into_iter().enumerate() {
        let item: ItemIn<'a> = typed_at(raw, || format!("input[{at}]"))?;
        let path = || format!("input[{at}]");
        let kind = item.r#type.as_deref().unwrap_or("message");
        match kind {
            "message" => message(&item, &path, request)?,
            "reasoning" => {
                if let Some(content) = reasoning_text(item) {
                    push_assistant_part(request, Part::new(path(), content));
                }
            }
            "image_generation_call" => {
                let image = item.result.and_then(|result| generated_image(&result, item.output_format.as_ref()));
                if let Some(image) = image {
                    push_assistant_part(request, Part::new(path(), image));
                }
            }
            _ => {
                let kind = kind.to_owned();
                if !call_history::read(&kind, item, &path, request)? {
                    return Err(unsupported(&format!("{}.type", path())));
                }
            }
        }
    }
    Ok(())
}

fn reasoning_text(item: ItemIn<'_>) -> Option<Content<'_>> {
    let summary = item.summary.unwrap_or_default();
    let text = match summary.as_slice() {
        [one] => one.text.clone(),
        several => several.iter().map(|part| part.text.decode()).collect::<Vec<_>>().join("\n\n").into(),
    };
    let id = item.id.as_ref().map(Text::decode).unwrap_or_default();
    match item.encrypted_content.map(|text| from_responses_caller(&id, &text.decode())) {
        Some(CallerReasoning::Redacted(data)) => Some(Content::Redacted(data)),
        Some(CallerReasoning::Signature(signature)) => Some(Content::Thinking { text, signature: Some(signature) }),
        None if text.is_empty() => None,
        None => Some(Content::Thinking { text, signature: None }),
    }
}

fn message<'a>(item: &ItemIn<'a>, path: &dyn Fn() -> String, request: &mut Request<'a>) -> Result<(), Error> {
    let content = item.content.ok_or_else(|| wrong(&format!("{}.content", path()), "is required"))?;
    let mut parts = Vec::new();
    read_parts::<PartIn<'a>>(content, || format!("{}.content", path()), &mut parts)?;
    match item.role.as_deref() {
        Some("user") => request.turns.push(Turn { role: Role::User, parts }),
        Some("assistant") => parts.into_iter().for_each(|part| push_assistant_part(request, part)),
        Some("system" | "developer") => request.push_system(parts),
        Some(_) => return Err(unsupported(&format!("{}.role", path()))),
        None => return Err(wrong(&format!("{}.role", path()), "is required")),
    }
    Ok(())
}

/// Returns the request members that the response repeats, for a provider of another dialect.
pub(crate) fn echo(body: &[u8]) -> Vec<u8> {
    /// The repeated members in order, with their defaults.
    const TOLD: &[(&str, &str)] = &[
        ("background", "false"),
        ("instructions", "null"),
        ("max_output_tokens", "null"),
        ("metadata", "{}"),
        ("parallel_tool_calls", "true"),
        ("previous_response_id", "null"),
        ("reasoning", r#"{"effort":null,"summary":null}"#),
        ("store", "true"),
        ("temperature", "1.0"),
        ("text", r#"{"format":{"type":"text"}}"#),
        ("tool_choice", r#""auto""#),
        ("tools", "[]"),
        ("top_p", "1.0"),
        ("truncation", r#""disabled""#),
        ("user", "null"),
    ];
    let members = serde_json::from_slice::<Members<'_>>(body).map(|members| members.0).unwrap_or_default();
    let mut out = Writer::default();
    for (name, otherwise) in TOLD {
        let member = members.iter().find(|(own, value)| own == name && value.get() != "null");
        out.key(name).raw(member.map_or(*otherwise, |(_, value)| value.get()));
    }
    if let Some((_, named)) = members.iter().find(|(name, value)| name == "conversation" && value.get() != "null") {
        out.key("conversation");
        match named.get() {
            // A response has the conversation as an object.
            id if id.starts_with('"') => out.open(b'{').key("id").raw(id).close(b'}'),
            object => out.raw(object),
        };
    }
    out.take()
}
