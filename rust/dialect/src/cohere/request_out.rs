//! Writes the model as a request of Cohere's chat, version 2.

use fairlead_core::{Error, ModelFacts};

use super::turns;
use crate::accepted::{sampling, Sampling};
use crate::fit::Destination;
use crate::left_out::LeftOut;
use crate::model::{Choice, Effort, Format, Member, Request, Tool};
use crate::portable_id::is_blank;
use crate::text::Writer;

/// Members of other dialects that may be dropped; see docs/explanation/dialects.md.
const DROPPED: &[&str] =
    &["prediction", "safetySettings", "labels", "service_tier", "context_management", "diagnostics"];
const ANY_OBJECT: &str = r#"{"type":"object","properties":{}}"#;
/// The largest `p`, and the largest `k`.
const MAX_P: f64 = 0.99;
const MIN_P: f64 = 0.01;
const MAX_K: f64 = 500.0;

/// Writes the body for the destination.
pub(crate) fn write(
    request: &Request<'_>,
    to: Destination<'_>,
    size_hint: usize,
    left_out: &mut LeftOut,
) -> Result<Vec<u8>, Error> {
    let mut out = Writer::with_capacity(size_hint + 256);
    out.open(b'{').key("model").str(to.model);
    if request.stream {
        out.key("stream").raw("true");
    }
    turns::write(&mut out, request, to.facts)?;
    tools(&mut out, request, left_out)?;
    limits(&mut out, request, to.facts, left_out);
    thinking(&mut out, request, to.facts, left_out);
    format(&mut out, request, left_out)?;
    left_out.hints(request.shared.iter().map(|(name, value)| (&**name, *value)));
    left_out.members(
        request,
        &[
            (Member::User, request.user.is_some()),
            (Member::Verbosity, request.verbosity.is_some()),
            (Member::Logprobs, request.logprobs.is_some()),
        ],
    )?;
    left_out.extras(request, DROPPED)?;
    Ok(out.close(b'}').take())
}

/// Writes the tools, and whether the model must call one. There is no choice of one tool, so only that tool is offered.
fn tools(out: &mut Writer, request: &Request<'_>, left_out: &mut LeftOut) -> Result<(), Error> {
    if request.tools.is_empty() {
        return Ok(());
    }
    let only = match &request.choice {
        Some(Choice::One(name)) => Some(name.decode()),
        _ => None,
    };
    let offered: Vec<&Tool<'_>> =
        request.tools.iter().filter(|tool| only.as_ref().is_none_or(|only| tool.name.decode() == *only)).collect();
    out.key("tools").open(b'[');
    for tool in &offered {
        out.open(b'{').key("type").raw(r#""function""#).key("function").open(b'{').member("name", &tool.name);
        if let Some(description) = tool.description.as_ref().filter(|text| !is_blank(text)) {
            out.member("description", description);
        }
        out.key("parameters").raw(tool.schema.as_deref().unwrap_or(ANY_OBJECT)).close(b'}').close(b'}');
    }
    out.close(b']');
    if offered.iter().all(|tool| tool.strict == Some(true)) {
        out.key("strict_tools").raw("true");
    }
    match &request.choice {
        Some(Choice::Any | Choice::One(_)) => drop(out.key("tool_choice").raw(r#""REQUIRED""#)),
        Some(Choice::Never) => drop(out.key("tool_choice").raw(r#""NONE""#)),
        Some(Choice::Auto) | None => {}
    }
    if request.parallel == Some(false) {
        left_out.member(request, Member::Parallel)?;
    }
    Ok(())
}

/// Writes the limits and samplers. Values beyond Cohere's ranges that mean no restriction are not sent.
fn limits(out: &mut Writer, request: &Request<'_>, facts: &ModelFacts, left_out: &mut LeftOut) {
    let is_thinking = request.reasoning.is_some_and(|effort| effort != Effort::Off);
    let Sampling { temperature, top_p, top_k } = sampling(request, facts, is_thinking, left_out);
    for (name, value) in [("max_tokens", request.max_tokens), ("temperature", temperature), ("seed", request.seed)] {
        if let Some(value) = value {
            out.key(name).raw(value);
        }
    }
    match top_p.and_then(|share| Some((share, share.parse::<f64>().ok()?))) {
        Some((_, share)) if share > MAX_P => {}
        Some((_, share)) if share < MIN_P => drop(out.key("p").raw("0.01")),
        Some((text, _)) => drop(out.key("p").raw(text)),
        None => {}
    }
    match top_k.and_then(|count| Some((count, count.parse::<f64>().ok()?))) {
        Some((_, count)) if count > MAX_K => drop(out.key("k").raw("500")),
        Some((text, _)) => drop(out.key("k").raw(text)),
        None => {}
    }
    for (name, member, value) in [
        ("frequency_penalty", Member::FrequencyPenalty, request.frequency_penalty),
        ("presence_penalty", Member::PresencePenalty, request.presence_penalty),
    ] {
        let Some(value) = value else { continue };
        if value.parse::<f64>().is_ok_and(|penalty| (0.0..=1.0).contains(&penalty)) {
            out.key(name).raw(value);
        } else {
            left_out.hint(request.name_of(member));
        }
    }
    if !request.stop.is_empty() {
        out.key("stop_sequences").open(b'[');
        for text in &request.stop {
            out.text(text);
        }
        out.close(b']');
    }
}

/// Writes whether the model reasons, for models that do.
fn thinking(out: &mut Writer, request: &Request<'_>, facts: &ModelFacts, left_out: &mut LeftOut) {
    let Some(effort) = request.reasoning else { return };
    if facts.thinking.is_none() {
        if effort != Effort::Off {
            left_out.hint(request.name_of(Member::Reasoning));
        }
        return;
    }
    let kind = if effort == Effort::Off { "disabled" } else { "enabled" };
    out.key("thinking").open(b'{').key("type").str(kind).close(b'}');
}

/// Writes the format of the answer. Cohere does not combine formats with tools.
fn format(out: &mut Writer, request: &Request<'_>, left_out: &mut LeftOut) -> Result<(), Error> {
    let Some(format) = &request.format else { return Ok(()) };
    if !request.tools.is_empty() {
        return left_out.format(request);
    }
    out.key("response_format").open(b'{').key("type").raw(r#""json_object""#);
    if let Format::Schema { schema, .. } = format {
        out.key("json_schema").raw(schema);
    }
    out.close(b'}');
    Ok(())
}
