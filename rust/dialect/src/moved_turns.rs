//! Adapts the earlier turns of a chat completion that passes through to another vendor of the same dialect. A
//! conversation that moves between vendors has members and tool call ids of their answers, and of the gateway's own.

use bytes::Bytes;
use fairlead_core::json::{self, Kind, MAX_DEPTH};
use fairlead_core::{ModelFacts, NameRule};
use memchr::memmem;
use serde_json::value::RawValue;

use crate::fit::{Edit, Edits};
use crate::foreign::values;
use crate::model::Members;
use crate::portable_id::{fits, fitted};

/// The type of content parts in which Mistral returns reasoning, as an entry of `refused_in_turns`.
const THINKING: &str = "content.thinking";

/// Adds the edits to the messages that the provider would reject. They replace other edits to the same messages.
pub(crate) fn edits(body: &[u8], facts: &ModelFacts, edits: &mut Edits) {
    if !concerns(body, facts) {
        return;
    }
    let Ok(scan) = json::scan_object(body, &["messages"], MAX_DEPTH) else { return };
    let Some(list) = scan.get("messages").filter(|list| list.kind == Kind::Array) else { return };
    let list = body.get(list.span()).unwrap_or_default();
    let Ok(messages) = serde_json::from_slice::<Vec<&RawValue>>(list) else { return };
    let moved: Vec<Edit> = messages.into_iter().filter_map(|raw| edit(body, raw, facts)).collect();
    edits.retain(|(span, _)| !moved.iter().any(|(own, _)| own.start <= span.start && span.end <= own.end));
    edits.extend(moved);
}

/// Returns whether any message can need an edit. Most bodies need none and are not parsed; one search rules out those
/// without an earlier answer.
fn concerns(body: &[u8], facts: &ModelFacts) -> bool {
    if facts.refused_in_turns.is_empty() && facts.call_ids.is_none() {
        return false;
    }
    let has = |name: &str| {
        memmem::find_iter(body, name.as_bytes()).any(|at| {
            let before = at.checked_sub(1).and_then(|before| body.get(before));
            before == Some(&b'"') && body.get(at + name.len()) == Some(&b'"')
        })
    };
    has("assistant")
        && (facts.refused_in_turns.iter().any(|name| has(if name == THINKING { "thinking" } else { name }))
            || facts.call_ids.is_some_and(|rule| has_other_id(body, rule)))
}

/// Returns whether a result has an id that the rule forbids. Each call of a conversation has a result.
fn has_other_id(body: &[u8], rule: NameRule) -> bool {
    values(body, b"\"tool_call_id\"").any(|value| {
        let inner = body.get(value.start + 1..value.end.saturating_sub(1)).unwrap_or_default();
        std::str::from_utf8(inner).is_ok_and(|id| !fits(id, rule))
    })
}

/// Returns the edit to a message.
fn edit(body: &[u8], raw: &RawValue, facts: &ModelFacts) -> Option<Edit> {
    let Members(mut members) = serde_json::from_str(raw.get()).ok()?;
    let role = members.iter().find(|(name, _)| name == "role").map(|(_, value)| value.get())?;
    let is_assistant = role == "\"assistant\"";
    if !is_assistant && role != "\"tool\"" {
        return None;
    }
    let count = members.len();
    if is_assistant {
        members.retain(|(name, _)| !facts.refused_in_turns.iter().any(|refused| refused == name));
    }
    let mut is_changed = members.len() < count;
    let mut written = Vec::with_capacity(members.len());
    for (name, value) in members {
        let new = match &*name {
            "tool_calls" if is_assistant => facts.call_ids.and_then(|rule| calls(value, rule)),
            "tool_call_id" => facts.call_ids.and_then(|rule| id(value, rule)),
            "content" if is_assistant && facts.refused_in_turns.iter().any(|one| one == THINKING) => texts(value),
            _ => None,
        };
        is_changed |= new.is_some();
        written.push(format!("{}:{}", quoted(&name), new.as_deref().unwrap_or(value.get())));
    }
    let start = (raw.get().as_ptr() as usize).checked_sub(body.as_ptr() as usize)?;
    is_changed.then(|| (start..start + raw.get().len(), Bytes::from(format!("{{{}}}", written.join(",")))))
}

