//! Moves images of earlier answers to the user in messages bodies that otherwise pass unchanged.
//!
//! Answers of image models have `image` blocks for callers of the messages dialect. A caller sends them back in the
//! assistant's turn, where Claude rejects them.

use std::borrow::Cow;

use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::media::LABEL;

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    role: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, default)]
    r#type: Option<Cow<'a, str>>,
}

/// The images that wait for a turn of the user, as JSON.
#[derive(Default)]
pub(crate) struct Mover {
    waiting: Vec<String>,
}

/// Returns whether a turn of the assistant has an image. A single search rules out bodies without images.
pub(crate) fn has_any(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Body<'a> {
        #[serde(borrow, default)]
        messages: Vec<Message<'a>>,
    }
    memmem::find(body, b"\"image\"").is_some()
        && serde_json::from_slice::<Body<'_>>(body).is_ok_and(|body| {
            body.messages
                .iter()
                .any(|message| is_assistants(message) && blocks(message).iter().any(|it| is(it, "image")))
        })
}

impl Mover {
    /// Returns the message with its images removed, or with those of earlier messages added. `None` if nothing is left.
    pub(crate) fn take(&mut self, text: String) -> Option<String> {
        let Ok(message) = serde_json::from_str::<Message<'_>>(&text) else { return Some(text) };
        let blocks = blocks(&message);
        if is_assistants(&message) {
            let (images, rest): (Vec<&RawValue>, Vec<&RawValue>) =
                blocks.iter().copied().partition(|block| is(block, "image"));
            if images.is_empty() {
                return Some(text);
            }
            self.waiting.extend(images.iter().map(|image| image.get().to_owned()));
            let rest: Vec<&str> = rest.iter().map(|block| block.get()).collect();
            return (!rest.is_empty()).then(|| with_content(&text, &message, &rest)).flatten();
        }
        let are_results = !blocks.is_empty() && blocks.iter().all(|block| is(block, "tool_result"));
        if self.waiting.is_empty() || are_results || message.role.as_deref() != Some("user") {
            return Some(text);
        }
        let plain = message.content.map(RawValue::get).filter(|content| content.starts_with('"'));
        let plain = plain.map(|content| format!(r#"{{"type":"text","text":{content}}}"#));
        let mut all: Vec<&str> = blocks.iter().map(|block| block.get()).chain(plain.as_deref()).collect();
        // The results of tool calls must come first.
        let at = blocks.iter().rposition(|block| is(block, "tool_result")).map_or(0, |last| last + 1);
        let waiting = std::mem::take(&mut self.waiting);
        let label = format!(r#"{{"type":"text","text":"{LABEL}"}}"#);
        all.splice(at..at, std::iter::once(label.as_str()).chain(waiting.iter().map(String::as_str)));
        with_content(&text, &message, &all)
    }
}

fn is_assistants(message: &Message<'_>) -> bool {
    message.role.as_deref() == Some("assistant")
}

/// The blocks of a message. A plain text has none.
fn blocks<'a>(message: &Message<'a>) -> Vec<&'a RawValue> {
    message.content.and_then(|content| serde_json::from_str(content.get()).ok()).unwrap_or_default()
}

fn is(block: &RawValue, kind: &str) -> bool {
    serde_json::from_str::<Block<'_>>(block.get()).is_ok_and(|block| block.r#type.as_deref() == Some(kind))
}

fn with_content(text: &str, message: &Message<'_>, blocks: &[&str]) -> Option<String> {
    let content = message.content?.get();
    let start = (content.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    let (before, after) = (text.get(..start)?, text.get(start + content.len()..)?);
    Some(format!("{before}[{}]{after}", blocks.join(",")))
}
