//! Writes the model as a messages request.

use std::borrow::Cow;

use fairlead_core::{BlankTexts, Error, ForcedTools, Level, ModelFacts, Schemas, Thinking};
use smallvec::SmallVec;

use super::schema;
use crate::accepted::{forces_tool, level, sampling, Sampling};
use crate::fit::Destination;
use crate::left_out::LeftOut;
use crate::model::{unsupported, Choice, Content, Effort, Format, Member, Part, Request, Role, Source};
use crate::openai::members_out::schema_in_words;
use crate::portable_id::{bounded, is_blank, trimmed_end, written};
use crate::signature::is_anthropics;
use crate::text::{Text, Writer};

/// Members of other dialects that may be dropped; see docs/explanation/dialects.md.
const DROPPED: &[&str] = &["prediction", "safetySettings", "labels"];
/// `max_tokens` is required in this dialect. Every model of the dialect accepts this value, which is used if neither
/// the caller nor the model list sets one.
pub const DEFAULT_MAX_TOKENS: u64 = 4096;

/// Writes the body for the destination.
pub(crate) fn write(
    request: &Request<'_>,
    to: Destination<'_>,
    size_hint: usize,
    left_out: &mut LeftOut,
) -> Result<Vec<u8>, Error> {
    let Destination { facts, .. } = to;
    let texts = facts.blank_texts.unwrap_or(BlankTexts::Refused);
    let mut out = Writer::with_capacity(size_hint + 512);
    out.open(b'{').key("model").str(to.model).key("max_tokens");
    match request.max_tokens {
        Some(most) => out.raw(most),
        None => out.number(to.fit.most.unwrap_or(DEFAULT_MAX_TOKENS)),
    };
    system(&mut out, request, facts)?;
    turns(&mut out, request, texts)?;
    if request.stream {
        out.key("stream").raw("true");
    }
    let thinking = thinking_of(request, to, left_out);
    samplers(&mut out, request, facts, thinking.is_on(facts), left_out);
    // This dialect rejects a stop sequence that is blank.
    let mut sequences = request.stop.iter().filter(|text| !is_blank(text)).peekable();
    if sequences.peek().is_some() {
        out.key("stop_sequences").open(b'[');
        for text in sequences {
            out.text(text);
        }
        out.close(b']');
    }
    if request.stop.iter().any(is_blank) {
        left_out.hint(request.name_of(Member::Stop));
    }
    tools(&mut out, request, facts, left_out)?;
    effort_and_format(&mut out, request, facts, thinking);
    if let Some(user) = &request.user {
        let user = facts.user_most.map_or_else(|| user.clone(), |most| bounded(user, most));
        out.key("metadata").open(b'{').member("user_id", &user).close(b'}');
    }
    left_out.hints(request.shared.iter().map(|(name, value)| (&**name, *value)));
    left_out.members(
        request,
        &[
            (Member::Seed, request.seed.is_some()),
            (Member::Verbosity, request.verbosity.is_some()),
            (Member::FrequencyPenalty, request.frequency_penalty.is_some()),
            (Member::PresencePenalty, request.presence_penalty.is_some()),
            (Member::Logprobs, request.logprobs.is_some()),
            (Member::Outputs, request.outputs.is_some()),
        ],
    )?;
    left_out.extras(request, DROPPED)?;
    Ok(out.close(b'}').take())
}

/// This dialect supports schemas but no general JSON mode, so JSON is requested through an instruction.
const ANY_JSON: &str = "Answer with one JSON object and nothing else.";

fn system(out: &mut Writer, request: &Request<'_>, facts: &ModelFacts) -> Result<(), Error> {
    let texts = facts.blank_texts.unwrap_or(BlankTexts::Refused);
    let words = match &request.format {
        Some(Format::Json) => Some(Cow::Borrowed(ANY_JSON)),
        _ => schema_in_words(request, facts).map(Cow::Owned),
    };
    let Some(words) = words else {
        if request.system.iter().any(|part| !is_left_out(part, texts)) {
            out.key("system");
            contents(out, &request.system, texts)?;
        }
        return Ok(());
    };
    out.key("system").open(b'[');
    sent(request.system.iter(), texts).iter().try_for_each(|sent| write_cached(out, sent.part, sent.cache, texts))?;
    out.open(b'{').key("type").raw(r#""text""#).key("text").str(&words).close(b'}').close(b']');
    Ok(())
}

/// The `thinking` member of the request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ThinkingOut {
    /// The member is absent.
    Unsaid,
    Off,
    Adaptive,
    Budget(u64),
}

