//! Writes the model as a `Converse` request. The URL names the model and whether the answer is streamed.

use fairlead_core::{Error, Letters, Level, ModelFacts, NameRule, Thinking};

use super::{blocks, tools};
use crate::accepted::{level, sampling, Sampling};
use crate::fit::Destination;
use crate::left_out::LeftOut;
use crate::model::{Effort, Format, Member, Request};
use crate::text::Writer;

/// Members of other dialects that may be dropped; see docs/explanation/dialects.md.
const DROPPED: &[&str] = &["prediction", "safetySettings", "labels"];
/// The ids of tool calls that Bedrock accepts.
pub(super) const CALL_IDS: NameRule = NameRule { most: 64, letters: Letters::Identifier };

/// Writes the body for the destination.
pub(crate) fn write(
    request: &Request<'_>,
    to: Destination<'_>,
    size_hint: usize,
    left_out: &mut LeftOut,
) -> Result<Vec<u8>, Error> {
    let mut out = Writer::with_capacity(size_hint + 512);
    out.open(b'{');
    let cached = to.facts.cache_marks.is_some_and(|most| most > 0);
    let writing = blocks::Blocks { model: to.model, call_ids: to.facts.call_ids.unwrap_or(CALL_IDS), cached };
    writing.system(&mut out, request)?;
    writing.messages(&mut out, request)?;
    if !cached && blocks::has_marks(request) {
        left_out.hint("cache_control");
    }
    inference(&mut out, request, to, left_out)?;
    tools::write(&mut out, request, to.facts, left_out)?;
    output(&mut out, request, to.facts, left_out)?;
    left_out.hints(request.shared.iter().map(|(name, value)| (&**name, *value)));
    left_out.members(
        request,
        &[
            (Member::User, request.user.is_some()),
            (Member::Seed, request.seed.is_some()),
            (Member::Verbosity, request.verbosity.is_some()),
            (Member::FrequencyPenalty, request.frequency_penalty.is_some()),
            (Member::PresencePenalty, request.presence_penalty.is_some()),
            (Member::Logprobs, request.logprobs.is_some()),
        ],
    )?;
    left_out.extras(request, DROPPED)?;
    Ok(out.close(b'}').take())
}

/// Writes the limits and samplers, and what only some models accept: reasoning.
fn inference(
    out: &mut Writer,
    request: &Request<'_>,
    to: Destination<'_>,
    left_out: &mut LeftOut,
) -> Result<(), Error> {
    let effort = effort(request, to.facts, left_out);
    let is_thinking = effort.is_some() || to.facts.thinks_by_default == Some(true);
    let Sampling { mut temperature, top_p, top_k } = sampling(request, to.facts, is_thinking, left_out);
    // The other dialects' scale goes to 2, this one's to 1.
    if temperature.is_some_and(|number| number.parse::<f64>().is_ok_and(|number| number > 1.0)) {
        left_out.hint(request.name_of(Member::Temperature));
        temperature = Some("1");
    }
    if top_k.is_some() {
        // The member has another name for each vendor's models.
        left_out.member(request, Member::TopK)?;
    }
    let most = request.max_tokens;
    let stop = to.facts.refused.iter().any(|name| name == "stopSequences");
    if stop && !request.stop.is_empty() {
        left_out.member(request, Member::Stop)?;
    }
    let stop: &[_] = if stop { &[] } else { &request.stop };
    if most.or(temperature).or(top_p).is_some() || !stop.is_empty() {
        out.key("inferenceConfig").open(b'{');
        for (name, value) in [("maxTokens", most), ("temperature", temperature), ("topP", top_p)] {
            if let Some(value) = value {
                out.key(name).raw(value);
            }
        }
        if !stop.is_empty() {
            out.key("stopSequences").open(b'[');
            for text in stop {
                out.text(text);
            }
            out.close(b']');
        }
        out.close(b'}');
    }
    if let Some(effort) = effort {
        out.key("additionalModelRequestFields").open(b'{').key("reasoningConfig").open(b'{');
        out.key("type").raw(r#""enabled""#).key("maxReasoningEffort").str(effort).close(b'}').close(b'}');
    }
    Ok(())
}

/// Returns the reasoning effort to request, for models with `reasoningConfig`.
fn effort(request: &Request<'_>, facts: &ModelFacts, left_out: &mut LeftOut) -> Option<&'static str> {
    let effort = request.reasoning.filter(|effort| *effort != Effort::Off)?;
    let level = (facts.thinking == Some(Thinking::Effort))
        .then(|| level(facts.efforts.as_deref().unwrap_or_default(), effort))
        .flatten();
    if level.is_none() && facts.thinking != Some(Thinking::Always) {
        left_out.hint(request.name_of(Member::Reasoning));
    }
    level.map(Level::name)
}

/// Writes the format of the answer, for models with schemas.
fn output(out: &mut Writer, request: &Request<'_>, facts: &ModelFacts, left_out: &mut LeftOut) -> Result<(), Error> {
    match &request.format {
        None | Some(Format::Json) => Ok(()),
        Some(Format::Schema { schema, name, .. }) if facts.schemas.is_some() => {
            out.key("outputConfig").open(b'{').key("textFormat").open(b'{').key("type").raw(r#""json_schema""#);
            out.key("structure").open(b'{').key("jsonSchema").open(b'{').key("schema").str(schema);
            if let Some(name) = name {
                out.member("name", name);
            }
            out.close(b'}').close(b'}').close(b'}').close(b'}');
            Ok(())
        }
        Some(Format::Schema { .. }) => left_out.format(request),
    }
}
