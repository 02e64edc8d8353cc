//! Writes the tools of a `Converse` request and which of them the model must call.

use std::collections::HashSet;

use fairlead_core::{Error, ForcedTools, ModelFacts};

use crate::accepted::forces_tool;
use crate::left_out::LeftOut;
use crate::model::{Choice, Content, Member, Request};
use crate::portable_id::is_blank;
use crate::text::{Text, Writer};

const ANY_OBJECT: &str = r#"{"type":"object","properties":{}}"#;

pub(super) fn write(
    out: &mut Writer,
    request: &Request<'_>,
    facts: &ModelFacts,
    left_out: &mut LeftOut,
) -> Result<(), Error> {
    let called = called(request);
    if matches!(request.choice, Some(Choice::Never)) {
        if called.is_empty() {
            // Without tools the model calls none.
            return Ok(());
        }
        // Bedrock requires the tools of earlier calls and has no way to forbid further ones.
        left_out.member(request, Member::ToolChoice)?;
    }
    if request.tools.is_empty() && called.is_empty() {
        return Ok(());
    }
    out.key("toolConfig").open(b'{').key("tools").open(b'[');
    for tool in &request.tools {
        spec(out, &tool.name, tool.description.as_ref(), tool.schema.as_deref().unwrap_or(ANY_OBJECT));
    }
    if request.tools.is_empty() {
        // The tools of earlier calls must be defined even if the model is offered none.
        for name in called {
            spec(out, &name.into(), None, ANY_OBJECT);
        }
    }
    out.close(b']');
    if request.parallel == Some(false) && !request.tools.is_empty() {
        left_out.member(request, Member::Parallel)?;
    }
    if forces_tool(request) && facts.forced_tools == Some(ForcedTools::Refused) {
        left_out.member(request, Member::ToolChoice)?;
        out.close(b'}');
        return Ok(());
    }
    match &request.choice {
        Some(Choice::Any) => drop(out.key("toolChoice").raw(r#"{"any":{}}"#)),
        Some(Choice::One(name)) => {
            out.key("toolChoice").open(b'{').key("tool").open(b'{').member("name", name).close(b'}').close(b'}');
        }
        // `auto` is the default.
        _ => {}
    }
    out.close(b'}');
    Ok(())
}

fn spec(out: &mut Writer, name: &Text<'_>, description: Option<&Text<'_>>, schema: &str) {
    out.open(b'{').key("toolSpec").open(b'{').member("name", name);
    if let Some(description) = description.filter(|text| !is_blank(text)) {
        out.member("description", description);
    }
    out.key("inputSchema").open(b'{').key("json").raw(schema).close(b'}').close(b'}').close(b'}');
}

/// The names of the tools that the conversation has called.
fn called(request: &Request<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut known: HashSet<String> = HashSet::new();
    for part in request.turns.iter().flat_map(|turn| &turn.parts) {
        if let Content::Call(call) = &part.content {
            let name = call.name.decode();
            if known.insert(name.clone().into_owned()) {
                names.push(name.into_owned());
            }
        }
    }
    names
}
