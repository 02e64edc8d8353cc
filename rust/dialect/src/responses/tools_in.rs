//! Reads the tools of a responses request and the choice among them.

use std::borrow::Cow;

use fairlead_core::Error;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::call_form::CallForm;
use crate::caller_tools::{add, offer, sent_name, type_of, AllowedIn, CustomIn};
use crate::model::{typed, unsupported, wrong, Choice, Request, Tool};
use crate::openai::members::tool_choice;
use crate::text::Text;

/// Server tools of OpenAI, or tools for its own resources. An answer is useful without them.
const HOSTED: &[&str] = &["web_search", "image_generation", "code_interpreter", "file_search", "tool_search"];

/// A function. Members about its loading and its result mean nothing elsewhere.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FunctionIn<'a> {
    /// Already checked.
    #[serde(rename = "type")]
    _type: serde::de::IgnoredAny,
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow, default)]
    description: Option<Text<'a>>,
    #[serde(borrow, default)]
    parameters: Option<&'a RawValue>,
    #[serde(default)]
    strict: Option<bool>,
    #[serde(borrow, default)]
    cache_control: Option<&'a RawValue>,
    #[serde(default, rename = "defer_loading")]
    _defer_loading: Option<serde::de::IgnoredAny>,
    #[serde(default, rename = "output_schema")]
    _output_schema: Option<serde::de::IgnoredAny>,
    #[serde(default, rename = "allowed_callers")]
    _allowed_callers: Option<serde::de::IgnoredAny>,
    #[serde(default, rename = "async")]
    _async: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct NamespaceIn<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow, default)]
    description: Option<Text<'a>>,
    #[serde(borrow, default)]
    tools: Vec<&'a RawValue>,
}

/// A shell or a search: who runs it, and the parameters of a search.
#[derive(Deserialize)]
struct RunnerIn<'a> {
    #[serde(borrow, default)]
    environment: Option<EnvironmentIn<'a>>,
    #[serde(default)]
    execution: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    description: Option<Text<'a>>,
    #[serde(borrow, default)]
    parameters: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct EnvironmentIn<'a> {
    r#type: Cow<'a, str>,
}

/// A tool that the caller runs, as a function whose parameters are a member of the call's item.
struct Runner {
    kind: &'static str,
    form: CallForm,
    description: &'static str,
    schema: &'static str,
}

const RUNNERS: &[Runner] = &[
    Runner {
        kind: "local_shell",
        form: CallForm::LocalShell,
        description: "Runs a command on the user's machine and returns its output.",
        schema: r#"{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"},"description":"The program and its arguments, for example [\"bash\",\"-lc\",\"ls\"]."},"working_directory":{"type":"string"},"timeout_ms":{"type":"integer"},"env":{"type":"object","additionalProperties":{"type":"string"}}},"required":["command"]}"#,
    },
    Runner {
        kind: "shell",
        form: CallForm::Shell,
        description: "Runs shell commands on the user's machine and returns the output of each.",
        schema: r#"{"type":"object","properties":{"commands":{"type":"array","items":{"type":"string"},"description":"The shell commands, one an element."},"timeout_ms":{"type":"integer"},"max_output_length":{"type":"integer"}},"required":["commands"]}"#,
    },
    Runner {
        kind: "apply_patch",
        form: CallForm::ApplyPatch,
        description:
            "Creates, updates or deletes one file. `diff` is a diff in the V4A format: lines that begin with a \
                      space, `+` or `-`, in sections that begin with `@@`. A new file has only lines with `+`.",
        schema: r#"{"type":"object","properties":{"type":{"type":"string","enum":["create_file","update_file","delete_file"]},"path":{"type":"string"},"diff":{"type":"string","description":"Required to create or update a file."}},"required":["type","path"]}"#,
    },
    Runner {
        kind: "tool_search",
        form: CallForm::ToolSearch,
        description: "Finds tools for a task. The tools that it returns can be called from then on.",
        schema: r#"{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}"#,
    },
];

/// Adds the tools of a list to the request.
pub(super) fn read<'a>(value: &'a RawValue, path: &str, request: &mut Request<'a>) -> Result<(), Error> {
    let list: Vec<&'a RawValue> = typed(value, path)?;
    for (at, raw) in list.into_iter().enumerate() {
        one(raw, &format!("{path}[{at}]"), request)?;
    }
    Ok(())
}

fn one<'a>(raw: &'a RawValue, path: &str, request: &mut Request<'a>) -> Result<(), Error> {
    // A tool that is not a function has other members, so an error is about its type.
    let kind = type_of(raw, path)?;
    match &*kind {
        "function" => function(raw, path, None, request),
        "custom" => {
            typed::<CustomIn<'a>>(raw, path)?.add_to(None, request);
            Ok(())
        }
        "namespace" => namespace(raw, path, request),
        kind => {
            if let Some(runner) = RUNNERS.iter().find(|runner| runner.kind == kind) {
                let tool: RunnerIn<'a> = typed(raw, path)?;
                if is_run_by_caller(runner.form, &tool) {
                    runner.add_to(tool, request);
                    return Ok(());
                }
            }
            // Names such as `web_search_preview_2025_03_11` are versions.
            match HOSTED.iter().chain(&["shell"]).find(|name| kind.starts_with(**name)) {
                Some(name) => request.hosted_tools.push((*name).to_owned()),
                None => request.extras.push((Cow::Owned(format!("{path}.type")), raw.get())),
            }
            Ok(())
        }
    }
}

