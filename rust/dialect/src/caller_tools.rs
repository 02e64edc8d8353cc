//! Tools that only the caller's dialect has, sent to a provider as functions.
//!
//! A custom tool takes a text, a namespace groups functions, and the caller itself runs shells and patches. Every
//! provider has functions, so each of these tools becomes one. The answer's call has the caller's form again.

use std::borrow::Cow;
use std::collections::HashSet;

use fairlead_core::Error;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::call_form::{CallForm, CallerTool};
use crate::model::{typed, Request, Tool};
use crate::text::{Text, Writer};
use crate::text_argument::PARAMETER;

/// A custom tool. Both OpenAI dialects define it with the same members.
#[derive(Deserialize)]
pub(crate) struct CustomIn<'a> {
    #[serde(borrow)]
    pub(crate) name: Text<'a>,
    #[serde(borrow, default)]
    description: Option<Text<'a>>,
    #[serde(borrow, default)]
    format: Option<FormatIn<'a>>,
}

/// The format of the text. Chat has a grammar's members in an object.
#[derive(Deserialize)]
struct FormatIn<'a> {
    #[serde(borrow, default)]
    definition: Option<Text<'a>>,
    #[serde(borrow, default)]
    syntax: Option<Text<'a>>,
    #[serde(borrow, default)]
    grammar: Option<GrammarIn<'a>>,
}

#[derive(Deserialize)]
struct GrammarIn<'a> {
    #[serde(borrow)]
    definition: Text<'a>,
    #[serde(borrow, default)]
    syntax: Option<Text<'a>>,
}

const TEXT_SCHEMA: &str = r#"{"type":"object","properties":{"input":{"type":"string","description":"The complete input of the tool: plain text, not JSON."}},"required":["input"],"additionalProperties":false}"#;

impl<'a> CustomIn<'a> {
    /// Adds the tool to the request as a function with one text parameter. The description contains the grammar,
    /// because no other dialect can enforce it.
    pub(crate) fn add_to(self, namespace: Option<&str>, request: &mut Request<'a>) {
        let grammar = self.format.and_then(|format| match format.grammar {
            Some(GrammarIn { definition, syntax }) => Some((definition, syntax)),
            None => format.definition.map(|definition| (definition, format.syntax)),
        });
        let description = match grammar {
            None => self.description,
            Some((definition, syntax)) => {
                let own = self.description.as_ref().map(Text::decode).unwrap_or_default();
                let syntax = syntax.as_ref().map_or(String::new(), |syntax| format!(" ({})", syntax.decode()));
                let text = format!("{own}\n\nThe input must match this grammar{syntax}:\n{}", definition.decode());
                Some(text.trim_start().to_owned().into())
            }
        };
        let schema = Some(TEXT_SCHEMA.into());
        let tool = Tool { name: self.name, description, schema, strict: None, cache: None };
        add(tool, namespace, CallForm::Custom, request);
    }
}

/// Adds a tool under a name that no other tool of the request has. A search can find a tool that is already offered.
pub(crate) fn add<'a>(mut tool: Tool<'a>, namespace: Option<&str>, form: CallForm, request: &mut Request<'a>) {
    let own = tool.name.decode().into_owned();
    if request.offered.caller_tool(namespace, form, &own).is_some() {
        return;
    }
    let mut sent = flat_name(namespace, &own);
    while request.offered.has(&sent) {
        sent.push('_');
    }
    tool.name = sent.clone().into();
    let changed = CallerTool { sent, own, namespace: namespace.map(str::to_owned), form };
    request.offered.insert_caller_tool(&changed, request.caller_tools.len());
    request.caller_tools.push(changed);
    offer(tool, request);
}

/// Adds a tool under its own name.
pub(crate) fn offer<'a>(tool: Tool<'a>, request: &mut Request<'a>) {
    request.offered.insert(&tool.name.decode());
    request.tools.push(tool);
}

/// Returns the name of a function in a namespace. Some namespaces end with the separator.
fn flat_name(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        None => name.to_owned(),
        Some(namespace) if namespace.ends_with("__") => format!("{namespace}{name}"),
        Some(namespace) => format!("{namespace}__{name}"),
    }
}

/// Returns the function's name for a call or a choice of the caller, which may name a tool that is no longer offered.
pub(crate) fn sent_name<'a>(
    request: &Request<'_>,
    namespace: Option<&str>,
    form: CallForm,
    name: &Text<'a>,
) -> Text<'a> {
    if namespace.is_none() && form == CallForm::Function {
        return name.clone();
    }
    let own = name.decode();
    match request.offered.caller_tool(namespace, form, &own).and_then(|at| request.caller_tools.get(at)) {
        Some(tool) => tool.sent.clone().into(),
        None => flat_name(namespace, &own).into(),
    }
}

/// Writes the arguments of an earlier call to a custom tool.
pub(crate) fn text_arguments(input: &Text<'_>) -> String {
    let mut out = Writer::default();
    out.open(b'{').member(PARAMETER, input).close(b'}');
    String::from_utf8(out.take()).unwrap_or_default()
}

/// Offers only the allowed tools, in the order of the request.
pub(crate) fn offer_allowed(request: &mut Request<'_>) {
    let Some(names) = request.allowed_tools.take() else { return };
    let names: HashSet<Cow<'_, str>> = names.iter().map(Text::decode).collect();
    request.tools.retain(|tool| names.contains(&tool.name.decode()));
}

/// The words that name a choice of several tools.
#[derive(Deserialize)]
pub(crate) struct AllowedIn<'a> {
    #[serde(default)]
    pub(crate) mode: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) tools: Vec<&'a RawValue>,
}

/// Reads the type of a tool or a choice.
pub(crate) fn type_of<'a>(raw: &'a RawValue, path: &str) -> Result<std::borrow::Cow<'a, str>, Error> {
    #[derive(Deserialize)]
    struct TypeIn<'a> {
        #[serde(borrow)]
        r#type: std::borrow::Cow<'a, str>,
    }
    Ok(typed::<TypeIn<'a>>(raw, path)?.r#type)
}
