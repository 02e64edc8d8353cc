//! Inserts a cache key or cache marks into a body that passes through. One search rules out a body in which the caller
//! controls the cache; a body that gets marks is parsed once.

use std::ops::Range;

use bytes::Bytes;
use fairlead_core::{Dialect, ModelFacts};
use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;
use smallvec::SmallVec;

use crate::cache_hints::{CacheHints, KEY, MARK};
use crate::model::{typed, Members};
use crate::text::Text;

/// Spans of a body and the bytes that replace them.
type Insertions = SmallVec<[(Range<usize>, Bytes); 4]>;

/// The newest user messages that get a mark.
const MARKED_MESSAGES: usize = 2;

/// Returns the edits that add a key or marks to a body for a provider of the same dialect.
pub(crate) fn edits(form: Dialect, body: &[u8], hints: CacheHints, facts: &ModelFacts) -> Insertions {
    let mut edits = Insertions::new();
    if let Some(key) = hints.key_for(form, facts, body.len()) {
        if memmem::find(body, KEY.as_bytes()).is_none() {
            // The body is one object with a model, so its last brace closes it and the comma is valid.
            let close = memchr::memrchr(b'}', body);
            edits.extend(close.map(|at| (at..at, Bytes::from(format!(r#","{KEY}":{key}"#)))));
        }
    }
    let most = hints.marks_for(form, facts, body.len());
    if most > 0 && memmem::find(body, b"\"cache_control\"").is_none() {
        edits.extend(marked(form, body, most).unwrap_or_default());
    }
    edits
}

/// The parts of a body that can have marks.
#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default)]
    tools: Option<&'a RawValue>,
    #[serde(borrow, default)]
    system: Option<&'a RawValue>,
    #[serde(borrow, default)]
    messages: Option<Vec<Message<'a>>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    role: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

impl Message<'_> {
    fn is(&self, roles: &[&str]) -> bool {
        self.role.as_deref().is_some_and(|role| roles.contains(&role))
    }
}

/// Returns the insertions of marks: after the newest user messages, then after the instructions and the tools.
fn marked(form: Dialect, body: &[u8], most: usize) -> Option<Insertions> {
    let parsed: Body<'_> = serde_json::from_slice(body).ok()?;
    let messages = parsed.messages?;
    let is_chat = form == Dialect::Openai;
    let users: &[&str] = if is_chat { &["user", "tool"] } else { &["user"] };
    let mut edits = Insertions::new();
    let newest = messages.chunk_by(|one, next| one.is(users) == next.is(users)).rev();
    for run in newest.filter(|run| run.first().is_some_and(|message| message.is(users))).take(MARKED_MESSAGES) {
        edits.extend(run.iter().rev().find_map(|message| marked_content(body, message.content?, is_chat)));
    }
    let instructions = if is_chat {
        let leading = messages.iter().take_while(|message| message.is(&["system", "developer"]));
        leading.last().and_then(|message| message.content)
    } else {
        parsed.system
    };
    edits.extend(instructions.and_then(|content| marked_content(body, content, is_chat)));
    if !is_chat {
        edits.extend(parsed.tools.and_then(|tools| marked_tool(body, tools)));
    }
    edits.truncate(most);
    Some(edits)
}

/// Marks a content: a text becomes a list of one part, a list gets the mark at its last part that can have one.
fn marked_content(body: &[u8], content: &RawValue, is_chat: bool) -> Option<(Range<usize>, Bytes)> {
    if let Some(text) = Text::of(content) {
        let is_blank = text.decode().trim().is_empty();
        let part = format!(r#"[{{"type":"text","text":{},"cache_control":{MARK}}}]"#, content.get());
        return (!is_blank).then(|| span(body, content)).flatten().map(|span| (span, Bytes::from(part)));
    }
    let parts: Vec<&RawValue> = serde_json::from_str(content.get()).ok()?;
    parts.into_iter().rev().find(|part| can_be_marked(part, is_chat)).and_then(|part| inserted(body, part))
}

fn can_be_marked(part: &RawValue, is_chat: bool) -> bool {
    #[derive(Deserialize)]
    struct Block<'a> {
        #[serde(borrow, default)]
        r#type: Option<std::borrow::Cow<'a, str>>,
        #[serde(borrow, default)]
        text: Option<std::borrow::Cow<'a, str>>,
    }
    let Ok(block) = serde_json::from_str::<Block<'_>>(part.get()) else { return false };
    match block.r#type.as_deref() {
        Some("text") => block.text.is_some_and(|text| !text.trim().is_empty()),
        Some("image" | "document" | "tool_result") => !is_chat,
        _ => false,
    }
}

/// Marks the last tool. Tools that are loaded later cannot have a mark.
fn marked_tool(body: &[u8], tools: &RawValue) -> Option<(Range<usize>, Bytes)> {
    let tools: Vec<&RawValue> = serde_json::from_str(tools.get()).ok()?;
    let tool = *tools.last()?;
    let members: Members<'_> = typed(tool, "tools").ok()?;
    let is_deferred = members.0.iter().any(|(name, _)| name == "defer_loading");
    (!is_deferred).then(|| inserted(body, tool)).flatten()
}

/// Inserts the mark at the end of an object that is not empty.
fn inserted(body: &[u8], object: &RawValue) -> Option<(Range<usize>, Bytes)> {
    let close = span(body, object)?.end.checked_sub(1)?;
    Some((close..close, Bytes::from(format!(r#","cache_control":{MARK}"#))))
}

/// Returns the position of a value that was parsed from the body.
fn span(body: &[u8], value: &RawValue) -> Option<Range<usize>> {
    let start = (value.get().as_ptr() as usize).checked_sub(body.as_ptr() as usize)?;
    Some(start..start + value.get().len())
}
