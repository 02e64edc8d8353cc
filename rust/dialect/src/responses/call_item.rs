//! Writes the calls of an answer in the form of the caller's tool.

use crate::call_form::{CallForm, CallerTool};
use crate::text::{Text, Writer};
use crate::text_argument::{text_of, TextArgument};
use crate::tool_names::ToolNames;

use super::item;

/// A call of an answer. Texts are stored as escaped strings without their quotes.
#[derive(Debug, Default)]
pub(super) struct CallItem {
    form: CallForm,
    call_id: Vec<u8>,
    name: Vec<u8>,
    namespace: Option<String>,
    /// Extracts the text of a custom tool's call.
    text: TextArgument,
}

fn inner(text: &Text<'_>) -> Vec<u8> {
    let mut inner = Vec::new();
    text.push_inner(&mut inner);
    inner
}

impl CallItem {
    pub(super) fn new(id: &Text<'_>, sent: &Text<'_>, names: &ToolNames) -> Self {
        let mut made = Self { call_id: inner(id), ..Self::default() };
        match names.caller_tool(sent) {
            None => made.name = inner(sent),
            Some(CallerTool { own, namespace, form, .. }) => {
                made.name = inner(&Text::from(own.clone()));
                made.namespace.clone_from(namespace);
                made.form = *form;
            }
        }
        made
    }

    pub(super) fn form(&self) -> CallForm {
        self.form
    }

    pub(super) fn name(&self) -> &[u8] {
        &self.name
    }

    /// The prefix of the item's id.
    pub(super) fn prefix(&self) -> &'static str {
        match self.form {
            CallForm::Function => "fc",
            CallForm::Custom => "ctc",
            CallForm::LocalShell => "lsh",
            CallForm::Shell => "sh",
            CallForm::ApplyPatch => "apc",
            CallForm::ToolSearch => "tsc",
        }
    }

    /// Returns the part of a custom tool's text that a piece of the arguments contains.
    pub(super) fn push(&mut self, arguments: &Text<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        self.text.push(&arguments.decode(), &mut out);
        out
    }

    /// Returns what is left of a custom tool's text.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        self.text.finish(&mut out);
        out
    }

    /// Writes the item. `content` is the text of a custom tool, or the arguments of any other.
    pub(super) fn write(&self, id: &str, status: &str, content: &[u8]) -> Vec<u8> {
        if let Some(item) = self.write_run(id, status, content) {
            return item;
        }
        let is_custom = self.form == CallForm::Custom;
        let mut out = Writer::with_capacity(content.len() + 128);
        out.open(b'{').key("id").str(id).key("type");
        out.str(if is_custom { "custom_tool_call" } else { "function_call" });
        out.key("status").str(status).key("call_id").inner(&self.call_id).key("name").inner(&self.name);
        if let Some(namespace) = &self.namespace {
            out.key("namespace").str(namespace);
        }
        out.key(if is_custom { "input" } else { "arguments" }).inner(content).close(b'}').take()
    }

    /// Writes the call to a tool that the caller runs. `None` for other tools, and for arguments that are no object: the
    /// caller can then only report an error.
    fn write_run(&self, id: &str, status: &str, arguments: &[u8]) -> Option<Vec<u8>> {
        let (kind, member) = match self.form {
            CallForm::Function | CallForm::Custom => return None,
            CallForm::LocalShell => ("local_shell_call", "action"),
            CallForm::Shell => ("shell_call", "action"),
            CallForm::ApplyPatch => ("apply_patch_call", "operation"),
            CallForm::ToolSearch => ("tool_search_call", "arguments"),
        };
        let token = [b"\"", arguments, b"\""].concat();
        let arguments: String = serde_json::from_slice(&token).ok()?;
        let mut members = match serde_json::from_str(&arguments) {
            Ok(serde_json::Value::Object(members)) => members,
            Err(_) if arguments.is_empty() => serde_json::Map::new(),
            _ => return None,
        };
        if self.form == CallForm::LocalShell {
            members.insert("type".to_owned(), "exec".into());
            members.entry("command").or_insert_with(|| serde_json::json!([]));
            members.entry("env").or_insert_with(|| serde_json::json!({}));
        }
        if self.form == CallForm::Shell {
            members.entry("commands").or_insert_with(|| serde_json::json!([]));
        }
        let mut out = Writer::with_capacity(arguments.len() + 128);
        out.open(b'{').key("id").str(id).key("type").str(kind).key("status").str(status);
        out.key("call_id").inner(&self.call_id);
        if self.form == CallForm::ToolSearch {
            out.key("execution").raw(r#""client""#);
        }
        out.key(member).raw(&serde_json::Value::Object(members).to_string()).close(b'}');
        Some(out.take())
    }
}

/// Writes the item of a complete call.
pub(super) fn whole(id: impl Fn(&str) -> String, call: &crate::model::Call<'_>, names: &ToolNames) -> Vec<u8> {
    let item = CallItem::new(&call.id, &call.name, names);
    let content = match item.form() {
        CallForm::Custom => text_of(&call.arguments),
        _ => inner(&Text::Plain(std::borrow::Cow::Borrowed(&call.arguments))),
    };
    item.write(&id(item.prefix()), item::COMPLETED, &content)
}
