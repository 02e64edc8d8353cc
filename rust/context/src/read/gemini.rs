//! Reads bodies of Gemini's `generateContent`. Calls are paired with results by name, because ids are optional there.

use crate::conversation::Role;

use super::{command, Reader};

pub(super) fn read(reader: &mut Reader<'_, '_>) {
    let tape = reader.tape;
    for name in ["systemInstruction", "system_instruction"] {
        if let Some(parts) = tape.member(0, name).and_then(|system| tape.member(system, "parts")) {
            reader.content(parts, Role::System, 0, None);
        }
    }
    let Some(contents) = tape.member(0, "contents") else { return };
    for (turn, content) in tape.elements(contents).enumerate() {
        let role = reader.role(content);
        for part in tape.member(content, "parts").into_iter().flat_map(|parts| tape.elements(parts)) {
            // A part with reasoning was written by the model and is signed.
            let is_signed = tape.member(part, "thoughtSignature").is_some() || tape.member(part, "thought").is_some();
            if let Some(text) = tape.member(part, "text").filter(|_| !is_signed) {
                reader.push(text, role, turn, None);
            }
            if let Some(call) = tape.member(part, "functionCall") {
                let name = tape.member_text(call, "name").unwrap_or_default();
                if let Some(arguments) = tape.member(call, "args") {
                    reader.commands.insert(name.to_string(), command::of(tape, &name, arguments));
                }
            }
            if let Some(result) = tape.member(part, "functionResponse") {
                let name = tape.member_text(result, "name").unwrap_or_default();
                let ran = reader.commands.get(name.as_ref()).cloned();
                let Some(response) = tape.member(result, "response") else { continue };
                let values: Vec<usize> = tape.members(response).map(|(_, value)| value).collect();
                for value in values {
                    reader.push(value, Role::Tool, turn, ran.clone());
                }
            }
        }
    }
}
