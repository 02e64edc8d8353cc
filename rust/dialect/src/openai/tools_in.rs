//! Reads the tools of a chat request and the choice among them.

use std::borrow::Cow;

use fairlead_core::Error;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::members::tool_choice;
use crate::caller_tools::{offer, type_of, AllowedIn, CustomIn};
use crate::model::{typed, unsupported, wrong, Choice, Request, Tool};
use crate::text::Text;

/// Tools that some servers run themselves. An answer is useful without them.
const HOSTED: &[&str] = &["web_search", "code_interpreter", "file_search", "image_generation"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolIn<'a> {
    r#type: Cow<'a, str>,
    #[serde(borrow, default)]
    function: Option<FunctionIn<'a>>,
    #[serde(borrow, default)]
    custom: Option<CustomIn<'a>>,
    #[serde(borrow, default)]
    cache_control: Option<&'a RawValue>,
    // Members of other dialects about the loading of a tool. All tools are offered from the start.
    #[serde(default, rename = "defer_loading")]
    _defer_loading: Option<serde::de::IgnoredAny>,
    #[serde(default, rename = "allowed_callers")]
    _allowed_callers: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FunctionIn<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow, default)]
    description: Option<Text<'a>>,
    #[serde(borrow, default)]
    parameters: Option<&'a RawValue>,
    #[serde(default)]
    strict: Option<bool>,
}

/// Reads the tools of a request. Ollama's dialect has them in the same format.
pub(crate) fn read<'a>(value: &'a RawValue, request: &mut Request<'a>) -> Result<(), Error> {
    let list: Vec<&'a RawValue> = typed(value, "tools")?;
    for (at, raw) in list.into_iter().enumerate() {
        let path = format!("tools[{at}]");
        // A tool that is not a function has other members, so an error is about its type.
        let kind = type_of(raw, &path)?;
        if let Some(name) = HOSTED.iter().find(|name| kind.starts_with(**name)) {
            request.hosted_tools.push((*name).to_owned());
            continue;
        }
        if !matches!(&*kind, "function" | "custom") {
            request.extras.push((Cow::Owned(format!("{path}.type")), raw.get()));
            continue;
        }
        let tool: ToolIn<'a> = typed(raw, &path)?;
        let cache = tool.cache_control.map(RawValue::get);
        match (&*tool.r#type, tool.function, tool.custom) {
            ("custom", _, Some(custom)) => custom.add_to(None, request),
            ("custom", _, None) => return Err(wrong(&format!("{path}.custom"), "is required")),
            (_, Some(FunctionIn { name, description, parameters, strict }), _) => {
                let schema = parameters.map(|schema| schema.get().into());
                offer(Tool { name, description, schema, strict, cache }, request);
            }
            (_, None, _) => return Err(wrong(&format!("{path}.function"), "is required")),
        }
    }
    Ok(())
}

/// Reads `tool_choice`. Only functions and custom tools have names, and both are functions at the provider.
pub(super) fn read_choice<'a>(value: &'a RawValue, request: &mut Request<'a>) -> Result<(), Error> {
    #[derive(Deserialize)]
    struct SeveralIn<'a> {
        #[serde(borrow)]
        allowed_tools: AllowedIn<'a>,
    }
    if value.get().starts_with('{') && type_of(value, "tool_choice")? == "allowed_tools" {
        let AllowedIn { mode, tools } = typed::<SeveralIn<'a>>(value, "tool_choice")?.allowed_tools;
        let mut names = Vec::with_capacity(tools.len());
        for (at, raw) in tools.into_iter().enumerate() {
            names.push(chosen(raw, &format!("tool_choice.allowed_tools.tools[{at}]"))?);
        }
        request.allowed_tools = Some(names);
        request.choice = Some(if mode.as_deref() == Some("required") { Choice::Any } else { Choice::Auto });
        return Ok(());
    }
    request.choice = Some(tool_choice(value, |value| chosen(value, "tool_choice").map(Choice::One))?);
    Ok(())
}

fn chosen<'a>(value: &'a RawValue, path: &str) -> Result<Text<'a>, Error> {
    #[derive(Deserialize)]
    struct ChosenIn<'a> {
        #[serde(borrow, default)]
        function: Option<NamedIn<'a>>,
        #[serde(borrow, default)]
        custom: Option<NamedIn<'a>>,
    }
    #[derive(Deserialize)]
    struct NamedIn<'a> {
        #[serde(borrow)]
        name: Text<'a>,
    }
    let kind = type_of(value, path)?;
    let ChosenIn { function, custom } = typed(value, path)?;
    let named = match &*kind {
        "function" => function,
        "custom" => custom,
        _ => return Err(unsupported(&format!("{path}.type"))),
    };
    named.map(|named| named.name).ok_or_else(|| wrong(&format!("{path}.{kind}"), "is required"))
}
