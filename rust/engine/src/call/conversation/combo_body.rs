//! Applies a combo's instructions and tool filter to a request. It edits the body in the caller's dialect, before
//! translation.

use crate::call::context::Call;
use crate::call::conversation::read;
use bytes::Bytes;
use fairlead_context::add_system_prompt;
use fairlead_core::strategy::ToolFilter;
use fairlead_core::{Dialect, Error, ErrorKind, SystemPrompt};
use fairlead_dialect::openai::request::ChatRequest;
use serde_json::{Map, Value};

/// Returns the request with the instructions and tool filter of its combo.
pub fn shape(call: &Call, body: Bytes, request: ChatRequest) -> Result<(Bytes, ChatRequest), Error> {
    let Some(combo) = &call.choice.combo else { return Ok((body, request)) };
    let admission = &call.settlement.admission;
    let (system, tools) = (combo.rules.system_message.as_deref(), combo.tools.as_ref());
    let Some(shaped) = shaped(admission.dialect, &body, system, tools)? else { return Ok((body, request)) };
    let request = read::again(admission, &shaped, request)?;
    Ok((shaped, request))
}

/// Returns the changed body; `None` if the combo changes nothing.
pub fn shaped(
    caller: Dialect,
    body: &Bytes,
    system: Option<&str>,
    tools: Option<&ToolFilter>,
) -> Result<Option<Bytes>, Error> {
    if system.is_none() && tools.is_none() {
        return Ok(None);
    }
    let instructed = system.and_then(|system| {
        let prompt = SystemPrompt { prefix: system.to_owned(), suffix: String::new() };
        add_system_prompt(caller, body, &prompt).map(Bytes::from)
    });
    let Some(tools) = tools else { return Ok(instructed) };
    // The next parser of the body reports what is wrong with it.
    let Ok(Value::Object(mut fields)) = serde_json::from_slice(instructed.as_ref().unwrap_or(body)) else {
        return Ok(None);
    };
    filter(caller, &mut fields, tools)?;
    Ok(Some(Bytes::from(Value::Object(fields).to_string())))
}

/// The tool's name, or its type for a tool that the provider runs.
fn name_of(tool: &Value) -> &str {
    let name = tool["function"]["name"].as_str().or(tool["custom"]["name"].as_str()).or(tool["name"].as_str());
    name.or(tool["type"].as_str()).unwrap_or_default()
}

fn filter(caller: Dialect, fields: &mut Map<String, Value>, tools: &ToolFilter) -> Result<(), Error> {
    if let Some(forced) = forced_tool(fields).filter(|forced| !tools.admits(forced)) {
        let message = format!(
            "The tool `{forced}` must be called, and the combo's `toolFilterRegex` leaves it out; name another, or none."
        );
        return Err(Error::client(ErrorKind::InvalidRequest, message).about("tool_choice"));
    }
    let mut is_left = false;
    for member in ["tools", "functions"] {
        let Some(list) = fields.get_mut(member).and_then(Value::as_array_mut) else { continue };
        if caller == Dialect::Gemini {
            for group in list.iter_mut() {
                filter_group(group, tools);
            }
            list.retain(|group| group.as_object().is_some_and(|members| !members.is_empty()));
        } else {
            list.retain(|tool| tools.admits(name_of(tool)));
        }
        if list.is_empty() {
            fields.remove(member);
        } else {
            is_left = true;
        }
    }
    if !is_left {
        for member in ["tool_choice", "function_call", "parallel_tool_calls", "toolConfig", "tool_config"] {
            fields.remove(member);
        }
    }
    Ok(())
}

/// An entry of Gemini's tools is a group of functions, or a tool that the provider runs, named by its member.
fn filter_group(group: &mut Value, tools: &ToolFilter) {
    let Some(members) = group.as_object_mut() else { return };
    members.retain(|name, value| match name.as_str() {
        "functionDeclarations" | "function_declarations" => value.as_array_mut().is_some_and(|functions| {
            functions.retain(|function| tools.admits(function["name"].as_str().unwrap_or_default()));
            !functions.is_empty()
        }),
        hosted => tools.admits(hosted),
    });
}