/// Returns the calls with ids that the rule allows. `None` if all ids are allowed.
fn calls(value: &RawValue, rule: NameRule) -> Option<String> {
    let calls: Vec<Members<'_>> = serde_json::from_str(value.get()).ok()?;
    let mut is_changed = false;
    let mut written = Vec::with_capacity(calls.len());
    for Members(members) in calls {
        let members = members.into_iter().map(|(name, value)| {
            let new = (name == "id").then(|| id(value, rule)).flatten();
            is_changed |= new.is_some();
            format!("{}:{}", quoted(&name), new.as_deref().unwrap_or(value.get()))
        });
        written.push(format!("{{{}}}", members.collect::<Vec<_>>().join(",")));
    }
    is_changed.then(|| format!("[{}]", written.join(",")))
}

/// Returns an id that the rule allows, as JSON. `None` if the id itself is allowed.
fn id(value: &RawValue, rule: NameRule) -> Option<String> {
    let id: std::borrow::Cow<'_, str> = serde_json::from_str(value.get()).ok()?;
    (!fits(&id, rule)).then(|| quoted(&fitted(&id, rule)))
}

/// Returns content without its reasoning. `None` if it has none.
fn texts(value: &RawValue) -> Option<String> {
    let parts: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
    let is_thinking = |part: &&RawValue| {
        serde_json::from_str::<Members<'_>>(part.get()).is_ok_and(|Members(members)| {
            members.iter().any(|(name, kind)| name == "type" && kind.get() == "\"thinking\"")
        })
    };
    let remaining: Vec<&str> = parts.iter().filter(|part| !is_thinking(part)).map(|part| part.get()).collect();
    match (remaining.len() < parts.len(), remaining.is_empty()) {
        (false, _) => None,
        (true, true) => Some("null".to_owned()),
        (true, false) => Some(format!("[{}]", remaining.join(","))),
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_core::Letters;

    fn sent(body: &str, facts: &ModelFacts) -> serde_json::Value {
        let mut found = Edits::new();
        edits(body.as_bytes(), facts, &mut found);
        let mut out = body.to_owned();
        found.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
        for (span, text) in found {
            out.replace_range(span, std::str::from_utf8(&text).expect("text"));
        }
        serde_json::from_str(&out).expect("JSON")
    }

    fn facts() -> ModelFacts {
        ModelFacts {
            refused_in_turns: ["thinking_blocks", "refusal", THINKING].map(str::to_owned).into(),
            call_ids: Some(NameRule { most: 9, letters: Letters::Alphanumeric }),
            ..ModelFacts::default()
        }
    }

    #[test]
    fn members_and_ids_of_another_vendor_are_adapted() {
        let body = r#"{"messages":[{"role":"user","content":"a"},
            {"role":"assistant","content":null,"refusal":null,"thinking_blocks":[{"type":"thinking"}],
             "tool_calls":[{"id":"functions.f:0","type":"function","function":{"name":"f","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"functions.f:0","content":"b"},
            {"role":"assistant","content":[{"type":"thinking","thinking":[]},{"type":"text","text":"c"}]}],"n":1}"#;
        let sent = sent(body, &facts());
        let turns = sent["messages"].as_array().expect("turns");
        let call = &turns[1]["tool_calls"][0];
        assert_eq!(turns[1].as_object().expect("a message").len(), 3, "{sent}");
        assert_eq!(call["id"].as_str().map(str::len), Some(9), "{sent}");
        assert_eq!(turns[2]["tool_call_id"], call["id"]);
        assert_eq!(call["function"]["arguments"], "{}");
        assert_eq!(turns[3]["content"], serde_json::json!([{"type": "text", "text": "c"}]));
        assert_eq!(sent["n"], 1);
    }

    #[test]
    fn an_accepted_conversation_has_no_edits() {
        let body = r#"{"messages":[{"role":"user","content":"thinking_blocks"},
            {"role":"assistant","content":"b","tool_calls":[{"id":"abcdefghi"}]},
            {"role":"tool","tool_call_id":"abcdefghi","content":"\"refusal\""}]}"#;
        let mut found = Edits::new();
        edits(body.as_bytes(), &facts(), &mut found);
        assert!(found.is_empty(), "{found:?}");
        edits(body.as_bytes(), &ModelFacts::default(), &mut found);
        assert!(found.is_empty());
    }
}
