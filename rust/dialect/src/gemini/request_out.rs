//! Writes the model as a generateContent request.

use std::collections::HashMap;

use fairlead_core::{Dialect, Error, Level, ModelFacts, NameRule, Output, Thinking};

use super::complete::write_call;
use super::part_out::write_part;
use super::schema::without_const;
use crate::accepted::{level, sampling, Sampling};
use crate::fit::Destination;
use crate::left_out::LeftOut;
use crate::model::{unsupported, Choice, Content, Effort, Format, Member, Part, Request, Role, Source};
use crate::signature::{for_gemini, UNSIGNED};
use crate::text::{Text, Writer};

/// Members of other dialects that may be dropped; see docs/explanation/dialects.md.
const DROPPED: &[&str] = &["cache_control", "service_tier", "context_management", "diagnostics", "prediction"];

/// Writes the body for the destination.
pub(crate) fn write(
    request: &Request<'_>,
    to: Destination<'_>,
    size_hint: usize,
    left_out: &mut LeftOut,
) -> Result<Vec<u8>, Error> {
    let facts = to.facts;
    let mut out = Writer::with_capacity(size_hint + 512);
    out.open(b'{');
    let format = FormatOut::of(request, facts);
    system(&mut out, request, facts, &format)?;
    contents(&mut out, request, facts, &format)?;
    tools(&mut out, request, facts, left_out)?;
    generation(&mut out, request, facts, &format, left_out)?;
    left_out.hints(request.shared.iter().map(|(name, value)| (&**name, *value)));
    left_out.members(
        request,
        &[
            (Member::User, request.user.is_some()),
            (Member::Verbosity, request.verbosity.is_some()),
            (Member::Parallel, request.parallel == Some(false) && !request.tools.is_empty()),
            (Member::Logprobs, request.logprobs.is_some()),
        ],
    )?;
    left_out.extras(request, DROPPED)?;
    Ok(out.close(b'}').take())
}

/// How a request asks for JSON.
enum FormatOut {
    None,
    /// By members of `generationConfig`.
    Members,
    /// By an instruction, because the model does not accept the members, or not beside tools.
    Words(String),
}

impl FormatOut {
    fn of(request: &Request<'_>, facts: &ModelFacts) -> Self {
        let Some(format) = &request.format else { return Self::None };
        let is_beside_tools = !request.tools.is_empty() && facts.tools_with_schema == Some(false);
        if !is_beside_tools && !facts.refuses("responseMimeType") {
            return Self::Members;
        }
        Self::Words(match format {
            Format::Json => "Answer with one JSON object and nothing else.".to_owned(),
            Format::Schema { schema, .. } => {
                format!("Answer with one JSON object that follows this JSON schema, and nothing else:\n{schema}")
            }
        })
    }

    fn words(&self) -> Option<&str> {
        match self {
            Self::Words(words) => Some(words),
            Self::None | Self::Members => None,
        }
    }
}

fn system(out: &mut Writer, request: &Request<'_>, facts: &ModelFacts, format: &FormatOut) -> Result<(), Error> {
    let words = format.words().filter(|_| facts.system != Some(false));
    if request.system.is_empty() && words.is_none() {
        return Ok(());
    }
    out.key("systemInstruction").open(b'{').key("parts").open(b'[');
    for part in &request.system {
        let Content::Text(text) = &part.content else { return Err(unsupported(&part.path)) };
        out.open(b'{').member("text", text).close(b'}');
    }
    if let Some(words) = words {
        out.open(b'{').key("text").str(words).close(b'}');
    }
    out.close(b']').close(b'}');
    Ok(())
}

fn tools(out: &mut Writer, request: &Request<'_>, facts: &ModelFacts, left_out: &mut LeftOut) -> Result<(), Error> {
    if request.tools.is_empty() {
        return Ok(());
    }
    if facts.refuses("tools") {
        return left_out.refuse("tools");
    }
    out.key("tools").open(b'[').open(b'{').key("functionDeclarations").open(b'[');
    for tool in &request.tools {
        out.open(b'{').member("name", &tool.name);
        if let Some(description) = &tool.description {
            out.member("description", description);
        }
        if let Some(schema) = &tool.schema {
            out.key("parametersJsonSchema").raw(&without_const(schema));
        }
        out.close(b'}');
    }
    out.close(b']').close(b'}').close(b']');
    let (mode, one) = match &request.choice {
        None => return Ok(()),
        Some(Choice::Auto) => ("AUTO", None),
        Some(Choice::Any) => ("ANY", None),
        Some(Choice::Never) => ("NONE", None),
        Some(Choice::One(name)) => ("ANY", Some(name)),
    };
    out.key("toolConfig").open(b'{').key("functionCallingConfig").open(b'{').key("mode").str(mode);
    if let Some(name) = one {
        out.key("allowedFunctionNames").open(b'[').text(name).close(b']');
    }
    out.close(b'}').close(b'}');
    Ok(())
}

