//! Request members that both OpenAI dialects share.

use std::borrow::Cow;

use fairlead_core::{json, Error};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::{owned, typed, wrong, Choice, Effort, Format, Request};
use crate::text::Text;

/// Members that are forwarded unchanged to a provider of either dialect.
const PASSED_ON: &[&str] = &["store", "metadata", "service_tier", "prompt_cache_key", "prompt_cache_retention"];

/// Reads a member with the same meaning in both dialects. Returns `false` for a member that only the caller's dialect
/// has.
pub(crate) fn read_shared<'a>(name: &str, value: &'a RawValue, request: &mut Request<'a>) -> Result<bool, Error> {
    let raw = value.get();
    match name {
        // Handled elsewhere.
        "model" | "stream_options" => {}
        _ if raw == "null" => {}
        "stream" => request.stream = owned(value, name)?,
        "parallel_tool_calls" => request.parallel = Some(owned(value, name)?),
        "temperature" => request.temperature = Some(number(value, name)?),
        "top_p" => request.top_p = Some(number(value, name)?),
        "user" | "safety_identifier" => request.user = Some(typed(value, name)?),
        _ if PASSED_ON.contains(&name) => request.shared.push((Cow::Owned(name.to_owned()), raw)),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Reads `tool_choice`: a word, or an object with the function's name, whose position depends on the dialect.
pub(crate) fn tool_choice<'a>(
    value: &'a RawValue,
    one: impl FnOnce(&'a RawValue) -> Result<Choice<'a>, Error>,
) -> Result<Choice<'a>, Error> {
    Ok(match value.get() {
        "\"auto\"" => Choice::Auto,
        "\"required\"" => Choice::Any,
        "\"none\"" => Choice::Never,
        raw if raw.starts_with('"') => return Err(wrong("tool_choice", "must be auto, none, required or an object")),
        _ => one(value)?,
    })
}

pub(crate) fn count<'a>(value: &'a RawValue, path: &str) -> Result<&'a str, Error> {
    let fine = value.get().parse::<u32>().is_ok_and(|count| count > 0);
    fine.then(|| value.get()).ok_or_else(|| wrong(path, "must be a whole number of at least 1"))
}

pub(crate) fn number<'a>(value: &'a RawValue, path: &str) -> Result<&'a str, Error> {
    let fine = value.get().starts_with(|first: char| first == '-' || first.is_ascii_digit());
    fine.then(|| value.get()).ok_or_else(|| wrong(path, "must be a number"))
}

pub(crate) fn effort(value: &RawValue, path: &str) -> Result<Effort, Error> {
    Ok(match value.get() {
        "\"none\"" => Effort::Off,
        "\"minimal\"" => Effort::Minimal,
        "\"low\"" => Effort::Low,
        "\"medium\"" => Effort::Medium,
        "\"high\"" => Effort::High,
        "\"xhigh\"" | "\"max\"" => Effort::Most,
        _ => return Err(wrong(path, "must be none, minimal, low, medium, high or xhigh")),
    })
}

#[derive(Deserialize)]
pub(crate) struct SchemaIn<'a> {
    #[serde(borrow, default)]
    schema: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    description: Option<Text<'a>>,
    #[serde(default)]
    strict: Option<bool>,
}

impl<'a> SchemaIn<'a> {
    pub(crate) fn into_format(self, path: &str) -> Result<Format<'a>, Error> {
        let Self { schema, name, description, strict } = self;
        let schema = schema.ok_or_else(|| wrong(&format!("{path}.schema"), "is required"))?.get().into();
        Ok(Format::Schema { schema, name, description, strict })
    }
}

/// Checks that the arguments written by a model are a JSON object, because other dialects require one.
pub(crate) fn arguments<'a>(text: &Text<'a>, path: &str) -> Result<Cow<'a, str>, Error> {
    let text = text.decode();
    if text.trim().is_empty() {
        return Ok(Cow::Borrowed("{}"));
    }
    match json::scan_object(text.as_bytes(), &[], json::MAX_DEPTH) {
        Ok(_) => Ok(text),
        Err(_) => Err(wrong(path, "must be the text of a JSON object")),
    }
}