impl ThinkingOut {
    /// Returns whether the model reasons.
    fn is_on(self, facts: &ModelFacts) -> bool {
        match self {
            Self::Unsaid => facts.thinks_by_default == Some(true),
            Self::Off => false,
            Self::Adaptive | Self::Budget(_) => true,
        }
    }
}

/// The minimum budget in tokens. A budget must be below `max_tokens`.
const LEAST_BUDGET: u64 = 1_024;

fn thinking_of(request: &Request<'_>, to: Destination<'_>, left_out: &mut LeftOut) -> ThinkingOut {
    let Destination { facts, .. } = to;
    let Some(effort) = request.reasoning else { return ThinkingOut::Unsaid };
    let thinking = facts.thinking.unwrap_or(Thinking::Adaptive);
    if thinking == Thinking::Never && effort != Effort::Off {
        left_out.hint(request.name_of(Member::Reasoning));
    }
    // Some models do not support reasoning with a forced tool. The tool has precedence, because the caller depends on
    // it.
    let is_out = forces_tool(request) && facts.forced_tools == Some(ForcedTools::WithoutThinking);
    match (thinking, effort) {
        (Thinking::Always, Effort::Off) => {
            left_out.hint(request.name_of(Member::Reasoning));
            ThinkingOut::Unsaid
        }
        (Thinking::Never | Thinking::Always, _) => ThinkingOut::Unsaid,
        (_, Effort::Off) => ThinkingOut::Off,
        _ if is_out => {
            left_out.hint(request.name_of(Member::Reasoning));
            ThinkingOut::Unsaid
        }
        (Thinking::Budget, effort) => {
            let budget = budget_of(request, to, effort);
            if budget.is_none() {
                left_out.hint(request.name_of(Member::Reasoning));
            }
            budget.map_or(ThinkingOut::Unsaid, ThinkingOut::Budget)
        }
        _ => ThinkingOut::Adaptive,
    }
}

/// Returns the budget in tokens, or `None` if the output limit leaves no room for the least one.
fn budget_of(request: &Request<'_>, to: Destination<'_>, effort: Effort) -> Option<u64> {
    let limit = request.max_tokens.and_then(|limit| limit.parse().ok());
    let limit = limit.or(to.fit.most).unwrap_or(DEFAULT_MAX_TOKENS);
    let least = to.facts.budget_least.unwrap_or(LEAST_BUDGET);
    let wanted = match effort {
        Effort::Off | Effort::Minimal | Effort::Low => least,
        Effort::Medium => 4_096,
        Effort::High => 16_384,
        Effort::Most => 32_768,
    };
    // Half of the output limit is reserved for the answer itself.
    let budget = wanted.min(to.facts.budget_most.unwrap_or(u64::MAX)).min(limit / 2).max(least);
    (budget < limit).then_some(budget)
}

fn samplers(out: &mut Writer, request: &Request<'_>, facts: &ModelFacts, is_thinking: bool, left_out: &mut LeftOut) {
    let Sampling { mut temperature, top_p, top_k } = sampling(request, facts, is_thinking, left_out);
    // The other dialects' scale goes to 2, this one's to 1.
    if temperature.is_some_and(|number| number.parse::<f64>().is_ok_and(|number| number > 1.0)) {
        left_out.hint(request.name_of(Member::Temperature));
        temperature = Some("1");
    }
    for (name, value) in [("temperature", temperature), ("top_p", top_p), ("top_k", top_k)] {
        if let Some(value) = value {
            out.key(name).raw(value);
        }
    }
}