fn generation(
    out: &mut Writer,
    request: &Request<'_>,
    facts: &ModelFacts,
    written: &FormatOut,
    left_out: &mut LeftOut,
) -> Result<(), Error> {
    let mut inner = Writer::default();
    inner.open(b'{');
    samplers(&mut inner, request, facts, left_out)?;
    if !request.stop.is_empty() {
        inner.key("stopSequences").open(b'[');
        for text in &request.stop {
            inner.text(text);
        }
        inner.close(b']');
    }
    if let (Some(format), FormatOut::Members) = (&request.format, written) {
        inner.key("responseMimeType").str("application/json");
        if let Format::Schema { schema, .. } = format {
            inner.key("responseJsonSchema").raw(&without_const(schema));
        }
    }
    outputs(&mut inner, request, facts, left_out)?;
    match request.reasoning {
        Some(effort) if facts.thinking != Some(Thinking::Never) => thinking(&mut inner, effort, facts),
        Some(Effort::Off) | None => {}
        Some(_) => left_out.hint(request.name_of(Member::Reasoning)),
    }
    let inner = inner.close(b'}').take();
    if inner != b"{}" {
        out.key("generationConfig").spliced(&inner);
    }
    Ok(())
}

/// Writes the kinds of output. Models with fixed outputs reject a request that does not name them.
fn outputs(out: &mut Writer, request: &Request<'_>, facts: &ModelFacts, left_out: &mut LeftOut) -> Result<(), Error> {
    let outputs = match (&request.outputs, &facts.outputs) {
        (Some(requested), Some(only)) if requested.iter().any(|output| !only.contains(output)) => {
            left_out.member(request, Member::Outputs)?;
            only
        }
        (Some(requested), _) => requested,
        (None, Some(only)) => only,
        (None, None) => return Ok(()),
    };
    out.key("responseModalities").open(b'[');
    for output in outputs {
        out.raw(match output {
            Output::Text => r#""TEXT""#,
            Output::Image => r#""IMAGE""#,
            Output::Audio => r#""AUDIO""#,
        });
    }
    out.close(b']');
    if let Some(voice) = &request.voice {
        out.key("speechConfig").open(b'{').key("voiceConfig").open(b'{').key("prebuiltVoiceConfig").open(b'{');
        out.member("voiceName", voice).close(b'}').close(b'}').close(b'}');
    }
    Ok(())
}

fn samplers(out: &mut Writer, request: &Request<'_>, facts: &ModelFacts, left_out: &mut LeftOut) -> Result<(), Error> {
    // Gemini accepts the samplers with and without reasoning.
    let Sampling { temperature, top_p, top_k } = sampling(request, facts, false, left_out);
    for (name, value, member) in [
        ("temperature", temperature, Some(Member::Temperature)),
        ("topP", top_p, Some(Member::TopP)),
        ("topK", top_k, Some(Member::TopK)),
        ("maxOutputTokens", request.max_tokens, None),
        ("seed", request.seed, Some(Member::Seed)),
        ("presencePenalty", request.presence_penalty, Some(Member::PresencePenalty)),
        ("frequencyPenalty", request.frequency_penalty, Some(Member::FrequencyPenalty)),
    ] {
        match (value, member) {
            (Some(_), Some(member)) if facts.refuses(name) => left_out.member(request, member)?,
            (Some(value), _) => drop(out.key(name).raw(value)),
            (None, _) => {}
        }
    }
    Ok(())
}

/// Writes the reasoning configuration. The second generation accepts a budget in tokens, later ones a level. A model
/// whose reasoning cannot be disabled gets the minimum.
fn thinking(out: &mut Writer, effort: Effort, facts: &ModelFacts) {
    const LEVELS: &[Level] = &[Level::Minimal, Level::Low, Level::Medium, Level::High];
    let efforts = facts.efforts.as_deref().unwrap_or(LEVELS);
    out.key("thinkingConfig").open(b'{');
    if facts.thinking == Some(Thinking::Budget) {
        let (least, most) = (facts.budget_least.unwrap_or(0), facts.budget_most.unwrap_or(u64::MAX));
        let wanted: u64 = match effort {
            Effort::Off => 0,
            Effort::Minimal => 512,
            Effort::Low => 1_024,
            Effort::Medium => 8_192,
            Effort::High | Effort::Most => 24_576,
        };
        let is_off = effort == Effort::Off && (facts.efforts.is_none() || efforts.contains(&Level::None));
        out.key("thinkingBudget").number(if is_off { 0 } else { wanted.max(least).min(most) });
    } else {
        let level = level(efforts, if effort == Effort::Off { Effort::Minimal } else { effort });
        out.key("thinkingLevel").str(&level.unwrap_or(Level::Low).name().to_ascii_uppercase());
    }
    if effort != Effort::Off {
        out.key("includeThoughts").raw("true");
    }
    out.close(b'}');
}