/// Returns whether the caller runs the tool, not OpenAI.
fn is_run_by_caller(form: CallForm, tool: &RunnerIn<'_>) -> bool {
    match form {
        CallForm::Shell => tool.environment.as_ref().is_none_or(|environment| environment.r#type == "local"),
        CallForm::ToolSearch => tool.execution.as_deref() == Some("client"),
        _ => true,
    }
}

impl Runner {
    fn add_to<'a>(&self, tool: RunnerIn<'a>, request: &mut Request<'a>) {
        let parameters =
            tool.parameters.map(|schema| Cow::Borrowed(schema.get())).filter(|schema| schema.starts_with('{'));
        let tool = Tool {
            name: self.kind.into(),
            description: Some(tool.description.unwrap_or_else(|| self.description.into())),
            schema: Some(parameters.unwrap_or(Cow::Borrowed(self.schema))),
            strict: None,
            cache: None,
        };
        add(tool, None, self.form, request);
    }
}

fn function<'a>(
    raw: &'a RawValue,
    path: &str,
    namespace: Option<&str>,
    request: &mut Request<'a>,
) -> Result<(), Error> {
    let FunctionIn { name, description, parameters, strict, cache_control, .. } = typed(raw, path)?;
    let schema = parameters.map(|schema| schema.get().into());
    let tool = Tool { name, description, schema, strict, cache: cache_control.map(RawValue::get) };
    match namespace {
        // A search can find a tool that is already offered.
        None if request.offered.has(&tool.name.decode()) => {}
        None => offer(tool, request),
        Some(_) => add(tool, namespace, CallForm::Function, request),
    }
    Ok(())
}

/// Adds the tools of a namespace. The first one describes the group.
fn namespace<'a>(raw: &'a RawValue, path: &str, request: &mut Request<'a>) -> Result<(), Error> {
    let NamespaceIn { name, description, tools } = typed(raw, path)?;
    let (name, first) = (name.decode(), request.tools.len());
    for (at, raw) in tools.into_iter().enumerate() {
        let path = format!("{path}.tools[{at}]");
        match &*type_of(raw, &path)? {
            "function" => function(raw, &path, Some(&name), request)?,
            "custom" => typed::<CustomIn<'a>>(raw, &path)?.add_to(Some(&name), request),
            _ => request.extras.push((Cow::Owned(format!("{path}.type")), raw.get())),
        }
    }
    if let (Some(tool), Some(group)) = (request.tools.get_mut(first), description.filter(|text| !text.is_empty())) {
        let own = tool.description.as_ref().map(Text::decode).unwrap_or_default();
        let text = format!("{own}\n\nTools named `{}` and so on: {}", tool.name.decode(), group.decode());
        tool.description = Some(text.trim_start().to_owned().into());
    }
    Ok(())
}

/// Reads the choice after the tools, because it can name one of them.
pub(super) fn read_choice<'a>(value: &'a RawValue, request: &mut Request<'a>) -> Result<(), Error> {
    if value.get().starts_with('{') && type_of(value, "tool_choice")? == "allowed_tools" {
        let AllowedIn { mode, tools } = typed(value, "tool_choice")?;
        let mut names = Vec::with_capacity(tools.len());
        for (at, raw) in tools.into_iter().enumerate() {
            let path = format!("tool_choice.tools[{at}]");
            names.extend(chosen(raw, &path, request)?);
        }
        request.allowed_tools = Some(names);
        request.choice = Some(if mode.as_deref() == Some("required") { Choice::Any } else { Choice::Auto });
        return Ok(());
    }
    request.choice = Some(tool_choice(value, |value| {
        let name = chosen(value, "tool_choice", request)?;
        name.map(Choice::One).ok_or_else(|| unsupported("tool_choice.type"))
    })?);
    Ok(())
}

/// Returns the function's name of a chosen tool. `None` for a tool of another provider that is not offered.
fn chosen<'a>(value: &'a RawValue, path: &str, request: &Request<'_>) -> Result<Option<Text<'a>>, Error> {
    #[derive(Deserialize)]
    struct ChosenIn<'a> {
        #[serde(borrow, default)]
        name: Option<Text<'a>>,
        #[serde(borrow, default)]
        namespace: Option<Text<'a>>,
    }
    let kind = type_of(value, path)?;
    let ChosenIn { name, namespace } = typed(value, path)?;
    let form = match &*kind {
        "function" => CallForm::Function,
        "custom" => CallForm::Custom,
        kind => match RUNNERS.iter().find(|runner| runner.kind == kind) {
            Some(runner) => {
                let name = runner.kind.into();
                return Ok(Some(sent_name(request, None, runner.form, &name)));
            }
            // The choice of a server tool is handled with these tools.
            None => return Ok(HOSTED.iter().find(|name| kind.starts_with(**name)).map(|name| (*name).into())),
        },
    };
    let name = name.ok_or_else(|| wrong(&format!("{path}.name"), "is required"))?;
    let namespace = namespace.as_ref().map(Text::decode);
    Ok(Some(sent_name(request, namespace.as_deref(), form, &name)))
}
