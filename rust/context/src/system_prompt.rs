//! Adds the operator's text before and after the caller's system prompt, in each dialect.
//!
//! The text is the same in every request, so a provider's prompt cache stays valid between turns. A change of the
//! setting invalidates every cached prefix once.

use fairlead_core::json::Kind;
use fairlead_core::{Dialect, SystemPrompt};

use crate::edit::{string, Edits};
use crate::tape::Tape;

/// The body with the operator's text; `None` if nothing is added, or if the body is not one of the dialect.
pub fn add_system_prompt(dialect: Dialect, body: &[u8], prompt: &SystemPrompt) -> Option<Vec<u8>> {
    if prompt.is_empty() {
        return None;
    }
    let tape = Tape::read(body).ok()?;
    let mut edits = Edits::default();
    match dialect {
        Dialect::Openai => chat(&tape, prompt, &mut edits)?,
        Dialect::Anthropic => texts(&tape, "system", prompt, &mut edits),
        Dialect::OpenaiResponses => texts(&tape, "instructions", prompt, &mut edits),
        Dialect::Gemini => gemini(&tape, prompt, &mut edits),
    }
    edits.apply(body)
}

/// Adds separate messages: one at the beginning, and one after the caller's first system messages.
fn chat(tape: &Tape<'_>, prompt: &SystemPrompt, edits: &mut Edits) -> Option<()> {
    let messages = tape.member(0, "messages").filter(|list| tape.kind(*list) == Some(Kind::Array))?;
    let is_system =
        |message: &usize| matches!(tape.member_text(*message, "role").as_deref(), Some("system" | "developer"));
    let last = tape.elements(messages).take_while(is_system).last();
    let message = |text: &str| format!(r#"{{"role":"system","content":{}}}"#, string(text));
    let mut before = String::new();
    if !prompt.prefix.is_empty() {
        before = message(&prompt.prefix);
    }
    if !prompt.suffix.is_empty() {
        match last {
            Some(last) => edits.add_after(tape, last, &message(&prompt.suffix)),
            None if before.is_empty() => before = message(&prompt.suffix),
            None => before = format!("{before},{}", message(&prompt.suffix)),
        }
    }
    if !before.is_empty() {
        edits.add_first(tape, messages, &before);
    }
    Some(())
}

/// Extends a member that is a text, or a list of text blocks.
fn texts(tape: &Tape<'_>, name: &str, prompt: &SystemPrompt, edits: &mut Edits) {
    let member = tape.member(0, name).filter(|index| tape.kind(*index) != Some(Kind::Null));
    let Some(member) = member else {
        if let Some(null) = tape.member(0, name) {
            return edits.replace(tape, null, string(&joined(prompt, None)));
        }
        return edits.add_member(tape, 0, name, &string(&joined(prompt, None)));
    };
    if let Some(own) = tape.text(member) {
        return edits.replace(tape, member, string(&joined(prompt, Some(&own))));
    }
    let block = |text: &str| format!(r#"{{"type":"text","text":{}}}"#, string(text));
    around(tape, member, prompt, block, edits);
}

fn gemini(tape: &Tape<'_>, prompt: &SystemPrompt, edits: &mut Edits) {
    let part = |text: &str| format!(r#"{{"text":{}}}"#, string(text));
    let instruction = ["systemInstruction", "system_instruction"].iter().find_map(|name| tape.member(0, name));
    if let Some(parts) = instruction.and_then(|instruction| tape.member(instruction, "parts")) {
        return around(tape, parts, prompt, part, edits);
    }
    let whole = format!(r#"{{"parts":[{}]}}"#, part(&joined(prompt, None)));
    match instruction {
        Some(instruction) => edits.replace(tape, instruction, whole),
        None => edits.add_member(tape, 0, "systemInstruction", &whole),
    }
}

/// Adds an element at the beginning and one at the end of a list.
fn around(tape: &Tape<'_>, list: usize, prompt: &SystemPrompt, element: impl Fn(&str) -> String, edits: &mut Edits) {
    let last = tape.elements(list).last();
    let mut before = if prompt.prefix.is_empty() { String::new() } else { element(&prompt.prefix) };
    if !prompt.suffix.is_empty() {
        match last {
            Some(last) => edits.add_after(tape, last, &element(&prompt.suffix)),
            None if before.is_empty() => before = element(&prompt.suffix),
            None => before = format!("{before},{}", element(&prompt.suffix)),
        }
    }
    if !before.is_empty() {
        edits.add_first(tape, list, &before);
    }
}

fn joined(prompt: &SystemPrompt, own: Option<&str>) -> String {
    let texts = [prompt.prefix.as_str(), own.unwrap_or_default(), prompt.suffix.as_str()];
    texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(dialect: Dialect, body: &str) -> String {
        let prompt = SystemPrompt { prefix: "A \"rule\"".into(), suffix: "Z".into() };
        String::from_utf8(add_system_prompt(dialect, body.as_bytes(), &prompt).expect("a change")).expect("text")
    }

    #[test]
    fn chat_has_messages_of_its_own() {
        assert_eq!(
            added(Dialect::Openai, r#"{"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"}]}"#),
            r#"{"messages":[{"role":"system","content":"A \"rule\""},{"role":"system","content":"s"},{"role":"system","content":"Z"},{"role":"user","content":"u"}]}"#
        );
        assert_eq!(
            added(Dialect::Openai, r#"{"messages":[{"role":"user","content":"u"}]}"#),
            r#"{"messages":[{"role":"system","content":"A \"rule\""},{"role":"system","content":"Z"},{"role":"user","content":"u"}]}"#
        );
    }

    #[test]
    fn texts_and_blocks_are_added_to() {
        assert_eq!(added(Dialect::Anthropic, r#"{"system":"s"}"#), r#"{"system":"A \"rule\"\n\ns\n\nZ"}"#);
        assert_eq!(added(Dialect::Anthropic, r#"{"max_tokens":1}"#), r#"{"system":"A \"rule\"\n\nZ","max_tokens":1}"#);
        assert_eq!(
            added(Dialect::Anthropic, r#"{"system":[{"type":"text","text":"s"}]}"#),
            r#"{"system":[{"type":"text","text":"A \"rule\""},{"type":"text","text":"s"},{"type":"text","text":"Z"}]}"#
        );
        assert_eq!(
            added(Dialect::OpenaiResponses, r#"{"instructions":null,"input":"u"}"#),
            r#"{"instructions":"A \"rule\"\n\nZ","input":"u"}"#
        );
        assert_eq!(
            added(Dialect::Gemini, r#"{"systemInstruction":{"parts":[{"text":"s"}]}}"#),
            r#"{"systemInstruction":{"parts":[{"text":"A \"rule\""},{"text":"s"},{"text":"Z"}]}}"#
        );
        assert_eq!(added(Dialect::Gemini, "{}"), r#"{"systemInstruction":{"parts":[{"text":"A \"rule\"\n\nZ"}]}}"#);
    }

    #[test]
    fn nothing_is_added_where_nothing_is_set_or_known() {
        assert!(add_system_prompt(Dialect::Openai, br#"{"messages":[]}"#, &SystemPrompt::default()).is_none());
        let prompt = SystemPrompt { prefix: "A".into(), suffix: String::new() };
        for body in [&b"[]"[..], b"{", br#"{"messages":1}"#] {
            assert!(add_system_prompt(Dialect::Openai, body, &prompt).is_none());
        }
    }
}
