//! The model, written as a chat completion request.

use fairlead_core::Error;

use super::strict::is_strict;
use crate::fit::template_words;
use crate::model::{unsupported, Call, Choice, Content, Effort, Format, Member, Part, Request, Role, Source, Turn};
use crate::portable_id::bounded;
use crate::text::{Text, Writer};

/// Characters of `user` that OpenAI takes; others take more.
pub(crate) const USER_MOST: usize = 64;
/// Characters of a call's id that OpenAI and Azure take in chat.
const CALL_ID_MOST: usize = 40;

/// Members of other dialects that may be left out; see docs/explanation/dialects.md.
const DROPPED: &[&str] =
    &["cache_control", "service_tier", "context_management", "diagnostics", "safetySettings", "labels"];

/// The body for a provider that knows the model as `model`. `is_templated`: its server switches thinking in the chat
/// template.
pub(crate) fn write_for(
    request: &Request<'_>,
    model: &str,
    size_hint: usize,
    is_templated: bool,
) -> Result<Vec<u8>, Error> {
    let mut out = Writer::with_capacity(size_hint + 512);
    out.open(b'{').key("model").str(model);
    messages(&mut out, request)?;
    if request.stream {
        out.key("stream").raw("true").key("stream_options").raw(r#"{"include_usage":true}"#);
    }
    if let Some(most) = request.max_tokens {
        out.key("max_completion_tokens").raw(most);
    }
    for (name, number) in [("temperature", request.temperature), ("top_p", request.top_p)] {
        if let Some(number) = number {
            out.key(name).raw(number);
        }
    }
    if !request.stop.is_empty() {
        out.key("stop").open(b'[');
        for text in &request.stop {
            out.text(text);
        }
        out.close(b']');
    }
    tools(&mut out, request);
    response_format(&mut out, request);
    sampling(&mut out, request);
    if let Some(effort) = request.reasoning.and_then(effort) {
        out.key("reasoning_effort").str(effort);
    }
    if let Some(words) = template_words(request).filter(|_| is_templated) {
        out.key("chat_template_kwargs").raw(words);
    }
    if let Some(user) = &request.user {
        out.member("user", &bounded(user, USER_MOST));
    }
    for (name, value) in &request.shared {
        out.key(name).raw(value);
    }
    request.refuse(&[(Member::TopK, request.top_k.is_some())])?;
    let is_said = |name: &str| DROPPED.contains(&name) || (is_templated && name == "chat_template_kwargs");
    if let Some((name, _)) = request.extras.iter().find(|(name, _)| !is_said(name)) {
        return Err(unsupported(name));
    }
    Ok(out.close(b'}').take())
}

fn messages(out: &mut Writer, request: &Request<'_>) -> Result<(), Error> {
    out.key("messages").open(b'[');
    if !request.system.is_empty() {
        out.open(b'{').key("role").raw(r#""system""#).key("content");
        contents(out, request.system.iter())?;
        out.close(b'}');
    }
    for turn in &request.turns {
        match turn.role {
            Role::User => user(out, turn)?,
            Role::Assistant => assistant(out, turn)?,
        }
    }
    out.close(b']');
    Ok(())
}

fn response_format(out: &mut Writer, request: &Request<'_>) {
    match &request.format {
        None => {}
        Some(Format::Json) => drop(out.key("response_format").raw(r#"{"type":"json_object"}"#)),
        Some(Format::Schema { schema, name, description, strict }) => {
            out.key("response_format").open(b'{').key("type").raw(r#""json_schema""#).key("json_schema").open(b'{');
            write_schema(out, schema, name.as_ref(), description.as_ref(), *strict);
            out.close(b'}').close(b'}');
        }
    }
}

fn sampling(out: &mut Writer, request: &Request<'_>) {
    for (name, value) in [
        ("seed", request.seed),
        ("frequency_penalty", request.frequency_penalty),
        ("presence_penalty", request.presence_penalty),
        ("verbosity", request.verbosity),
    ] {
        if let Some(value) = value {
            out.key(name).raw(value);
        }
    }
    if let Some(others) = request.logprobs {
        out.key("logprobs").raw("true");
        if others != "0" {
            out.key("top_logprobs").raw(others);
        }
    }
}

/// The members of a named schema. If the caller did not say how strict, it is as strict as the schema allows.
pub(crate) fn write_schema(
    out: &mut Writer,
    schema: &str,
    name: Option<&Text<'_>>,
    description: Option<&Text<'_>>,
    strict: Option<bool>,
) {
    out.key("name");
    match name {
        Some(name) => out.text(name),
        None => out.raw(r#""answer""#),
    };
    if let Some(description) = description {
        out.member("description", description);
    }
    out.key("schema").raw(schema).key("strict").flag(strict.unwrap_or_else(|| is_strict(schema)));
}

/// Thinking that is off is left out: a model that does not think takes no word about it.
pub(crate) fn effort(effort: Effort) -> Option<&'static str> {
    Some(match effort {
        Effort::Off => return None,
        Effort::Minimal => "minimal",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::Most => "xhigh",
    })
}

fn tools(out: &mut Writer, request: &Request<'_>) {
    if !request.tools.is_empty() {
        out.key("tools").open(b'[');
        for tool in &request.tools {
            out.open(b'{').key("type").raw(r#""function""#).key("function").open(b'{').member("name", &tool.name);
            if let Some(description) = &tool.description {
                out.member("description", description);
            }
            if let Some(schema) = &tool.schema {
                out.key("parameters").raw(schema);
            }
            if let Some(strict) = tool.strict {
                out.key("strict").raw(if strict { "true" } else { "false" });
            }
            out.close(b'}').close(b'}');
        }
        out.close(b']');
    }
    match &request.choice {
        None => {}
        Some(Choice::Auto) => drop(out.key("tool_choice").raw(r#""auto""#)),
        Some(Choice::Any) => drop(out.key("tool_choice").raw(r#""required""#)),
        Some(Choice::Never) => drop(out.key("tool_choice").raw(r#""none""#)),
        Some(Choice::One(name)) => {
            out.key("tool_choice").open(b'{').key("type").raw(r#""function""#).key("function").open(b'{');
            out.member("name", name).close(b'}').close(b'}');
        }
    }
    if let Some(parallel) = request.parallel {
        out.key("parallel_tool_calls").raw(if parallel { "true" } else { "false" });
    }
}

/// Results of tools are messages of their own and come first; what the user says beside them follows.
fn user(out: &mut Writer, turn: &Turn<'_>) -> Result<(), Error> {
    // A tool message takes text alone, so what else a result holds follows as the user's.
    let mut shown: Vec<(&Text<'_>, &Part<'_>)> = Vec::new();
    for part in &turn.parts {
        let Content::Result { id, parts, is_error } = &part.content else { continue };
        out.open(b'{').key("role").raw(r#""tool""#).member("tool_call_id", &bounded(id, CALL_ID_MOST)).key("content");
        result(out, parts, *is_error)?;
        out.close(b'}');
        shown.extend(parts.iter().filter(|part| !is_text(part)).map(|part| (id, part)));
    }
    let own_parts = || turn.parts.iter().filter(|part| !matches!(part.content, Content::Result { .. }));
    if shown.is_empty() && own_parts().next().is_none() && !turn.parts.is_empty() {
        return Ok(());
    }
    out.open(b'{').key("role").raw(r#""user""#).key("content");
    if shown.is_empty() {
        contents(out, own_parts())?;
        out.close(b'}');
        return Ok(());
    }
    out.open(b'[');
    for (id, part) in shown {
        out.open(b'{').key("type").raw(r#""text""#).key("text");
        out.joined(&["Part of the result of tool call ", &id.decode(), ":"]).close(b'}');
        write_part(out, part)?;
    }
    own_parts().try_for_each(|part| write_part(out, part))?;
    out.close(b']').close(b'}');
    Ok(())
}

fn is_text(part: &Part<'_>) -> bool {
    matches!(part.content, Content::Text(_) | Content::Note { .. })
}

fn result(out: &mut Writer, parts: &[Part<'_>], is_error: bool) -> Result<(), Error> {
    let mark = if is_error { "Error: " } else { "" };
    let mut texts = parts.iter().filter(|part| is_text(part));
    match (texts.next(), texts.next()) {
        (None, _) => drop(out.str(mark.trim_end())),
        (Some(Part { content: Content::Text(text), .. }), None) if is_error => {
            out.joined(&[mark, &text.decode()]);
        }
        (Some(Part { content: Content::Text(text), .. }), None) => drop(out.text(text)),
        _ => {
            out.open(b'[');
            if is_error {
                out.open(b'{').key("type").raw(r#""text""#).key("text").str(mark).close(b'}');
            }
            parts.iter().filter(|part| is_text(part)).try_for_each(|part| write_part(out, part))?;
            out.close(b']');
        }
    }
    Ok(())
}

fn assistant(out: &mut Writer, turn: &Turn<'_>) -> Result<(), Error> {
    out.open(b'{').key("role").raw(r#""assistant""#);
    let of_text = |part: &&Part<'_>| matches!(part.content, Content::Text(_) | Content::Refusal(_));
    let calls = || {
        turn.parts.iter().filter_map(|part| match &part.content {
            Content::Call(call) => Some(call),
            _ => None,
        })
    };
    // Thinking of earlier turns is nothing that this dialect takes back.
    let can_be_written = |part: &&Part<'_>| {
        of_text(part) || matches!(part.content, Content::Call(_) | Content::Thinking { .. } | Content::Redacted(_))
    };
    if let Some(part) = turn.parts.iter().find(|part| !can_be_written(part)) {
        return Err(unsupported(&part.path));
    }
    if turn.parts.iter().any(|part| of_text(&part)) {
        out.key("content");
        contents(out, turn.parts.iter().filter(of_text))?;
    } else if calls().next().is_some() {
        out.key("content").raw("null");
    } else {
        out.key("content").raw(r#""""#);
    }
    write_calls(out, calls(), CALL_ID_MOST);
    out.close(b'}');
    Ok(())
}

/// The `tool_calls` member, if there are any; ids have at most `most` characters.
pub(super) fn write_calls<'a>(out: &mut Writer, calls: impl Iterator<Item = &'a Call<'a>>, most: usize) {
    let mut calls = calls.peekable();
    if calls.peek().is_none() {
        return;
    }
    out.key("tool_calls").open(b'[');
    for call in calls {
        out.open(b'{')
            .member("id", &bounded(&call.id, most))
            .key("type")
            .raw(r#""function""#)
            .key("function")
            .open(b'{');
        out.member("name", &call.name).key("arguments").str(&call.arguments).close(b'}').close(b'}');
    }
    out.close(b']');
}

/// One text is a string, anything else a list.
fn contents<'a>(out: &mut Writer, parts: impl Iterator<Item = &'a Part<'a>>) -> Result<(), Error> {
    let mut parts = parts.peekable();
    let Some(first) = parts.next() else {
        out.raw(r#""""#);
        return Ok(());
    };
    if let (Content::Text(text), None) = (&first.content, parts.peek()) {
        out.text(text);
        return Ok(());
    }
    out.open(b'[');
    write_part(out, first)?;
    parts.try_for_each(|part| write_part(out, part))?;
    out.close(b']');
    Ok(())
}

fn write_part(out: &mut Writer, part: &Part<'_>) -> Result<(), Error> {
    let kind = |out: &mut Writer, name: &str| {
        out.open(b'{').key("type").str(name);
    };
    match &part.content {
        Content::Text(text) => {
            kind(out, "text");
            out.member("text", text);
        }
        Content::Refusal(text) => {
            kind(out, "refusal");
            out.member("refusal", text);
        }
        Content::Note { text, title } => {
            kind(out, "text");
            match title {
                Some(title) => drop(out.key("text").joined(&[&title.decode(), "\n\n", &text.decode()])),
                None => drop(out.member("text", text)),
            }
        }
        Content::Image(source) => {
            kind(out, "image_url");
            out.key("image_url").open(b'{').key("url");
            match source {
                Source::Url(url) => drop(out.text(url)),
                Source::Base64 { media_type, data } => drop(out.joined(&["data:", media_type, ";base64,", data])),
            }
            out.close(b'}');
        }
        Content::Audio { media_type, data } => {
            let format = audio_format(media_type).ok_or_else(|| unsupported(&part.path))?;
            kind(out, "input_audio");
            out.key("input_audio").open(b'{').key("data").str(data).key("format").str(format).close(b'}');
        }
        Content::Document { source: Source::Base64 { media_type, .. }, .. } if is_film(media_type) => {
            return Err(unsupported(&part.path));
        }
        Content::Document { source: Source::Base64 { media_type, data }, title } => {
            kind(out, "file");
            let title = title.clone().unwrap_or_else(|| "document.pdf".into());
            out.key("file").open(b'{').member("filename", &title).key("file_data");
            out.joined(&["data:", media_type, ";base64,", data]).close(b'}');
        }
        _ => return Err(unsupported(&part.path)),
    }
    out.close(b'}');
    Ok(())
}

/// The name of an audio format; OpenAI's forms take two.
pub(crate) fn audio_format(media_type: &str) -> Option<&'static str> {
    match media_type {
        "audio/wav" | "audio/x-wav" | "audio/wave" => Some("wav"),
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        _ => None,
    }
}

/// Whether a medium is film or sound, which no form but Gemini's takes as a document.
pub(crate) fn is_film(media_type: &str) -> bool {
    media_type.starts_with("video/") || media_type.starts_with("audio/")
}
