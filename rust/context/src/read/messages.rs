//! Reads bodies of Anthropic Messages.

use fairlead_core::json::Kind;

use crate::conversation::Role;

use super::{command, Reader};

pub(super) fn read(reader: &mut Reader<'_, '_>) {
    let tape = reader.tape;
    reader.note_mark(0);
    for tool in tape.member(0, "tools").into_iter().flat_map(|tools| tape.elements(tools)) {
        reader.note_mark(tool);
    }
    if let Some(system) = tape.member(0, "system") {
        reader.content(system, Role::System, 0, None);
    }
    let Some(messages) = tape.member(0, "messages") else { return };
    for (turn, message) in tape.elements(messages).enumerate() {
        let role = reader.role(message);
        let Some(content) = tape.member(message, "content") else { continue };
        if tape.kind(content) == Some(Kind::String) {
            reader.content(content, role, turn, None);
        }
        for block in tape.elements(content) {
            reader.note_mark(block);
            match tape.member_text(block, "type").as_deref() {
                Some("tool_use") => note_call(reader, block),
                Some("tool_result") => {
                    let id = tape.member_text(block, "tool_use_id").unwrap_or_default();
                    let ran = reader.commands.get(id.as_ref()).cloned();
                    if let Some(inner) = tape.member(block, "content") {
                        reader.content(inner, Role::Tool, turn, ran.as_ref());
                    }
                }
                Some("text") => {
                    if let Some(text) = tape.member(block, "text") {
                        reader.push(text, role, turn, None);
                    }
                }
                _ => {}
            }
        }
    }
}

fn note_call(reader: &mut Reader<'_, '_>, block: usize) {
    let tape = reader.tape;
    let (Some(id), Some(input)) = (tape.member_text(block, "id"), tape.member(block, "input")) else { return };
    let name = tape.member_text(block, "name").unwrap_or_default();
    reader.commands.insert(id.into_owned(), command::of(tape, &name, input));
}
