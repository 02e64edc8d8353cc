//! Writes the model as a responses request.

use fairlead_core::{Error, ForcedTools, Letters, Level, ModelFacts, NameRule, Thinking};

use crate::accepted::{level, sampling, Sampling};
use crate::fit::Destination;
use crate::left_out::LeftOut;
use crate::model::{unsupported, Choice, Content, Effort, Format, Member, Part, Request, Role, Source, Turn};
use crate::openai::members_out::{refuses_logprobs, shared, user as user_name, write_schema};
use crate::openai::reasoning_out::effort;
use crate::openai::request_out::is_film;
use crate::openai::strict::stays_strict;
use crate::portable_id::fitted_id;
use crate::signature::for_responses;
use crate::text::Writer;

/// Members of other dialects that may be dropped; see docs/explanation/dialects.md.
const DROPPED: &[&str] =
    &["cache_control", "service_tier", "context_management", "diagnostics", "prediction", "safetySettings", "labels"];

/// The rule for call ids in this dialect.
const CALL_IDS: NameRule = NameRule { most: 64, letters: Letters::Any };

/// Writes the body for the destination.
pub(crate) fn write(
    request: &Request<'_>,
    to: Destination<'_>,
    size_hint: usize,
    left_out: &mut LeftOut,
) -> Result<Vec<u8>, Error> {
    let facts = to.facts;
    let mut out = Writer::with_capacity(size_hint + 512);
    out.open(b'{').key("model").str(to.model);
    input(&mut out, request, facts.call_ids.unwrap_or(CALL_IDS))?;
    if request.stream {
        out.key("stream").raw("true");
    }
    let reasoning = Reasoning::of(request, facts, left_out);
    let Sampling { temperature, top_p, top_k } = sampling(request, facts, reasoning.is_on, left_out);
    let logprobs = request.logprobs.filter(|_| !refuses_logprobs(facts, reasoning.is_on));
    output_limit(&mut out, request, facts);
    for (name, value) in
        [("temperature", temperature), ("top_p", top_p), ("top_logprobs", logprobs.filter(|others| *others != "0"))]
    {
        if let Some(value) = value {
            out.key(name).raw(value);
        }
    }
    tools(&mut out, request, facts, left_out)?;
    text(&mut out, request, facts, left_out)?;
    reasoning.write(&mut out, logprobs.is_some());
    user_name(&mut out, request, facts, left_out);
    // Callers of other dialects send the whole conversation each time, so nothing needs to be stored.
    if !request.shared.iter().any(|(name, _)| name == "store") {
        out.key("store").raw("false");
    }
    shared(&mut out, request, facts, left_out);
    left_out.members(
        request,
        &[
            (Member::Seed, request.seed.is_some()),
            (Member::Stop, !request.stop.is_empty()),
            (Member::TopK, top_k.is_some()),
            (Member::FrequencyPenalty, request.frequency_penalty.is_some()),
            (Member::PresencePenalty, request.presence_penalty.is_some()),
            (Member::Logprobs, request.logprobs.is_some() && logprobs.is_none()),
            (Member::Outputs, request.outputs.is_some()),
        ],
    )?;
    left_out.extras(request, DROPPED)?;
    Ok(out.close(b'}').take())
}

/// Writes the output limit, raised to the least one that the provider accepts.
fn output_limit(out: &mut Writer, request: &Request<'_>, facts: &ModelFacts) {
    let Some(most) = request.max_tokens else { return };
    out.key("max_output_tokens");
    match facts.output_least.filter(|least| most.parse::<u64>().is_ok_and(|most| most < *least)) {
        Some(least) => out.number(least),
        None => out.raw(most),
    };
}

/// The reasoning level to send.
struct Reasoning {
    level: Option<&'static str>,
    is_on: bool,
}

impl Reasoning {
    fn of(request: &Request<'_>, facts: &ModelFacts, left_out: &mut LeftOut) -> Self {
        if facts.thinking == Some(Thinking::Never) {
            if request.reasoning.is_some_and(|requested| requested != Effort::Off) {
                left_out.hint(request.name_of(Member::Reasoning));
            }
            return Self { level: None, is_on: false };
        }
        let level = request.reasoning.and_then(|requested| match &facts.efforts {
            Some(efforts) => level(efforts, requested).map(Level::name),
            None => effort(requested),
        });
        let is_on = match request.reasoning {
            Some(requested) => requested != Effort::Off,
            None => facts.thinks_by_default == Some(true),
        };
        Self { level, is_on }
    }

