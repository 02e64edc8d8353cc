//! Writes the members of a chat completion request other than its messages, according to the model's facts.

use std::borrow::Cow;

use fairlead_core::{
    CapMember, Error, ForcedTools, Letters, Logprobs, ModelFacts, NameRule, Output, Samplers, Schemas, StreamingUsage,
};
use serde_json::Value;

use super::strict::{is_strict, stays_strict};
use crate::accepted::{sampling, Sampling};
use crate::left_out::LeftOut;
use crate::model::{Choice, Format, Member, Members, Request};
use crate::portable_id::{bounded, fitted};
use crate::text::{Text, Writer};

/// The maximum characters of `user` at OpenAI. Other providers accept more.
const USER_MOST: usize = 64;
/// The schema of a function without parameters.
const NO_PARAMETERS: &str = r#"{"type":"object","properties":{}}"#;

/// Returns whether parts and tools can have prompt cache marks.
pub(super) fn has_marks(facts: &ModelFacts) -> bool {
    facts.cache_marks.is_some_and(|most| most > 0)
}

/// Writes the stream members, the output limit, the samplers and the stop sequences.
pub(super) fn opening(
    out: &mut Writer,
    request: &Request<'_>,
    facts: &ModelFacts,
    is_thinking: bool,
    left_out: &mut LeftOut,
) -> Result<(), Error> {
    if request.stream || is_thinking && facts.thinking_needs_stream == Some(true) {
        out.key("stream").raw("true");
        if facts.streaming_usage != Some(StreamingUsage::Always) && !facts.refuses("stream_options") {
            out.key("stream_options").raw(r#"{"include_usage":true}"#);
        }
    }
    if let Some(most) = request.max_tokens {
        let name = match facts.cap_member {
            Some(CapMember::MaxTokens) => "max_tokens",
            Some(CapMember::MaxCompletionTokens) | None => "max_completion_tokens",
        };
        out.key(name).raw(most);
    }
    let Sampling { temperature, top_p, top_k } = sampling(request, facts, is_thinking, left_out);
    for (name, number) in [("temperature", temperature), ("top_p", top_p)] {
        if let Some(number) = number {
            out.key(name).raw(number);
        }
    }
    left_out.members(request, &[(Member::TopK, top_k.is_some())])?;
    if request.stop.is_empty() {
        return Ok(());
    }
    if facts.refuses("stop") {
        return left_out.member(request, Member::Stop);
    }
    out.key("stop").open(b'[');
    for text in &request.stop {
        out.text(text);
    }
    out.close(b']');
    Ok(())
}

pub(super) fn tools(
    out: &mut Writer,
    request: &Request<'_>,
    facts: &ModelFacts,
    left_out: &mut LeftOut,
) -> Result<(), Error> {
    if !request.tools.is_empty() {
        if facts.refuses("tools") {
            return left_out.refuse("tools");
        }
        out.key("tools").open(b'[');
        for tool in &request.tools {
            out.open(b'{').key("type").raw(r#""function""#).key("function").open(b'{').member("name", &tool.name);
            if let Some(description) = &tool.description {
                out.member("description", description);
            }
            let empty = (facts.parameters_required == Some(true)).then_some(NO_PARAMETERS);
            if let Some(schema) = tool.schema.as_deref().or(empty) {
                match without_identity(schema, facts) {
                    Some(plain) => drop(out.key("parameters").raw(&plain)),
                    None => drop(out.key("parameters").raw(schema)),
                }
            }
            if tool.strict.is_some() {
                out.key("strict").flag(stays_strict(tool));
            }
            out.close(b'}');
            if let Some(mark) = tool.cache.filter(|_| has_marks(facts)) {
                out.key("cache_control").raw(mark);
            }
            out.close(b'}');
        }
        out.close(b']');
    }
    choice(out, request, facts, left_out)?;
    let Some(parallel) = request.parallel else { return Ok(()) };
    if !facts.refuses("parallel_tool_calls") {
        out.key("parallel_tool_calls").flag(parallel);
    } else if !parallel {
        left_out.member(request, Member::Parallel)?;
    }
    Ok(())
}

/// Returns the schema without `$schema` and `$id`, where the provider rejects them. `None`: it has none.
fn without_identity(schema: &str, facts: &ModelFacts) -> Option<String> {
    if !facts.refuses("$schema") || !(schema.contains("\"$schema\"") || schema.contains("\"$id\"")) {
        return None;
    }
    let Members(members) = serde_json::from_str(schema).ok()?;
    let remaining = members.into_iter().filter(|(name, _)| !matches!(&**name, "$schema" | "$id"));
    let remaining: Vec<String> =
        remaining.map(|(name, value)| format!("{}:{}", serde_json::Value::from(&*name), value.get())).collect();
    Some(format!("{{{}}}", remaining.join(",")))
}

fn choice(out: &mut Writer, request: &Request<'_>, facts: &ModelFacts, left_out: &mut LeftOut) -> Result<(), Error> {
    let is_forced = matches!(request.choice, Some(Choice::Any | Choice::One(_)));
    if is_forced && facts.forced_tools == Some(ForcedTools::Refused) {
        return left_out.member(request, Member::ToolChoice);
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
    Ok(())
}

/// Returns the instruction that describes the schema to a model without schema support.
pub(crate) fn schema_in_words(request: &Request<'_>, facts: &ModelFacts) -> Option<String> {
    match &request.format {
        Some(Format::Schema { schema, .. }) if facts.schemas == Some(Schemas::JsonObject) => {
            Some(format!("Answer with one JSON object that follows this JSON schema, and nothing else:\n{schema}"))
        }
        _ => None,
    }
}

pub(super) fn response_format(out: &mut Writer, request: &Request<'_>, facts: &ModelFacts) {
    match &request.format {
        None => {}
        Some(Format::Schema { schema, name, description, strict }) if facts.schemas != Some(Schemas::JsonObject) => {
            out.key("response_format").open(b'{').key("type").raw(r#""json_schema""#).key("json_schema").open(b'{');
            write_schema(out, schema, name.as_ref(), description.as_ref(), *strict);
            out.close(b'}').close(b'}');
        }
        Some(_) => drop(out.key("response_format").raw(r#"{"type":"json_object"}"#)),
    }
}

/// Writes the kinds of output, and the voice of generated speech.
pub(super) fn outputs(out: &mut Writer, request: &Request<'_>) {
    let Some(outputs) = &request.outputs else { return };
    out.key("modalities").open(b'[');
    for output in outputs {
        out.raw(match output {
            Output::Text => r#""text""#,
            Output::Image => r#""image""#,
            Output::Audio => r#""audio""#,
        });
    }
    out.close(b']');
    if let (true, Some(voice)) = (outputs.contains(&Output::Audio), &request.voice) {
        out.key("audio").open(b'{').member("voice", voice).key("format").raw(r#""pcm16""#).close(b'}');
    }
}

/// Writes the seed, penalties, verbosity and log probabilities.
pub(super) fn hints(
    out: &mut Writer,
    request: &Request<'_>,
    facts: &ModelFacts,
    is_thinking: bool,
    left_out: &mut LeftOut,
) -> Result<(), Error> {
    for (name, value, member) in [
        ("seed", request.seed, Member::Seed),
        ("frequency_penalty", request.frequency_penalty, Member::FrequencyPenalty),
        ("presence_penalty", request.presence_penalty, Member::PresencePenalty),
        ("verbosity", request.verbosity, Member::Verbosity),
    ] {
        let Some(value) = value else { continue };
        let sent = if name == "seed" { facts.seed_member.as_deref().unwrap_or(name) } else { name };
        if facts.refuses(sent) {
            left_out.member(request, member)?;
        } else {
            out.key(sent).raw(value);
        }
    }
    let Some(others) = request.logprobs else { return Ok(()) };
    if refuses_logprobs(facts, is_thinking) {
        return left_out.member(request, Member::Logprobs);
    }
    if facts.logprobs == Some(Logprobs::Count) {
        out.key("logprobs").raw(if others == "0" { "1" } else { others });
        return Ok(());
    }
    out.key("logprobs").raw("true");
    if others != "0" {
        out.key("top_logprobs").raw(others);
    }
    Ok(())
}

/// Returns whether the model rejects log probabilities. OpenAI accepts them like samplers: only while the model does not
/// reason.
pub(crate) fn refuses_logprobs(facts: &ModelFacts, is_thinking: bool) -> bool {
    facts.refuses("logprobs") || is_thinking && facts.samplers == Some(Samplers::WithoutThinking)
}

pub(crate) fn user(out: &mut Writer, request: &Request<'_>, facts: &ModelFacts, left_out: &mut LeftOut) {
    if let Some(user) = &request.user {
        if facts.refuses("user") {
            left_out.hint(request.name_of(Member::User));
        } else {
            out.member("user", &bounded(user, facts.user_most.unwrap_or(USER_MOST)));
        }
    }
}

/// Writes the members of a chat completion that both OpenAI dialects have.
pub(super) fn chat_shared(out: &mut Writer, request: &Request<'_>, facts: &ModelFacts, left_out: &mut LeftOut) {
    let is_stored = request.shared.iter().any(|(name, value)| name == "store" && *value == "true");
    let skipped = (facts.metadata_needs_store == Some(true) && !is_stored).then_some("metadata");
    shared_except(skipped, out, request, facts, left_out);
}

/// Writes the members that both OpenAI dialects have.
pub(crate) fn shared(out: &mut Writer, request: &Request<'_>, facts: &ModelFacts, left_out: &mut LeftOut) {
    shared_except(None, out, request, facts, left_out);
}

fn shared_except(
    skipped: Option<&str>,
    out: &mut Writer,
    request: &Request<'_>,
    facts: &ModelFacts,
    left_out: &mut LeftOut,
) {
    for (name, value) in &request.shared {
        if Some(&**name) == skipped {
            left_out.hints([(&**name, *value)]);
            continue;
        }
        match shared_value(facts, name, value) {
            Some(value) => drop(out.key(name).raw(&value)),
            None => left_out.hints([(&**name, *value)]),
        }
    }
}

/// Returns the value to send, or `None` to drop the member.
fn shared_value<'v>(facts: &ModelFacts, name: &str, value: &'v str) -> Option<Cow<'v, str>> {
    if facts.refuses(name) {
        return None;
    }
    let text = || serde_json::from_str::<Value>(value).ok().and_then(|value| value.as_str().map(str::to_owned));
    match name {
        "prompt_cache_key" => match (facts.prompt_cache_key_most, text()) {
            (Some(0), _) => None,
            (Some(most), Some(key)) => {
                let key = fitted(&key, NameRule { most, letters: Letters::Any }).into_owned();
                Some(Cow::Owned(Value::String(key).to_string()))
            }
            _ => Some(Cow::Borrowed(value)),
        },
        "prompt_cache_retention" => {
            let is_accepted = |accepted: &Vec<String>| text().is_some_and(|value| accepted.contains(&value));
            facts.cache_retentions.as_ref().is_none_or(is_accepted).then_some(Cow::Borrowed(value))
        }
        "service_tier" => {
            let is_accepted = text().map_or(facts.service_tiers.is_none(), |tier| facts.has_service_tier(&tier));
            is_accepted.then_some(Cow::Borrowed(value))
        }
        _ => Some(Cow::Borrowed(value)),
    }
}

/// Writes the members of a named schema. If the caller did not set `strict`, it is set when the schema allows it.
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
