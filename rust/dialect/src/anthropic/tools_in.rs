//! Reads the tools of a messages request.
//!
//! Anthropic runs some tools itself. Others are run by the caller: their schemas are known to Claude, and their calls are
//! ordinary `tool_use` blocks. Such a tool becomes a function with that schema.

use std::borrow::Cow;

use fairlead_core::Error;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::{typed, Request, Tool};
use crate::text::Text;

/// A tool. Members about its loading mean nothing elsewhere.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolIn<'a> {
    /// Already checked.
    #[serde(default, rename = "type")]
    _type: Option<serde::de::IgnoredAny>,
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow, default)]
    description: Option<Text<'a>>,
    #[serde(borrow)]
    input_schema: &'a RawValue,
    #[serde(default)]
    strict: Option<bool>,
    #[serde(borrow, default)]
    cache_control: Option<&'a RawValue>,
    /// How the arguments are split into chunks; a hint.
    #[serde(default, rename = "eager_input_streaming")]
    _eager: Option<serde::de::IgnoredAny>,
    /// All tools are offered from the start.
    #[serde(default, rename = "defer_loading")]
    _defer_loading: Option<serde::de::IgnoredAny>,
    /// The model is always the caller.
    #[serde(default, rename = "allowed_callers")]
    _allowed_callers: Option<serde::de::IgnoredAny>,
    #[serde(borrow, default)]
    input_examples: Option<&'a RawValue>,
}

/// A tool of Anthropic that the caller runs.
#[derive(Deserialize)]
struct RunIn<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow, default)]
    cache_control: Option<&'a RawValue>,
    #[serde(default)]
    display_width_px: Option<u64>,
    #[serde(default)]
    display_height_px: Option<u64>,
}

/// Server tools, whose names have a date suffix. An answer is useful without them.
const HOSTED: &[&str] = &["web_search", "web_fetch", "code_execution", "tool_search_tool"];
/// Blocks that such tools add to the conversation. No other provider accepts them.
const HOSTED_BLOCKS: &[&str] = &["server_tool_use", "mcp_tool_use", "container_upload"];

/// A tool that the caller runs: the start of its type, its description and its schema.
struct ClientTool {
    kind: &'static str,
    description: &'static str,
    schema: &'static str,
}

const BASH: &str = r#"{"type":"object","properties":{"command":{"type":"string","description":"The command to run. Required unless the shell is restarted."},"restart":{"type":"boolean","description":"Whether to restart the shell."}}}"#;
const EDITOR: &str = r#"{"type":"object","properties":{"command":{"type":"string","enum":["view","create","str_replace","insert"]},"path":{"type":"string","description":"The absolute path of the file or directory."},"file_text":{"type":"string","description":"The content of the new file. Required for create."},"old_str":{"type":"string","description":"The text to replace, which occurs once in the file. Required for str_replace."},"new_str":{"type":"string","description":"The new text of str_replace, or the text of insert in older versions."},"insert_line":{"type":"integer","description":"The line after which to insert; 0 is the start of the file. Required for insert."},"insert_text":{"type":"string","description":"The text to insert. Required for insert."},"view_range":{"type":"array","items":{"type":"integer"},"description":"The first and the last line to view; -1 is the end of the file."}},"required":["command","path"]}"#;
/// The versions before April 2025 can undo, and insert `new_str`.
const EDITOR_WITH_UNDO: &str = r#"{"type":"object","properties":{"command":{"type":"string","enum":["view","create","str_replace","insert","undo_edit"]},"path":{"type":"string","description":"The absolute path of the file or directory."},"file_text":{"type":"string","description":"The content of the new file. Required for create."},"old_str":{"type":"string","description":"The text to replace, which occurs once in the file. Required for str_replace."},"new_str":{"type":"string","description":"The new text of str_replace, or the text to insert."},"insert_line":{"type":"integer","description":"The line after which to insert; 0 is the start of the file. Required for insert."},"view_range":{"type":"array","items":{"type":"integer"},"description":"The first and the last line to view; -1 is the end of the file."}},"required":["command","path"]}"#;
const MEMORY: &str = r#"{"type":"object","properties":{"command":{"type":"string","enum":["view","create","str_replace","insert","delete","rename"]},"path":{"type":"string","description":"A path below /memories. Required except for rename."},"file_text":{"type":"string","description":"The content of the new file. Required for create."},"old_str":{"type":"string","description":"The text to replace. Required for str_replace."},"new_str":{"type":"string","description":"The new text. Required for str_replace."},"insert_line":{"type":"integer","description":"The line after which to insert. Required for insert."},"insert_text":{"type":"string","description":"The text to insert. Required for insert."},"view_range":{"type":"array","items":{"type":"integer"},"description":"The first and the last line to view."},"old_path":{"type":"string","description":"Required for rename."},"new_path":{"type":"string","description":"Required for rename."}},"required":["command"]}"#;
const COMPUTER: &str = r#"{"type":"object","properties":{"action":{"type":"string","enum":["key","type","mouse_move","left_click","left_click_drag","right_click","middle_click","double_click","triple_click","left_mouse_down","left_mouse_up","scroll","hold_key","wait","screenshot","cursor_position"]},"coordinate":{"type":"array","items":{"type":"integer"},"description":"The x and y of the action in pixels."},"start_coordinate":{"type":"array","items":{"type":"integer"},"description":"Where left_click_drag starts."},"text":{"type":"string","description":"The text to type, or the keys to press, such as ctrl+s."},"scroll_direction":{"type":"string","enum":["up","down","left","right"]},"scroll_amount":{"type":"integer"},"duration":{"type":"number","description":"The seconds of hold_key or wait."}},"required":["action"]}"#;
/// The first version has fewer actions.
const FIRST_COMPUTER: &str = r#"{"type":"object","properties":{"action":{"type":"string","enum":["key","type","mouse_move","left_click","left_click_drag","right_click","middle_click","double_click","screenshot","cursor_position"]},"coordinate":{"type":"array","items":{"type":"integer"},"description":"The x and y of the action in pixels."},"text":{"type":"string","description":"The text to type, or the keys to press, such as ctrl+s."}},"required":["action"]}"#;

