//! Writes the model as a chat completion request.

use fairlead_core::{Error, Letters, NameRule, Prefill};
use smallvec::SmallVec;

use super::members_out::{self, schema_in_words};
use super::reasoning::NO_REASONING;
use super::reasoning_out::Reasoning;
use crate::fit::{template_words, Destination};
use crate::left_out::LeftOut;
use crate::model::{unsupported, Call, Content, Part, Request, Role, Source, Turn};
use crate::portable_id::fitted_id;
use crate::text::{Text, Writer};

/// The rule for call ids at OpenAI and Azure.
const CALL_IDS: NameRule = NameRule { most: 40, letters: Letters::Any };

/// Members of other dialects that may be dropped; see docs/explanation/dialects.md.
const DROPPED: &[&str] =
    &["cache_control", "service_tier", "context_management", "diagnostics", "safetySettings", "labels"];
/// Members that may be dropped if the server controls reasoning through the chat template, because its member has been
/// written.
const DROPPED_WITH_TEMPLATE: &[&str] = &[
    "cache_control",
    "service_tier",
    "context_management",
    "diagnostics",
    "safetySettings",
    "labels",
    "chat_template_kwargs",
];

/// Writes the body for the destination.
pub(crate) fn write(
    request: &Request<'_>,
    to: Destination<'_>,
    size_hint: usize,
    left_out: &mut LeftOut,
) -> Result<Vec<u8>, Error> {
    let Destination { model, facts, .. } = to;
    let is_templated = to.fit.is_templated;
    let reasoning = Reasoning::of(request, facts, left_out)?;
    let mut out = Writer::with_capacity(size_hint + 512);
    out.open(b'{').key("model").str(model);
    messages(&mut out, request, to)?;
    members_out::opening(&mut out, request, facts, reasoning.is_on, left_out)?;
    members_out::tools(&mut out, request, facts, left_out)?;
    members_out::response_format(&mut out, request, facts);
    members_out::outputs(&mut out, request);
    members_out::hints(&mut out, request, facts, reasoning.is_on, left_out)?;
    reasoning.write(&mut out);
    if let Some(words) = template_words(request).filter(|_| is_templated) {
        out.key("chat_template_kwargs").raw(words);
    }
    members_out::user(&mut out, request, facts, left_out);
    members_out::chat_shared(&mut out, request, facts, left_out);
    left_out.extras(request, if is_templated { DROPPED_WITH_TEMPLATE } else { DROPPED })?;
    Ok(out.close(b'}').take())
}

