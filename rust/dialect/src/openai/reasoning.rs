//! Stores the reasoning before tool calls in a provider's answer, and restores it in later requests with the same
//! calls. Some providers reject such a request without it.

use std::borrow::Cow;

use bytes::Bytes;
use fairlead_core::json;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::sse::{data_of, Framer, Limits, Part, Verdict};
use crate::Pieces;

/// The maximum size. Longer reasoning is not stored.
const MAX_TEXT_BYTES: usize = 256 * 1024;
/// The reasoning of a call whose reasoning is unknown. Providers reject an absent member, and some an empty one.
pub(crate) const NO_REASONING: &str = " ";

/// Reasoning, and the ids of the calls that followed it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reasoning {
    pub text: String,
    pub call_ids: Vec<String>,
}

impl Reasoning {
    /// Returns `None` if there was no tool call or no reasoning.
    fn complete(self) -> Option<Self> {
        (!self.text.is_empty() && !self.call_ids.is_empty() && self.text.len() <= MAX_TEXT_BYTES).then_some(self)
    }

    fn add(&mut self, message: MessageIn<'_>) {
        if let Some(text) = message.reasoning_content.filter(|_| self.text.len() <= MAX_TEXT_BYTES) {
            self.text.push_str(&text);
        }
        self.call_ids.extend(message.tool_calls.into_iter().flatten().filter_map(|call| call.id).map(Cow::into_owned));
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MessageIn<'a> {
    #[serde(borrow)]
    reasoning_content: Option<Cow<'a, str>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<CallIn<'a>>>,
}

#[derive(Deserialize)]
struct CallIn<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct AnswerIn<'a> {
    #[serde(borrow, default)]
    choices: Vec<ChoiceIn<'a>>,
}

#[derive(Deserialize)]
struct ChoiceIn<'a> {
    #[serde(borrow, default)]
    message: MessageIn<'a>,
    #[serde(borrow, default)]
    delta: MessageIn<'a>,
    #[serde(default)]
    index: u64,
}

/// Reads the reasoning of a complete chat completion.
pub fn of_answer(body: &[u8]) -> Option<Reasoning> {
    let answer: AnswerIn<'_> = serde_json::from_slice(body).ok()?;
    let mut collected = Reasoning::default();
    for choice in answer.choices.into_iter().filter(|choice| choice.index == 0) {
        collected.add(choice.message);
    }
    collected.complete()
}

/// Reads the reasoning from a stream of chat completion chunks.
pub struct ReasoningCollector {
    framer: Framer,
    collected: Reasoning,
}

impl std::fmt::Debug for ReasoningCollector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").finish_non_exhaustive()
    }
}

impl Default for ReasoningCollector {
    fn default() -> Self {
        Self { framer: Framer::new(Limits::default()), collected: Reasoning::default() }
    }
}

impl ReasoningCollector {
    pub fn push(&mut self, chunk: &Bytes) {
        let Self { framer, collected } = self;
        framer.push(chunk, |part| {
            if let Part::Event(event) = part {
                let data = data_of(event);
                let chunk = data.as_deref().and_then(|data| serde_json::from_slice::<AnswerIn<'_>>(data).ok());
                for choice in chunk.into_iter().flat_map(|chunk| chunk.choices) {
                    if choice.index == 0 {
                        collected.add(choice.delta);
                    }
                }
            }
            Verdict::Drop
        });
    }

    pub fn finish(self) -> Option<Reasoning> {
        self.collected.complete()
    }
}

/// Adds reasoning to each message with tool calls that has none. `find` receives the ids of a message's calls and
/// returns the stored reasoning. Without a result, a blank is added, because such providers reject an absent member.
/// Returns `None` if the request needs no change.
pub fn attach(body: &Pieces, mut find: impl FnMut(&[&str]) -> Option<std::sync::Arc<str>>) -> Option<Bytes> {
    if !body.iter().any(|piece| memchr::memmem::find(piece, b"tool_calls").is_some()) {
        return None;
    }
    let body = body.concat();
    let scan = json::scan_object(&body, &["messages"], json::MAX_DEPTH).ok()?;
    let messages: Vec<&RawValue> = serde_json::from_slice(body.get(scan.get("messages")?.span())?).ok()?;
    let mut cuts = Vec::new();
    for raw in messages {
        let Some((start, end, text)) = missing(&body, raw, &mut find) else { continue };
        cuts.push((start, end, text));
    }
    if cuts.is_empty() {
        return None;
    }
    let mut out = Vec::with_capacity(body.len() + cuts.iter().map(|(_, _, text)| text.len()).sum::<usize>());
    let mut at = 0;
    for (start, end, text) in cuts {
        out.extend_from_slice(body.get(at..start)?);
        out.extend_from_slice(text.as_bytes());
        at = end;
    }
    out.extend_from_slice(body.get(at..)?);
    Some(Bytes::from(out))
}

#[derive(Deserialize)]
struct ReasoningMessageIn<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<CallIn<'a>>>,
    #[serde(borrow, default, deserialize_with = "as_it_stands")]
    reasoning_content: Option<&'a RawValue>,
}