/// Returns the effort level. Without facts, the levels of the newest models are used.
fn effort_of(request: &Request<'_>, facts: &ModelFacts) -> Option<&'static str> {
    const LEVELS: &[Level] = &[Level::Low, Level::Medium, Level::High, Level::Max];
    let effort = request.reasoning.filter(|effort| *effort != Effort::Off)?;
    level(facts.efforts.as_deref().unwrap_or(LEVELS), effort).map(Level::name)
}

fn effort_and_format(out: &mut Writer, request: &Request<'_>, facts: &ModelFacts, thinking: ThinkingOut) {
    let effort = effort_of(request, facts);
    match thinking {
        ThinkingOut::Unsaid => {}
        ThinkingOut::Off => drop(out.key("thinking").raw(r#"{"type":"disabled"}"#)),
        ThinkingOut::Adaptive => drop(out.key("thinking").raw(r#"{"type":"adaptive"}"#)),
        ThinkingOut::Budget(budget) => {
            out.key("thinking")
                .open(b'{')
                .key("type")
                .raw(r#""enabled""#)
                .key("budget_tokens")
                .number(budget)
                .close(b'}');
        }
    }
    let schema = match &request.format {
        Some(Format::Schema { schema, .. }) if facts.schemas == Some(Schemas::Closed) => {
            Some(Cow::Owned(schema::closed(schema)))
        }
        Some(Format::Schema { schema, .. }) if facts.schemas != Some(Schemas::JsonObject) => {
            Some(Cow::Borrowed(&**schema))
        }
        _ => None,
    };
    if effort.is_none() && schema.is_none() {
        return;
    }
    out.key("output_config").open(b'{');
    if let Some(effort) = effort {
        out.key("effort").str(effort);
    }
    if let Some(schema) = schema {
        out.key("format").open(b'{').key("type").raw(r#""json_schema""#).key("schema").raw(&schema).close(b'}');
    }
    out.close(b'}');
}

fn tools(out: &mut Writer, request: &Request<'_>, facts: &ModelFacts, left_out: &mut LeftOut) -> Result<(), Error> {
    if !request.tools.is_empty() {
        out.key("tools").open(b'[');
        for tool in &request.tools {
            out.open(b'{').member("name", &tool.name);
            if let Some(description) = &tool.description {
                out.member("description", description);
            }
            let schema = tool.schema.as_deref().unwrap_or(r#"{"type":"object","properties":{}}"#);
            if tool.strict == Some(true) {
                out.key("input_schema").raw(&schema::closed(schema));
            } else {
                out.key("input_schema").raw(schema);
            }
            if let Some(strict) = tool.strict {
                out.key("strict").raw(if strict { "true" } else { "false" });
            }
            cache(out, tool.cache);
            out.close(b'}');
        }
        out.close(b']');
    }
    let alone = request.parallel == Some(false);
    let mut choice = match (&request.choice, alone) {
        (None, false) => return Ok(()),
        (None | Some(Choice::Auto), _) => "auto",
        (Some(Choice::Any), _) => "any",
        (Some(Choice::Never), _) => "none",
        (Some(Choice::One(_)), _) => "tool",
    };
    if request.tools.is_empty() {
        return Ok(());
    }
    if forces_tool(request) && facts.forced_tools == Some(ForcedTools::Refused) {
        left_out.member(request, Member::ToolChoice)?;
        if !alone {
            return Ok(());
        }
        choice = "auto";
    }
    out.key("tool_choice").open(b'{').key("type").str(choice);
    if let (Some(Choice::One(name)), "tool") = (&request.choice, choice) {
        out.member("name", name);
    }
    if alone && choice != "none" {
        out.key("disable_parallel_tool_use").raw("true");
    }
    out.close(b'}');
    Ok(())
}

/// The first message of a conversation that the assistant begins.
const FIRST_TURN: &str = r#"{"role":"user","content":"(start)"}"#;

/// Merges consecutive turns of one role into one message, because the results of parallel calls must be in the same
/// message.
fn turns(out: &mut Writer, request: &Request<'_>, texts: BlankTexts) -> Result<(), Error> {
    out.key("messages").open(b'[');
    let mut runs = request.turns.chunk_by(|one, next| one.role == next.role).peekable();
    let mut has_begun = false;
    while let Some(run) = runs.next() {
        let [first, ..] = run else { continue };
        let role = if first.role == Role::User { "user" } else { "assistant" };
        let parts = sent(run.iter().flat_map(|turn| &turn.parts), texts);
        let Some((last, before)) = parts.split_last() else {
            // The provider rejects an empty message, and dropping it loses nothing.
            continue;
        };
        // The provider rejects a conversation that the assistant begins, for example with a greeting.
        if !std::mem::replace(&mut has_begun, true) && first.role == Role::Assistant {
            out.raw(FIRST_TURN);
        }
        // Claude rejects trailing whitespace in a turn that it is to continue.
        let is_prefill = first.role == Role::Assistant && runs.peek().is_none();
        out.open(b'{').key("role").str(role).key("content");
        if let (true, Content::Text(text), None) = (before.is_empty(), &last.part.content, last.cache) {
            write_text(out, text, is_prefill);
        } else {
            out.open(b'[');
            before.iter().try_for_each(|sent| write_cached(out, sent.part, sent.cache, texts))?;
            match &last.part.content {
                Content::Text(text) if is_prefill => {
                    out.open(b'{').key("type").raw(r#""text""#).key("text");
                    write_text(out, text, true);
                    cache(out, last.cache);
                    out.close(b'}');
                }
                _ => write_cached(out, last.part, last.cache, texts)?,
            }
            out.close(b']');
        }
        out.close(b'}');
    }
    out.close(b']');
    Ok(())
}

/// A part to send, with its cache mark.
struct SentPart<'r, 'a> {
    part: &'r Part<'a>,
    cache: Option<&'a str>,
}

/// Returns the parts to send. The cache mark of a dropped part moves to the part before it, where it covers the same
/// prefix.
fn sent<'r, 'a: 'r>(parts: impl Iterator<Item = &'r Part<'a>>, texts: BlankTexts) -> SmallVec<[SentPart<'r, 'a>; 8]> {
    let mut sent: SmallVec<[SentPart<'r, 'a>; 8]> = SmallVec::new();
    for part in parts {
        if !is_left_out(part, texts) {
            sent.push(SentPart { part, cache: part.cache });
        } else if let (Some(last), Some(mark)) = (sent.last_mut(), part.cache) {
            last.cache = last.cache.or(Some(mark));
        }
    }
    sent
}

fn write_text(out: &mut Writer, text: &Text<'_>, trims: bool) {
    if trims {
        out.str(&trimmed_end(text));
    } else {
        out.text(text);
    }
}

/// Returns whether to drop a part that the provider rejects and that has no value: blank text, or reasoning with
/// another vendor's signature.
fn is_left_out(part: &Part<'_>, texts: BlankTexts) -> bool {
    match &part.content {
        Content::Text(text) => texts == BlankTexts::Refused && is_blank(text),
        Content::Thinking { signature, .. } => !signature.as_ref().is_some_and(is_anthropics),
        _ => false,
    }
}

/// Writes a single plain text as a string, anything else as a list.
fn contents(out: &mut Writer, parts: &[Part<'_>], texts: BlankTexts) -> Result<(), Error> {
    let sent = sent(parts.iter(), texts);
    if let [SentPart { part: Part { content: Content::Text(text), .. }, cache: None }] = sent.as_slice() {
        out.text(text);
        return Ok(());
    }
    out.open(b'[');
    sent.iter().try_for_each(|sent| write_cached(out, sent.part, sent.cache, texts))?;
    out.close(b']');
    Ok(())
}

fn cache(out: &mut Writer, cache: Option<&str>) {
    if let Some(cache) = cache {
        out.key("cache_control").raw(cache);
    }
}

/// Writes a block of a message, a tool result or an answer.
pub(super) fn write_part(out: &mut Writer, part: &Part<'_>) -> Result<(), Error> {
    write_cached(out, part, part.cache, BlankTexts::Refused)
}

fn write_cached(out: &mut Writer, part: &Part<'_>, mark: Option<&str>, texts: BlankTexts) -> Result<(), Error> {
    out.open(b'{').key("type");
    match &part.content {
        Content::Text(text) | Content::Refusal(text) => drop(out.raw(r#""text""#).member("text", text)),
        Content::Image(from) => {
            out.raw(r#""image""#);
            source(out, from);
        }
        Content::Document { source: Source::Base64 { media_type, .. }, .. } if media_type != "application/pdf" => {
            return Err(unsupported(&part.path));
        }
        Content::Document { source: from, title } => {
            out.raw(r#""document""#);
            source(out, from);
            if let Some(title) = title {
                out.member("title", title);
            }
        }
        Content::Note { text, title } => {
            out.raw(r#""document""#).key("source").open(b'{').key("type").raw(r#""text""#);
            out.key("media_type").raw(r#""text/plain""#).member("data", text).close(b'}');
            if let Some(title) = title {
                out.member("title", title);
            }
        }
        Content::Thinking { text, signature } => {
            out.raw(r#""thinking""#).member("thinking", text).key("signature");
            match signature {
                Some(signature) => out.text(signature),
                None => out.raw(r#""""#),
            };
        }
        Content::Redacted(data) => drop(out.raw(r#""redacted_thinking""#).member("data", data)),
        Content::Call(call) => {
            out.raw(r#""tool_use""#).member("id", &written(&call.id)).member("name", &call.name);
            out.key("input").raw(&call.arguments);
        }
        Content::Result { id, parts, is_error } => {
            out.raw(r#""tool_result""#).member("tool_use_id", &written(id)).key("content");
            contents(out, parts, texts)?;
            if *is_error {
                out.key("is_error").raw("true");
            }
        }
        Content::Audio { .. } => return Err(unsupported(&part.path)),
    }
    cache(out, mark);
    out.close(b'}');
    Ok(())
}

pub(super) fn source(out: &mut Writer, source: &Source<'_>) {
    out.key("source").open(b'{').key("type");
    match source {
        Source::Url(url) => drop(out.raw(r#""url""#).member("url", url)),
        Source::Base64 { media_type, data } => {
            out.raw(r#""base64""#).key("media_type").str(media_type).key("data").str(data);
        }
    }
    out.close(b'}');
}