const EDITS: &str = "Views, creates and edits text files on the user's machine.";
const SCREEN: &str =
    "Controls the screen, the keyboard and the mouse of the user's machine. Take a screenshot to see it.";

const CLIENT_TOOLS: &[ClientTool] = &[
    ClientTool {
        kind: "bash_20",
        description: "Runs a command in a persistent bash session on the user's machine and returns its output.",
        schema: BASH,
    },
    ClientTool { kind: "text_editor_20241022", description: EDITS, schema: EDITOR_WITH_UNDO },
    ClientTool { kind: "text_editor_20250124", description: EDITS, schema: EDITOR_WITH_UNDO },
    ClientTool { kind: "text_editor_20", description: EDITS, schema: EDITOR },
    ClientTool {
        kind: "memory_20",
        description:
            "Stores notes in files below /memories, which stay between conversations. View the directory before \
                      a task.",
        schema: MEMORY,
    },
    ClientTool { kind: "computer_20241022", description: SCREEN, schema: FIRST_COMPUTER },
    ClientTool { kind: "computer_20", description: SCREEN, schema: COMPUTER },
];

/// Returns whether a block belongs to a server tool. The results of such tools end with `_tool_result`.
pub(super) fn is_hosted_block(kind: &str) -> bool {
    HOSTED_BLOCKS.contains(&kind) || kind.ends_with("_tool_result")
}

pub(super) fn read<'a>(value: &'a RawValue, request: &mut Request<'a>) -> Result<(), Error> {
    #[derive(Deserialize)]
    struct TypeIn<'a> {
        #[serde(borrow, default)]
        r#type: Option<Cow<'a, str>>,
    }
    let list: Vec<&'a RawValue> = typed(value, "tools")?;
    for (at, raw) in list.into_iter().enumerate() {
        let path = format!("tools[{at}]");
        // A tool of Anthropic has other members, so an error is about its type.
        let kind = typed::<TypeIn<'a>>(raw, &path)?.r#type;
        let kind = kind.as_deref().unwrap_or("custom");
        if kind == "custom" {
            request.tools.push(custom(raw, &path)?);
        } else if let Some(known) = CLIENT_TOOLS.iter().find(|known| kind.starts_with(known.kind)) {
            request.tools.push(known.read(raw, &path)?);
        } else if let Some(name) = HOSTED.iter().find(|name| kind.starts_with(**name)) {
            request.hosted_tools.push((*name).to_owned());
        } else {
            request.extras.push((Cow::Owned(format!("{path}.type")), raw.get()));
        }
    }
    Ok(())
}

/// Reads a tool of the caller. Its examples become part of the description.
fn custom<'a>(raw: &'a RawValue, path: &str) -> Result<Tool<'a>, Error> {
    let ToolIn { name, description, input_schema, strict, cache_control, input_examples, .. } = typed(raw, path)?;
    let description =
        match input_examples.map(RawValue::get).filter(|examples| *examples != "[]" && *examples != "null") {
            None => description,
            Some(examples) => {
                let own = description.as_ref().map(Text::decode).unwrap_or_default();
                Some(format!("{own}\n\nExamples of the input: {examples}").trim_start().to_owned().into())
            }
        };
    let schema = Some(input_schema.get().into());
    Ok(Tool { name, description, schema, strict, cache: cache_control.map(RawValue::get) })
}

impl ClientTool {
    fn read<'a>(&self, raw: &'a RawValue, path: &str) -> Result<Tool<'a>, Error> {
        let RunIn { name, cache_control, display_width_px, display_height_px } = typed(raw, path)?;
        let description = match (display_width_px, display_height_px) {
            (Some(width), Some(height)) => format!("{} It has {width} x {height} pixels.", self.description).into(),
            _ => self.description.into(),
        };
        Ok(Tool {
            name,
            description: Some(description),
            schema: Some(self.schema.into()),
            strict: None,
            cache: cache_control.map(RawValue::get),
        })
    }
}