/// Deserializes null as a value, so that the edit replaces it instead of adding a second member.
fn as_it_stands<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Returns the edit that adds missing reasoning to a message: start, end and text.
fn missing(
    body: &[u8],
    raw: &RawValue,
    find: &mut impl FnMut(&[&str]) -> Option<std::sync::Arc<str>>,
) -> Option<(usize, usize, String)> {
    let offset_of = |part: &str| (part.as_ptr() as usize).checked_sub(body.as_ptr() as usize);
    let message: ReasoningMessageIn<'_> = serde_json::from_str(raw.get()).ok()?;
    let calls = message.tool_calls.filter(|_| message.role == "assistant")?;
    let reasoning = message.reasoning_content.map(RawValue::get);
    if reasoning.is_some_and(|reasoning| !matches!(reasoning, "null" | "\"\"" | "\" \"")) {
        return None;
    }
    let ids: Vec<&str> = calls.iter().filter_map(|call| call.id.as_deref()).collect();
    if ids.is_empty() {
        return None;
    }
    let text = match find(&ids) {
        Some(text) => serde_json::to_string(&*text).ok()?,
        None if reasoning == Some("\" \"") => return None,
        None => format!("\"{NO_REASONING}\""),
    };
    if let Some(reasoning) = reasoning {
        let start = offset_of(reasoning)?;
        return Some((start, start + reasoning.len(), text));
    }
    // Insert after the opening brace. The comma is valid because a message with tool calls has members.
    let start = offset_of(raw.get())? + 1;
    Some((start, start, format!("\"reasoning_content\":{text},")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};

    fn pieces(body: &Value) -> Pieces {
        let text = serde_json::to_string_pretty(body).expect("JSON");
        let (one, two) = text.split_at(text.len() / 2);
        Pieces::from_iter([Bytes::from(one.to_owned()), Bytes::from(two.to_owned())])
    }

    fn known(ids: &[&str]) -> Option<std::sync::Arc<str>> {
        ids.contains(&"call_1").then(|| "so \"it\" is\n\u{e9}".into())
    }

    #[test]
    fn what_was_thought_before_a_call_is_heard() {
        let message = json!({"content": null, "reasoning_content": "hm", "tool_calls": [{"id": "a"}, {"id": "b"}]});
        let body = json!({"choices": [{"index": 0, "message": message}]}).to_string();
        let collected = of_answer(body.as_bytes()).expect("was thought");
        assert_eq!(
            (collected.text.as_str(), collected.call_ids.as_slice()),
            ("hm", &["a".to_owned(), "b".to_owned()][..])
        );
        for message in [
            json!({"content": "Hi", "reasoning_content": "hm"}),
            json!({"content": null, "tool_calls": [{"id": "a"}]}),
            json!({"content": null, "reasoning_content": "", "tool_calls": [{"id": "a"}]}),
        ] {
            assert_eq!(of_answer(json!({"choices": [{"message": message}]}).to_string().as_bytes()), None, "{message}");
        }
        assert_eq!(of_answer(b"<html>"), None);
    }

    #[test]
    fn a_stream_is_heard_however_it_is_cut() {
        let delta = |delta: Value| format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]}));
        let stream = [
            delta(json!({"role": "assistant", "reasoning_content": "so "})),
            ": beat\n\n".to_owned(),
            delta(json!({"reasoning_content": "it \u{e9}"})),
            delta(json!({"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": "f"}}]})),
            delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]})),
            "data: [DONE]\n\n".to_owned(),
        ]
        .concat();
        for step in 1..stream.len() {
            let mut listener = ReasoningCollector::default();
            stream.as_bytes().chunks(step).for_each(|chunk| listener.push(&Bytes::copy_from_slice(chunk)));
            let collected = listener.finish().expect("was thought");
            assert_eq!(
                (collected.text.as_str(), collected.call_ids.as_slice()),
                ("so it \u{e9}", &["call_1".to_owned()][..])
            );
        }
    }

    #[test]
    fn what_was_thought_is_put_back_where_it_is_missing() {
        let call = |id: &str| json!([{"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}}]);
        let body = json!({"model": "m", "messages": [
            {"role": "user", "content": "\"tool_calls\""},
            {"role": "assistant", "content": null, "tool_calls": call("call_1")},
            {"role": "tool", "tool_call_id": "call_1", "content": "1"},
            {"role": "assistant", "content": "x", "reasoning_content": null, "tool_calls": call("call_1")},
            {"role": "assistant", "content": "x", "reasoning_content": "own", "tool_calls": call("call_1")},
            {"role": "assistant", "content": null, "tool_calls": call("call_2")},
            {"role": "assistant", "content": "done"},
        ]});
        let body = attach(&pieces(&body), known).expect("changed");
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        let reasoning: Vec<&Value> = (1..7).map(|at| &body["messages"][at]["reasoning_content"]).collect();
        let known = json!("so \"it\" is\n\u{e9}");
        let nothing = Value::Null;
        assert_eq!(reasoning, [&known, &nothing, &known, &json!("own"), &json!(" "), &nothing]);
    }

    #[test]
    fn a_request_of_which_nothing_is_missing_goes_as_it_is() {
        for body in [
            json!({"messages": [{"role": "user", "content": "hi"}]}),
            json!({"messages": [{"role": "assistant", "reasoning_content": " ", "tool_calls": [{"id": "call_2"}]}]}),
            json!({"messages": [{"role": "assistant", "tool_calls": []}]}),
            json!({"messages": [{"role": "user", "tool_calls": [{"id": "call_1"}]}]}),
            json!({"messages": "tool_calls"}),
        ] {
            assert_eq!(attach(&pieces(&body), known), None, "{body}");
        }
    }
}