fn messages(out: &mut Writer, request: &Request<'_>, to: Destination<'_>) -> Result<(), Error> {
    let facts = to.facts;
    let rules = MessageRules::of(to);
    out.key("messages").open(b'[');
    let schema = schema_in_words(request, facts).map(|words| Part::text(words.into()));
    if !request.system.is_empty() || schema.is_some() {
        out.open(b'{').key("role").raw(r#""system""#).key("content");
        contents(out, request.system.iter().chain(&schema), rules)?;
        out.close(b'}');
    }
    let last = request.turns.len().saturating_sub(1);
    for (at, turn) in request.turns.iter().enumerate() {
        match turn.role {
            Role::User => user(out, turn, rules)?,
            Role::System => {
                out.open(b'{').key("role").raw(r#""system""#).key("content");
                contents(out, turn.parts.iter(), rules)?;
                out.close(b'}');
            }
            Role::Assistant => assistant(out, turn, rules, at == last && facts.prefill == Some(Prefill::Prefix))?,
        }
    }
    out.close(b']');
    Ok(())
}

/// The features that the messages of a request may use.
#[derive(Debug, Clone, Copy)]
struct MessageRules {
    ids: NameRule,
    /// Parts have prompt cache marks.
    has_marks: bool,
    /// A message with tool calls includes the reasoning before them.
    has_reasoning: bool,
    /// Refusals are parts of the type `refusal`. Otherwise they are text.
    has_refusals: bool,
}

impl MessageRules {
    fn of(to: Destination<'_>) -> Self {
        Self {
            ids: to.facts.call_ids.unwrap_or(CALL_IDS),
            has_marks: members_out::has_marks(to.facts),
            has_reasoning: to.fit.replays_reasoning,
            has_refusals: !to.facts.refused_in_turns.iter().any(|name| name == "refusal"),
        }
    }
}

/// Writes a user turn. Each tool result is a separate message, and the user's other content follows them.
fn user(out: &mut Writer, turn: &Turn<'_>, rules: MessageRules) -> Result<(), Error> {
    // A tool message accepts only text, so the other content of a result follows in a user message.
    let mut shown: Vec<(&Text<'_>, &Part<'_>)> = Vec::new();
    for part in &turn.parts {
        let Content::Result { id, parts, is_error } = &part.content else { continue };
        out.open(b'{').key("role").raw(r#""tool""#).member("tool_call_id", &fitted_id(id, rules.ids)).key("content");
        result(out, parts, *is_error, rules, part.cache)?;
        out.close(b'}');
        shown.extend(parts.iter().filter(|part| !is_text(part)).map(|part| (id, part)));
    }
    let own_parts = || turn.parts.iter().filter(|part| !matches!(part.content, Content::Result { .. }));
    if shown.is_empty() && own_parts().next().is_none() && !turn.parts.is_empty() {
        return Ok(());
    }
    out.open(b'{').key("role").raw(r#""user""#).key("content");
    if shown.is_empty() {
        contents(out, own_parts(), rules)?;
        out.close(b'}');
        return Ok(());
    }
    out.open(b'[');
    for (id, part) in shown {
        out.open(b'{').key("type").raw(r#""text""#).key("text");
        out.joined(&["Part of the result of tool call ", &id.decode(), ":"]).close(b'}');
        write_part(out, part, rules)?;
    }
    own_parts().try_for_each(|part| write_part(out, part, rules))?;
    out.close(b']').close(b'}');
    Ok(())
}

fn is_text(part: &Part<'_>) -> bool {
    matches!(part.content, Content::Text(_) | Content::Note { .. })
}

/// Writes the texts of a tool result. A mark of the whole result is written at its last text.
fn result(
    out: &mut Writer,
    parts: &[Part<'_>],
    is_error: bool,
    rules: MessageRules,
    mark: Option<&str>,
) -> Result<(), Error> {
    let prefix = if is_error { "Error: " } else { "" };
    let texts: SmallVec<[&Part<'_>; 4]> = parts.iter().filter(|part| is_text(part)).collect();
    let Some((last, before)) = texts.split_last() else {
        out.str(prefix.trim_end());
        return Ok(());
    };
    let mark = last.cache.or(mark).filter(|_| rules.has_marks);
    if let (Content::Text(text), true, None) = (&last.content, before.is_empty(), mark) {
        if is_error {
            out.joined(&[prefix, &text.decode()]);
        } else {
            out.text(text);
        }
        return Ok(());
    }
    out.open(b'[');
    if is_error {
        out.open(b'{').key("type").raw(r#""text""#).key("text").str(prefix).close(b'}');
    }
    before.iter().try_for_each(|part| write_part(out, part, rules))?;
    write_marked(out, last, rules, mark)?;
    out.close(b']');
    Ok(())
}

fn assistant(out: &mut Writer, turn: &Turn<'_>, rules: MessageRules, is_prefix: bool) -> Result<(), Error> {
    out.open(b'{').key("role").raw(r#""assistant""#);
    let of_text = |part: &&Part<'_>| matches!(part.content, Content::Text(_) | Content::Refusal(_));
    let calls = || {
        turn.parts.iter().filter_map(|part| match &part.content {
            Content::Call(call) => Some(call),
            _ => None,
        })
    };
    // Most providers of this dialect do not accept the reasoning of earlier turns.
    let can_be_written = |part: &&Part<'_>| {
        of_text(part) || matches!(part.content, Content::Call(_) | Content::Thinking { .. } | Content::Redacted(_))
    };
    if let Some(part) = turn.parts.iter().find(|part| !can_be_written(part)) {
        return Err(unsupported(&part.path));
    }
    if turn.parts.iter().any(|part| of_text(&part)) {
        out.key("content");
        contents(out, turn.parts.iter().filter(of_text), rules)?;
    } else if calls().next().is_some() {
        out.key("content").raw("null");
    } else {
        out.key("content").raw(r#""""#);
    }
    if rules.has_reasoning && calls().next().is_some() {
        out.key("reasoning_content").str(&reasoning_of(turn));
    }
    write_calls(out, calls(), rules.ids);
    if is_prefix && calls().next().is_none() {
        out.key("prefix").raw("true");
    }
    out.close(b'}');
    Ok(())
}

/// Returns the caller's reasoning, or a blank: some of these providers treat an empty text as missing.
fn reasoning_of(turn: &Turn<'_>) -> String {
    let texts = turn.parts.iter().filter_map(|part| match &part.content {
        Content::Thinking { text, .. } => Some(text.decode()),
        _ => None,
    });
    let reasoning = texts.collect::<Vec<_>>().join("\n");
    if reasoning.is_empty() {
        NO_REASONING.to_owned()
    } else {
        reasoning
    }
}

/// Writes the `tool_calls` member, if there are any calls, with ids that the rule allows.
fn write_calls<'a>(out: &mut Writer, calls: impl Iterator<Item = &'a Call<'a>>, ids: NameRule) {
    let mut calls = calls.peekable();
    if calls.peek().is_none() {
        return;
    }
    out.key("tool_calls").open(b'[');
    calls.for_each(|call| write_call(out, call, ids));
    out.close(b']');
}

/// Writes one call to a function.
pub(super) fn write_call(out: &mut Writer, call: &Call<'_>, ids: NameRule) {
    out.open(b'{').member("id", &fitted_id(&call.id, ids)).key("type").raw(r#""function""#).key("function").open(b'{');
    out.member("name", &call.name).key("arguments").str(&call.arguments).close(b'}').close(b'}');
}

/// Writes a single text as a string, anything else as a list.
fn contents<'a>(out: &mut Writer, parts: impl Iterator<Item = &'a Part<'a>>, rules: MessageRules) -> Result<(), Error> {
    let mut parts = parts.peekable();
    let Some(first) = parts.next() else {
        out.raw(r#""""#);
        return Ok(());
    };
    let is_marked = rules.has_marks && first.cache.is_some();
    if let (Content::Text(text), None, false) = (&first.content, parts.peek(), is_marked) {
        out.text(text);
        return Ok(());
    }
    out.open(b'[');
    write_part(out, first, rules)?;
    parts.try_for_each(|part| write_part(out, part, rules))?;
    out.close(b']');
    Ok(())
}

fn write_part(out: &mut Writer, part: &Part<'_>, rules: MessageRules) -> Result<(), Error> {
    write_marked(out, part, rules, part.cache)
}

fn write_marked(out: &mut Writer, part: &Part<'_>, rules: MessageRules, mark: Option<&str>) -> Result<(), Error> {
    let kind = |out: &mut Writer, name: &str| {
        out.open(b'{').key("type").str(name);
    };
    match &part.content {
        Content::Text(text) => {
            kind(out, "text");
            out.member("text", text);
        }
        Content::Refusal(text) if !rules.has_refusals => {
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
    if let Some(mark) = mark.filter(|_| rules.has_marks) {
        out.key("cache_control").raw(mark);
    }
    out.close(b'}');
    Ok(())
}

/// Returns the name of an audio format. The OpenAI dialects support two.
pub(crate) fn audio_format(media_type: &str) -> Option<&'static str> {
    match media_type {
        "audio/wav" | "audio/x-wav" | "audio/wave" => Some("wav"),
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        _ => None,
    }
}

/// Returns whether a media type is video or audio, which only Gemini accepts as a document.
pub(crate) fn is_film(media_type: &str) -> bool {
    media_type.starts_with("video/") || media_type.starts_with("audio/")
}