    fn write(&self, out: &mut Writer, has_logprobs: bool) {
        let is_asked = self.level.is_some_and(|level| level != "none");
        if let Some(level) = self.level {
            out.key("reasoning").open(b'{').key("effort").str(level);
            if is_asked {
                out.key("summary").raw(r#""auto""#);
            }
            out.close(b'}');
        }
        if !has_logprobs && !is_asked {
            return;
        }
        out.key("include").open(b'[');
        if is_asked {
            out.raw(r#""reasoning.encrypted_content""#);
        }
        if has_logprobs {
            out.raw(r#""message.output_text.logprobs""#);
        }
        out.close(b']');
    }
}

fn text(out: &mut Writer, request: &Request<'_>, facts: &ModelFacts, left_out: &mut LeftOut) -> Result<(), Error> {
    let verbosity = request.verbosity.filter(|_| !facts.refuses("verbosity"));
    left_out.members(request, &[(Member::Verbosity, request.verbosity.is_some() && verbosity.is_none())])?;
    if request.format.is_none() && verbosity.is_none() {
        return Ok(());
    }
    out.key("text").open(b'{');
    match &request.format {
        None => {}
        Some(Format::Json) => drop(out.key("format").raw(r#"{"type":"json_object"}"#)),
        Some(Format::Schema { schema, name, description, strict }) => {
            out.key("format").open(b'{').key("type").raw(r#""json_schema""#);
            write_schema(out, schema, name.as_ref(), description.as_ref(), *strict);
            out.close(b'}');
        }
    }
    if let Some(verbosity) = verbosity {
        out.key("verbosity").raw(verbosity);
    }
    out.close(b'}');
    Ok(())
}

fn tools(out: &mut Writer, request: &Request<'_>, facts: &ModelFacts, left_out: &mut LeftOut) -> Result<(), Error> {
    if !request.tools.is_empty() {
        out.key("tools").open(b'[');
        for tool in &request.tools {
            out.open(b'{').key("type").raw(r#""function""#).member("name", &tool.name);
            if let Some(description) = &tool.description {
                out.member("description", description);
            }
            out.key("parameters").raw(tool.schema.as_deref().unwrap_or(r#"{"type":"object","properties":{}}"#));
            // In this dialect, strict is the default; in the others it is not.
            out.key("strict").flag(stays_strict(tool)).close(b'}');
        }
        out.close(b']');
    }
    let is_forced = matches!(request.choice, Some(Choice::Any | Choice::One(_)));
    match &request.choice {
        Some(_) if is_forced && facts.forced_tools == Some(ForcedTools::Refused) => {
            left_out.member(request, Member::ToolChoice)?;
        }
        None => {}
        Some(Choice::Auto) => drop(out.key("tool_choice").raw(r#""auto""#)),
        Some(Choice::Any) => drop(out.key("tool_choice").raw(r#""required""#)),
        Some(Choice::Never) => drop(out.key("tool_choice").raw(r#""none""#)),
        Some(Choice::One(name)) => {
            out.key("tool_choice").open(b'{').key("type").raw(r#""function""#).member("name", name).close(b'}');
        }
    }
    let Some(parallel) = request.parallel else { return Ok(()) };
    if !facts.refuses("parallel_tool_calls") {
        out.key("parallel_tool_calls").flag(parallel);
    } else if !parallel {
        left_out.member(request, Member::Parallel)?;
    }
    Ok(())
}

fn input(out: &mut Writer, request: &Request<'_>, ids: NameRule) -> Result<(), Error> {
    let instructions = match request.system.as_slice() {
        [Part { content: Content::Text(text), .. }] => Some(text),
        _ => None,
    };
    if let Some(text) = instructions {
        out.member("instructions", text);
    }
    out.key("input").open(b'[');
    if instructions.is_none() && !request.system.is_empty() {
        developer(out, &request.system)?;
    }
    for turn in &request.turns {
        match turn.role {
            Role::User => user(out, turn, ids)?,
            Role::System => developer(out, &turn.parts)?,
            Role::Assistant => assistant(out, turn, ids)?,
        }
    }
    out.close(b']');
    Ok(())
}

fn developer(out: &mut Writer, parts: &[Part<'_>]) -> Result<(), Error> {
    out.open(b'{').key("type").raw(r#""message""#).key("role").raw(r#""developer""#).key("content");
    contents(out, parts.iter())?;
    out.close(b'}');
    Ok(())
}

/// Writes a user turn. Each tool result is a separate item, and the user's other content follows them.
fn user(out: &mut Writer, turn: &Turn<'_>, ids: NameRule) -> Result<(), Error> {
    for part in &turn.parts {
        let Content::Result { id, parts, is_error } = &part.content else { continue };
        out.open(b'{')
            .key("type")
            .raw(r#""function_call_output""#)
            .member("call_id", &fitted_id(id, ids))
            .key("output");
        match parts.as_slice() {
            [] => drop(out.str(if *is_error { "Error:" } else { "" })),
            [Part { content: Content::Text(text), .. }] if *is_error => drop(out.joined(&["Error: ", &text.decode()])),
            [Part { content: Content::Text(text), .. }] => drop(out.text(text)),
            several => {
                out.open(b'[');
                if *is_error {
                    out.open(b'{').key("type").raw(r#""input_text""#).key("text").str("Error:").close(b'}');
                }
                several.iter().try_for_each(|part| write_part(out, part))?;
                out.close(b']');
            }
        }
        out.close(b'}');
    }
    let is_said = |part: &&Part<'_>| !matches!(part.content, Content::Result { .. });
    if turn.parts.iter().any(|part| is_said(&part)) || turn.parts.is_empty() {
        out.open(b'{').key("type").raw(r#""message""#).key("role").raw(r#""user""#).key("content");
        contents(out, turn.parts.iter().filter(is_said))?;
        out.close(b'}');
    }
    Ok(())
}

/// Writes the items in the order of the parts. Consecutive texts form one message.
fn assistant(out: &mut Writer, turn: &Turn<'_>, ids: NameRule) -> Result<(), Error> {
    let is_text = |part: &Part<'_>| matches!(part.content, Content::Text(_) | Content::Refusal(_));
    for run in turn.parts.chunk_by(|one, next| is_text(one) && is_text(next)) {
        let [first, ..] = run else { continue };
        match &first.content {
            Content::Text(_) | Content::Refusal(_) => {
                out.open(b'{').key("type").raw(r#""message""#).key("role").raw(r#""assistant""#);
                out.key("content").open(b'[');
                for part in run {
                    match &part.content {
                        Content::Refusal(text) => {
                            out.open(b'{').key("type").raw(r#""refusal""#).member("refusal", text).close(b'}');
                        }
                        Content::Text(text) => {
                            out.open(b'{').key("type").raw(r#""output_text""#).member("text", text).close(b'}');
                        }
                        _ => {}
                    }
                }
                out.close(b']').close(b'}');
            }
            Content::Call(call) => {
                out.open(b'{').key("type").raw(r#""function_call""#).member("call_id", &fitted_id(&call.id, ids));
                out.member("name", &call.name).key("arguments").str(&call.arguments).close(b'}');
            }
            Content::Thinking { text, signature: Some(signature) } => {
                let signature = signature.decode();
                if let Some((id, encrypted)) = for_responses(&signature) {
                    out.open(b'{').key("type").raw(r#""reasoning""#).key("id").str(id).key("summary").open(b'[');
                    if !text.is_empty() {
                        out.open(b'{').key("type").raw(r#""summary_text""#).member("text", text).close(b'}');
                    }
                    out.close(b']').key("encrypted_content").str(encrypted).close(b'}');
                }
            }
            // The provider rejects reasoning that is unsigned or signed by another vendor.
            Content::Thinking { .. } | Content::Redacted(_) => {}
            _ => return Err(unsupported(&first.path)),
        }
    }
    Ok(())
}

/// Writes a single text as a string, anything else as a list.
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
        Content::Text(text) | Content::Refusal(text) => {
            kind(out, "input_text");
            out.member("text", text);
        }
        Content::Note { text, title } => {
            kind(out, "input_text");
            match title {
                Some(title) => drop(out.key("text").joined(&[&title.decode(), "\n\n", &text.decode()])),
                None => drop(out.member("text", text)),
            }
        }
        Content::Image(from) => {
            kind(out, "input_image");
            match from {
                Source::Url(url) => drop(out.member("image_url", url)),
                Source::Base64 { media_type, data } => {
                    out.key("image_url").joined(&["data:", media_type, ";base64,", data]);
                }
            }
        }
        Content::Document { source: Source::Url(url), title } => {
            kind(out, "input_file");
            if let Some(title) = title {
                out.member("filename", title);
            }
            out.member("file_url", url);
        }
        Content::Document { source: Source::Base64 { media_type, data }, title } if !is_film(media_type) => {
            kind(out, "input_file");
            let title = title.clone().unwrap_or_else(|| "document.pdf".into());
            out.member("filename", &title).key("file_data");
            out.joined(&["data:", media_type, ";base64,", data]);
        }
        _ => return Err(unsupported(&part.path)),
    }
    out.close(b'}');
    Ok(())
}
