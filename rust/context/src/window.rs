//! Shortens a conversation that is too long for its model: removes the oldest messages until the rest fits, and inserts
//! a marker.
//!
//! System messages stay, and so does everything from the last user message on. A tool call and its result are removed
//! or kept together. Removing messages invalidates the provider's cached prefix.

use fairlead_core::json::Kind;
use fairlead_core::Dialect;
use fairlead_dialect::estimate_tokens;

use crate::edit::string;
use crate::tape::Tape;

/// A body after its oldest messages were removed.
#[derive(Debug, PartialEq, Eq)]
pub struct Trimmed {
    pub body: Vec<u8>,
    /// The number of removed messages.
    pub left_out: usize,
}

/// Removes the oldest messages until the body has about `most` tokens; `None` if that is not possible.
pub fn trim_window(dialect: Dialect, body: &[u8], most: u64) -> Option<Trimmed> {
    let tape = Tape::read(body).ok()?;
    let name = match dialect {
        Dialect::Openai | Dialect::Anthropic => "messages",
        Dialect::OpenaiResponses => "input",
        Dialect::Gemini => "contents",
    };
    let list = tape.member(0, name).filter(|list| tape.kind(*list) == Some(Kind::Array))?;
    let messages: Vec<usize> = tape.elements(list).collect();
    let first = messages.iter().position(|message| !is_system(&tape, *message))?;
    let begins: Vec<usize> =
        (first + 1..messages.len()).filter(|at| begins_turn(dialect, &tape, messages[*at])).collect();
    // Finds the smallest sufficient number by binary search, because the body shrinks with each later beginning.
    let fits = |at: usize| {
        let shorter = without(&tape, list, &messages, first..at, dialect)?;
        let tokens = estimate_tokens(dialect, &shorter).ok()?;
        (tokens <= most).then_some(shorter)
    };
    let enough = begins.partition_point(|at| fits(*at).is_none());
    let at = *begins.get(enough)?;
    Some(Trimmed { body: fits(at)?, left_out: at - first })
}

fn is_system(tape: &Tape<'_>, message: usize) -> bool {
    matches!(tape.member_text(message, "role").as_deref(), Some("system" | "developer"))
}

/// Whether a conversation may begin here: at a user message that is not a tool result.
fn begins_turn(dialect: Dialect, tape: &Tape<'_>, message: usize) -> bool {
    if tape.member_text(message, "role").as_deref() != Some("user") {
        return false;
    }
    let has = |list: &str, is_result: &dyn Fn(usize) -> bool| {
        tape.member(message, list).is_some_and(|list| tape.elements(list).any(is_result))
    };
    match dialect {
        Dialect::Anthropic => {
            !has("content", &|block| tape.member_text(block, "type").as_deref() == Some("tool_result"))
        }
        Dialect::Gemini => !has("parts", &|part| tape.member(part, "functionResponse").is_some()),
        Dialect::Openai | Dialect::OpenaiResponses => true,
    }
}

/// The body without some of its messages, and with the marker in their place.
fn without(
    tape: &Tape<'_>,
    list: usize,
    messages: &[usize],
    gone: std::ops::Range<usize>,
    dialect: Dialect,
) -> Option<Vec<u8>> {
    let (body, list) = (tape.bytes(), tape.value(list)?);
    let text =
        string(&format!("[{} earlier messages were left out: they did not fit the model's window.]", gone.len()));
    let marker = match dialect {
        Dialect::Openai | Dialect::Anthropic | Dialect::OpenaiResponses => {
            format!(r#"{{"role":"user","content":{text}}}"#)
        }
        Dialect::Gemini => format!(r#"{{"role":"user","parts":[{{"text":{text}}}]}}"#),
    };
    let mut out = Vec::with_capacity(body.len());
    out.extend_from_slice(body.get(..=list.start)?);
    for message in &messages[..gone.start] {
        out.extend_from_slice(tape.raw(*message));
        out.push(b',');
    }
    out.extend_from_slice(marker.as_bytes());
    for message in &messages[gone.end..] {
        out.push(b',');
        out.extend_from_slice(tape.raw(*message));
    }
    out.extend_from_slice(body.get(list.end - 1..)?);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(trimmed: &Trimmed) -> String {
        String::from_utf8(trimmed.body.clone()).expect("text")
    }

    #[test]
    fn the_oldest_go_and_tools_stay_together() {
        let long = "word ".repeat(400);
        let body = format!(
            r#"{{"model":"m","messages":[{{"role":"system","content":"s"}},{{"role":"user","content":"{long}"}},{{"role":"assistant","content":null,"tool_calls":[{{"id":"1","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"1","content":"{long}"}},{{"role":"user","content":"now"}}],"n":1}}"#
        );
        let trimmed = trim_window(Dialect::Openai, body.as_bytes(), 100).expect("it can be done");
        assert_eq!(trimmed.left_out, 3);
        let shown = text(&trimmed);
        assert!(
            shown.contains("3 earlier messages")
                && shown.contains(r#""content":"s""#)
                && shown.ends_with(r#"],"n":1}"#)
        );
        assert!(!shown.contains("tool_call_id"));
        assert!(serde_json::from_str::<serde_json::Value>(&shown).is_ok());
    }

    #[test]
    fn no_more_goes_than_must() {
        let turn = |name: &str| format!(r#"{{"role":"user","content":"{name} {}"}}"#, "word ".repeat(100));
        let body = format!(r#"{{"messages":[{},{},{}]}}"#, turn("a"), turn("b"), turn("c"));
        let trimmed = trim_window(Dialect::Anthropic, body.as_bytes(), 300).expect("it can be done");
        assert_eq!(trimmed.left_out, 1);
        assert!(trim_window(Dialect::Anthropic, body.as_bytes(), 50).is_none(), "the last message stays");
        assert!(trim_window(Dialect::Anthropic, br#"{"messages":"x"}"#, 1).is_none());
    }

    #[test]
    fn results_begin_no_conversation() {
        let long = "word ".repeat(200);
        let body = format!(
            r#"{{"contents":[{{"role":"user","parts":[{{"text":"{long}"}}]}},{{"role":"model","parts":[{{"functionCall":{{"name":"f","args":{{}}}}}}]}},{{"role":"user","parts":[{{"functionResponse":{{"name":"f","response":{{}}}}}}]}}]}}"#
        );
        assert!(trim_window(Dialect::Gemini, body.as_bytes(), 50).is_none());
    }
}