/// The tool that the caller forces the model to call.
fn forced_tool(fields: &Map<String, Value>) -> Option<String> {
    let choice = fields.get("tool_choice").or(fields.get("function_call"))?;
    let name = choice["function"]["name"].as_str().or(choice["custom"]["name"].as_str());
    name.or(choice["name"].as_str()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use Dialect::{Anthropic, Gemini, Openai, OpenaiResponses};

    fn shape(caller: Dialect, body: &Value, system: Option<&str>, tools: Option<&str>) -> Result<Value, Error> {
        let filter = tools.map(ToolFilter::new);
        let shaped = shaped(caller, &Bytes::from(body.to_string()), system, filter.as_ref())?;
        Ok(shaped.map_or(Value::Null, |shaped| serde_json::from_slice(&shaped).expect("JSON")))
    }

    #[test]
    fn instructions_stand_before_the_callers_own() {
        let instructed = |caller, body: Value| shape(caller, &body, Some("S"), None).expect("said");
        let user = json!({"role": "user", "content": "hi"});
        assert_eq!(
            instructed(Openai, json!({"messages": [user]}))["messages"],
            json!([{"role": "system", "content": "S"}, user])
        );
        assert_eq!(instructed(Anthropic, json!({"system": "own"}))["system"], "S\n\nown");
        assert_eq!(instructed(Anthropic, json!({}))["system"], "S");
        let blocks =
            |texts: &[&str]| json!(texts.iter().map(|text| json!({"type": "text", "text": text})).collect::<Vec<_>>());
        assert_eq!(instructed(Anthropic, json!({"system": blocks(&["own"])}))["system"], blocks(&["S", "own"]));
        assert_eq!(instructed(OpenaiResponses, json!({"instructions": "own"}))["instructions"], "S\n\nown");
        let parts = instructed(Gemini, json!({"system_instruction": {"parts": [{"text": "own"}]}}));
        assert_eq!(parts["system_instruction"]["parts"], json!([{"text": "S"}, {"text": "own"}]));
        assert_eq!(shape(Openai, &json!({}), None, None).expect("nothing"), Value::Null);
    }

    #[test]
    fn only_tools_that_match_are_sent() {
        let filtered = |caller, body: Value| shape(caller, &body, None, Some("^get_")).expect("filtered");
        let function = |name: &str| json!({"type": "function", "function": {"name": name}});
        let chat = filtered(Openai, json!({"tools": [function("get_x"), function("del_x")], "tool_choice": "auto"}));
        assert_eq!(chat, json!({"tools": [function("get_x")], "tool_choice": "auto"}));
        assert_eq!(filtered(Openai, json!({"tools": [function("del_x")], "tool_choice": "required"})), json!({}));
        let messages = filtered(
            Anthropic,
            json!({"tools": [{"name": "get_x"}, {"type": "web_search_20250305", "name": "web_search"}]}),
        );
        assert_eq!(messages["tools"], json!([{"name": "get_x"}]));
        let groups = json!([{"functionDeclarations": [{"name": "get_x"}, {"name": "b"}]}, {"googleSearch": {}}]);
        assert_eq!(
            filtered(Gemini, json!({"tools": groups}))["tools"],
            json!([{"functionDeclarations": [{"name": "get_x"}]}])
        );
        let custom = |name: &str| json!({"type": "custom", "custom": {"name": name}});
        assert_eq!(
            filtered(Openai, json!({"tools": [custom("get_x"), custom("del_x")]}))["tools"],
            json!([custom("get_x")])
        );
        for forced in [function("del_x"), custom("del_x")] {
            let body = json!({"tools": [forced], "tool_choice": forced});
            let fault = shape(Openai, &body, None, Some("^get_")).expect_err("forced");
            assert_eq!(fault.param.as_deref(), Some("tool_choice"));
        }
    }
}
