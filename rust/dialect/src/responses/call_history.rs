//! Reads the calls of earlier answers and their results, in every form that this dialect has.

use std::borrow::Cow;

use fairlead_core::Error;
use serde_json::value::RawValue;

use super::item_in::{push_assistant_part, ItemIn, PartIn};
use super::tools_in;
use crate::call_form::CallForm;
use crate::caller_tools::{sent_name, text_arguments};
use crate::model::{wrong, Call, Content, Part, Request, Role, Turn};
use crate::openai::members::arguments;
use crate::openai::part::read_parts;
use crate::text::Text;

/// Items of server tools. No other provider accepts them.
const HOSTED: &[&str] = &[
    "web_search_call",
    "image_generation_call",
    "code_interpreter_call",
    "file_search_call",
    "mcp_list_tools",
    "mcp_call",
    "mcp_approval_request",
    "mcp_approval_response",
];

/// Reads an item that is a call or a result. Returns `false` for an item of another type.
pub(super) fn read<'a>(
    kind: &str,
    item: ItemIn<'a>,
    path: &dyn Fn() -> String,
    request: &mut Request<'a>,
) -> Result<bool, Error> {
    // Searches that OpenAI ran have no id, and all tools are offered anyway.
    let is_hosted_search = matches!(kind, "tool_search_call" | "tool_search_output")
        && (item.call_id.is_none() || item.execution.as_deref() == Some("server"));
    if is_hosted_search || HOSTED.contains(&kind) {
        return Ok(true);
    }
    match kind {
        "function_call" | "custom_tool_call" => named_call(kind, item, path, request)?,
        "local_shell_call" => call(item.action, CallForm::LocalShell, item.call_id.or(item.id), path, request)?,
        "shell_call" => call(item.action, CallForm::Shell, item.call_id, path, request)?,
        "apply_patch_call" => call(item.operation, CallForm::ApplyPatch, item.call_id, path, request)?,
        "tool_search_call" => call(item.arguments, CallForm::ToolSearch, item.call_id, path, request)?,
        "function_call_output"
        | "custom_tool_call_output"
        | "local_shell_call_output"
        | "shell_call_output"
        | "apply_patch_call_output"
        | "tool_search_output" => output(kind, item, path, request)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn missing(path: &dyn Fn() -> String, name: &str) -> Error {
    wrong(&format!("{}.{name}", path()), "is required")
}

/// Reads a call to a function or to a custom tool, which can be in a namespace.
fn named_call<'a>(
    kind: &str,
    item: ItemIn<'a>,
    path: &dyn Fn() -> String,
    request: &mut Request<'a>,
) -> Result<(), Error> {
    let id = item.call_id.ok_or_else(|| missing(path, "call_id"))?;
    let name = item.name.ok_or_else(|| missing(path, "name"))?;
    let namespace = item.namespace.as_ref().map(Text::decode);
    let (form, arguments) = if kind == "function_call" {
        let raw = item.arguments.ok_or_else(|| missing(path, "arguments"))?;
        let field = || format!("{}.arguments", path());
        let text = Text::of(raw).ok_or_else(|| wrong(&field(), "is not as it must be: expected a string"))?;
        (CallForm::Function, arguments(&text, &field())?)
    } else {
        let input = item.input.ok_or_else(|| missing(path, "input"))?;
        (CallForm::Custom, Cow::Owned(text_arguments(&input)))
    };
    let name = sent_name(request, namespace.as_deref(), form, &name);
    push_assistant_part(request, Part::new(path(), Content::Call(Call { id, name, arguments })));
    Ok(())
}

/// Reads a call to a tool that the caller runs. `arguments` is the item's member with the parameters.
fn call<'a>(
    arguments: Option<&'a RawValue>,
    form: CallForm,
    id: Option<Text<'a>>,
    path: &dyn Fn() -> String,
    request: &mut Request<'a>,
) -> Result<(), Error> {
    let id = id.ok_or_else(|| missing(path, "call_id"))?;
    let arguments = arguments.map(RawValue::get).filter(|arguments| arguments.starts_with('{')).unwrap_or("{}");
    let name = sent_name(request, None, form, &form.tool_name().into());
    push_assistant_part(request, Part::new(path(), Content::Call(Call { id, name, arguments: arguments.into() })));
    Ok(())
}

fn output<'a>(kind: &str, item: ItemIn<'a>, path: &dyn Fn() -> String, request: &mut Request<'a>) -> Result<(), Error> {
    let id = item.call_id.or(item.id.filter(|_| kind == "local_shell_call_output"));
    let id = id.ok_or_else(|| missing(path, "call_id"))?;
    let mut parts = Vec::new();
    match (kind, item.output, item.tools) {
        // The output of each command, as JSON.
        ("shell_call_output", Some(output), _) => parts.push(Part::text(Text::of_json(output))),
        ("apply_patch_call_output", None, _) => {}
        ("tool_search_output", _, Some(tools)) => {
            tools_in::read(tools, &format!("{}.tools", path()), request)?;
            parts.push(Part::text(Text::Plain(Cow::Borrowed(tools.get()))));
        }
        (_, Some(output), _) => read_parts::<PartIn<'a>>(output, || format!("{}.output", path()), &mut parts)?,
        (_, None, _) => return Err(missing(path, "output")),
    }
    let is_error = item.status.as_deref() == Some("failed");
    let content = Content::Result { id, parts, is_error };
    request.turns.push(Turn { role: Role::User, parts: vec![Part::new(path(), content)] });
    Ok(())
}
