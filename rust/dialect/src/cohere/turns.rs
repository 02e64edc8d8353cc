//! Writes the instructions and turns of a request as messages of Cohere's chat.

use fairlead_core::{Error, ModelFacts};

use crate::model::{unsupported, Call, Content, Part, Request, Role, Source, Turn};
use crate::portable_id::is_blank;
use crate::text::{Text, Writer};

/// Stands for the empty output of a tool.
const NO_OUTPUT: &str = "(no output)";

/// Writes the member `messages`.
pub(super) fn write(out: &mut Writer, request: &Request<'_>, facts: &ModelFacts) -> Result<(), Error> {
    out.key("messages").open(b'[');
    if request.system.iter().any(is_sent) {
        message(out, "system", request.system.iter().filter(|part| is_sent(part)))?;
    }
    for turn in &request.turns {
        match turn.role {
            Role::System => message(out, "system", turn.parts.iter())?,
            Role::User => user(out, turn)?,
            Role::Assistant => assistant(out, turn, facts.thinking.is_some())?,
        }
    }
    out.close(b']');
    Ok(())
}

/// Whether a part is sent. Blank texts say nothing.
fn is_sent(part: &Part<'_>) -> bool {
    !matches!(&part.content, Content::Text(text) | Content::Refusal(text) if is_blank(text))
}

/// Writes a turn of the user. Each result of a tool is a separate message, before the user's other content.
fn user(out: &mut Writer, turn: &Turn<'_>) -> Result<(), Error> {
    for part in &turn.parts {
        let Content::Result { id, parts, is_error } = &part.content else { continue };
        out.open(b'{').key("role").raw(r#""tool""#).member("tool_call_id", id).key("content");
        result(out, parts, *is_error)?;
        out.close(b'}');
    }
    let own = || turn.parts.iter().filter(|part| !matches!(part.content, Content::Result { .. }));
    let has_results = turn.parts.iter().any(|part| matches!(part.content, Content::Result { .. }));
    if has_results && !own().any(is_sent) {
        return Ok(());
    }
    message(out, "user", own())
}

/// Writes the texts of a tool's result.
fn result(out: &mut Writer, parts: &[Part<'_>], is_error: bool) -> Result<(), Error> {
    let mut text = String::from(if is_error { "Error: " } else { "" });
    for (at, part) in parts.iter().enumerate() {
        let (Content::Text(own) | Content::Note { text: own, .. }) = &part.content else {
            return Err(unsupported(&part.path));
        };
        if at > 0 {
            text.push('\n');
        }
        text.push_str(&own.decode());
    }
    out.str(if text.trim().is_empty() { NO_OUTPUT } else { &text });
    Ok(())
}

/// Writes a turn of the model. Its reasoning is sent if no other provider signed it.
fn assistant(out: &mut Writer, turn: &Turn<'_>, has_thinking: bool) -> Result<(), Error> {
    let calls: Vec<&Call<'_>> = turn.parts.iter().filter_map(|part| part_call(part)).collect();
    let thoughts: Vec<&Text<'_>> = turn.parts.iter().filter_map(|part| own_thought(part)).collect();
    let texts: Vec<&Part<'_>> = turn.parts.iter().filter(|part| is_text(part) && is_sent(part)).collect();
    let others = turn.parts.iter().find(|part| !is_known(part));
    if let Some(part) = others {
        return Err(unsupported(&part.path));
    }
    if calls.is_empty() && texts.is_empty() {
        return Ok(());
    }
    out.open(b'{').key("role").raw(r#""assistant""#);
    if !texts.is_empty() || has_thinking && !thoughts.is_empty() {
        out.key("content").open(b'[');
        for text in thoughts.iter().filter(|_| has_thinking) {
            out.open(b'{').key("type").raw(r#""thinking""#).member("thinking", text).close(b'}');
        }
        for part in texts {
            block(out, part)?;
        }
        out.close(b']');
    }
    if !calls.is_empty() {
        if !has_thinking && !thoughts.is_empty() {
            // Models without reasoning call this text their plan.
            let plan: Vec<_> = thoughts.iter().map(|text| text.decode()).collect();
            out.key("tool_plan").str(&plan.join("\n"));
        }
        out.key("tool_calls").open(b'[');
        for call in calls {
            out.open(b'{').member("id", &call.id).key("type").raw(r#""function""#).key("function").open(b'{');
            out.member("name", &call.name).key("arguments").str(&call.arguments).close(b'}').close(b'}');
        }
        out.close(b']');
    }
    out.close(b'}');
    Ok(())
}

fn part_call<'p, 'a>(part: &'p Part<'a>) -> Option<&'p Call<'a>> {
    match &part.content {
        Content::Call(call) => Some(call),
        _ => None,
    }
}

fn own_thought<'p, 'a>(part: &'p Part<'a>) -> Option<&'p Text<'a>> {
    match &part.content {
        Content::Thinking { text, signature } if signature.as_ref().is_none_or(Text::is_empty) => Some(text),
        _ => None,
    }
}

fn is_text(part: &Part<'_>) -> bool {
    matches!(part.content, Content::Text(_) | Content::Refusal(_))
}

/// Whether a turn of the model can have this part. Reasoning that another provider signed is left out.
fn is_known(part: &Part<'_>) -> bool {
    is_text(part) || matches!(part.content, Content::Call(_) | Content::Thinking { .. } | Content::Redacted(_))
}

/// Writes a message: a single text as a string, anything else as a list.
fn message<'p, 'a: 'p>(out: &mut Writer, role: &str, parts: impl Iterator<Item = &'p Part<'a>>) -> Result<(), Error> {
    let parts: Vec<_> = parts.collect();
    out.open(b'{').key("role").str(role).key("content");
    if let [Part { content: Content::Text(text), .. }] = parts[..] {
        out.text(text).close(b'}');
        return Ok(());
    }
    out.open(b'[');
    for part in parts {
        block(out, part)?;
    }
    out.close(b']').close(b'}');
    Ok(())
}

fn block(out: &mut Writer, part: &Part<'_>) -> Result<(), Error> {
    out.open(b'{').key("type");
    match &part.content {
        Content::Text(text) | Content::Refusal(text) => drop(out.raw(r#""text""#).member("text", text)),
        Content::Note { text, title } => {
            out.raw(r#""text""#).key("text");
            match title {
                Some(title) => drop(out.joined(&[&title.decode(), "\n\n", &text.decode()])),
                None => drop(out.text(text)),
            }
        }
        Content::Image(source) => {
            out.raw(r#""image_url""#).key("image_url").open(b'{').key("url");
            match source {
                Source::Url(url) => drop(out.text(url)),
                Source::Base64 { media_type, data } => drop(out.joined(&["data:", media_type, ";base64,", data])),
            }
            out.close(b'}');
        }
        _ => return Err(unsupported(&part.path)),
    }
    out.close(b'}');
    Ok(())
}