/// Merges consecutive turns of one role into one content, because the results of parallel calls must be in the same
/// content.
fn contents(out: &mut Writer, request: &Request<'_>, facts: &ModelFacts, format: &FormatOut) -> Result<(), Error> {
    let ids: Option<NameRule> = facts.call_ids;
    let mut words = format.words().filter(|_| facts.system == Some(false));
    // A result refers to its function's name as well.
    let mut names: HashMap<String, &Text<'_>> = HashMap::new();
    // The second generation rejects call ids.
    let has_ids = ids.is_none_or(|rule| rule.most > 0);
    out.key("contents").open(b'[');
    for run in request.turns.chunk_by(|one, next| one.role == next.role) {
        let [first, ..] = run else { continue };
        let is_model = first.role == Role::Assistant;
        let parts = || run.iter().flat_map(|turn| &turn.parts).filter(|part| !is_left_out(part));
        if parts().next().is_none() {
            continue;
        }
        out.open(b'{').key("role").str(if is_model { "model" } else { "user" }).key("parts").open(b'[');
        if let Some(words) = words.take_if(|_| !is_model) {
            out.open(b'{').key("text").str(words).close(b'}');
        }
        let mut signature = None;
        let mut has_call = false;
        // Chat has the calls of a message after its text, so the signature before the text is that of the first call.
        let signs_call =
            request.form == Dialect::Openai && parts().any(|part| matches!(part.content, Content::Call(_)));
        for part in parts() {
            match &part.content {
                Content::Thinking { signature: Some(own), .. } => signature = Some(own.decode().into_owned()),
                Content::Call(call) => {
                    names.insert(call.id.decode().into_owned(), &call.name);
                    let own = signature.take();
                    let own = own.as_deref().and_then(for_gemini);
                    let is_first = !std::mem::replace(&mut has_call, true);
                    write_call(out, call, has_ids, own.or(is_first.then_some(UNSIGNED)));
                }
                Content::Result { id, parts, is_error } => {
                    let name = names.get(&*id.decode()).copied();
                    let name = name.ok_or_else(|| {
                        crate::model::wrong(&part.path, "answers a call that is not in the conversation")
                    })?;
                    result(out, Some(id).filter(|_| has_ids), name, parts, *is_error)?;
                }
                Content::Text(_) if signs_call => write_part(out, part, None)?,
                _ => {
                    let own = signature.take();
                    write_part(out, part, own.as_deref().and_then(for_gemini))?;
                }
            }
        }
        out.close(b']').close(b'}');
    }
    out.close(b']');
    Ok(())
}

/// Returns whether to drop a part. Reasoning is sent only as a signature, and only to the vendor that created it. An
/// empty text would be rejected and has no value.
fn is_left_out(part: &Part<'_>) -> bool {
    match &part.content {
        Content::Text(text) => text.is_empty(),
        Content::Thinking { signature, .. } => {
            signature.as_ref().is_none_or(|signature| for_gemini(&signature.decode()).is_none())
        }
        Content::Redacted(_) => true,
        _ => false,
    }
}

fn result(
    out: &mut Writer,
    id: Option<&Text<'_>>,
    name: &Text<'_>,
    parts: &[Part<'_>],
    is_error: bool,
) -> Result<(), Error> {
    out.open(b'{').key("functionResponse").open(b'{');
    if let Some(id) = id {
        out.member("id", id);
    }
    out.member("name", name);
    out.key("response").open(b'{').key(if is_error { "error" } else { "output" });
    let texts: Vec<&Text<'_>> = parts
        .iter()
        .filter_map(|part| match &part.content {
            Content::Text(text) | Content::Note { text, .. } => Some(text),
            _ => None,
        })
        .collect();
    match texts.as_slice() {
        [one] => drop(out.text(one)),
        several => {
            let several: Vec<_> = several.iter().map(|text| text.decode()).collect();
            out.str(&several.join("\n"));
        }
    }
    out.close(b'}');
    let mut shown =
        parts.iter().filter(|part| !matches!(part.content, Content::Text(_) | Content::Note { .. })).peekable();
    if shown.peek().is_some() {
        out.key("parts").open(b'[');
        shown.try_for_each(|part| match &part.content {
            Content::Image(Source::Base64 { .. }) | Content::Document { source: Source::Base64 { .. }, .. } => {
                write_part(out, part, None)
            }
            _ => Err(unsupported(&part.path)),
        })?;
        out.close(b']');
    }
    out.close(b'}').close(b'}');
    Ok(())
}
